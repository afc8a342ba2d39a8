//! The filters that quote a value for a program: `sh`, `json`, `ini`.

use super::bounded_text::{BoundedText, LONGEST_TEXT};
use super::nested_values::charge_parts;
use crate::expressions::evaluation::program::from_engine;
use crate::expressions::value::Value;
use minijinja::{Environment, Error, ErrorKind, State};

/// Adds the filters to the engine of templates.
pub(in crate::expressions) fn add_filters(engine: &mut Environment<'static>) {
    add_filter(engine, "sh", quote_for_shell);
    add_filter(engine, "json", quote_as_json);
    add_filter(engine, "ini", quote_for_ini);
}

type Quote = fn(&Value) -> Result<String, String>;

fn add_filter(engine: &mut Environment<'static>, name: &'static str, quote: Quote) {
    engine.add_filter(name, move |state: &State<'_, '_>, value: &minijinja::Value| {
        charge_parts(state, value)?;
        let failed = |problem: String| Error::new(ErrorKind::InvalidOperation, problem);
        let value = from_engine(value).map_err(|problem| failed(format!("the value {problem}")))?;
        quote(&value).map_err(failed)
    });
}

/// Quotes a value as one word of a shell, a list as several words.
pub(in crate::expressions) fn quote_for_shell(value: &Value) -> Result<String, String> {
    if let Value::List(items) = value {
        let mut words = String::new();
        for (number, item) in items.iter().enumerate() {
            if number > 0 {
                words.push(' ');
            }
            words.push_str(&quote_for_shell(item)?);
            check_quoted("sh", words.len())?;
        }
        return Ok(words);
    }
    let text = text_of(value, "sh")?;
    if text.contains('\0') {
        return Err("`sh` cannot quote a zero byte".to_owned());
    }
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_./:@%+,-".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) {
        return Ok(text);
    }
    check_quoted("sh", text.len() + 3 * text.matches('\'').count())?;
    Ok(format!("'{}'", text.replace('\'', r"'\''")))
}

/// Checks the length of a quoted text before it is made.
fn check_quoted(filter: &str, length: usize) -> Result<(), String> {
    if length <= LONGEST_TEXT {
        return Ok(());
    }
    Err(format!("`{filter}` gives a text of more than {} MiB", LONGEST_TEXT >> 20))
}

fn quote_as_json(value: &Value) -> Result<String, String> {
    let mut text = BoundedText::default();
    serde_json::to_writer(&mut text, value).map_err(|error| format!("`json` {error}"))?;
    Ok(text.into_text())
}

/// Quotes a value of an INI file, if it needs quotes.
fn quote_for_ini(value: &Value) -> Result<String, String> {
    let text = text_of(value, "ini")?;
    if text.chars().any(char::is_control) {
        return Err("`ini` cannot quote a line break or another control character".to_owned());
    }
    let is_plain = !text.is_empty()
        && text.trim() == text
        && !text.contains(['"', '\'', '\\', ';', '#', '=', '[', ']', '$', '`']);
    if is_plain {
        return Ok(text);
    }
    check_quoted("ini", text.len() + text.matches(['\\', '"']).count())?;
    Ok(format!("\"{}\"", text.replace('\\', r"\\").replace('"', "\\\"")))
}

/// Returns the text of a string, a number or a bool.
fn text_of(value: &Value, filter: &str) -> Result<String, String> {
    match value {
        Value::Float(number) => Ok(number.to_string()),
        other => other.embedded_text().ok_or_else(|| {
            format!("`{filter}` wants a string, number or bool, found {}", other.value_type())
        }),
    }
}
