//! The settings of a host (`/etc/steadfast/steadfast.yaml`): the graph, the paths, and the defaults of all resources.
//!
//! Settings are read and rejected like a graph: all problems at once, each with its place. They must not contain
//! resources. Reading order: this file, `quantities` (sizes and times), `recorders`, `world`.

pub(super) mod quantities;
pub(super) mod recorders;
pub(super) mod world;

use super::Text;
use super::document::{Origin, parse};
use super::problem::code::Code;
use super::problem::render::Rejected;
use super::problem::{Problem, Problems, Severity, quoted};
use super::read::files;
use super::read::{Entry, Reader};
use super::source_file::SourceFile;
use recorders::Recorder;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use steadfast_resources::KindSet;
use steadfast_resources::{FieldSpec, FieldType, Fields, LONGEST_SPAN, Value};
use world::WorldSettings;

/// All settings, as field tables.
pub(super) static SETTINGS: &[FieldSpec] = &[
    FieldSpec::new(
        "graph",
        FieldType::Texts,
        "graph files or directories of *.yaml, relative to this file",
    ),
    FieldSpec::new(
        "watch",
        FieldType::Bool,
        "reload the graph when one of its files changes; default false",
    ),
    FieldSpec::new("state_dir", FieldType::Text, "state directory; default /var/lib/steadfast"),
    FieldSpec::new(
        "socket",
        FieldType::Text,
        "path of the control socket; default in the runtime directory",
    ),
    FieldSpec::new("socket_group", FieldType::Text, "group whose members may query the status"),
    FieldSpec::new("log", FieldType::Text, "log format: human, json or journald; default human"),
    FieldSpec::new(
        "log_level",
        FieldType::Text,
        "log level, such as info or steadfast::driver=debug; default info",
    ),
    FieldSpec::new(
        "sweep",
        FieldType::Seconds,
        "seconds for one sweep, a check of every resource; 0: disabled; default 600",
    ),
    FieldSpec::new(
        "grace",
        FieldType::Seconds,
        "seconds that running resources may take to finish after a stop; default 30",
    ),
    FieldSpec::new(
        "pause_limit",
        FieldType::Seconds,
        "seconds after which a pause ends automatically; default 28800",
    ),
    FieldSpec::new(
        "max_repairs_per_minute",
        FieldType::Int,
        "suspend repeated repairs for a minute after this many of them per minute; 0: no limit; default 600",
    ),
    FieldSpec::new("events_size", FieldType::Int, "size of the event log in MiB; default 64"),
    FieldSpec::new("events_days", FieldType::Int, "retention of events in days; default 30"),
    FieldSpec::new(
        "history",
        FieldType::TextMap,
        "limits of the change history: max_file (default 10MiB), max_total (200MiB; 0: disabled), max_age (90d)",
    ),
    FieldSpec::new(
        "metrics_listen",
        FieldType::Text,
        "address and port for scrapes of metrics by TCP, such as 127.0.0.1:9470; default: only the socket metrics.sock",
    ),
    FieldSpec::new(
        "metrics_file",
        FieldType::Text,
        "file for the textfile collector of node_exporter, such as /var/lib/prometheus/node-exporter/steadfast.prom; written every 15 s",
    ),
    FieldSpec::new(
        "metrics_resources",
        FieldType::Int,
        "maximum number of single resources in metrics; only resources that are not as declared are listed; default 0",
    ),
    FieldSpec::new("noop", FieldType::Bool, "check without changing anything; default false"),
    FieldSpec::new(
        "sema",
        FieldType::Int,
        "maximum number of resources run in parallel; default unlimited",
    ),
    FieldSpec::new(
        "vars_files",
        FieldType::Texts,
        "files of variables, in ascending order; they win over those of the graph",
    ),
];

/// The largest `metrics_resources`: about a megabyte of text for each scrape.
const LISTED_IN_METRICS: u64 = 10_000;

