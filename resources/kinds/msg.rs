//! `msg`: logs a message once for each definition and again for each refresh, and writes to the journal on
//! request.
//!
//! The log gets the message on one line, as the note of the outcome.

use super::print::said;
use crate::change::{Change, CheckResult, Outcome};
use crate::check_request::{Answer, CheckRequest};
use crate::fields::field_spec::Receives;
use crate::fields::field_spec::{FieldMode, FieldSpec, FieldType};
use crate::fields::field_values::{Fields, Invalid, Place};
use crate::host::Host;
use crate::kind::KindSpec;
use crate::permit::Permit;
use crate::resource::{ExecutorKind, Resource, RunPolicy, Traits};
use crate::secrets::escape::printable;
use std::sync::Arc;

/// The declaration of the kind.
pub static SPEC: KindSpec = KindSpec {
    kind: "msg",
    collectible: true,
    doc: "Logs a message once, and again when it is notified.",
    fields: &[
        FieldSpec::new("body", FieldType::Text, "Message; default: the name.").listable().mode(FieldMode::Value)
            .receives(Receives::Shown),
        FieldSpec::new(
            "priority",
            FieldType::Text,
            "Priority for the journal: Emerg, Alert, Crit, Err, Warning, Notice, Info or Debug; default: Notice.",
        ).mode(FieldMode::Value).receives(Receives::Shown).example("Notice"),
        FieldSpec::new(
            "fields",
            FieldType::TextMap,
            "Extra journal fields: letters, digits and _, not starting with _ or a digit.",
        ).mode(FieldMode::Value).receives(Receives::Shown),
        FieldSpec::new(
            "journal",
            FieldType::Bool,
            "Also send the message to the journal; default: false.",
        ).receives(Receives::Shown),
        FieldSpec::later("syslog", "Also send the message to syslog."),
    ],
    sends: &[],
    example: "msg:\n  - name: hello\n    body: the graph was applied\n",
    restore: None,
    build,
};

/// The short and long names of the eight priorities, in the order of their numbers.
const PRIORITIES: [[&str; 2]; 8] = [
    ["emerg", "emergency"],
    ["alert", "alert"],
    ["crit", "critical"],
    ["err", "error"],
    ["warning", "warn"],
    ["notice", "notice"],
    ["info", "informational"],
    ["debug", "debug"],
];
const NOTICE: usize = 5;

#[derive(Debug)]
struct Msg {
    body: String,
    priority: usize,
    fields: Vec<(String, String)>,
    journal: bool,
}

fn build(
    name: &str,
    mut fields: Fields,
    _place: &Place,
) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let mut problems = Vec::new();
    let body = fields.text("body").filter(|body| !body.is_empty());
    let msg = Msg {
        body: body.unwrap_or_else(|| name.to_owned()),
        priority: priority(fields.text("priority"), &mut problems),
        fields: more(fields.text_map("fields").unwrap_or_default(), &mut problems),
        journal: fields.bool("journal").unwrap_or_default(),
    };
    if problems.is_empty() { Ok(Arc::new(msg)) } else { Err(problems) }
}

fn priority(text: Option<String>, problems: &mut Vec<Invalid>) -> usize {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return NOTICE };
    let wanted = text.to_ascii_lowercase();
    PRIORITIES.iter().position(|names| names.contains(&wanted.as_str())).unwrap_or_else(|| {
        let what = format!("expected a priority, found {text:?}");
        let hint = "Emerg, Alert, Crit, Err, Warning, Notice, Info or Debug";
        problems.push(Invalid::field("priority", what).hint(hint));
        NOTICE
    })
}

/// Checks and capitalises the names of additional journal fields: the journal accepts only capitals and
/// silently drops other names.
fn more(fields: Vec<(String, String)>, problems: &mut Vec<Invalid>) -> Vec<(String, String)> {
    let mut more = Vec::new();
    for (name, value) in fields {
        let field = name.to_ascii_uppercase();
        let is_taken = matches!(field.as_str(), "MESSAGE" | "PRIORITY" | "SYSLOG_IDENTIFIER");
        let is_name = field.bytes().next().is_some_and(|byte| byte.is_ascii_uppercase())
            && field.len() <= 64
            && field.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_name || is_taken {
            let what = format!("expected a journal field, found {name:?}");
            let hint = "use 1 to 64 letters, digits and _, starting with a letter; not a field of the message itself";
            problems.push(Invalid::field("fields", what).hint(hint));
        }
        more.push((field, value));
    }
    more
}

impl Msg {
    fn send(&self, host: &Host, permit: &Permit) -> Outcome {
        if permit.check().is_err() {
            return Outcome::Interrupted;
        }
        if self.journal {
            let priority = self.priority.to_string();
            let mut fields = vec![
                ("MESSAGE", self.body.as_str()),
                ("PRIORITY", priority.as_str()),
                ("SYSLOG_IDENTIFIER", "steadfast"),
            ];
            fields.extend(self.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())));
            if let Err(failure) = host.journal(permit, &fields) {
                return Outcome::Failed { failure, touched: false };
            }
        }
        Outcome::Changed(vec![format!("msg: {}", printable(&self.body))])
    }
}

impl Resource for Msg {
    fn traits(&self) -> Traits {
        let executor = if self.journal { ExecutorKind::Thread } else { ExecutorKind::Command };
        Traits { executor, repeat: RunPolicy::Once, confined: true, ..Traits::default() }
    }

    fn check<'a>(&'a self, _host: &'a Host, ask: CheckRequest) -> Answer<'a, CheckResult> {
        Box::pin(async move { said(&ask, &self.body) })
    }

    fn apply<'a>(
        &'a self,
        host: &'a Host,
        permit: &'a Permit,
        _change: Change,
    ) -> Answer<'a, Outcome> {
        Box::pin(async { self.send(host, permit) })
    }
}
