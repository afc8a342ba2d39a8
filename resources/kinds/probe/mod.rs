//! `probe`: a query whose typed value other resources receive. The resource is converged once its query has succeeded.
//!
//! The author of the graph guarantees that the command of a probe changes nothing: it runs in plans too. Expressions
//! use the answer as `probe.NAME`. Reading order: this file, `answer` (the value in the output).

mod answer;

use crate::change::CheckResult;
use crate::check_request::{Answer, CheckRequest};
use crate::dependency::{HostObject, Need};
use crate::failure::Failure;
use crate::fields::field_spec::Receives;
use crate::fields::field_spec::{FieldMode, FieldSpec, FieldType};
use crate::fields::field_values::{Fields, Invalid, Place};
use crate::footprint::Footprint;
use crate::host::packages::{STATUS, State};
use crate::host::{Command, End, Host};
use crate::kind::{KindSpec, LONGEST_SPAN};
use crate::parts::assignment::value_of;
use crate::parts::checksum::bounded_checksum_of;
use crate::parts::commands::{command, failed};
use crate::parts::field_reader::{bounded, normal_path};
use crate::parts::text_edit::text_of;
use crate::parts::{FieldReader, on_thread};
use crate::resource::{Resource, Traits};
use crate::secrets::escape::short;
use crate::values::sent_values::{SendSpec, Sent};
use crate::watch_source::WatchSource;
use answer::{AnswerRule, read_rule};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The questions that need no command.
const BUILTINS: &[&str] = &["os", "memory", "package_version", "file_hash"];

/// The declaration of the kind.
pub static SPEC: KindSpec = KindSpec {
    kind: "probe",
    collectible: false,
    doc: "Asks a question about the host and sends the answer. The question is a command that changes nothing, or a builtin. A refresh asks again; so do changes of the watched files and `meta: { poll: … }`.",
    fields: &[
        FieldSpec::new("cmd", FieldType::Texts, "Program and arguments, without a shell.")
            .mode(FieldMode::Argv(""))
            .example("[uname, -r]")
            .list_only()
            .conflicts_with(&["builtin"])
            .receives(Receives::Shown),
        FieldSpec::new(
            "builtin",
            FieldType::Choice(BUILTINS),
            "os: a value of /etc/os-release; memory: a value of /proc/meminfo in bytes; package_version: the installed version; file_hash: the SHA-256 of a file of at most 1 GiB.",
        ),
        FieldSpec::new(
            "of",
            FieldType::Text,
            "The subject of a builtin: a key (os; default ID), a key (memory; default MemTotal), a package, or a path.",
        )
        .mode(FieldMode::Value)
        .example("VERSION_ID")
        .receives(Receives::Shown),
        FieldSpec::new(
            "type",
            FieldType::Choice(&["text", "int", "float", "bool", "json"]),
            "Type of the answer; an answer of another type is a failure. bool accepts true, false, yes, no, 1 and 0.",
        )
        .default("text"),
        FieldSpec::new("args", FieldType::Texts, "Another name of `cmd`.")
            .mode(FieldMode::Argv(""))
            .example("[nginx, -V]")
            .list_only()
            .conflicts_with(&["builtin", "cmd"])
            .receives(Receives::Shown),
        FieldSpec::new(
            "value",
            FieldType::TextMap,
            "The value in the output: type (string, int, float, bool, json), stream (stdout, stderr), and one of: match, a regular expression, whose first group counts (with bool: true if it matches); json, a dotted path; lines: true, a list of strings; exit: true, the exit code (with bool: true for 0).",
        )
        .example("{ type: bool, stream: stderr, match: 'OpenSSL 1\\.' }")
        .mode(FieldMode::Value)
        .conflicts_with(&["builtin", "type"]),
        FieldSpec::new("poll", FieldType::Duration, "Interval at which the probe asks again.")
            .example("1h"),
        FieldSpec::new("user", FieldType::Text, "User that the command runs as. Default: the daemon's user.")
            .mode(FieldMode::Value)
            .example("nobody")
            .receives(Receives::Shown),
        FieldSpec::new("watchfiles", FieldType::Texts, "Absolute paths whose changes ask again.")
            .mode(FieldMode::Value)
            .example("[/etc/os-release]")
            .receives(Receives::Shown),
        FieldSpec::new("timeout", FieldType::Duration, "Deadline of the command.")
            .default("1m")
            .receives(Receives::Shown),
    ],
    sends: &[
        SendSpec::new("output", FieldType::Text, "The answer as text, without the last line break."),
        SendSpec::new("int", FieldType::Int, "The answer, with `type: int`."),
        SendSpec::new("float", FieldType::Float, "The answer, with `type: float` or `type: int`."),
        SendSpec::new("bool", FieldType::Bool, "The answer, with `type: bool`."),
        SendSpec::new("json", FieldType::Text, "The answer in its shortest form, with `type: json`."),
    ],
    example: "probe:\n  - name: release\n    builtin: os\n    of: VERSION_ID\n    type: int\n",
    restore: None,
    build,
};

