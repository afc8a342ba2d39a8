//! `kv`: holds a key of the world to a value, and sends the value. Without `value` the resource only reads.

use crate::change::{Change, CheckResult, Difference, Outcome};
use crate::check_request::{Answer, CheckRequest};
use crate::failure::Failure;
use crate::fields::field_spec::Receives;
use crate::fields::field_spec::{FieldMode, FieldSpec, FieldType};
use crate::fields::field_values::{Fields, Invalid, Place, Value};
use crate::footprint::Footprint;
use crate::host::Host;
use crate::host::world::{WorldKey, WorldValue};
use crate::kind::KindSpec;
use crate::permit::Permit;
use crate::removal::Removal;
use crate::resource::{Resource, Traits};
use crate::secrets::escape::short;
use crate::values::sent_values::{SendSpec, Sent, SentValue};
use crate::watch_source::WatchSource;
use std::sync::{Arc, Mutex, PoisonError};

/// The declaration of the kind.
pub static SPEC: KindSpec = KindSpec {
    kind: "kv",
    collectible: false,
    doc: "Holds a key of the world to a value, and sends the value. Without `value` the resource only reads.",
    fields: &[
        FieldSpec::new("key", FieldType::Text, "Key. Default: the name.").mode(FieldMode::Static),
        FieldSpec::new("value", FieldType::Text, "Value to hold. Default: not held, only read.")
            .listable()
            .mode(FieldMode::Value)
            .receives(Receives::Shown)
            .example("7"),
        FieldSpec::new(
            "mapped",
            FieldType::Bool,
            "Keep one value for each host instead of one for all; this host writes its own.",
        )
        .default("false"),
        FieldSpec::new(
            "skiplessthan",
            FieldType::Bool,
            "Leave a stored value that is not less than `value`.",
        )
        .default("false"),
        FieldSpec::new(
            "skipcmpstyle",
            FieldType::Int,
            "Comparison of `skiplessthan`: 0 compares whole numbers, 1 compares text.",
        )
        .default("0"),
        FieldSpec::new("state", FieldType::Choice(&["exists", "absent"]), "State of the key.")
            .known_at_load()
            .default("exists"),
    ],
    sends: &[
        SendSpec::new(
            "value",
            FieldType::Text,
            "The stored value; with `mapped`, that of this host.",
        ),
        SendSpec::new("mapped", FieldType::TextMap, "The values by host, with `mapped`."),
    ],
    example: "kv:\n  - name: release\n    value: \"7\"\n",
    restore: None,
    build,
};

/// The comparison of `skiplessthan`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Skip {
    Never,
    ByNumber,
    ByText,
}

#[derive(Debug)]
struct Kv {
    key: WorldKey,
    /// The declared value.
    value: Option<String>,
    is_absent: bool,
    skip: Skip,
    /// The value at the last check or apply.
    found: Mutex<Option<WorldValue>>,
}

fn build(name: &str, mut fields: Fields, _: &Place) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let key = fields.text("key").unwrap_or_else(|| name.to_owned());
    let mut problems = Vec::new();
    if key.is_empty() || key.len() > 256 || key.chars().any(char::is_control) {
        let what = "expected a key of 1 to 256 visible characters";
        problems.push(Invalid::field("key", what));
    }
    let value = fields.text("value");
    if value.as_ref().is_some_and(|value| value.len() >= MAX_VALUE) {
        problems.push(Invalid::field("value", "expected less than 100 KiB"));
    }
    let is_absent = fields.text("state").is_some_and(|state| state == "absent");
    if is_absent && value.is_some() {
        let what = "`value` and `state: absent` exclude each other";
        problems.push(Invalid::field("value", what).hint("keep one of them"));
    }
    let skip = match (fields.bool("skiplessthan").unwrap_or_default(), fields.int("skipcmpstyle")) {
        (_, Some(style)) if !(0..=1).contains(&style) => {
            problems
                .push(Invalid::field("skipcmpstyle", format!("expected 0 or 1, found {style}")));
            Skip::Never
        }
        (false, _) => Skip::Never,
        (true, Some(1)) => Skip::ByText,
        (true, _) => Skip::ByNumber,
    };
    let is_mapped = fields.bool("mapped").unwrap_or_default();
    let key = if is_mapped { WorldKey::Mapped(key) } else { WorldKey::Shared(key) };
    if problems.is_empty() {
        Ok(Arc::new(Kv { key, value, is_absent, skip, found: Mutex::default() }))
    } else {
        Err(problems)
    }
}

/// The largest value of the world.
const MAX_VALUE: usize = 100 * 1024;

impl Kv {
    fn key_text(&self) -> &str {
        let (WorldKey::Shared(key) | WorldKey::Mapped(key) | WorldKey::Export(key)) = &self.key;
        key
    }

