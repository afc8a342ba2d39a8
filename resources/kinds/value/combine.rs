//! Conversions of received values: the types of texts, fields of JSON, joined lists.

use crate::change::CheckResult;
use crate::check_request::{Answer, CheckRequest};
use crate::failure::Failure;
use crate::fields::field_values::{Fields, Invalid, Value};
use crate::host::Host;
use crate::parts::data::scalars::{parse_tree, to_json};
use crate::parts::data::tree::{Tree, split_path};
use crate::resource::{Resource, Traits};
use crate::secrets::escape::short;
use crate::values::sent_values::{Sent, SentValue};

/// A text that is converted to a type. A text that cannot be converted is a failure of the check, because a received
/// text is not known at load.
#[derive(Debug)]
pub(super) struct Conversion {
    from: String,
    /// The type, one of the keys that the kind sends.
    target: &'static str,
    /// The keys down to the value in `from`; empty for the whole text.
    path: Vec<String>,
}

/// Takes the fields of a conversion; none if the declaration has none.
///
/// # Errors
///
/// Returns each field that lacks another one, and a wrong path of keys.
pub(super) fn read(fields: &mut Fields) -> Result<Option<Conversion>, Vec<Invalid>> {
    let (from, convert, field) =
        (fields.text("from"), fields.text("convert"), fields.text("field"));
    let mut problems = Vec::new();
    let Some(from) = from else {
        for name in [convert.map(|_| "convert"), field.map(|_| "field")].into_iter().flatten() {
            let problem = Invalid::field(name, "there is no `from` to convert");
            problems.push(problem.hint("set from, or receive it"));
        }
        return if problems.is_empty() { Ok(None) } else { Err(problems) };
    };
    let targets = ["text", "bool", "int", "float", "texts"];
    let target = targets.into_iter().find(|target| convert.as_deref() == Some(*target));
    if target.is_none() {
        let problem = Invalid::field("from", "expected `convert` beside it, found none");
        problems.push(problem.hint("for example convert: int"));
    }
    let path = field.as_deref().map(split_path).transpose().unwrap_or_else(|why| {
        let hint = "for example server.port, or \"a.b\".c for a key with a dot";
        problems.push(Invalid::field("field", why).hint(hint));
        None
    });
    match target {
        Some(target) if problems.is_empty() => {
            Ok(Some(Conversion { from, target, path: path.unwrap_or_default() }))
        }
        _ => Err(problems),
    }
}

/// Returns the list among these values as one text, with a separator between its items.
pub(super) fn join_texts(values: &Sent, separator: &str) -> Option<SentValue> {
    values.iter().find_map(|(_, value)| match value {
        SentValue::Shown(Value::Texts(texts)) => {
            Some(SentValue::Shown(Value::Text(texts.join(separator))))
        }
        _ => None,
    })
}

impl Conversion {
    fn convert(&self) -> Result<Value, Failure> {
        let tree = self.select()?;
        let text = plain_text(&tree);
        let expected = |what: &str| {
            let found = short(&text, 40);
            Failure::new(format!("expected {what} in `from`, found {found}"))
                .hint("check the sender of `from`, or choose another `convert`")
        };
        match self.target {
            "bool" => match text.to_ascii_lowercase().as_str() {
                "true" | "yes" | "on" | "1" => Ok(Value::Bool(true)),
                "false" | "no" | "off" | "0" => Ok(Value::Bool(false)),
                _ => Err(expected("true or false")),
            },
            "int" => text.parse().map(Value::Int).map_err(|_why| expected("an integer")),
            "float" => {
                let number = text.parse().ok().filter(|it: &f64| it.is_finite());
                number.map(Value::Float).ok_or_else(|| expected("a number"))
            }
            "texts" => match &tree {
                Tree::List(items) => Ok(Value::Texts(items.iter().map(plain_text).collect())),
                Tree::Map(_) => Err(expected("a list")),
                _ if self.path.is_empty() => match parse_tree(&text) {
                    Ok(Tree::List(items)) if text.starts_with('[') => {
                        Ok(Value::Texts(items.iter().map(plain_text).collect()))
                    }
                    _ => Ok(Value::Texts(text.lines().map(str::to_owned).collect())),
                },
                _ => Ok(Value::Texts(text.lines().map(str::to_owned).collect())),
            },
            _ => Ok(Value::Text(text)),
        }
    }

