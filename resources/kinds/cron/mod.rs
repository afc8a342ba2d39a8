//! `cron`: a job of the cron daemon, in a file of its own in /etc/cron.d or in a file with other jobs.
//!
//! The daemon of cron reads changed files within a minute, so no command is needed and a refresh has no meaning.
//! cron ignores the whole file of a job with a mistake, and ignores a job of an unknown user; so the fields are
//! checked when the graph is loaded, and the user before the file is written.
//!
//! Reading order: `declare.rs` (the fields), `schedule.rs` (the time), `block.rs` (a job in a shared file).

mod block;
mod declare;
mod schedule;

pub use schedule::cron_fields;

use crate::change::{Change, CheckResult, Outcome};
use crate::check_request::{Answer, CheckRequest};
use crate::fields::field_spec::Receives;
use crate::fields::field_spec::{FieldMode, FieldSpec, FieldType, Interpreter};
use crate::footprint::Footprint;
use crate::host::Host;
use crate::host::files::AccountKind;
use crate::kind::KindSpec;
use crate::parts::file_values::HASH;
use crate::permit::Permit;
use crate::resource::Resource;
use crate::values::sent_values::SendSpec;

/// The declaration of the kind.
pub static SPEC: KindSpec = KindSpec {
    kind: "cron",
    collectible: false,
    doc: "Manages a job of cron in /etc/cron.d. The name is the name of the file, or of the job in `file`.",
    fields: &[
        FieldSpec::new("job", FieldType::Text, "The command line, run by /bin/sh; % means a new line unless written \\%.").mode(FieldMode::Literal(Interpreter::Cron))
            .example("/usr/local/bin/backup --quiet")
            .receives(Receives::Shown),
        FieldSpec::new("user", FieldType::Text, "The user who runs the job.").mode(FieldMode::Value)
            .default("root")
            .example("www-data")
            .receives(Receives::Shown),
        FieldSpec::new("minute", FieldType::Text, "0-59, *, ranges, steps and lists.").mode(FieldMode::Value)
            .default("*")
            .example("*/5")
            .receives(Receives::Shown),
        FieldSpec::new("hour", FieldType::Text, "0-23, *, ranges, steps and lists.").mode(FieldMode::Value)
            .default("*")
            .example("3")
            .receives(Receives::Shown),
        FieldSpec::new("day", FieldType::Text, "The day of the month, 1-31.").mode(FieldMode::Value)
            .default("*")
            .example("1")
            .receives(Receives::Shown),
        FieldSpec::new("month", FieldType::Text, "1-12, or jan to dec.").mode(FieldMode::Value)
            .default("*")
            .example("jan-jun")
            .receives(Receives::Shown),
        FieldSpec::new("weekday", FieldType::Text, "0-7 (0 and 7 are Sunday), or sun to sat.").mode(FieldMode::Value)
            .default("*")
            .example("mon-fri")
            .receives(Receives::Shown),
        FieldSpec::new("special", FieldType::Choice(&schedule::SPECIAL), "One word instead of the five fields.")
            .example("@daily")
            .conflicts_with(&["minute", "hour", "day", "month", "weekday"])
            .receives(Receives::Shown),
        FieldSpec::new("env", FieldType::TextMap, "Variables of the job, such as PATH and MAILTO. Every user can read the file.").mode(FieldMode::Value)
            .receives(Receives::Shown),
        FieldSpec::new(
            "file",
            FieldType::Text,
            "A file with several jobs, as a name in /etc/cron.d or as a path; default: a file of its own with the name of the job.",
        ).mode(FieldMode::Static)
        .example("backups")
        .conflicts_with(&["env"]),
        FieldSpec::new("state", FieldType::Choice(&["exists", "absent"]), "absent removes the job.").known_at_load()
            .default("exists"),
    ],
    sends: &[SendSpec::new("path", FieldType::Text, "The path of the file with the job."), HASH],
    example: "cron:\n  - name: backup\n    minute: 30\n    hour: 3\n    job: /usr/local/bin/backup --quiet\n",
    restore: None,
    build: declare::build,
};

/// The user of a job, who must exist: cron ignores jobs of unknown users silently.
#[derive(Debug)]
struct KnownUser(String);

impl Resource for KnownUser {
    fn footprint(&self) -> Footprint {
        Footprint {
            reads: vec!["/etc/passwd".into()],
            uses_only_files: true,
            ..Footprint::default()
        }
    }

    fn check<'a>(&'a self, host: &'a Host, _ask: CheckRequest) -> Answer<'a, CheckResult> {
        Box::pin(async move {
            // The shared table first: the C library reads the file again for each name.
            if host.read_users().is_ok_and(|users| users.get(&self.0).is_some()) {
                return CheckResult::Same;
            }
            match host.files().accounts().number(AccountKind::User, &self.0) {
                Ok(_) => CheckResult::Same,
                Err(failure) => CheckResult::Unknown(failure),
            }
        })
    }

    fn apply<'a>(
        &'a self,
        _host: &'a Host,
        _permit: &'a Permit,
        _change: Change,
    ) -> Answer<'a, Outcome> {
        Box::pin(std::future::ready(Outcome::Unchanged))
    }
}
