//! `exec`: runs a command if its guards allow the run.
//!
//! The guards, in this order: `mtimes` forces a run; else `creates`, `ifcmd` and `nifcmd` must each allow
//! one. A refresh is a reason to run and does not overrule the guards (as in Puppet and mgmt). Without any
//! guard the command runs once for each definition, and for events, refreshes and `retry`. The program must
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
use crate::check_request::{Answer, CheckRequest};
use crate::fields::field_spec::Receives;
use crate::fields::field_spec::{FieldMode, FieldRole, FieldSpec, FieldType};
use crate::fields::field_values::Invalid;
use crate::footprint::Footprint;
use crate::host::{Command, Host};
use crate::kind::KindSpec;
use crate::permit::Permit;
use crate::resource::{ExecutorKind, OnInterrupt, Resource, RunPolicy, Traits};
use crate::values::sent_values::{SendSpec, Sent};
use crate::watch_source::WatchSource;
use guards::Guards;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The declaration of the kind.
pub static SPEC: KindSpec = KindSpec {
    kind: "exec",
    collectible: false,
    doc: "Runs a command if its guards allow it.",
    fields: FIELDS,
    sends: SENDS,
    example: "exec:\n  - name: migrate\n    cmd: /usr/local/bin/migrate\n    creates: /var/lib/shop/migrated\n",
    restore: None,
    build: declare::build,
};

const fn text(name: &'static str, doc: &'static str) -> FieldSpec {
    FieldSpec::new(name, FieldType::Text, doc)
}

const SENDS: &[SendSpec] = &[
    SendSpec::new(
        "output",
        FieldType::Text,
        "Output of the command, stdout before stderr, without one trailing newline. At most 1 MiB of each, UTF-8.",
    ),
    SendSpec::new(
        "stdout",
        FieldType::Text,
        "Standard output, without one trailing newline. At most 1 MiB; invalid UTF-8 becomes U+FFFD.",
    ),
    SendSpec::new(
        "stderr",
        FieldType::Text,
        "Standard error, without one trailing newline. Limit and UTF-8 as for stdout.",
    ),
    SendSpec::new("exit", FieldType::Int, "Exit code."),
];

