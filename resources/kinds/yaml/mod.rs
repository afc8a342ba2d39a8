//! `yaml`: one value of a YAML file.

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
    kind: "yaml",
    collectible: true,
    doc: "Manages one value of a YAML file; comments and every other byte stay. A place with anchors, aliases, tags or merge keys is not edited.",
    fields: &[PATH, FILE, KEY, VALUE, TYPE, STATE, CREATE, VALIDATE, IN_PLACE, SENSITIVE],
    sends: EDIT_SENDS,
    example: "yaml:\n  - name: address of the exporter\n    path: /etc/prometheus/web.yml\n    key: tls_server_config.min_version\n    value: TLS13\n",
    restore: None,
    build,
};

fn build(name: &str, fields: Fields, _place: &Place) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let value = read_fields(name, fields, common_value)?;
    let editor = DataEditor {
        format: Format::Yaml,
        path: value.path,
        wanted: value.wanted,
        text: value.text,
        is_secret: value.shared.is_sensitive,
    };
    Ok(value.shared.into_resource(value.part, editor, value.removal))
}

#[cfg(test)]
mod tests;
