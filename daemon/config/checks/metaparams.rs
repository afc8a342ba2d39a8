//! Metaparameters: the conversion of written values to the parameters of the engine.

use super::world_permits::{Permits, read_roll, read_world_semaphore};
use crate::config::ast::FieldValues;
use crate::config::maintenance_window::Window;
use crate::config::problem::Problem;
use crate::config::problem::code::Code;
use crate::config::settings::Defaults;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use steadfast_engine::{Conflict, Meta, Pace, Poll, SemaphoreId, WindowId};
use steadfast_resources::{FieldSpec, FieldType, Fields};

/// All metaparameters.
pub(in crate::config) static META: &[FieldSpec] = &[
    FieldSpec::new("noop", FieldType::Bool, "only check, never apply; default false"),
    FieldSpec::new("retry", FieldType::Int, "retries after a failure, -1: unlimited; default 0"),
    FieldSpec::new(
        "retryreset",
        FieldType::Bool,
        "reset the retries after a success; default true",
    ),
    FieldSpec::new(
        "delay",
        FieldType::Milliseconds,
        "milliseconds before the first retry; default 100",
    )
    .bare_duration(),
    FieldSpec::new("delay_max", FieldType::Milliseconds, "longest retry delay; default 1m"),
    FieldSpec::new(
        "timeout",
        FieldType::Milliseconds,
        "timeout of one run; 0: default of the kind",
    ),
    FieldSpec::new(
        "poll",
        FieldType::Seconds,
        "polling interval in seconds instead of a watch; -1: check once",
    )
    .bare_duration(),
    FieldSpec::new("limit", FieldType::Float, "limit of runs per second; default .inf"),
    FieldSpec::new("burst", FieldType::Int, "runs allowed in a burst under `limit`; default 1"),
    FieldSpec::new(
        "sema",
        FieldType::Texts,
        "semaphores, each written id:count; world:id:count is shared by all hosts",
    ),
    FieldSpec::new(
        "roll",
        FieldType::TextMap,
        "rolling change over all hosts: {name, max, settle: 30s, healthy: probe[x], on_failure: stop}",
    ),
    FieldSpec::new(
        "reset",
        FieldType::Bool,
        "reset the back-off when the definition changes; default false",
    ),
    FieldSpec::new("rewatch", FieldType::Bool, "retry a failed watch; default true"),
    FieldSpec::new("autoedge", FieldType::Bool, "take part in automatic edges; default true"),
    FieldSpec::new(
        "autogroup",
        FieldType::Bool,
        "join a transaction group with resources of the same kind; default true",
    ),
    FieldSpec::new(
        "realize",
        FieldType::Bool,
        "run successfully once before the removal; default false",
    ),
    FieldSpec::new(
        "on_conflict",
        FieldType::Text,
        "reaction to contention: win, backoff or yield; default backoff",
    ),
    FieldSpec::new(
        "on_remove",
        FieldType::Text,
        "treatment of a created object when undeclared: forget or delete; default forget",
    ),
    FieldSpec::new(
        "protect",
        FieldType::Bool,
        "reject graphs without this resource; default false",
    ),
    FieldSpec::new(
        "when_allowed",
        FieldType::Text,
        "maintenance window for changes, such as Mon..Fri 22:00-05:00, Sat; local time; default always",
    ),
];

/// The field `notify` of an edge.
pub(in crate::config) static TRUTH: FieldSpec =
    FieldSpec::new("notify", FieldType::Bool, "refresh the dependent; default false");

/// The field of a short edge.
pub(in crate::config) static LINKS: FieldSpec =
    FieldSpec::new("edges", FieldType::Texts, "resources, each written kind[name]");

/// The field of the former names of a resource.
pub(in crate::config) static ALIASES: FieldSpec = FieldSpec::new(
    "aliases",
    FieldType::Texts,
    "former names; the records under those names belong to this resource",
);

/// The labels of a resource.
pub(in crate::config) static LABELS: FieldSpec = FieldSpec::new(
    "labels",
    FieldType::TextMap,
    "words about the resource for people and for selections, such as {tier: web}",
);

