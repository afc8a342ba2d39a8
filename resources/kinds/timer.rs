//! `timer`: changes at an interval, so that the notified resources run.
//!
//! The first tick comes one interval after the watch is opened, not on load. A refresh restarts the interval:
//! the listener of [`WatchSource::Every`] arms the timer again after a run with a refresh. A restart of the
//! daemon alone is no tick and changes nothing.

use crate::change::{Change, CheckResult, Difference, Outcome};
use crate::check_request::{Answer, CheckRequest};
use crate::fields::field_spec::{FieldSpec, FieldType};
use crate::fields::field_values::{Fields, Invalid, Place};
use crate::footprint::Footprint;
use crate::host::Host;
use crate::kind::{KindSpec, LONGEST_SPAN};
use crate::permit::Permit;
use crate::resource::{ExecutorKind, OnInterrupt, Resource, RunPolicy, Traits};
use crate::watch_source::WatchSource;
use std::sync::Arc;
use std::time::Duration;

/// The declaration of the kind.
pub static SPEC: KindSpec = KindSpec {
    kind: "timer",
    collectible: false,
    doc: "Changes at an interval to notify other resources; a refresh restarts the interval.",
    fields: &[FieldSpec::new(
        "interval",
        FieldType::Duration,
        "Seconds between ticks, with a fraction; the first tick follows one interval after the start.",
    ).bare_duration()],
    sends: &[],
    example: "timer:\n  - name: hourly\n    interval: 3600\n",
    restore: None,
    build,
};

/// The shortest interval; a shorter one is a mistake and would be a busy loop.
const SHORTEST: Duration = Duration::from_millis(10);

#[derive(Debug)]
struct Timer {
    interval: Duration,
}

/// The reason of a timer's run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Premise {
    Tick,
    Restart,
}

fn build(
    _name: &str,
    mut fields: Fields,
    _place: &Place,
) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let Some(seconds) = fields.float("interval") else {
        return Err(vec![Invalid::whole("expected `interval`").hint("seconds between ticks")]);
    };
    match Duration::try_from_secs_f64(seconds) {
        Ok(interval) if (SHORTEST..=LONGEST_SPAN).contains(&interval) => {
            Ok(Arc::new(Timer { interval }))
        }
        _ => {
            let most = LONGEST_SPAN.as_secs();
            let what = format!("expected seconds from 0.01 to {most}, found {seconds}");
            Err(vec![Invalid::field("interval", what).hint("for example 60, or 0.5")])
        }
    }
}

impl Resource for Timer {
    fn footprint(&self) -> Footprint {
        Footprint { watch: vec![WatchSource::Every(self.interval)], ..Footprint::default() }
    }

    fn traits(&self) -> Traits {
        Traits {
            executor: ExecutorKind::Command,
            repeat: RunPolicy::Events,
            on_interrupt: OnInterrupt::Skip,
            confined: true,
            ..Traits::default()
        }
    }

    fn check<'a>(&'a self, _host: &'a Host, ask: CheckRequest) -> Answer<'a, CheckResult> {
        let (premise, to) = match (ask.run, ask.refresh) {
            (true, _) => (Premise::Tick, "tick"),
            (false, true) => (Premise::Restart, "restart"),
            (false, false) => return Box::pin(async { CheckResult::Same }),
        };
        let difference =
            Difference { aspect: "interval", from: String::new(), to: to.to_owned(), diff: None };
        let change = Change { premise: Box::new(premise), ..Change::of(vec![difference]) };
        Box::pin(async { CheckResult::Differs(change) })
    }

    fn apply<'a>(
        &'a self,
        _host: &'a Host,
        permit: &'a Permit,
        change: Change,
    ) -> Answer<'a, Outcome> {
        let is_tick = change.premise.downcast_ref() == Some(&Premise::Tick);
        Box::pin(async move {
            match (permit.check(), is_tick) {
                (Err(_), _) => Outcome::Interrupted,
                (Ok(()), true) => Outcome::Changed(vec!["tick".to_owned()]),
                (Ok(()), false) => Outcome::Unchanged,
            }
        })
    }
}