/// The question of a probe.
#[derive(Debug)]
enum Question {
    Run(Box<Command>),
    Os(String),
    Memory(String),
    Package(String),
    Hash(PathBuf),
}

/// The type of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Text,
    Int,
    Float,
    Bool,
    Json,
}

#[derive(Debug)]
struct Probe {
    question: Question,
    rule: AnswerRule,
    watched: Vec<PathBuf>,
    /// The interval at which the probe asks again.
    poll: Option<Duration>,
    /// The values of the last answer.
    answer: Mutex<Sent>,
}

const OS_RELEASE: &str = "/etc/os-release";
const MEMORY: &str = "/proc/meminfo";

fn build(_name: &str, fields: Fields, _place: &Place) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let mut reader = FieldReader::new(fields);
    let rule = read_rule(&mut reader);
    let poll = reader.fields.float("poll").map(|seconds| read_poll(seconds, &mut reader));
    let watched = reader.fields.texts("watchfiles").unwrap_or_default();
    let watched = watched.into_iter().filter_map(|text| absolute("watchfiles", &text, &mut reader));
    let watched = watched.collect();
    let question = read_question(&mut reader);
    reader.finish(())?;
    let problem = || vec![Invalid::whole("expected `cmd` or `builtin`, found neither")];
    let question = question.ok_or_else(problem)?;
    Ok(Arc::new(Probe { question, rule, watched, poll: poll.flatten(), answer: Mutex::default() }))
}

/// The shortest interval of polls.
const SHORTEST_POLL: Duration = Duration::from_secs(1);

fn read_poll(seconds: f64, reader: &mut FieldReader) -> Option<Duration> {
    let poll = Duration::try_from_secs_f64(seconds).ok();
    let poll = poll.filter(|it| (SHORTEST_POLL..=LONGEST_SPAN).contains(it));
    reader.require(poll.is_some(), "poll", ("expected 1 s or longer", "for example 1h"));
    poll
}

fn absolute(field: &'static str, text: &str, reader: &mut FieldReader) -> Option<PathBuf> {
    let path = normal_path(text);
    if path.is_none() {
        let what = bounded(format!("expected an absolute path without .., found {text}"));
        reader.reject(Invalid::field(field, what));
    }
    path
}