const FIELDS: &[FieldSpec] = &[
    text(
        "cmd",
        "Command; default: the name. Without `shell` it is split at white space; quotes, `$` and `*` are literal.",
    ).role(FieldRole::Command { arguments: "args" }).mode(FieldMode::Argv("shell")),
    FieldSpec::new(
        "args",
        FieldType::Texts,
        "With `cmd` and no `shell`: exact arguments. Alone: exact argument vector. With `shell`: $1, $2, …",
    ).mode(FieldMode::Argv(""))
    .list_only()
    .receives(Receives::Shown),
    text("shell", "Shell that runs `cmd`, an absolute path (`/bin/sh`); default: none.").mode(FieldMode::Static),
    text("cwd", "Working directory, absolute; default: /.").mode(FieldMode::Value).receives(Receives::Shown).example("/srv"),
    FieldSpec::new(
        "env",
        FieldType::TextMap,
        "Environment variables besides PATH, HOME, USER, LOGNAME, SHELL and LANG; nothing is inherited. For all commands of the resource; `watchcmd` gets no received values.",
    ).mode(FieldMode::Value)
    .receives(Receives::Secrets),
    text(
        "user",
        "User to run as, name or number, with its supplementary groups; default: the user of the daemon. No terminal.",
    ).mode(FieldMode::Value).receives(Receives::Shown).example("root"),
    text("group", "Group to run as, name or number; default: primary group of the user.").mode(FieldMode::Value).receives(Receives::Shown).example("root"),
    FieldSpec::new(
        "no_new_privs",
        FieldType::Bool,
        "Prevent the command and its children from gaining privileges by sudo, su or other set-user-ID programs; default: false.",
    ).receives(Receives::Shown),
    FieldSpec::new(
        "max_tasks",
        FieldType::Int,
        "With `user` or `group`: limit of processes and threads of the user on the host (RLIMIT_NPROC); default: 4096.",
    ).receives(Receives::Shown),
    FieldSpec::new(
        "timeout",
        FieldType::Duration,
        "Timeout of each command in seconds; then TERM, and KILL two seconds later. 0, the default: no limit.",
    ).bare_duration().receives(Receives::Shown),
    text("creates", "Absolute path: the command is skipped if it exists. Watched.").mode(FieldMode::Value),
    FieldSpec::new(
        "mtimes",
        FieldType::Texts,
        "Absolute paths, with `creates`: the command runs, regardless of other guards, if one is newer than `creates`. Watched.",
    ).mode(FieldMode::Value),
    text("ifcmd", "Guard: the command runs only if this exits with 0.").mode(FieldMode::Argv("ifshell")),
    text("ifshell", "Shell that runs `ifcmd`; default: none.").mode(FieldMode::Static),
    text("ifcwd", "Working directory of `ifcmd`; default: `cwd`.").mode(FieldMode::Value),
    text(
        "ifequals",
        "Skip the command if `ifcmd` exits with 0 and prints exactly this; one trailing newline is ignored.",
    ).mode(FieldMode::Value).receives(Receives::Shown).example("yes"),
    text("nifcmd", "Guard: skip the command if this exits with 0.").mode(FieldMode::Argv("nifshell")),
    text("nifshell", "Shell that runs `nifcmd`; default: none.").mode(FieldMode::Static),
    text("nifcwd", "Working directory of `nifcmd`; default: `cwd`.").mode(FieldMode::Value),
    text("donecmd", "Runs after the command succeeded; its failure fails the run.").mode(FieldMode::Argv("doneshell")),
    text("doneshell", "Shell that runs `donecmd`; default: none.").mode(FieldMode::Static),
    text("donecwd", "Working directory of `donecmd`; default: `cwd`.").mode(FieldMode::Value),
    text("watchcmd", "Long-running command: each printed line is an event.").mode(FieldMode::Argv("watchshell")),
    text("watchshell", "Shell that runs `watchcmd`; default: none.").mode(FieldMode::Static),
    text("watchcwd", "Working directory of `watchcmd`; default: `cwd`.").mode(FieldMode::Value),
    FieldSpec::new(
        "watchfiles",
        FieldType::Texts,
        "Absolute paths to watch; a path with a trailing / includes its content.",
    ).mode(FieldMode::Value),
    FieldSpec::new(
        "refresh_only",
        FieldType::Bool,
        "Run only when notified; default: false.",
    ),
    FieldSpec::new("returns", FieldType::Texts, "Successful exit codes; default: [0].").mode(FieldMode::Value).receives(Receives::Shown),
    text(
        "changed_when",
        "Runs after the command succeeded, with the same shell: exit 0 means changed, any other code unchanged.",
    ).mode(FieldMode::Argv("shell")),
    text("stdin", "Standard input of the command; default: empty. Never shown.").mode(FieldMode::Value)
        .receives(Receives::Secrets),
    text("umask", "Umask, octal; default: 022.").mode(FieldMode::Value).receives(Receives::Shown).example("022"),
    FieldSpec::new(
        "always",
        FieldType::Bool,
        "Without a guard: also run at each start of the daemon; default: false.",
    ),
    text(
        "on_interrupt",
        "After an interrupted run: rerun, skip (treat as done) or ask (wait for the operator); default: rerun.",
    ).mode(FieldMode::Value),
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
            Ok(true) => CheckResult::Differs(Change::of(vec![Difference {
                aspect: "command",
                from: String::new(),
                to: argv::shown(&self.command.argv, 300),
                diff: None,
            }])),
            Err(failure) => CheckResult::Unknown(failure),
        }
    }
}

impl Resource for Exec {
    fn footprint(&self) -> Footprint {
        let guard_watches = self.guard_files();
        let mut watch = self.watch.clone();
        for path in &guard_watches {
            let source = WatchSource::Path { path: path.clone(), below: false };
            if !watch.contains(&source) {
                watch.push(source);
            }
        }
        Footprint {
            requires: self.needed(),
            watch,
            guard_watches,
            reads: self.read_by_guards(),
            trusts: self.trusted(),
            warnings: self.warnings.clone(),
            ..Footprint::default()
        }
    }

    fn may_change(&self, path: &Path) -> bool {
        self.commands().any(|command| argv::may_write(&command.argv, command.cwd.as_deref(), path))
    }

    fn traits(&self) -> Traits {
        Traits {
            executor: ExecutorKind::Command,
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