/// A function that checks the text of a setting. The error says what was expected.
pub type Judge<'a> = &'a dyn Fn(&str) -> Result<(), String>;

/// The default metaparameters for all resources.
#[derive(Clone, Debug)]
pub struct Defaults(pub(super) Fields, u64);

/// Compares defaults as written.
impl PartialEq for Defaults {
    fn eq(&self, other: &Self) -> bool {
        self.1 == other.1
    }
}

impl Eq for Defaults {}

/// The settings of a host; a setting that is not given is `None`.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The absolute paths of the graph files.
    pub graph: Vec<PathBuf>,
    /// True if the graph is reloaded when one of its files changes.
    pub watch: Option<bool>,
    /// The state directory.
    pub state_dir: Option<PathBuf>,
    /// The path of the control socket.
    pub socket: Option<PathBuf>,
    /// The group that may connect, as written.
    pub socket_group: Option<String>,
    /// The format of log lines, as written.
    pub log: Option<String>,
    /// The level of the log.
    pub log_level: Option<String>,
    /// The interval of sweeps, in seconds.
    pub sweep: Option<u64>,
    /// The grace period at the stop, in seconds.
    pub grace: Option<u64>,
    /// The length of a pause without a given length, in seconds.
    pub pause_limit: Option<u64>,
    /// The limit of repairs per minute.
    pub max_repairs_per_minute: Option<u32>,
    /// The maximum size of the event log, in MiB.
    pub events_size: Option<u32>,
    /// The maximum age of recorded events, in days.
    pub events_days: Option<u32>,
    /// The recorders of all events.
    pub recorders: Vec<Recorder>,
    /// The limits of the history.
    pub history: Bounds,
    /// The TCP address for metrics.
    pub metrics_listen: Option<SocketAddr>,
    /// The file for metrics.
    pub metrics_file: Option<PathBuf>,
    /// The maximum number of single resources in metrics.
    pub metrics_resources: Option<u32>,
    /// True if every vertex is only checked.
    pub noop: Option<bool>,
    /// The maximum number of runs at the same time.
    pub sema: Option<u32>,
    /// The files of variables.
    pub vars_files: Vec<PathBuf>,
    /// The default metaparameters.
    pub defaults: Option<Arc<Defaults>>,
    /// The world that this host shares with others.
    pub world: Option<WorldSettings>,
    /// The text of the settings file.
    pub text: Option<Text>,
}

/// The limits of the history, as far as given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// The maximum size of one file, in bytes.
    pub file: Option<u64>,
    /// The maximum size of the history, in bytes.
    pub total: Option<u64>,
    /// The maximum age of an entry, in seconds.
    pub age: Option<u64>,
}

/// Returns all settings except `defaults` and `recorders`, for `explain`.
#[must_use]
pub fn settings() -> &'static [FieldSpec] {
    SETTINGS
}

