//! The keys of a file whose values are single words or strings of one line.

use jsonc_parser::ast::Value as Json;

/// A key as the kinds write it.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) name: String,
    /// The section of an ini file.
    pub(crate) section: Option<String>,
}

/// Returns the keys of a file of a kind.
pub(crate) fn of(kind: &str, text: &str) -> Vec<Key> {
    let plain = |names: Vec<String>| names.into_iter().map(|name| Key { name, section: None });
    match kind {
        "json" => plain(json(text)).collect(),
        "toml" => plain(toml(text)).collect(),
        "yaml" => plain(yaml(text)).collect(),
        _ => ini(text),
    }
}

fn quoted(key: &str) -> String {
    format!("\"{}\"", key.replace('\\', "\\\\").replace('"', "\\\""))
}

fn joined(above: &str, key: &str) -> String {
    if above.is_empty() { quoted(key) } else { format!("{above}.{}", quoted(key)) }
}

fn json(text: &str) -> Vec<String> {
    fn collect(value: &Json<'_>, above: &str, all: &mut Vec<String>) {
        match value {
            Json::Object(object) => {
                for property in &object.properties {
                    let name = joined(above, property.name.as_str());
                    collect(&property.value, &name, all);
                }
            }
            Json::Array(_) | Json::NullKeyword(_) => {}
            _ => all.push(above.to_owned()),
        }
    }
    let parsed = jsonc_parser::parse_to_ast(
        text,
        &jsonc_parser::CollectOptions::default(),
        &jsonc_parser::ParseOptions::default(),
    );
    let mut all = Vec::new();
    if let Some(value) = parsed.ok().and_then(|parsed| parsed.value) {
        collect(&value, "", &mut all);
    }
    all.retain(|name| !name.is_empty());
    all
}

fn toml(text: &str) -> Vec<String> {
    fn collect(table: &dyn toml_edit::TableLike, above: &str, all: &mut Vec<String>) {
        for (key, item) in table.iter() {
            let name = joined(above, key);
            match item {
                toml_edit::Item::Value(toml_edit::Value::String(text))
                    if !text.value().contains('\n') =>
                {
                    all.push(name);
                }
                toml_edit::Item::Value(
                    toml_edit::Value::Integer(_) | toml_edit::Value::Boolean(_),
                ) => all.push(name),
                _ => {
                    if let Some(table) = item.as_table_like() {
                        collect(table, &name, all);
                    }
                }
            }
        }
    }
    let mut all = Vec::new();
    if let Ok(document) = text.parse::<toml_edit::DocumentMut>() {
        collect(document.as_table(), "", &mut all);
    }
    all
}

/// Returns the keys at the top whose values are plain words of one line.
fn yaml(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let key = |(number, line): (usize, &&str)| {
        let (key, value) = line.split_once(": ")?;
        let is_word = |text: &str| {
            !text.is_empty()
                && text.bytes().all(|it| it.is_ascii_alphanumeric() || b"_-./".contains(&it))
        };
        // A value that goes on in the next line is no single word.
        let goes_on = lines.get(number + 1).is_some_and(|next| next.starts_with(' '));
        (is_word(key) && !key.starts_with('-') && is_word(value.trim()) && !goes_on)
            .then(|| quoted(key))
    };
    lines.iter().enumerate().filter_map(key).collect()
}

fn ini(text: &str) -> Vec<Key> {
    let (mut all, mut section): (Vec<Key>, Option<String>) = (Vec::new(), None);
    let lines: Vec<&str> = text.lines().collect();
    for (number, line) in lines.iter().enumerate() {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = Some(name.to_owned());
        }
        let goes_on = line.ends_with('\\')
            || lines.get(number + 1).is_some_and(|next| next.starts_with([' ', '\t']));
        let Some((key, value)) = line.split_once('=') else { continue };
        let name = key.trim();
        let is_name = !name.is_empty()
            && name.bytes().all(|it| it.is_ascii_alphanumeric() || b"_-.".contains(&it));
        let is_once = |known: &Key| known.name != name || known.section != section;
        if is_name
            && section.is_some()
            && !goes_on
            && !value.trim().is_empty()
            && all.iter().all(is_once)
        {
            all.push(Key { name: name.to_owned(), section: section.clone() });
        }
    }
    // The last of several equal keys counts, and the kinds reject some of them.
    let count = |key: &Key| {
        lines
            .iter()
            .filter(|line| line.split('=').next().is_some_and(|it| it.trim() == key.name))
            .count()
    };
    all.retain(|key| count(key) == 1);
    all
}
