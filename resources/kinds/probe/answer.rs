//! The answer of a probe: the part of the output that counts, and its type.

use super::Kind;
use crate::failure::Failure;
use crate::fields::field_values::{Invalid, Value};
use crate::host::{End, Finished};
use crate::parts::FieldReader;
use crate::secrets::escape::short;
use crate::values::sent_values::{Sent, SentValue};
use regex_lite::Regex;

/// The rule that finds the value in the output of a command.
#[derive(Debug, Default)]
pub(super) struct AnswerRule {
    pub(super) kind: Kind,
    /// The standard error output counts instead of the standard output.
    pub(super) is_stderr: bool,
    find: Find,
}

/// The part of the output that counts.
#[derive(Debug, Default)]
enum Find {
    /// The whole output without the last line breaks.
    #[default]
    Whole,
    /// The first group or the whole of a match; for a truth value the existence of a match.
    Match(Regex),
    /// The value at a dotted path of a JSON output.
    Json(Vec<String>),
    /// The lines, as a list.
    Lines,
    /// The exit code; for a truth value, success.
    Exit,
}

/// Reads the fields `type` and `value`.
pub(super) fn read_rule(reader: &mut FieldReader) -> AnswerRule {
    let words = [
        ("text", Kind::Text),
        ("int", Kind::Int),
        ("float", Kind::Float),
        ("bool", Kind::Bool),
        ("json", Kind::Json),
    ];
    let kind = reader.choice("type", &words);
    let mut rule = AnswerRule { kind: kind.unwrap_or_default(), ..AnswerRule::default() };
    let Some(entries) = reader.fields.text_map("value") else { return rule };
    let mut kind = None;
    let mut finds: Vec<&str> = Vec::new();
    for (key, text) in &entries {
        let mut is_right = true;
        match (key.as_str(), text.as_str()) {
            ("type", "string" | "text") => kind = Some(Kind::Text),
            ("type", "int") => kind = Some(Kind::Int),
            ("type", "float") => kind = Some(Kind::Float),
            ("type", "bool") => kind = Some(Kind::Bool),
            ("type", "json") => kind = Some(Kind::Json),
            ("stream", "stdout") => rule.is_stderr = false,
            ("stream", "stderr") => rule.is_stderr = true,
            ("lines" | "exit", "false") => {}
            ("lines", "true") => rule.find = Find::Lines,
            ("exit", "true") => rule.find = Find::Exit,
            ("json", path) => {
                let path = path.trim_start_matches('.').split('.').filter(|it| !it.is_empty());
                rule.find = Find::Json(path.map(str::to_owned).collect());
            }
            ("match", pattern) => match Regex::new(pattern) {
                Ok(pattern) => rule.find = Find::Match(pattern),
                Err(error) => {
                    let what = format!("`match` is no regular expression: {error}");
                    reader.reject(Invalid::field("value", what));
                }
            },
            _ => is_right = false,
        }
        if !is_right {
            let what = format!("unexpected `{}: {}`", short(key, 20), short(text, 20));
            let hint = "keys: type (string, int, float, bool, json), stream (stdout, stderr), and one of match, json, lines, exit";
            reader.reject(Invalid::field("value", what).hint(hint));
        }
        let is_off = ["lines", "exit"].contains(&key.as_str()) && text == "false";
        if is_right && !is_off && !["type", "stream"].contains(&key.as_str()) {
            finds.push(key);
        }
    }
    if let [one, other, ..] = finds.as_slice() {
        let what = format!("`{one}` and `{other}` exclude each other");
        let hint = "keep one of match, json, lines and exit";
        reader.reject(Invalid::field("value", what).hint(hint));
    }
    let is_scalar = matches!(kind, Some(Kind::Int | Kind::Float | Kind::Bool));
    if matches!(rule.find, Find::Lines) && is_scalar {
        let what = "`lines: true` gives a list of strings, not a value of `type`";
        let hint = "remove `type`, or write `match` or `json` instead of `lines`";
        reader.reject(Invalid::field("value", what).hint(hint));
    }
    // Lines are a list, whether its items are called strings or the whole is called JSON.
    let kind = kind.filter(|_| !matches!(rule.find, Find::Lines));
    rule.kind = kind.unwrap_or(match rule.find {
        Find::Match(_) => Kind::Bool,
        Find::Exit => Kind::Int,
        Find::Lines | Find::Json(_) => Kind::Json,
        Find::Whole => Kind::Text,
    });
    rule
}