fn read_question(reader: &mut FieldReader) -> Option<Question> {
    let argv = reader.fields.texts("cmd").or_else(|| reader.fields.texts("args"));
    if let Some(argv) = argv {
        let is_command = argv.first().is_some_and(|program| !program.is_empty())
            && argv.iter().all(|word| !word.contains('\0'));
        let problem = ("expected a program and its arguments", "for example [uname, -r]");
        reader.require(is_command, "cmd", problem);
        reader.exclude(&["of"], "belongs to `builtin`");
        return Some(Question::Run(Box::new(read_command(argv, reader))));
    }
    reader.exclude(&["user", "timeout"], "belongs to `cmd`");
    let of = reader.text("of").filter(|text| !text.is_empty());
    let needed = |of: Option<String>, example: &str, reader: &mut FieldReader| {
        let problem = ("expected `of`, found none", example);
        reader.require(of.is_some(), "of", problem);
        of.unwrap_or_default()
    };
    let builtin = reader.fields.text("builtin")?;
    match builtin.as_str() {
        "os" => Some(Question::Os(of.unwrap_or_else(|| "ID".to_owned()))),
        "memory" => Some(Question::Memory(of.unwrap_or_else(|| "MemTotal".to_owned()))),
        "package_version" => Some(Question::Package(needed(of, "the name of a package", reader))),
        "file_hash" => {
            let path = needed(of, "the path of a file", reader);
            absolute("of", &path, reader).map(Question::Hash)
        }
        _ => {
            let what = format!("expected a builtin, found {}", short(&builtin, 40));
            let hint = format!("builtins: {}", BUILTINS.join(", "));
            reader.reject(Invalid::field("builtin", what).hint(hint));
            None
        }
    }
}

fn read_command(argv: Vec<String>, reader: &mut FieldReader) -> Command {
    let user = reader.text("user");
    let seconds = reader.fields.float("timeout").unwrap_or(60.0);
    let timeout = Duration::try_from_secs_f64(seconds).ok();
    let timeout = timeout.filter(|it| !it.is_zero() && *it <= LONGEST_SPAN);
    let problem = ("expected a span of time", "for example 30s");
    reader.require(timeout.is_some(), "timeout", problem);
    let judged = user.is_none();
    Command {
        argv,
        user,
        judged,
        timeout: timeout.or(Some(Duration::from_mins(1))),
        ..command(&[])
    }
}

impl Probe {
    async fn ask(&self, host: &Host, ask: &CheckRequest) -> Result<String, Failure> {
        match &self.question {
            Question::Run(command) => {
                let finished = host.query(command, &ask.cancel).await?;
                let is_answer = self.rule.is_exit() && matches!(finished.end, End::Exited(_));
                if !finished.is_success() && !is_answer {
                    return Err(failed(command, &finished));
                }
                self.rule.output_of(&finished)
            }
            Question::Os(key) => {
                let text = read_text(host, OS_RELEASE).await?;
                let value = value_of(&text, key);
                value.ok_or_else(|| no_key(key, OS_RELEASE))
            }
            Question::Memory(key) => {
                let text = host_memory(host).await?;
                let value = memory_value(&text, key);
                value.map(|bytes| bytes.to_string()).ok_or_else(|| no_key(key, MEMORY))
            }
            Question::Package(name) => {
                let packages = host.packages().await?;
                let package =
                    packages.get(name).filter(|package| package.state == State::Installed);
                let found = package.map(|package| package.version.clone());
                let what = || format!("the package {} is not installed", short(name, 50));
                found.ok_or_else(|| Failure::new(what()))
            }
            Question::Hash(path) => {
                let own = path.clone();
                let found =
                    on_thread(host, move |host| bounded_checksum_of(host.files(), &own)).await??;
                let what = || bounded(format!("there is no file {}", path.display()));
                found.ok_or_else(|| Failure::new(what()))
            }
        }
    }
}

fn no_key(key: &str, path: &str) -> Failure {
    Failure::new(format!("expected {} in {path}, found none", short(key, 40)))
}

async fn read_text(host: &Host, path: &'static str) -> Result<String, Failure> {
    let read = on_thread(host, move |host| text_of(host.files(), Path::new(path)));
    let what = || Failure::new(format!("expected {path}, found none"));
    read.await??.ok_or_else(what)
}

