//! Support for tests of edits: runs the editor of a kind on a text.

use super::text_edit::{Edited, TextEdit};
use crate::failure::Failure;
use crate::fields::field_spec::FieldType;
use crate::fields::field_values::{Fields, Invalid, Place, Value};
use crate::kind::KindSpec;
use crate::resource::Resource;
use std::path::PathBuf;
use std::sync::Arc;

/// Builds a resource of a kind for the file /etc/f. A list of texts is given as lines.
pub(crate) fn build(
    spec: &KindSpec,
    given: &[(&str, &str)],
) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let mut fields = Fields::default();
    for (key, text) in given {
        let field = spec.fields.iter().find(|field| field.name == *key).expect("a field");
        let value = match (field.takes, text.strip_prefix("secret:")) {
            (_, Some(secret)) => Value::Secret(secret.into()),
            (FieldType::Bool, _) => Value::Bool(*text == "true"),
            (FieldType::Texts, _) => Value::Texts(text.lines().map(str::to_owned).collect()),
            _ => Value::Text((*text).to_owned()),
        };
        fields.insert(field.name, value);
    }
    spec.build_resource("/etc/f", fields, &Place { base: PathBuf::from("/") })
}

/// Returns the edit of a resource.
pub(crate) fn text_edit(resource: &Arc<dyn Resource>) -> Arc<TextEdit> {
    let grouping = resource.footprint().grouping.expect("an edit of a text file");
    grouping.part.downcast::<TextEdit>().expect("an edit of a text file")
}

/// Edits a text.
pub(crate) fn try_edit(
    spec: &KindSpec,
    given: &[(&str, &str)],
    text: &str,
) -> Result<Edited, Failure> {
    let resource = build(spec, given).unwrap_or_else(|wrong| panic!("{given:?}: {wrong:?}"));
    text_edit(&resource).editor.edit(text)
}

/// Edits a text, and asserts that a second edit changes nothing.
pub(crate) fn edit(spec: &KindSpec, given: &[(&str, &str)], text: &str) -> String {
    let edited = try_edit(spec, given, text).unwrap_or_else(|why| panic!("{text:?}: {why:?}"));
    let again = try_edit(spec, given, &edited.text).expect("an edited text is edited again");
    assert_eq!(again.text, edited.text, "{given:?} is not idempotent on {text:?}");
    assert_eq!(again.from, again.to, "{given:?}");
    edited.text
}

/// Edits with the fields that remove the resource.
pub(crate) fn remove(spec: &KindSpec, given: &[(&str, &str)], text: &str) -> String {
    let resource = build(spec, given).expect("valid");
    let removal = resource.footprint().removal.expect("a removal");
    let absent = spec.build_removal(&removal, "/etc/f").expect("a valid removal");
    assert!(absent.footprint().removal.is_none(), "a removal has no removal");
    text_edit(&absent).editor.edit(text).expect("removed").text
}

/// Asserts that fields are rejected, and returns the first message.
pub(crate) fn problem(spec: &KindSpec, given: &[(&str, &str)]) -> String {
    let problems = build(spec, given).map(|_| ()).expect_err("rejected");
    for problem in &problems {
        assert!(problem.what.chars().count() <= 100, "{problem:?}");
    }
    problems.first().expect("a problem").what.clone()
}

/// Asserts that an edit is refused, and returns the message.
pub(crate) fn refusal(spec: &KindSpec, given: &[(&str, &str)], text: &str) -> String {
    let failure = try_edit(spec, given, text).expect_err("refused");
    assert!(failure.what.chars().count() <= 100, "{failure:?}");
    failure.what
}