/// A function that reports a problem with a metaparameter.
pub(in crate::config) type Say<'a> = &'a mut dyn FnMut(&'static str, Problem);

/// The metaparameters of one resource.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(in crate::config) struct Own {
    /// The parameters of the engine.
    pub(in crate::config) meta: Arc<Meta>,
    /// True if a watch that failed for good is tried again.
    pub(in crate::config) rewatch: bool,
    /// True if the resource takes part in automatic edges.
    pub(in crate::config) autoedge: bool,
    /// True if the resource may join an automatic group.
    pub(in crate::config) autogroup: bool,
    /// The treatment of the object when the resource is removed from the graph.
    pub(in crate::config) delete: Delete,
    /// True if the resource must not be removed from the graph.
    pub(in crate::config) protect: bool,
}

impl Own {
    fn usual(meta: Arc<Meta>) -> Self {
        let delete = Delete::Never;
        Self { meta, rewatch: true, autoedge: true, autogroup: true, delete, protect: false }
    }
}

/// The deletion of an object when its resource is removed from the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) enum Delete {
    /// The object stays.
    Never,
    /// The object is deleted if its kind can delete; the value of a default for all resources.
    IfItCan,
    /// The object is deleted; the value of this resource itself.
    Always,
}

/// The collected metaparameters; equal ones are shared.
#[derive(Debug)]
pub(in crate::config) struct Metas {
    shared: HashMap<Meta, Arc<Meta>>,
    /// The parameters of resources without `meta`.
    usual: Arc<Meta>,
    noop: bool,
    reserved: Option<SemaphoreId>,
    /// Each `when_allowed`, once, as written.
    windows: Vec<(String, Window)>,
    /// The default metaparameters of the settings.
    defaults: Option<Arc<Defaults>>,
}

impl Metas {
    /// Creates a collection. `noop` holds for all resources; `reserved` is a semaphore around every vertex.
    pub(in crate::config) fn new(
        noop: bool,
        reserved: Option<SemaphoreId>,
        defaults: Option<Arc<Defaults>>,
    ) -> Self {
        let usual = Meta { noop, semaphores: reserved.into_iter().collect(), ..Meta::default() };
        let (shared, windows) = (HashMap::new(), Vec::new());
        Self { shared, usual: Arc::new(usual), noop, reserved, windows, defaults }
    }

    /// Returns the metaparameters of a vertex without `meta` and without the defaults of the settings.
    pub(in crate::config) fn without_defaults(&self) -> Own {
        Own::usual(Arc::clone(&self.usual))
    }

    /// Returns the parameters of resources without `meta`, and the windows by number.
    pub(in crate::config) fn finish(self) -> (Arc<Meta>, Vec<(String, Window)>) {
        (self.usual, self.windows)
    }

    /// Returns the times of `when_allowed`; `None` for always.
    fn times(fields: &mut Fields, say: Say<'_>) -> Option<(String, Window)> {
        let text = fields.text("when_allowed")?;
        match Window::parse(&text) {
            Ok(window) => Some((text, window?)),
            Err(expected) => {
                let what = format!(
                    "`when_allowed` should be {}",
                    crate::config::problem::quoted(&expected)
                );
                let hint =
                    "expected local times such as `Mon..Fri 22:00-05:00, Sat, Sun`, or `always`";
                say("when_allowed", Problem::new(Code::Meta, what).hint(hint));
                None
            }
        }
    }

    /// Returns the number of the window with these times and permits; `None` without both.
    fn window(&mut self, times: Option<(String, Window)>, permits: Permits) -> Option<WindowId> {
        let (text, window) = match (times, permits.into_gate()) {
            (times, Some((text, gate))) => {
                let (hours, window) = times.unzip();
                let text = hours.map_or_else(|| text.clone(), |hours| format!("{hours}; {text}"));
                (text, Window::with_gate(window, gate))
            }
            (Some(times), None) => times,
            (None, None) => return None,
        };
        let known = self.windows.iter().position(|(_, other)| *other == window);
        let number = known.unwrap_or_else(|| {
            self.windows.push((text, window));
            self.windows.len() - 1
        });
        u32::try_from(number).ok().map(WindowId)
    }

    /// Returns the probe that decides if the members of a roll are healthy.
    pub(in crate::config) fn probe_of_roll(&self, window: WindowId) -> Option<&str> {
        let (_, window) = self.windows.get(usize::try_from(window.0).ok()?)?;
        window.gate()?.healthy.as_deref()
    }

