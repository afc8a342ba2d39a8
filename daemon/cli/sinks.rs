//! Where lines of log go: to standard error for people or as JSON. Whatever is in them, a line is a line (S-13).

use super::args::Log;
use super::text::{plain, say};
use steadfast_resources::printable_json;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::format::debug_fn;
use tracing_subscriber::fmt::time::SystemTime;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, fmt, reload};

/// Sets up the log of this process. `STEADFAST_LOG` filters it (`debug`, `steadfast::driver=trace`).
pub(super) fn set_up(log: Log, level: Option<&str>) -> LogFilter {
    let usual = || EnvFilter::new(level.unwrap_or("info"));
    let filter = EnvFilter::try_from_env("STEADFAST_LOG").unwrap_or_else(|_| usual());
    let (filter, handle) = reload::Layer::new(filter);
    let lines = fmt::layer().log_internal_errors(false).with_timer(SystemTime).with_target(false);
    let all = tracing_subscriber::registry().with(filter);
    let set = match log {
        Log::Json => {
            let lines = lines.with_writer(|| JsonLines(Unfailing(std::io::stderr())));
            all.with(lines.json().flatten_event(true).with_span_list(false)).try_init()
        }
        Log::Journald => match tracing_journald::layer() {
            Ok(journal) => {
                let journal = journal.with_field_prefix(Some("STEADFAST".to_owned()));
                let journal = journal.with_syslog_identifier("steadfast".to_owned());
                all.with(journal).try_init()
            }
            Err(why) => {
                say(format!("warning: the journal cannot be reached: {why}; logging here"));
                return set_up(Log::Human, level);
            }
        },
        Log::Human => {
            let colour = std::io::IsTerminal::is_terminal(&std::io::stderr());
            let colour = colour && std::env::var_os("NO_COLOR").is_none();
            let lines = lines.with_writer(|| Unfailing(std::io::stderr())).with_ansi(colour);
            let fields = debug_fn(|writer, field, value| match field.name() {
                "message" => writer.write_str(&one(&format!("{value:?}"))),
                name => write!(writer, "{name}={}", one(&format!("{value:?}"))),
            });
            all.with(lines.fmt_fields(fields.delimited(" "))).try_init()
        }
    };
    // A second call in one process (tests) finds it set up already.
    drop(set);
    // A panic in a kind is data: it is told as the failure of that resource, not as noise on the terminal.
    std::panic::set_hook(Box::new(|panic| {
        tracing::error!(event = "panic", "{}", plain(&panic.to_string()));
    }));
    LogFilter(Box::new(move |filter| handle.reload(filter).map_err(|error| error.to_string())))
}

/// How much is logged, in words: `debug`, `steadfast::driver=trace`.
pub(super) fn filter(words: &str) -> Result<EnvFilter, String> {
    let parsed = EnvFilter::try_new(words);
    parsed.map_err(|error| format!("`{}` is no filter: {error}", plain(words)))
}

/// How much is logged; can be changed at any time.
pub(super) struct LogFilter(Box<dyn Fn(EnvFilter) -> Result<(), String> + Send + Sync>);

impl LogFilter {
    /// Filters so from now on: `debug`, `steadfast::driver=trace`.
    pub(super) fn set(&self, filter: &str) -> Result<(), String> {
        (self.0)(self::filter(filter)?)
    }
}

/// A text of which no part begins a line of its own: further lines are indented.
fn one(text: &str) -> String {
    text.trim_end().lines().map(plain).collect::<Vec<_>>().join("\n    ")
}

/// JSON in which nothing can deceive whoever looks at it.
struct JsonLines(Unfailing);

impl std::io::Write for JsonLines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        self.0.write_all(printable_json(&text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

/// Standard error that may be full, or closed by whoever read it: a daemon goes on without its log.
struct Unfailing(std::io::Stderr);

impl std::io::Write for Unfailing {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        Ok(self.0.write(bytes).unwrap_or(bytes.len()))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let _unwritten = self.0.flush();
        Ok(())
    }
}
