//! `json`: one value of a JSON file, with or without comments.

use crate::fields::field_values::{Fields, Invalid, Place};
use crate::kind::KindSpec;
use crate::parts::data::declare::{KEY, TYPE, VALUE, common_value, read_fields};
use crate::parts::data::{DataEditor, Format};
use crate::parts::edit_fields::{
    CREATE, EDIT_SENDS, FILE, IN_PLACE, PATH, SENSITIVE, STATE, VALIDATE,
};
use crate::resource::Resource;
use std::sync::Arc;

/// The declaration of the kind.
pub static SPEC: KindSpec = KindSpec {
    kind: "json",
    collectible: true,
    doc: "Manages one value of a JSON file; comments and every other byte stay.",
    fields: &[PATH, FILE, KEY, VALUE, TYPE, STATE, CREATE, VALIDATE, IN_PLACE, SENSITIVE],
    sends: EDIT_SENDS,
    example: "json:\n  - name: log size of docker\n    path: /etc/docker/daemon.json\n    key: log-opts.max-size\n    value: 10m\n    create: true\n",
    restore: None,
    build,
};

fn build(name: &str, fields: Fields, _place: &Place) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let value = read_fields(name, fields, common_value)?;
    let editor = DataEditor {
        format: Format::Json,
        path: value.path,
        wanted: value.wanted,
        text: value.text,
        is_secret: value.shared.is_sensitive,
    };
    Ok(value.shared.into_resource(value.part, editor, value.removal))
}

#[cfg(test)]
mod tests;