/// Reads the settings of a host. `words` are checks for settings that accept only some values, by name.
///
/// # Errors
/// [`Rejected`] with all problems of the settings.
pub fn read_settings(path: &Path, words: &[(&str, Judge<'_>)]) -> Result<Settings, Rejected> {
    let mut problems = Problems::default();
    let sources = files::read(&[path.to_owned()], &mut problems);
    compile(sources, problems, words)
}

/// Reads the settings of a host from a text that was read before.
///
/// # Errors
/// [`Rejected`] with all problems of the settings.
pub fn parse_settings(text: Text, words: &[(&str, Judge<'_>)]) -> Result<Settings, Rejected> {
    let source = SourceFile::new(&text.display, text.path, text.base, text.content);
    compile(vec![source], Problems::default(), words)
}

fn compile(
    sources: Vec<SourceFile>,
    mut problems: Problems,
    words: &[(&str, Judge<'_>)],
) -> Result<Settings, Rejected> {
    // Settings name no kinds.
    let kinds = KindSet::default();
    let mut settings = Settings::default();
    if let Some(source) = sources.first()
        && let Some(tree) = parse::parse(source, &mut problems)
    {
        let (origin, notes) = (Origin::default(), std::collections::HashMap::new());
        let mut reader = Reader {
            source,
            kinds: &kinds,
            tree: &tree,
            origin: &origin,
            instance: Arc::default(),
            notes: &notes,
            item: None,
            problems: &mut problems,
        };
        settings = reader.settings(words);
    }
    if problems.errors() == 0 {
        let text = |it: SourceFile| Text {
            display: it.display,
            path: it.path,
            base: it.base,
            content: it.text,
            role: it.role,
        };
        settings.text = sources.into_iter().next().map(text);
        return Ok(settings);
    }
    let displays: Vec<String> = sources.iter().map(|source| source.display.clone()).collect();
    let mut problems = problems.sorted(&displays);
    // The first line of a message is all that some places show.
    problems.list.sort_by_key(|problem| problem.severity != Severity::Error);
    Err(Rejected::of(problems))
}

/// The longest first line of a problem of a setting, in characters, without the place.
const LONGEST_LINE: usize = 80;

impl Bounds {
    fn take(&mut self, key: &str, text: &str) -> Result<(), String> {
        match key {
            "max_file" => self.file = Some(quantities::size(text)?),
            "max_total" => self.total = Some(quantities::size(text)?),
            "max_age" => self.age = Some(quantities::span(text)?),
            _ => {
                let known = "limits by max_file, max_total and max_age";
                return Err(format!("{known}, found `{}`", quoted(key)));
            }
        }
        Ok(())
    }
}

impl<'t> Reader<'t, '_> {
    fn settings(&mut self, words: &[(&str, Judge<'_>)]) -> Settings {
        let mut settings = Settings::default();
        let Some(root) = self.tree.root().filter(|root| !self.is_null(*root)) else {
            return settings;
        };
        let known: Vec<&str> = SETTINGS
            .iter()
            .map(|field| field.name)
            .chain(["defaults", "recorders", "world"])
            .collect();
        let entries = self.map(root, "the settings", "a map of settings").unwrap_or_default();
        for entry in entries {
            if entry.key == "defaults" {
                settings.defaults = self.defaults(entry);
                continue;
            }
            if entry.key == "recorders" {
                settings.recorders = self.recorders(entry);
                continue;
            }
            if entry.key == "world" {
                settings.world = self.world_settings(entry);
                continue;
            }
            let Some(field) = SETTINGS.iter().find(|field| field.name == entry.key) else {
                self.unknown(entry.key, entry.key_span, "the settings", &known);
                continue;
            };
            let Some(value) = self.value(field, entry, "the settings") else { continue };
            let refused = match words.iter().find(|(name, _)| *name == field.name) {
                Some((_, judge)) => match &value {
                    Value::Text(text) => judge(text).err(),
                    _ => None,
                },
                None => None,
            };
            match refused {
                Some(why) => self.refuse_setting(entry, field.name, &why),
                None => self.take(entry, field.name, value, &mut settings),
            }
        }
        settings
    }

    fn refuse_setting(&mut self, entry: Entry<'t>, name: &str, expected: &str) {
        let place = self.source.place(self.value_span(entry));
        let what = format!("`{name}` should be {expected}");
        let problem = if what.chars().count() <= LONGEST_LINE {
            Problem::new(Code::Setting, what)
        } else {
            let what = format!("the value of `{name}` is not valid");
            Problem::new(Code::Setting, what).hint(format!("it should be {expected}"))
        };
        self.say(problem.at(Some(place)));
    }

    fn refuse_with_hint(&mut self, entry: Entry<'t>, what: &str, hint: &str) {
        let place = self.source.place(self.value_span(entry));
        self.say(Problem::new(Code::Setting, what).hint(hint).at(Some(place)));
    }

    fn take(&mut self, entry: Entry<'t>, name: &str, value: Value, settings: &mut Settings) {
        let base = self.source.base.clone();
        let path = |text: String| base.join(text);
        match (name, value) {
            ("graph", Value::Texts(texts)) => {
                settings.graph = texts.into_iter().map(path).collect();
                if settings.graph.is_empty() {
                    self.refuse_setting(entry, name, "at least one file or directory");
                }
            }
            ("vars_files", Value::Texts(texts)) => {
                settings.vars_files = texts.into_iter().map(path).collect();
            }
            ("watch", Value::Bool(watch)) => settings.watch = Some(watch),
            ("noop", Value::Bool(noop)) => settings.noop = Some(noop),
            ("state_dir", Value::Text(text)) => settings.state_dir = Some(path(text)),
            ("socket", Value::Text(text)) => settings.socket = Some(path(text)),
            ("socket_group", Value::Text(text)) => settings.socket_group = Some(text),
            ("metrics_file", Value::Text(text)) => {
                // node_exporter compares the ending with its case.
                if Path::new(&text).extension().is_some_and(|it| it == "prom") {
                    settings.metrics_file = Some(path(text));
                } else {
                    let what = format!("`{name}` should end in .prom, found `{}`", quoted(&text));
                    let hint = "node_exporter reads only names that end in .prom";
                    self.refuse_with_hint(entry, &what, hint);
                }
            }
            ("metrics_listen", Value::Text(text)) => {
                settings.metrics_listen = text.parse().ok();
                if settings.metrics_listen.is_none() {
                    let what =
                        format!("`{name}` should be ADDRESS:PORT, found `{}`", quoted(&text));
                    let hint = "for example 127.0.0.1:9470 or [::1]:9470";
                    self.refuse_with_hint(entry, &what, hint);
                }
            }
            ("log", Value::Text(text)) => settings.log = Some(text),
            ("log_level", Value::Text(text)) => settings.log_level = Some(text),
            ("history", Value::TextMap(bounds)) => {
                for (key, text) in bounds {
                    if let Err(why) = settings.history.take(&key, &text) {
                        self.refuse_setting(entry, name, &why);
                    }
                }
            }
            (_, Value::Int(number)) => self.number(entry, name, number, settings),
            // The table determines the type of each setting.
            _ => {}
        }
    }

    fn number(&mut self, entry: Entry<'t>, name: &str, number: i64, settings: &mut Settings) {
        let least =
            u64::from(["pause_limit", "sema", "events_size", "events_days"].contains(&name));
        let most = u64::from(u32::MAX);
        let most = match name {
            "pause_limit" => LONGEST_SPAN.as_secs(),
            "metrics_resources" => LISTED_IN_METRICS,
            _ => most,
        };
        let whole = u64::try_from(number).ok().filter(|number| (least..=most).contains(number));
        let small = whole.and_then(|number| u32::try_from(number).ok());
        let (Some(whole), Some(small)) = (whole, small) else {
            let expected = format!("a number from {least} to {most}, found {number}");
            return self.refuse_setting(entry, name, &expected);
        };
        match name {
            "sweep" => settings.sweep = Some(whole),
            "grace" => settings.grace = Some(whole),
            "pause_limit" => settings.pause_limit = Some(whole),
            "max_repairs_per_minute" => settings.max_repairs_per_minute = Some(small),
            "events_size" => settings.events_size = Some(small),
            "events_days" => settings.events_days = Some(small),
            "metrics_resources" => settings.metrics_resources = Some(small),
            _ => settings.sema = Some(small),
        }
    }

    /// Reads default metaparameters, with the checks of a resource's metaparameters.
    fn defaults(&mut self, entry: Entry<'t>) -> Option<Arc<Defaults>> {
        let given = self.checked_meta(entry, "the defaults")?;
        Some(Arc::new(Defaults(given.fields, given.sum)))
    }
}
