//! `probe`: a query whose typed value other resources receive. The resource is converged once its query has succeeded.
//!
//! The author of the graph guarantees that the command of a probe changes nothing: it runs in plans too.

use crate::change::{Change, CheckResult, Outcome};
use crate::dependency::Need;
use crate::escape::short;
use crate::failure::Failure;
use crate::footprint::Footprint;
use crate::host::packages::{STATUS, State};
use crate::host::{Command, Host};
use crate::kind::{FieldSpec, FieldType, Fields, Invalid, KindSpec, LONGEST_SPAN, Place, Value};
use crate::parts::commands::{command, failed};
use crate::parts::download::checksum_of;
use crate::parts::field_reader::{bounded, normal_path};
use crate::parts::text_edit::text_of;
use crate::parts::{FieldReader, on_thread};
use crate::permit::Permit;
use crate::resource::{Answer, CheckRequest, ExecutorKind, Resource, Traits};
use crate::values::{Receives, SendSpec, Sent, SentValue};
use crate::watch_source::WatchSource;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The declaration of the kind.
pub static SPEC: KindSpec = KindSpec {
    kind: "probe",
    doc: "Asks a question about the host and sends the answer. The question is a command that changes nothing, or a builtin. A refresh asks again; so do changes of the watched files and `meta: { poll: … }`.",
    fields: &[
        FieldSpec::new("cmd", FieldType::Texts, "Program and arguments, without a shell.")
            .example("[uname, -r]")
            .list_only()
            .conflicts_with(&["builtin"])
            .receives(Receives::Shown),
        FieldSpec::new(
            "builtin",
            FieldType::Choice(&["os", "memory", "package_version", "file_hash"]),
            "os: a value of /etc/os-release; memory: a value of /proc/meminfo in bytes; package_version: the installed version; file_hash: the SHA-256 of a file.",
        ),
        FieldSpec::new(
            "of",
            FieldType::Text,
            "The subject of a builtin: a key (os; default ID), a key (memory; default MemTotal), a package, or a path.",
        )
        .example("VERSION_ID")
        .receives(Receives::Shown),
        FieldSpec::new(
            "type",
            FieldType::Choice(&["text", "int", "float", "bool", "json"]),
            "Type of the answer; an answer of another type is a failure. bool accepts true, false, yes, no, 1 and 0.",
        )
        .default("text"),
        FieldSpec::new("user", FieldType::Text, "User that the command runs as. Default: the daemon's user.")
            .example("nobody")
            .receives(Receives::Shown),
        FieldSpec::new("watchfiles", FieldType::Texts, "Absolute paths whose changes ask again.")
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Int,
    Float,
    Bool,
    Json,
}

#[derive(Debug)]
struct Probe {
    question: Question,
    kind: Kind,
    watched: Vec<PathBuf>,
    /// The values of the last answer.
    answer: Mutex<Sent>,
}

const OS_RELEASE: &str = "/etc/os-release";
const MEMORY: &str = "/proc/meminfo";

fn build(_name: &str, fields: Fields, _place: &Place) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let mut reader = FieldReader::new(fields);
    let words = [
        ("text", Kind::Text),
        ("int", Kind::Int),
        ("float", Kind::Float),
        ("bool", Kind::Bool),
        ("json", Kind::Json),
    ];
    let kind = reader.choice("type", &words).unwrap_or(Kind::Text);
    let watched = reader.fields.texts("watchfiles").unwrap_or_default();
    let watched = watched.into_iter().filter_map(|text| absolute("watchfiles", &text, &mut reader));
    let watched = watched.collect();
    let question = read_question(&mut reader);
    reader.finish(())?;
    let problem = || vec![Invalid::whole("expected `cmd` or `builtin`, found neither")];
    let question = question.ok_or_else(problem)?;
    Ok(Arc::new(Probe { question, kind, watched, answer: Mutex::default() }))
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
    if let Some(argv) = reader.fields.texts("cmd") {
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
            reader.reject(Invalid::field("builtin", what));
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
                if !finished.is_success() {
                    return Err(failed(command, &finished));
                }
                if finished.stdout.truncated() {
                    return Err(Failure::new("the answer exceeds 1 MiB"));
                }
                Ok(finished.stdout.text().trim_end_matches('\n').to_owned())
            }
            Question::Os(key) => {
                let text = read_text(host, OS_RELEASE).await?;
                let value = os_value(&text, key);
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
                let found = on_thread(host, move |host| checksum_of(host.files(), &own)).await??;
                let what = || bounded(format!("there is no file {}", path.display()));
                found.ok_or_else(|| Failure::new(what()))
            }
        }
    }

    /// Returns the values of an answer.
    fn values(&self, output: String) -> Result<Sent, Failure> {
        let value = match self.kind {
            Kind::Text => None,
            Kind::Int => output.trim().parse().ok().map(|it| ("int", Value::Int(it))),
            Kind::Float => number(&output).map(|it| ("float", Value::Float(it))),
            Kind::Bool => truth(&output).map(|it| ("bool", Value::Bool(it))),
            Kind::Json => {
                let parsed: Result<serde_json::Value, _> = serde_json::from_str(&output);
                parsed.ok().map(|it| ("json", Value::Text(it.to_string())))
            }
        };
        if value.is_none() && self.kind != Kind::Text {
            let kind = format!("{:?}", self.kind).to_lowercase();
            let what = format!("expected an answer of type {kind}, found {}", short(&output, 40));
            return Err(Failure::new(what).hint("change the command, or `type`"));
        }
        let float = match value {
            #[expect(clippy::cast_precision_loss, reason = "a float is wanted")]
            Some((_, Value::Int(number))) => Some(("float", Value::Float(number as f64))),
            _ => None,
        };
        let output = ("output", Value::Text(output));
        let all = [Some(output), value, float].into_iter().flatten();
        Ok(all.map(|(key, value)| (key, SentValue::Shown(value))).collect())
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

/// Returns a value of os-release without its quotes.
fn os_value(text: &str, key: &str) -> Option<String> {
    let line = |line: &str| {
        let (name, value) = line.trim().split_once('=')?;
        (name == key).then(|| value.trim().to_owned())
    };
    let value = text.lines().filter(|line| !line.starts_with('#')).find_map(line)?;
    let quoted = |mark: char| value.strip_prefix(mark).and_then(|rest| rest.strip_suffix(mark));
    let plain = quoted('"').or_else(|| quoted('\'')).unwrap_or(&value);
    let mut out = String::with_capacity(plain.len());
    let mut letters = plain.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => out.extend(letters.next()),
            letter => out.push(letter),
        }
    }
    Some(out)
}