impl AnswerRule {
    /// Returns true if the exit code is the answer, so that no code is a failure.
    pub(super) const fn is_exit(&self) -> bool {
        matches!(self.find, Find::Exit)
    }

    /// Returns the answer of a command as text.
    pub(super) fn output_of(&self, finished: &Finished) -> Result<String, Failure> {
        if let (Find::Exit, End::Exited(code)) = (&self.find, finished.end) {
            return Ok(if self.kind == Kind::Bool {
                (code == 0).to_string()
            } else {
                code.to_string()
            });
        }
        let captured = if self.is_stderr { &finished.stderr } else { &finished.stdout };
        if captured.truncated() {
            return Err(Failure::new("the answer exceeds 1 MiB"));
        }
        let text = captured.text();
        let text = text.trim_end_matches('\n');
        match &self.find {
            Find::Whole | Find::Exit => Ok(text.to_owned()),
            Find::Match(pattern) if self.kind == Kind::Bool => {
                Ok(pattern.is_match(text).to_string())
            }
            Find::Match(pattern) => {
                let found = pattern.captures(text);
                let found = found.and_then(|all| all.get(1).or_else(|| all.get(0)));
                let what = || format!("the output does not match {}", short(pattern.as_str(), 60));
                Ok(found.ok_or_else(|| Failure::new(what()))?.as_str().to_owned())
            }
            Find::Lines => {
                let lines: Vec<&str> = text.lines().collect();
                Ok(serde_json::Value::from(lines).to_string())
            }
            Find::Json(path) => json_part(text, path, self.kind),
        }
    }

    /// Returns the values that an answer sends.
    pub(super) fn values(&self, output: String) -> Result<Sent, Failure> {
        let value = match self.kind {
            Kind::Text => None,
            Kind::Int => output.trim().parse().ok().map(|it| ("int", Value::Int(it))),
            Kind::Float => number(&output).map(|it| ("float", Value::Float(it))),
            Kind::Bool => truth(&output).map(|it| ("bool", Value::Bool(it))),
            Kind::Json => {
                let parsed: Result<serde_json::Value, _> = serde_json::from_str(&output);
                parsed.ok().map(|it| ("json", Value::Text(it.to_string())))
            }
        };
        if value.is_none() && self.kind != Kind::Text {
            let kind = format!("{:?}", self.kind).to_lowercase();
            let what = format!("expected an answer of type {kind}, found {}", short(&output, 40));
            return Err(Failure::new(what).hint("change the command, or `type`"));
        }
        let float = match value {
            #[expect(clippy::cast_precision_loss, reason = "a float is wanted")]
            Some((_, Value::Int(number))) => Some(("float", Value::Float(number as f64))),
            _ => None,
        };
        let output = ("output", Value::Text(output));
        let all = [Some(output), value, float].into_iter().flatten();
        Ok(all.map(|(key, value)| (key, SentValue::Shown(value))).collect())
    }
}

/// Returns the value at a path of a JSON text: a string without its quotes, unless JSON is wanted.
fn json_part(text: &str, path: &[String], kind: Kind) -> Result<String, Failure> {
    let what = |error| format!("expected JSON, found {}: {error}", short(text, 40));
    let top: serde_json::Value =
        serde_json::from_str(text).map_err(|error| Failure::new(what(error)))?;
    let mut part = &top;
    for step in path {
        let below = match part {
            serde_json::Value::Array(items) => {
                step.parse::<usize>().ok().and_then(|at| items.get(at))
            }
            other => other.get(step),
        };
        let missing = || format!("the JSON answer has no {}", short(&path.join("."), 60));
        part = below.ok_or_else(|| Failure::new(missing()))?;
    }
    Ok(match part {
        serde_json::Value::String(text) if kind != Kind::Json => text.clone(),
        other => other.to_string(),
    })
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite())
}

