//! The filters that quote a value for a program: `sh`, `json`, `ini`.

use crate::expressions::evaluation::program::from_engine;
use crate::expressions::value::Value;
use minijinja::{Environment, Error, ErrorKind};

/// Adds the filters to the engine of templates.
pub(in crate::expressions) fn add_filters(engine: &mut Environment<'static>) {
    engine.add_filter("sh", |value: minijinja::Value| quote_with(&value, quote_for_shell));
    engine.add_filter("json", |value: minijinja::Value| quote_with(&value, quote_as_json));
    engine.add_filter("ini", |value: minijinja::Value| quote_with(&value, quote_for_ini));
}

fn quote_with(
    value: &minijinja::Value,
    quote: fn(&Value) -> Result<String, String>,
) -> Result<String, Error> {
    let failed = |problem: String| Error::new(ErrorKind::InvalidOperation, problem);
    let value = from_engine(value).map_err(|problem| failed(format!("the value {problem}")))?;
    quote(&value).map_err(failed)
}

/// Quotes a value as one word of a shell, a list as several words.
pub(in crate::expressions) fn quote_for_shell(value: &Value) -> Result<String, String> {
    if let Value::List(items) = value {
        let words: Vec<String> = items.iter().map(quote_for_shell).collect::<Result<_, _>>()?;
        return Ok(words.join(" "));
    }
    let text = text_of(value, "sh")?;
    if text.contains('\0') {
        return Err("`sh` cannot quote a zero byte".to_owned());
    }
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_./:@%+,-".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) {
        return Ok(text);
    }
    Ok(format!("'{}'", text.replace('\'', r"'\''")))
}

fn quote_as_json(value: &Value) -> Result<String, String> {
    serde_json::to_string(value).map_err(|error| error.to_string())
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
