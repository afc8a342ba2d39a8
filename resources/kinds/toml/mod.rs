//! `toml`: one value of a TOML file.
//!
//! Reading order: this file, `editor.rs`.

mod editor;

pub(crate) use editor::read_tree;

use crate::fields::field_values::{Fields, Invalid, Place};
use crate::kind::KindSpec;
use crate::parts::data::declare::{KEY, TYPE, VALUE, common_value, read_fields};
use crate::parts::data::tree::Tree;
use crate::parts::edit_fields::{
    CREATE, EDIT_SENDS, FILE, IN_PLACE, PATH, SENSITIVE, STATE, VALIDATE,
};
use crate::resource::Resource;
use std::sync::Arc;

/// The declaration of the kind.
pub static SPEC: KindSpec = KindSpec {
    kind: "toml",
    collectible: true,
    doc: "Manages one value of a TOML file; comments and every other byte stay. A whole [table] is not replaced: declare its keys.",
    fields: &[PATH, FILE, KEY, VALUE, TYPE, STATE, CREATE, VALIDATE, IN_PLACE, SENSITIVE],
    sends: EDIT_SENDS,
    example: "toml:\n  - name: root of containerd\n    path: /etc/containerd/config.toml\n    key: root\n    value: /srv/containerd\n",
    restore: None,
    build,
};

fn build(name: &str, fields: Fields, _place: &Place) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let value = read_fields(name, fields, read_text)?;
    if value.wanted.as_ref().is_some_and(has_null) {
        let hint = "state: absent removes the key";
        return Err(vec![Invalid::field("value", "TOML has no null").hint(hint)]);
    }
    let editor = editor::TomlEditor {
        path: value.path,
        wanted: value.wanted,
        text: value.text,
        is_secret: value.shared.is_sensitive,
    };
    Ok(value.shared.into_resource(value.part, editor, value.removal))
}

/// Returns the value of a declared text: a date as TOML writes it, or a value of every format.
fn read_text(text: &str) -> Result<Tree, String> {
    match text.trim().parse::<toml_edit::Value>() {
        Ok(toml_edit::Value::Datetime(date)) => Ok(Tree::Other(date.value().to_string())),
        _ => common_value(text),
    }
}

fn has_null(tree: &Tree) -> bool {
    match tree {
        Tree::Null => true,
        Tree::List(items) => items.iter().any(has_null),
        Tree::Map(entries) => entries.iter().any(|(_, value)| has_null(value)),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