    /// Converts the metaparameters of one resource.
    pub(in crate::config) fn make(
        &mut self,
        (identity, given): (&str, Option<Box<FieldValues>>),
        semaphores: &mut dyn FnMut(&str, usize) -> Option<SemaphoreId>,
        say: Say<'_>,
    ) -> Own {
        let mut given = given.map(|given| given.fields);
        let is_own = given.as_ref().is_some_and(|given| given.has("on_remove"));
        if let Some(defaults) = &self.defaults {
            given.get_or_insert_default().fill(&defaults.0);
        }
        let Some(mut fields) = given else {
            return Own::usual(Arc::clone(&self.usual));
        };
        let autoedge = fields.bool("autoedge").unwrap_or(true);
        let autogroup = fields.bool("autogroup").unwrap_or(true);
        let rewatch = fields.bool("rewatch").unwrap_or(true);
        let protect = fields.bool("protect").unwrap_or_default();
        let delete = match word(&mut fields, ("on_remove", &["forget", "delete"]), say) {
            Some(1) if is_own => Delete::Always,
            Some(1) => Delete::IfItCan,
            Some(_) | None => Delete::Never,
        };
        let (delay, delay_max) = delays(&mut fields, say);
        let mut permits = Permits::default();
        let mut ids: Vec<SemaphoreId> = self.reserved.into_iter().collect();
        for (number, text) in fields.texts("sema").unwrap_or_default().iter().enumerate() {
            match text.strip_prefix("world:") {
                Some(rest) => match read_world_semaphore(rest, identity) {
                    Ok(permit) => permits.semaphores.push(permit),
                    Err(problem) => say("sema", problem),
                },
                None => ids.extend(semaphores(text, number)),
            }
        }
        if let Some(map) = fields.text_map("roll") {
            match read_roll(&map) {
                Ok(mut roll) => {
                    let prefix = prefix_of(identity);
                    roll.healthy = roll.healthy.map(|probe| format!("{prefix}{probe}"));
                    permits.roll = Some(roll);
                }
                Err(problem) => say("roll", problem),
            }
        }
        if let Some(problem) = permits.conflict() {
            say("roll", problem);
        }
        let times = Self::times(&mut fields, say);
        let window = self.window(times, permits);
        ids.sort_unstable();
        ids.dedup();
        let meta = Meta {
            noop: fields.bool("noop").unwrap_or_default() || self.noop,
            planned: false,
            retry: retry(&mut fields, say),
            retryreset: fields.bool("retryreset").unwrap_or(true),
            delay,
            delay_max,
            timeout: milliseconds(&mut fields, "timeout", say).filter(|time| !time.is_zero()),
            poll: poll(&mut fields, say),
            pace: pace(&mut fields, say),
            semaphores: ids,
            reset: fields.bool("reset").unwrap_or_default(),
            on_conflict: conflict(&mut fields, say),
            window,
            realize: fields.bool("realize").unwrap_or_default(),
        };
        let meta = if meta == *self.usual {
            Arc::clone(&self.usual)
        } else {
            Arc::clone(self.shared.entry(meta).or_insert_with_key(|meta| Arc::new(meta.clone())))
        };
        Own { meta, rewatch, autoedge, autogroup, delete, protect }
    }
}

/// Returns the prefix of the module in an identity, such as `shop/`; empty outside of modules.
fn prefix_of(identity: &str) -> &str {
    let head = identity.split('[').next().unwrap_or_default();
    head.rfind('/').and_then(|at| identity.get(..=at)).unwrap_or_default()
}

