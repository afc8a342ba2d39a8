//! Topics with a dot besides `KIND.FIELD`: `meta.limit`, `settings.graph`, `modules.use`, `for_each.item`,
//! `file.template`.

use super::topics::{Topic, find_topic};
use super::words::explain_key_of;
use super::{more_of, takes};
use crate::config::{metaparams, settings};
use steadfast_resources::{FieldSpec, KindSet};

/// The keys that make the text of a kind with templates.
const TEMPLATE_KEYS: [&str; 3] = ["template", "with", "values"];

/// Returns the lines of a topic such as `meta.limit`; `None` for an unknown one.
pub(super) fn explain_field_key(topic: &str) -> Option<Vec<String>> {
    let (place, key) = topic.split_once('.')?;
    let fields: &[FieldSpec] = match place {
        "meta" => metaparams(),
        "settings" => settings(),
        _ => return explain_key_of(place, key),
    };
    let field = fields.iter().find(|field| field.name == key)?;
    let text = format!("{}. {}{}", takes(field.takes), field.doc, more_of(field));
    Some(vec![format!("{place}.{key}: {text}"), format!("More: steadfast explain {place}")])
}

/// Returns the page of `KIND.template`, `KIND.with` and `KIND.values` for a kind with templates.
pub(super) fn template_topic(topic: &str) -> Option<Topic> {
    let (kind, key) = topic.split_once('.')?;
    let spec = KindSet::of_this_build().find(kind)?;
    let is_template = TEMPLATE_KEYS.contains(&key) && spec.template_field().is_some();
    is_template.then(|| find_topic("template")).flatten()
}