    /// Returns the value at the declared keys.
    fn select(&self) -> Result<Tree, Failure> {
        let text = self.from.trim();
        if self.path.is_empty() {
            return Ok(Tree::Text(text.to_owned()));
        }
        let tree = parse_tree(text).map_err(|why| {
            Failure::new(crate::parts::field_reader::bounded(format!("`from` is no JSON: {why}")))
                .hint("`field` needs a text in JSON or YAML")
        })?;
        tree.get(&self.path).cloned().ok_or_else(|| {
            let path = short(&self.path.join("."), 50);
            Failure::new(format!("`from` has no value {path}")).hint("check the keys of `field`")
        })
    }
}

/// Returns a value as a text: a string without quotes, a list or map as JSON.
fn plain_text(tree: &Tree) -> String {
    match tree {
        Tree::Text(text) => text.clone(),
        Tree::Null => String::new(),
        other => to_json(other, None),
    }
}

impl Resource for Conversion {
    fn traits(&self) -> Traits {
        Traits::confined_command()
    }

    fn sends(&self) -> Sent {
        let value = self.convert().ok().map(SentValue::Shown);
        value.map(|value| (self.target, value)).into_iter().collect()
    }

    fn sends_key(&self, key: &str) -> bool {
        key == self.target
    }

    fn check<'a>(&'a self, _host: &'a Host, _ask: CheckRequest) -> Answer<'a, CheckResult> {
        Box::pin(async {
            match self.convert() {
                Ok(_) => CheckResult::Same,
                Err(failure) => CheckResult::Unknown(failure),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Conversion;
    use crate::fields::field_values::Value;

    fn convert(from: &str, target: &'static str, path: &[&str]) -> Result<Value, String> {
        let path = path.iter().map(|key| (*key).to_owned()).collect();
        let conversion = Conversion { from: from.to_owned(), target, path };
        conversion.convert().map_err(|failure| failure.what)
    }

    #[test]
    fn texts_become_other_types() {
        assert_eq!(convert(" 8080\n", "int", &[]), Ok(Value::Int(8080)));
        assert_eq!(convert("yes", "bool", &[]), Ok(Value::Bool(true)));
        assert_eq!(convert("OFF", "bool", &[]), Ok(Value::Bool(false)));
        assert_eq!(convert("1.5", "float", &[]), Ok(Value::Float(1.5)));
        let texts = |all: &[&str]| Value::Texts(all.iter().map(|it| (*it).to_owned()).collect());
        assert_eq!(convert("a\nb\n", "texts", &[]), Ok(texts(&["a", "b"])));
        assert_eq!(convert("[\"a\", 1]", "texts", &[]), Ok(texts(&["a", "1"])));
        for (from, target) in [("x", "int"), ("maybe", "bool"), ("inf", "float"), ("", "int")] {
            assert!(convert(from, target, &[]).is_err(), "{from} {target}");
        }
    }

    #[test]
    fn fields_of_json_are_taken_out() {
        let json = "{\"a\": {\"b\": [1, {\"c\": \"d\"}]}, \"n\": \"7\"}";
        assert_eq!(convert(json, "int", &["n"]), Ok(Value::Int(7)));
        assert_eq!(convert(json, "text", &["a", "b", "1", "c"]), Ok(Value::Text("d".into())));
        assert_eq!(
            convert(json, "text", &["a", "b"]),
            Ok(Value::Text("[1, {\"c\": \"d\"}]".into()))
        );
        assert!(convert(json, "int", &["a"]).is_err());
        assert!(convert(json, "int", &["x"]).unwrap_err().contains("no value x"));
        assert!(convert("{", "int", &["x"]).unwrap_err().contains("no JSON"));
    }
}