fn truth(text: &str) -> Option<bool> {
    match text.trim() {
        "true" | "yes" | "1" => Some(true),
        "false" | "no" | "0" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::field_values::Fields;
    use crate::host::Captured;

    fn rule(kind: Kind, find: Find) -> AnswerRule {
        AnswerRule { kind, is_stderr: false, find }
    }

    fn finished(code: i32, output: &str) -> Finished {
        let mut stdout = Captured::default();
        stdout.push(output.as_bytes());
        Finished { end: End::Exited(code), stdout, stderr: Captured::default(), held: false }
    }

    #[test]
    fn an_answer_has_the_declared_type() {
        let values = |kind, output: &str| rule(kind, Find::Whole).values(output.to_owned());
        let shown = |value| SentValue::Shown(value);
        let output = ("output", shown(Value::Text("7".to_owned())));
        let float = ("float", shown(Value::Float(7.0)));
        let int = ("int", shown(Value::Int(7)));
        assert_eq!(values(Kind::Int, "7").unwrap(), [output.clone(), int, float]);
        assert_eq!(values(Kind::Text, "7").unwrap(), [output]);
        for (kind, wrong) in
            [(Kind::Int, "7.5"), (Kind::Float, "nan"), (Kind::Bool, "on"), (Kind::Json, "{")]
        {
            let failure = values(kind, wrong).unwrap_err();
            assert!(failure.what.contains(wrong), "{failure}");
        }
    }

    fn read(value: &[(&str, &str)]) -> Result<AnswerRule, Vec<Invalid>> {
        let value = value.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned()));
        let mut fields = Fields::default();
        fields.insert("value", Value::TextMap(value.collect()));
        let mut reader = FieldReader::new(fields);
        let rule = read_rule(&mut reader);
        reader.finish(rule)
    }

    #[test]
    fn lines_are_a_list_of_strings() {
        for of in [&[][..], &[("type", "string")], &[("type", "json")]] {
            let value = [&[("lines", "true")], of].concat();
            assert_eq!(read(&value).unwrap().kind, Kind::Json, "{of:?}");
        }
        for of in ["int", "float", "bool"] {
            let refused = read(&[("lines", "true"), ("type", of)]).unwrap_err();
            assert!(refused[0].what.contains("`lines: true` gives a list"), "{refused:?}");
        }
        assert_eq!(read(&[("lines", "false"), ("type", "int")]).unwrap().kind, Kind::Int);
        // The message names what excludes each other.
        let refused = read(&[("json", "a"), ("match", "b")]).unwrap_err();
        assert_eq!(refused[0].what, "`json` and `match` exclude each other");
    }

    #[test]
    fn the_part_of_an_output_is_found() {
        let pattern = || Find::Match(Regex::new("version ([0-9.]+)").unwrap());
        let text = finished(0, "nginx version 1.22\nbuilt\n");
        assert_eq!(rule(Kind::Bool, pattern()).output_of(&text).unwrap(), "true");
        assert_eq!(rule(Kind::Text, pattern()).output_of(&text).unwrap(), "1.22");
        assert!(rule(Kind::Text, pattern()).output_of(&finished(0, "no")).is_err());
        assert_eq!(
            rule(Kind::Json, Find::Lines).output_of(&finished(0, "a\nb\n")).unwrap(),
            r#"["a","b"]"#
        );
        let path = |path: &[&str]| Find::Json(path.iter().map(|it| (*it).to_owned()).collect());
        let json = finished(0, r#"{"a": [{"b": "x"}]}"#);
        assert_eq!(rule(Kind::Text, path(&["a", "0", "b"])).output_of(&json).unwrap(), "x");
        assert_eq!(rule(Kind::Json, path(&["a"])).output_of(&json).unwrap(), r#"[{"b":"x"}]"#);
        assert!(rule(Kind::Text, path(&["c"])).output_of(&json).is_err());
        assert_eq!(rule(Kind::Bool, Find::Exit).output_of(&finished(3, "")).unwrap(), "false");
        assert_eq!(rule(Kind::Int, Find::Exit).output_of(&finished(3, "")).unwrap(), "3");
    }
}