/// Returns a value of meminfo in bytes.
fn memory_value(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    let mut words = line.split_whitespace();
    let count: u64 = words.next()?.parse().ok()?;
    count.checked_mul(if words.next() == Some("kB") { 1024 } else { 1 })
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite())
}

fn truth(text: &str) -> Option<bool> {
    match text.trim() {
        "true" | "yes" | "1" => Some(true),
        "false" | "no" | "0" => Some(false),
        _ => None,
    }
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
            Question::Package(_) => watch.push(path(Path::new(STATUS))),
            Question::Hash(file) => {
                watch.push(path(file));
                requires.push(Need::path(file.clone(), "is read"));
            }
        }
        Footprint { requires, watch, trusts, ..Footprint::default() }
    }

    fn traits(&self) -> Traits {
        Traits { seat: ExecutorKind::Command, confined: true, ..Traits::default() }
    }

    fn sends(&self) -> Sent {
        self.answer.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn sends_key(&self, key: &str) -> bool {
        match key {
            "output" => true,
            "int" => self.kind == Kind::Int,
            "float" => matches!(self.kind, Kind::Int | Kind::Float),
            "bool" => self.kind == Kind::Bool,
            "json" => self.kind == Kind::Json,
            _ => false,
        }
    }

    fn check<'a>(&'a self, host: &'a Host, ask: CheckRequest) -> Answer<'a, CheckResult> {
        Box::pin(async move {
            let answer = self.ask(host, &ask).await.and_then(|output| self.values(output));
            match answer {
                Ok(values) => {
                    *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = values;
                    CheckResult::Same
                }
                Err(trouble) => CheckResult::Unknown(trouble.passing()),
            }
        })
    }

    fn apply<'a>(
        &'a self,
        _host: &'a Host,
        _permit: &'a Permit,
        _change: Change,
    ) -> Answer<'a, Outcome> {
        Box::pin(async { Outcome::Unchanged })
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Probe, Question, memory_value, os_value};
    use crate::kind::Value;
    use crate::values::SentValue;
    use std::sync::Mutex;

    #[test]
    fn values_of_tables_are_found() {
        let text = "# c\nNAME=\"Debian \\\"GNU\\\"\"\nID=debian\nVERSION_ID='12'\n";
        assert_eq!(os_value(text, "NAME").as_deref(), Some("Debian \"GNU\""));
        assert_eq!(os_value(text, "ID").as_deref(), Some("debian"));
        assert_eq!(os_value(text, "VERSION_ID").as_deref(), Some("12"));
        assert_eq!(os_value(text, "VERSION"), None);
        let text = "MemTotal:        8 kB\nHugePages_Total:       3\n";
        assert_eq!(memory_value(text, "MemTotal"), Some(8192));
        assert_eq!(memory_value(text, "HugePages_Total"), Some(3));
        assert_eq!(memory_value(text, "Mem"), None);
    }

    #[test]
    fn an_answer_has_the_declared_type() {
        let values = |kind, output: &str| {
            let question = Question::Os(String::new());
            let probe = Probe { question, kind, watched: Vec::new(), answer: Mutex::default() };
            probe.values(output.to_owned())
        };
        let shown = |value| SentValue::Shown(value);
        let output = ("output", shown(Value::Text("7".to_owned())));
        let float = ("float", shown(Value::Float(7.0)));
        let int = ("int", shown(Value::Int(7)));
        assert_eq!(values(Kind::Int, "7").unwrap(), [output.clone(), int, float]);
        assert_eq!(values(Kind::Text, "7").unwrap(), [output]);
        for (kind, wrong) in
            [(Kind::Int, "7.5"), (Kind::Float, "nan"), (Kind::Bool, "on"), (Kind::Json, "{")]
        {
            let trouble = values(kind, wrong).unwrap_err();
            assert!(trouble.what.contains(wrong), "{trouble}");
        }
    }
}
