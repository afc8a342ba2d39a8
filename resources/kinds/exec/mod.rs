//! `exec`: runs a command if its guards allow the run.
//!
//! The guards, in this order: `mtimes` forces a run; else `creates`, `ifcmd` and `nifcmd` must each allow
//! one. A refresh is a reason to run and does not overrule the guards (as in Puppet and mgmt). Without any
//! guard the command runs once for each definition, and for events, refreshes and `redo`. The program must
//! never insert values into the text of a command: values go in through `env` or `args`.
//!
//! Reading order: `declare.rs` (the fields), `argv.rs` (argument vectors), `guards.rs`, `run.rs`, `needs.rs`
//! (automatic edges and trusted paths).

mod argv;
mod declare;
mod guards;
mod needs;
mod run;

use crate::change::{Change, CheckResult, Difference, Outcome};
use crate::dependency::Need;
use crate::host::{Command, Host};
use crate::kind::{FieldSpec, FieldType, Invalid, KindSpec};
use crate::permit::Permit;
use crate::resource::{
    Answer, CheckRequest, ExecutorKind, OnInterrupt, Resource, RunPolicy, Traits,
};
use crate::values::{Receives, SendSpec, Sent};
use crate::watch_source::WatchSource;
use guards::Guards;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The declaration of the kind.
pub static SPEC: KindSpec = KindSpec {
    kind: "exec",
    doc: "Runs a command, where its guards say that there is something to do.",
    fields: FIELDS,
    sends: SENDS,
    build: declare::build,
};

const fn text(name: &'static str, doc: &'static str) -> FieldSpec {
    FieldSpec::new(name, FieldType::Text, doc)
}

const SENDS: &[SendSpec] = &[
    SendSpec::new(
        "output",
        FieldType::Text,
        "What it printed, stdout before stderr; one newline at the end is left out. As with them: at most 1 MiB of each, UTF-8.",
    ),
    SendSpec::new(
        "stdout",
        FieldType::Text,
        "What it printed, without one newline at the end. Nobody is given more than 1 MiB; what is not UTF-8 becomes U+FFFD.",
    ),
    SendSpec::new(
        "stderr",
        FieldType::Text,
        "Its complaints, without one newline at the end. Bound and UTF-8 as with stdout.",
    ),
    SendSpec::new("exit", FieldType::Int, "Its exit code."),
];

const FIELDS: &[FieldSpec] = &[
    text(
        "cmd",
        "The command; default: the name. Without `shell` it is cut at white space, and nothing reads quotes, `$` or `*`.",
    ),
    FieldSpec::new(
        "args",
        FieldType::Texts,
        "Beside `cmd` and no `shell`: its exact arguments. Alone: the exact argument vector. Beside `shell`: $1, $2, …",
    )
    .list_only()
    .receives(Receives::Shown),
    text("shell", "A shell that reads `cmd`, an absolute path (`/bin/sh`); default: none."),
    text("cwd", "Working directory, absolute; default: /."),
    FieldSpec::new(
        "env",
        FieldType::TextMap,
        "Variables, besides PATH, HOME, USER, LOGNAME, SHELL and LANG; nothing is inherited. For all its commands; `watchcmd` gets none that is received.",
    )
    .receives(Receives::Secrets),
    text(
        "user",
        "User to run as, name or number, with its supplementary groups; default: the daemon's. It has no terminal.",
    ),
    text("group", "Group to run as, name or number; default: the user's own."),
    FieldSpec::new(
        "no_new_privs",
        FieldType::Bool,
        "It and all that it starts gain no privileges by sudo, su or other set-user-ID programs; default: false.",
    ),
    FieldSpec::new(
        "max_tasks",
        FieldType::Int,
        "Beside `user` or `group`: its user may have so many processes and threads on the host (RLIMIT_NPROC); default: 4096.",
    ),
    FieldSpec::new(
        "timeout",
        FieldType::Float,
        "Seconds that each of its commands may take; then TERM, and KILL two seconds later. 0, the default: no limit.",
    ),
    text("creates", "Absolute path: nothing to do where it exists. It is watched."),
    FieldSpec::new(
        "mtimes",
        FieldType::Texts,
        "Absolute paths, beside `creates`: it runs, whatever the other guards say, when one is newer than `creates`. Watched.",
    ),
    text("ifcmd", "A guard: it runs only where this exits with 0."),
    text("ifshell", "A shell that reads `ifcmd`; default: none."),
    text("ifcwd", "Working directory of `ifcmd`; default: `cwd`."),
    text(
        "ifequals",
        "Nothing to do where `ifcmd` exits with 0 and prints exactly this; one newline at the end does not count.",
    ),
    text("nifcmd", "A guard: nothing to do where this exits with 0."),
    text("nifshell", "A shell that reads `nifcmd`; default: none."),
    text("nifcwd", "Working directory of `nifcmd`; default: `cwd`."),
    text("donecmd", "Runs after the command went well; where it fails, the run has failed."),
    text("doneshell", "A shell that reads `donecmd`; default: none."),
    text("donecwd", "Working directory of `donecmd`; default: `cwd`."),
    text("watchcmd", "A command that runs all the time: each line it prints is an event."),
    text("watchshell", "A shell that reads `watchcmd`; default: none."),
    text("watchcwd", "Working directory of `watchcmd`; default: `cwd`."),
    FieldSpec::new(
        "watchfiles",
        FieldType::Texts,
        "Absolute paths whose changes are events; one that ends in / also for what is in it.",
    ),
    FieldSpec::new(
        "refresh_only",
        FieldType::Bool,
        "It runs only when it is notified; default: false.",
    ),
    FieldSpec::new("returns", FieldType::Texts, "Exit codes that are well; default: [0]."),
    text(
        "changed_when",
        "Runs after the command went well, by the same shell: exit 0 means that it changed something, else it did not.",
    ),
    text("stdin", "What the command reads; default: nothing. It is never shown.")
        .receives(Receives::Secrets),
    text("umask", "Its umask, octal; default: 022."),
    FieldSpec::new(
        "always",
        FieldType::Bool,
        "Without a guard: runs at each start of the daemon too; default: false.",
    ),
    text(
        "on_interrupt",
        "After a run that was cut off: rerun, skip (take it as done) or ask (wait for the operator); default: rerun.",
    ),
    FieldSpec::ignored("state", "a command has no state"),
    FieldSpec::ignored("pollint", "use `meta: { poll: SECONDS }`"),
];