/// Reads the kernel's table of memory; files of /proc have no size, so `cat` reads it.
async fn host_memory(host: &Host) -> Result<String, Failure> {
    let cancel = tokio_util::sync::CancellationToken::new();
    crate::parts::commands::query_text(host, &cancel, &["cat", MEMORY]).await
}

/// Returns a value of meminfo in bytes.
fn memory_value(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    let mut words = line.split_whitespace();
    let count: u64 = words.next()?.parse().ok()?;
    count.checked_mul(if words.next() == Some("kB") { 1024 } else { 1 })
}

impl Resource for Probe {
    fn footprint(&self) -> Footprint {
        let path = |path: &Path| WatchSource::Path { path: path.to_owned(), below: false };
        let mut watch: Vec<WatchSource> = self.watched.iter().map(|it| path(it)).collect();
        let mut requires: Vec<Need> =
            self.watched.iter().map(|path| Need::path(path.clone(), "is watched")).collect();
        let mut trusts = Vec::new();
        match &self.question {
            Question::Run(command) => {
                let program = command.argv.first().filter(|program| program.starts_with('/'));
                let needs = program.map(|it| Need::path(it.as_str(), "contains the command"));
                requires.extend(needs);
                requires.extend(command.user.iter().filter_map(|it| Need::user(it, "runs as")));
                let own = program.filter(|_| command.user.is_none());
                trusts.extend(own.map(PathBuf::from));
            }
            Question::Os(_) => watch.push(path(Path::new(OS_RELEASE))),
            Question::Memory(_) => watch.push(WatchSource::Polled(PathBuf::from(MEMORY))),
            Question::Package(name) => {
                watch.push(path(Path::new(STATUS)));
                let package = HostObject::Package(name.clone());
                requires.push(Need::exact(package, "is the package of the question"));
            }
            Question::Hash(file) => {
                watch.push(path(file));
                requires.push(Need::path(file.clone(), "is read"));
            }
        }
        watch.extend(self.poll.map(WatchSource::Every));
        Footprint { requires, watch, trusts, ..Footprint::default() }
    }

    fn sends_answers(&self) -> bool {
        true
    }

    fn traits(&self) -> Traits {
        // A failed probe keeps its last value: its users go on with it.
        Traits { failure_blocks: false, ..Traits::confined_command() }
    }

    fn sends(&self) -> Sent {
        self.answer.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn sends_key(&self, key: &str) -> bool {
        match key {
            "output" => true,
            "int" => self.rule.kind == Kind::Int,
            "float" => matches!(self.rule.kind, Kind::Int | Kind::Float),
            "bool" => self.rule.kind == Kind::Bool,
            "json" => self.rule.kind == Kind::Json,
            _ => false,
        }
    }

    fn check<'a>(&'a self, host: &'a Host, ask: CheckRequest) -> Answer<'a, CheckResult> {
        Box::pin(async move {
            let answer = self.ask(host, &ask).await.and_then(|output| self.rule.values(output));
            match answer {
                Ok(values) => {
                    *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = values;
                    CheckResult::Same
                }
                Err(failure) => CheckResult::Unknown(failure.passing()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::memory_value;
    use crate::parts::assignment::value_of;

    #[test]
    fn values_of_tables_are_found() {
        let text = "# c\nNAME=\"Debian \\\"GNU\\\"\"\nID=debian\nVERSION_ID='12'\n";
        assert_eq!(value_of(text, "NAME").as_deref(), Some("Debian \"GNU\""));
        assert_eq!(value_of(text, "ID").as_deref(), Some("debian"));
        assert_eq!(value_of(text, "VERSION_ID").as_deref(), Some("12"));
        assert_eq!(value_of(text, "VERSION"), None);
        let text = "MemTotal:        8 kB\nHugePages_Total:       3\n";
        assert_eq!(memory_value(text, "MemTotal"), Some(8192));
        assert_eq!(memory_value(text, "HugePages_Total"), Some(3));
        assert_eq!(memory_value(text, "Mem"), None);
    }
}