/// Returns the index of a field's value in a list of known words; reports another value.
fn word(
    fields: &mut Fields,
    (name, known): (&'static str, &[&str]),
    say: Say<'_>,
) -> Option<usize> {
    let given = fields.text(name)?;
    let found = known.iter().position(|word| *word == given);
    if found.is_none() {
        let (known, given) = (known.join(", "), crate::config::problem::quoted(&given));
        let what = format!("`{name}` should be one of {known}, found `{given}`");
        say(name, Problem::new(Code::Meta, what));
    }
    found
}

/// E-20: returns the reaction of a resource to contention.
fn conflict(fields: &mut Fields, say: Say<'_>) -> Conflict {
    match word(fields, ("on_conflict", &["backoff", "win", "yield"]), say) {
        Some(1) => Conflict::Win,
        Some(2) => Conflict::Yield,
        Some(_) | None => Conflict::Backoff,
    }
}

fn out_of_range(name: &str, wants: &str, found: impl std::fmt::Display) -> Problem {
    Problem::new(Code::Meta, format!("`{name}` should be {wants}, found {found}"))
}

fn retry(fields: &mut Fields, say: Say<'_>) -> Option<u32> {
    match fields.int("retry").unwrap_or_default() {
        -1 => None,
        given => Some(u32::try_from(given).unwrap_or_else(|_| {
            say("retry", out_of_range("retry", "-1 (unlimited) or at least 0", given));
            0
        })),
    }
}

fn milliseconds(fields: &mut Fields, name: &'static str, say: Say<'_>) -> Option<Duration> {
    let given = fields.int(name)?;
    if let Ok(time) = u32::try_from(given) {
        return Some(Duration::from_millis(u64::from(time)));
    }
    let wants = format!("milliseconds from 0 to {}", u32::MAX);
    say(name, out_of_range(name, &wants, given));
    None
}

/// Returns the first and the longest delay of a retry.
fn delays(fields: &mut Fields, say: Say<'_>) -> (Duration, Duration) {
    let usual = Meta::default();
    let delay = milliseconds(fields, "delay", say).unwrap_or(usual.delay).max(Meta::SHORTEST_DELAY);
    let Some(longest) = milliseconds(fields, "delay_max", say) else {
        return (delay, usual.delay_max.max(delay));
    };
    if longest < delay {
        let wants = format!("at least the delay ({} ms)", delay.as_millis());
        let problem = out_of_range("delay_max", &wants, longest.as_millis());
        say("delay_max", problem.hint("raise the value, or lower `delay`"));
    }
    (delay, longest.max(delay))
}

fn poll(fields: &mut Fields, say: Say<'_>) -> Poll {
    let given = fields.int("poll").unwrap_or_default();
    match (given, u32::try_from(given)) {
        (-1, _) => Poll::Once,
        (0, _) => Poll::Never,
        (_, Ok(seconds)) => Poll::Every(Duration::from_secs(u64::from(seconds))),
        (_, Err(_)) => {
            let wants = format!("-1 (once), 0 (watch) or seconds up to {}", u32::MAX);
            say("poll", out_of_range("poll", &wants, given));
            Poll::Never
        }
    }
}

/// Converts `limit` and `burst` to a token bucket (E-12).
fn pace(fields: &mut Fields, say: Say<'_>) -> Option<Pace> {
    let limit = fields.float("limit").unwrap_or(f64::INFINITY);
    let burst = fields.int("burst");
    let mut refuse = |name, what: String, hint: &str| {
        say(name, Problem::new(Code::Limit, what).hint(hint));
        None
    };
    if limit.is_nan() || limit <= 0.0 {
        let what = format!("`limit` should be runs per second above 0, found {limit}");
        return refuse(
            "limit",
            what,
            "use .inf for no limit; to prevent changes, use `noop: true`",
        );
    }
    if let Some(burst) = burst.filter(|burst| *burst < 0 || *burst > i64::from(u32::MAX)) {
        let what = format!("`burst` should be from 1 to {}, found {burst}", u32::MAX);
        return refuse("burst", what, "set the number of runs allowed in a burst");
    }
    if limit.is_infinite() {
        return None;
    }
    if burst == Some(0) {
        let what = format!("with `limit: {limit}`, `burst: 0` would prevent every run");
        return refuse("burst", what, "set `burst: 1`, or omit `burst`");
    }
    let burst = burst.and_then(|burst| u32::try_from(burst).ok()).unwrap_or(1);
    let period = Duration::try_from_secs_f64(1.0 / limit).ok().map(|period| period.as_nanos());
    let period = period.and_then(|nanos| u64::try_from(nanos.max(1)).ok());
    let bounded = |period: &u64| period.checked_mul(u64::from(burst)).is_some_and(|n| n < 1 << 62);
    if let Some(period_ns) = period.filter(bounded) {
        return Some(Pace { period_ns, burst });
    }
    let what = format!("`limit: {limit:e}` with `burst: {burst}` spans more than 146 years");
    refuse("limit", what, "raise the limit or lower the burst")
}
