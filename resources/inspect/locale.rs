//! Inspection of locales and of the default language.

use super::{Field, Inspected, Inspector, text};
use crate::check_request::Answer;
use crate::failure::Failure;
use crate::fields::field_values::Value;
use crate::host::Host;
use crate::kinds::locale::{DEFAULTS, LIST, choose_file, is_builtin, normal, usual_charset};
use crate::parts::assignment::value_of;
use crate::parts::commands::query_text;
use crate::parts::text_edit::text_of;
use std::path::Path;
use tokio_util::sync::CancellationToken;

pub(super) const INSPECTOR: Inspector =
    Inspector { kind: "locale", one: one_locale, all: Some(all_locales) };

/// Returns the active entries of the list: names and character sets.
fn listed(host: &Host) -> Result<Vec<(String, String)>, Failure> {
    let list = text_of(host.files(), Path::new(LIST))?.unwrap_or_default();
    let entry = |line: &str| {
        let mut words = line.split_whitespace();
        let name = words.next().filter(|word| !word.starts_with('#'))?;
        Some((name.to_owned(), words.next()?.to_owned()))
    };
    Ok(list.lines().filter_map(entry).collect())
}

/// Returns the text of the file with the default language.
fn default_text(host: &Host) -> Result<String, Failure> {
    let path = DEFAULTS.get(choose_file(host)?).copied().unwrap_or_default();
    Ok(text_of(host.files(), Path::new(path))?.unwrap_or_default())
}

/// Returns the variables beside LANG that a declaration can have.
fn variables(defaults: &str) -> Vec<(String, String)> {
    let key = |line: &str| {
        let key = line.split_once('=')?.0.trim();
        let is_own = key == "LANGUAGE" || (key.starts_with("LC_") && key != "LC_ALL");
        is_own.then(|| key.to_owned())
    };
    let keys = defaults.lines().filter_map(key);
    keys.filter_map(|key| value_of(defaults, &key).map(|value| (key, value))).collect()
}

fn one_locale<'a>(host: &'a Host, name: &'a str) -> Answer<'a, Result<Option<Inspected>, Failure>> {
    Box::pin(async move {
        let entry = listed(host)?.into_iter().find(|(listed, _)| listed == name);
        if entry.is_none() && !is_builtin(name) {
            return Ok(None);
        }
        let cancel = CancellationToken::new();
        let all = query_text(host, &cancel, &["locale", "-a"]).await?;
        if !all.lines().any(|line| normal(line.trim()) == normal(name)) {
            return Ok(None);
        }
        let mut fields = Vec::new();
        if let Some((_, charset)) = entry.filter(|(_, charset)| charset != usual_charset(name)) {
            fields.push(text("charset", charset));
        }
        let defaults = default_text(host)?;
        if value_of(&defaults, "LANG").is_some_and(|language| language == name) {
            fields.push(("default", Field::Shown(Value::Bool(true))));
            let variables = variables(&defaults);
            if !variables.is_empty() {
                fields.push(("variables", Field::Shown(Value::TextMap(variables))));
            }
        }
        Ok(Some(Inspected::new(name.to_owned(), fields)))
    })
}

fn all_locales(host: &Host) -> Answer<'_, Result<Vec<String>, Failure>> {
    Box::pin(async move {
        let mut names: Vec<String> = listed(host)?.into_iter().map(|(name, _)| name).collect();
        let language = value_of(&default_text(host)?, "LANG");
        names.extend(language.filter(|language| is_builtin(language)));
        Ok(names)
    })
}
