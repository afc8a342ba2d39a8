//! The destinations of log lines: standard error, as text or JSON, or the journal. No content breaks a line in two
//! (S-13).

use super::log_journal::{JournalLayer, JournalSocket};
use super::log_json::JsonLine;
use super::log_queue;
use super::log_queue::{Bounds, LogLine, log_line};
use super::{count, eprint, plain};
use crate::cli::args::Log;
use crate::workers::LogLevelError;
use steadfast_resources::printable_json;
use tracing::field::{Field, Visit};
use tracing_subscriber::Layer as _;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::{FormatFields, JsonFields, Writer};
use tracing_subscriber::fmt::time::SystemTime;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, fmt, reload};

/// The process that logs. A daemon never waits for a reader of its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Process {
    Daemon,
    Command,
}

/// Sets up the log of this process. `STEADFAST_LOG` filters it (`debug`, `steadfast::driver=trace`).
pub(in crate::cli) fn set_up(log: Log, level: Option<&str>, process: Process) -> LogFilter {
    let log = match log {
        Log::Journald => journal_or_here(),
        log => log,
    };
    let bounds = match process {
        Process::Daemon => Bounds::of_daemon(),
        Process::Command => Bounds::of_command(log == Log::Journald),
    };
    log_queue::set_up(bounds, log_dropped);
    let usual = || EnvFilter::new(level.unwrap_or("info"));
    let named = std::env::var("STEADFAST_LOG").ok().filter(|words| !words.is_empty());
    let named = named.map(|words| filter(&words)).transpose().unwrap_or_else(|why| {
        eprint(format!("warning: STEADFAST_LOG: {why}"));
        None
    });
    let filter = named.unwrap_or_else(usual);
    let (filter, handle) = reload::Layer::new(filter);
    let lines = fmt::layer().log_internal_errors(false).with_timer(SystemTime).with_target(false);
    let all = tracing_subscriber::registry().with(filter);
    let set = match log {
        Log::Json => {
            let lines = lines.with_writer(|| Lines { json: true });
            all.with(lines.fmt_fields(JsonFields::new()).event_format(JsonLine)).try_init()
        }
        Log::Journald => all.with(JournalLayer).try_init(),
        Log::Human => {
            let colour = std::io::IsTerminal::is_terminal(&std::io::stderr());
            let colour = colour && std::env::var_os("NO_COLOR").is_none();
            let lines = lines.with_writer(|| Lines { json: false }).with_ansi(colour);
            let lines = lines.fmt_fields(HumanFields);
            // The journal of systemd adds the time itself.
            let lines = if is_journal() { lines.without_time().boxed() } else { lines.boxed() };
            all.with(lines).try_init()
        }
    };
    // A second call in one process (tests) has no effect.
    drop(set);
    // A panic in a kind is reported as the failure of its resource, and not printed to the terminal.
    std::panic::set_hook(Box::new(|panic| {
        tracing::error!(event = "panic", "{}", plain(&panic.to_string()));
    }));
    LogFilter(Box::new(move |filter| {
        handle.reload(filter).map_err(|error| LogLevelError(error.to_string()))
    }))
}

/// The levels of the log, from nothing to everything.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// Parses a filter of the log: `debug`, `steadfast::driver=trace`, several with commas.
///
/// # Errors
/// A message if a level is unknown or the filter is malformed.
pub(in crate::cli) fn filter(words: &str) -> Result<EnvFilter, LogLevelError> {
    for part in words.split(',').map(str::trim) {
        // A part without a level that names code is a target: all of it is logged.
        let is_target = part.starts_with("steadfast") || part.contains("::");
        let level = match part.rsplit_once('=') {
            Some((_, level)) => level,
            None if is_target || part.contains('[') => continue,
            None => part,
        };
        if !LEVELS.iter().any(|known| known.eq_ignore_ascii_case(level)) {
            return Err(LogLevelError(format!(
                "expected one of {}, found `{}` (for one module: steadfast::driver=debug)",
                LEVELS.join(", "),
                plain(level)
            )));
        }
    }
    let parsed = EnvFilter::try_new(words);
    parsed
        .map_err(|error| LogLevelError(format!("`{}` is not a log filter: {error}", plain(words))))
}

/// The filter of the log; it can be changed at any time.
pub(in crate::cli) struct LogFilter(
    Box<dyn Fn(EnvFilter) -> Result<(), LogLevelError> + Send + Sync>,
);

impl LogFilter {
    /// Sets a new filter: `debug`, `steadfast::driver=trace`.
    pub(in crate::cli) fn set(&self, filter: &str) -> Result<(), LogLevelError> {
        (self.0)(self::filter(filter)?)
    }
}

/// Returns true if standard error is the stream to the journal that systemd has opened for this service.
fn is_journal() -> bool {
    let named = std::env::var("JOURNAL_STREAM").unwrap_or_default();
    let Some((device, inode)) = named.split_once(':') else { return false };
    rustix::fs::fstat(std::io::stderr())
        .is_ok_and(|found| device.parse() == Ok(found.st_dev) && inode.parse() == Ok(found.st_ino))
}

/// The fields of a line for people: the first line of the message, the other fields, then the further lines of the
/// message, indented. The event name is left out, because the message contains it in words.
struct HumanFields;

impl<'writer> FormatFields<'writer> for HumanFields {
    fn format_fields<R: RecordFields>(
        &self,
        mut writer: Writer<'writer>,
        fields: R,
    ) -> std::fmt::Result {
        let mut line = HumanLine::default();
        fields.record(&mut line);
        let mut lines = line.message.trim_end().lines().map(plain);
        let first = lines.next().filter(|first| !first.is_empty());
        let words: Vec<String> = first.into_iter().chain(line.others).collect();
        writer.write_str(&words.join(" "))?;
        lines.try_for_each(|more| write!(writer, "\n    {more}"))
    }
}

/// The fields of one line.
#[derive(Default)]
struct HumanLine {
    message: String,
    others: Vec<String>,
}

impl Visit for HumanLine {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            "event" => {}
            name => self.others.push(format!("{name}={}", plain(&format!("{value:?}")))),
        }
    }
}

/// Returns the journal as the destination, or standard error if the journal is unreachable.
fn journal_or_here() -> Log {
    let Err(why) = JournalSocket::default().probe() else { return Log::Journald };
    eprint(format!("warning: the journal cannot be reached: {why}; logging to standard error"));
    Log::Human
}

/// Logs the number of dropped lines.
fn log_dropped(number: u64) {
    let lines = count(usize::try_from(number).unwrap_or(usize::MAX), "line");
    tracing::error!(
        event = "log",
        dropped = number,
        "{lines} of log dropped: standard error was not read"
    );
}

/// A writer that passes lines to the queue. JSON lines are escaped for safe display.
struct Lines {
    json: bool,
}

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let line = if self.json {
            printable_json(&String::from_utf8_lossy(bytes)).as_bytes().to_vec()
        } else {
            bytes.to_vec()
        };
        log_line(LogLine::Stderr(line));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