/// An exec as declared.
#[derive(Debug)]
struct Exec {
    command: Command,
    guards: Guards,
    done: Option<Command>,
    changed_when: Option<Command>,
    watch: Vec<WatchSource>,
    returns: Vec<i32>,
    refresh_only: bool,
    always: bool,
    on_interrupt: OnInterrupt,
    /// The commands get secrets, so their output is never shown.
    secret: bool,
    /// The output of the last run, until the driver takes it for sending.
    printed: Mutex<Sent>,
    warnings: Vec<Invalid>,
}

impl Exec {
    fn repeat(&self) -> RunPolicy {
        match (self.guards.is_empty(), self.always) {
            _ if self.refresh_only => RunPolicy::Events,
            (false, _) => RunPolicy::State,
            (true, true) => RunPolicy::EachStart,
            (true, false) => RunPolicy::Once,
        }
    }

    async fn look(&self, host: &Host, ask: CheckRequest) -> CheckResult {
        let is_asked = ask.refresh || (ask.run && !self.refresh_only);
        let by_guards = !self.guards.is_empty() && !self.refresh_only;
        if !is_asked && !by_guards {
            return CheckResult::Same;
        }
        match self.guards.allow(host, &ask.cancel).await {
            Ok(false) => CheckResult::Same,
            Ok(true) => CheckResult::Differs(Change {
                differences: vec![Difference {
                    aspect: "command",
                    from: String::new(),
                    to: argv::shown(&self.command.argv, 300),
                    diff: None,
                }],
                destructive: false,
                seal: 0,
                creates: false,
                replaces: false,
                premise: Box::new(()),
            }),
            Err(trouble) => CheckResult::Unknown(trouble),
        }
    }
}

impl Resource for Exec {
    fn warnings(&self) -> &[Invalid] {
        &self.warnings
    }

    fn needs(&self) -> Vec<Need> {
        self.needed()
    }

    fn may_change(&self, path: &Path) -> bool {
        self.commands().any(|command| argv::may_write(&command.argv, command.cwd.as_deref(), path))
    }

    fn trusts(&self) -> Vec<PathBuf> {
        self.trusted()
    }

    fn reads(&self) -> Vec<PathBuf> {
        self.read_by_guards()
    }

    fn watch(&self) -> Vec<WatchSource> {
        self.watch.clone()
    }

    fn nature(&self) -> Traits {
        Traits {
            seat: ExecutorKind::Command,
            repeat: self.repeat(),
            on_interrupt: self.on_interrupt,
            ..Traits::default()
        }
    }

    fn sends(&self) -> Sent {
        std::mem::take(&mut *self.printed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn check<'a>(&'a self, host: &'a Host, ask: CheckRequest) -> Answer<'a, CheckResult> {
        Box::pin(self.look(host, ask))
    }

    fn apply<'a>(
        &'a self,
        host: &'a Host,
        permit: &'a Permit,
        _change: Change,
    ) -> Answer<'a, Outcome> {
        Box::pin(run::run(self, host, permit))
    }
}
