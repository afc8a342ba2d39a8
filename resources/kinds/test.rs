//! `test`: accepts and sends every type of field and fails on request, for trials of a graph and not for a
//! host.

use super::value::literals;
use crate::change::{Change, CheckResult, Difference, Outcome};
use crate::check_request::{Answer, CheckRequest};
use crate::failure::Failure;
use crate::fields::field_spec::Receives;
use crate::fields::field_spec::{FieldMode, FieldSpec, FieldType};
use crate::fields::field_values::MaybeSecret;
use crate::fields::field_values::{Fields, Invalid, Place, Value};
use crate::host::Host;
use crate::kind::KindSpec;
use crate::permit::Permit;
use crate::resource::{ExecutorKind, Resource, RunPolicy, Traits};
use crate::values::sent_values::{SendSpec, Sent, SentValue};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

/// The declaration of the kind.
pub static SPEC: KindSpec = KindSpec {
    kind: "test",
    collectible: true,
    doc: "For trying out a graph: takes and sends every type, and fails, sleeps, panics or changes on request.",
    fields: &[
        FieldSpec::new("text", FieldType::Text, "A text, sent on.")
            .mode(FieldMode::Value)
            .receives(Receives::Secrets),
        FieldSpec::new("bool", FieldType::Bool, "true or false, sent on.")
            .receives(Receives::Shown),
        FieldSpec::new("int", FieldType::Int, "A whole number, sent on.").receives(Receives::Shown),
        FieldSpec::new("float", FieldType::Float, "A number, sent on.").receives(Receives::Shown),
        FieldSpec::new("texts", FieldType::Texts, "A list of texts, sent on.")
            .mode(FieldMode::Value)
            .receives(Receives::Shown),
        FieldSpec::new("map", FieldType::TextMap, "A map of texts.")
            .mode(FieldMode::Value)
            .receives(Receives::Secrets),
        FieldSpec::new("changed", FieldType::Bool, "Its runs change something; default: false.")
            .receives(Receives::Shown),
        FieldSpec::new("fail", FieldType::Int, "So many runs fail, then all are well; default: 0.")
            .receives(Receives::Shown),
        FieldSpec::new("sleep", FieldType::Float, "Seconds that a run takes; default: 0.")
            .receives(Receives::Shown),
        FieldSpec::new("panic", FieldType::Bool, "Its runs panic; default: false.")
            .receives(Receives::Shown),
    ],
    sends: &[
        SendSpec::new("text", FieldType::Text, "`text`; a secret where it was received as one."),
        SendSpec::new("bool", FieldType::Bool, "`bool`."),
        SendSpec::new("int", FieldType::Int, "`int`."),
        SendSpec::new("float", FieldType::Float, "`float`."),
        SendSpec::new("texts", FieldType::Texts, "`texts`."),
    ],
    example: "test:\n  - name: probe\n",
    restore: None,
    build,
};

/// The number of failures of each resource in this process, by name: a resource is built anew for each
/// received value.
static FAILED: LazyLock<Mutex<HashMap<String, i64>>> = LazyLock::new(Mutex::default);

#[derive(Debug)]
struct Test {
    name: String,
    sent: Sent,
    #[expect(dead_code, reason = "shown by Debug when it panics, secrets as such")]
    map: Vec<(String, crate::secrets::secret_text::Secret)>,
    changed: bool,
    fail: i64,
    sleep: Duration,
    panic: bool,
}

fn build(
    name: &str,
    mut fields: Fields,
    _place: &Place,
) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let seconds = fields.float("sleep").unwrap_or_default();
    let Ok(sleep) = Duration::try_from_secs_f64(seconds) else {
        let what = format!("seconds are expected, found {seconds}");
        return Err(vec![Invalid::field("sleep", what)]);
    };
    let text = fields.words("text").map(|words| match words {
        MaybeSecret::Shown(text) => SentValue::Shown(Value::Text(text)),
        MaybeSecret::Secret(secret) => SentValue::Secret { secret, saved: false },
        MaybeSecret::Sealed(_) => SentValue::Shown(Value::Text(String::new())),
    });
    let mut sent = literals(&mut fields);
    sent.extend(text.map(|datum| ("text", datum)));
    Ok(Arc::new(Test {
        name: name.to_owned(),
        sent,
        map: fields.secret_map("map"),
        changed: fields.bool("changed").unwrap_or_default(),
        fail: fields.int("fail").unwrap_or_default(),
        sleep,
        panic: fields.bool("panic").unwrap_or_default(),
    }))
}

impl Test {
    /// Returns true if the resource must do something in its runs, instead of only comparing.
    fn is_deed(&self) -> bool {
        self.changed || self.panic || self.fail > 0 || !self.sleep.is_zero()
    }

    fn fails(&self) -> bool {
        let mut failed = FAILED.lock().unwrap_or_else(PoisonError::into_inner);
        let count = failed.entry(self.name.clone()).or_default();
        *count += 1;
        *count <= self.fail
    }

    async fn run(&self, permit: &Permit) -> Outcome {
        tokio::select! {
            biased;
            () = tokio::time::sleep(self.sleep) => {}
            () = permit.revoked() => return Outcome::Interrupted,
        }
        assert!(!self.panic, "as declared: {self:?}");
        if self.fails() {
            let failure = Failure::new("it fails, as declared").hint("lower `fail`");
            return Outcome::Failed { failure, touched: false };
        }
        if self.changed { Outcome::Changed(Vec::new()) } else { Outcome::Unchanged }
    }
}

impl Resource for Test {
    fn traits(&self) -> Traits {
        let repeat = if self.is_deed() { RunPolicy::Once } else { RunPolicy::State };
        Traits { executor: ExecutorKind::Command, repeat, ..Traits::default() }
    }

    fn sends(&self) -> Sent {
        self.sent.clone()
    }

    fn sends_key(&self, key: &str) -> bool {
        self.sent.iter().any(|(own, _)| *own == key)
    }

    fn check<'a>(&'a self, _host: &'a Host, ask: CheckRequest) -> Answer<'a, CheckResult> {
        Box::pin(async move {
            if !self.is_deed() || !(ask.run || ask.refresh) {
                return CheckResult::Same;
            }
            let (from, to) = (String::new(), "as asked".to_owned());
            let differences = vec![Difference { aspect: "test", from, to, diff: None }];
            CheckResult::Differs(Change::of(differences))
        })
    }

    fn apply<'a>(
        &'a self,
        _host: &'a Host,
        permit: &'a Permit,
        _change: Change,
    ) -> Answer<'a, Outcome> {
        Box::pin(self.run(permit))
    }
}