    fn note_found(&self, found: WorldValue) {
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
    }

    /// Returns the value to write, empty for a deletion; none if the stored value is as declared.
    fn wanted_change(&self, found: Option<&str>) -> Option<&str> {
        if self.is_absent {
            return found.map(|_| "");
        }
        let wanted = self.value.as_deref()?;
        let is_kept = match (self.skip, found) {
            (Skip::Never, _) | (_, None) => false,
            (Skip::ByText, Some(found)) => found >= wanted,
            (Skip::ByNumber, Some(found)) => {
                matches!((found.parse::<i64>(), wanted.parse::<i64>()), (Ok(a), Ok(b)) if a >= b)
            }
        };
        (!is_kept && found != Some(wanted)).then_some(wanted)
    }
}

impl Resource for Kv {
    fn footprint(&self) -> Footprint {
        let removal = Removal::new()
            .with("key", Value::Text(self.key_text().to_owned()))
            .with("mapped", Value::Bool(matches!(self.key, WorldKey::Mapped(_))))
            .with("state", Value::Text("absent".to_owned()));
        Footprint {
            watch: vec![WatchSource::World(self.key.clone())],
            removal: (self.value.is_some() && !self.is_absent).then_some(removal),
            ..Footprint::default()
        }
    }

    fn traits(&self) -> Traits {
        Traits::confined_command()
    }

    fn sends(&self) -> Sent {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(found) = &*found else { return Sent::new() };
        let own = found.own.clone().map(|text| ("value", SentValue::Shown(Value::Text(text))));
        let all = matches!(self.key, WorldKey::Mapped(_))
            .then(|| ("mapped", SentValue::Shown(Value::TextMap(found.by_host.clone()))));
        own.into_iter().chain(all).collect()
    }

    fn sends_key(&self, key: &str) -> bool {
        match key {
            "value" => !self.is_absent,
            "mapped" => matches!(self.key, WorldKey::Mapped(_)),
            _ => false,
        }
    }

    fn check<'a>(&'a self, host: &'a Host, _: CheckRequest) -> Answer<'a, CheckResult> {
        Box::pin(async move {
            let found = match host.read_world(&self.key).await {
                Ok(found) => found,
                Err(failure) => return CheckResult::Unknown(failure.passing()),
            };
            let present = found.own.clone();
            let is_unset = present.is_none() && found.by_host.is_empty();
            self.note_found(found);
            let Some(wanted) = self.wanted_change(present.as_deref()) else {
                if is_unset && self.value.is_none() && !self.is_absent {
                    let what =
                        format!("no host has set the key {} yet", short(self.key_text(), 60));
                    let hint = "the resource waits for the value; a `kv` with `value` sets it";
                    return CheckResult::Unknown(Failure::new(what).hint(hint).passing());
                }
                return CheckResult::Same;
            };
            let creates = present.is_none();
            let difference = Difference {
                aspect: "value",
                from: present.unwrap_or_default(),
                to: wanted.to_owned(),
                diff: None,
            };
            CheckResult::Differs(Change {
                destructive: self.is_absent,
                creates,
                ..Change::of(vec![difference])
            })
        })
    }

    fn apply<'a>(&'a self, host: &'a Host, permit: &'a Permit, _: Change) -> Answer<'a, Outcome> {
        Box::pin(async move {
            let value = if self.is_absent { None } else { self.value.as_deref() };
            match host.write_world(permit, &self.key, value).await {
                Err(_) => return Outcome::Interrupted,
                Ok(Err(failure)) => return Outcome::Failed { failure, touched: true },
                Ok(Ok(())) => {}
            }
            if let Ok(found) = host.read_world(&self.key).await {
                self.note_found(found);
            }
            Outcome::Changed(vec![if self.is_absent { "deleted" } else { "value" }.to_owned()])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kv(value: &str, skip: Skip) -> Kv {
        let (key, found) = (WorldKey::Shared("k".to_owned()), Mutex::default());
        Kv { key, value: Some(value.to_owned()), is_absent: false, skip, found }
    }

    #[test]
    fn a_stored_value_that_is_not_less_stays() {
        let changes = |value, skip, found| kv(value, skip).wanted_change(found).is_some();
        assert!(changes("9", Skip::Never, Some("10")));
        assert!(!changes("9", Skip::Never, Some("9")));
        assert!(!changes("9", Skip::ByNumber, Some("10")));
        assert!(changes("9", Skip::ByNumber, Some("8")));
        assert!(changes("9", Skip::ByNumber, None));
        assert!(changes("9", Skip::ByText, Some("10")), "as text, 10 is less");
        assert!(changes("9", Skip::ByNumber, Some("x")), "a text is no number");
    }
}
