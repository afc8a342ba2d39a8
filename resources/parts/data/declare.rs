//! The fields that the kinds of data files share.

use super::scalars::{parse_tree, parse_value};
use super::tree::{Tree, split_path};
use crate::fields::field_spec::Receives;
use crate::fields::field_spec::{FieldMode, FieldSpec, FieldType};
use crate::fields::field_values::{Fields, Invalid, Value};
use crate::parts::FieldReader;
use crate::parts::edit_fields::EditFields;
use crate::removal::Removal;

pub(crate) const KEY: FieldSpec = FieldSpec::new(
    "key",
    FieldType::Text,
    "The keys down to the value, with dots between them: server.port. A key with a dot stands in quotes: \"a.b\".c. A number is a position in a list, counted from 0. Missing maps are added.",
).known_at_load()
.required()
.example("server.port");
pub(crate) const VALUE: FieldSpec = FieldSpec::new(
    "value",
    FieldType::Text,
    "The value; also a list or a map. By default null, true, false, numbers, and JSON in brackets or quotes are read as such, and any other text and every secret is a string. A string of the file stays a string: \"80\" becomes \"8080\".",
).listable_at_own_place()
.nested()
.mode(FieldMode::Value)
.receives(Receives::Secrets)
.example("8080");
pub(crate) const TYPE: FieldSpec = FieldSpec::new(
    "type",
    FieldType::Choice(&["auto", "string", "tree"]),
    "string: the value is a string, even if it looks like a number. tree: the value is read as YAML or JSON, also on several lines, and replaces a string of the file.",
)
.default("auto")
.receives(Receives::Shown);

/// A declared value.
#[derive(Debug)]
pub(crate) struct DataValue {
    pub(crate) shared: EditFields,
    pub(crate) path: Vec<String>,
    /// The value; none if it must be absent.
    pub(crate) wanted: Option<Tree>,
    /// The declared text, if it is read as another scalar than a string without a declared type.
    pub(crate) text: Option<String>,
    pub(crate) part: String,
    pub(crate) removal: Option<Removal>,
}

/// The reading of a text without a declared type.
type ReadText = fn(&str) -> Result<Tree, String>;

/// Returns the reading of the formats that have no values of their own.
pub(crate) fn common_value(text: &str) -> Result<Tree, String> {
    parse_value(text)
}

/// Takes the fields of a kind of data files.
pub(crate) fn read_fields(
    name: &str,
    fields: Fields,
    read_text: ReadText,
) -> Result<DataValue, Vec<Invalid>> {
    let mut reader = FieldReader::new(fields);
    let mut shared = EditFields::read(&mut reader, name);
    let key = reader.required_text("key");
    let path = split_path(&key).unwrap_or_else(|why| {
        let hint = "for example server.port, or \"a.b\".c for a key with a dot";
        if !key.is_empty() {
            reader.reject(Invalid::field("key", why).hint(hint));
        }
        Vec::new()
    });
    shared.keys.clone_from(&path);
    let kind = reader.choice("type", &[("auto", 0), ("string", 1), ("tree", 2)]);
    let was_sensitive = shared.is_sensitive;
    shared.is_sensitive = false;
    let text = shared.secret_text(&mut reader, "value");
    let is_secret = shared.is_sensitive;
    shared.is_sensitive |= was_sensitive;
    let value = text.as_ref().map(|text| match kind.unwrap_or(0) {
        1 => Ok(Tree::Text(text.reveal().to_owned())),
        2 => parse_tree(text.reveal()),
        _ if is_secret => Ok(Tree::Text(text.reveal().to_owned())),
        _ => read_text(text.reveal()),
    });
    let wanted = match value {
        Some(Ok(value)) => Some(value),
        Some(Err(why)) => {
            let what = crate::parts::field_reader::bounded(format!("expected a value: {why}"));
            let hint = "type: string takes the text as it stands";
            reader.reject(Invalid::field("value", what).hint(hint));
            None
        }
        None if shared.is_present => {
            let problem = Invalid::field("value", "expected `value`, found none");
            reader.reject(problem.hint("value: 8080; \"null\" stands for null"));
            None
        }
        None => None,
    };
    let is_scalar = |it: &Tree| !matches!(it, Tree::Text(_) | Tree::List(_) | Tree::Map(_));
    let is_doubtful = kind.unwrap_or(0) == 0 && wanted.as_ref().is_some_and(is_scalar);
    let text = text.filter(|_| is_doubtful).map(|text| text.reveal().to_owned());
    let removal = shared.removal().map(|it| it.with("key", Value::Text(key.clone())));
    let part = format!("the value {}", path.join("."));
    let wanted = wanted.filter(|_| shared.is_present);
    reader.finish(DataValue { shared, path, wanted, text, part, removal })
}
