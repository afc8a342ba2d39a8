//! The lines of a schedule: formatting and parsing.

use super::{length, millis, number, vertex};
use crate::shape::{Shape, v};
use crate::step::Step;
use std::fmt::Write as _;
use std::sync::Arc;
use steadfast_engine::{
    Conflict, Edge, ExecutorKind, Meta, OnInterrupt, Outcome, Pace, Poll, RunPolicy, RunVerdict,
    SemaphoreId, Traits, VertexSpec, WindowId,
};

pub(super) fn write_shape(text: &mut String, shape: &Shape) {
    for count in &shape.semaphores {
        writeln!(text, "semaphore {count}").expect("a string takes all");
    }
    for declared in &shape.vertices {
        let words = vertex_words(declared);
        writeln!(text, "vertex {} {}{words}", declared.id.0, declared.definition)
            .expect("a string takes all");
    }
    for edge in &shape.edges {
        let verb = if edge.notify { "notify" } else { "edge" };
        writeln!(text, "{verb} {} {}", edge.from.0, edge.to.0).expect("a string takes all");
    }
}

fn vertex_words(declared: &VertexSpec) -> String {
    let (meta, traits) = (&declared.meta, &declared.traits);
    let plain = Meta::default();
    let mut words = Vec::new();
    let mut flag = |on: bool, word: String| {
        if on {
            words.push(word);
        }
    };
    flag(meta.noop, "noop".into());
    flag(meta.planned, "planned".into());
    flag(
        meta.retry != Some(0),
        meta.retry.map_or_else(|| "retry=ever".into(), |n| format!("retry={n}")),
    );
    flag(!meta.retryreset, "keeps-budget".into());
    flag(meta.reset, "reset".into());
    flag(meta.delay != plain.delay, format!("delay={}", millis(meta.delay)));
    flag(meta.delay_max != plain.delay_max, format!("delay-max={}", millis(meta.delay_max)));
    if let Some(timeout) = meta.timeout {
        flag(true, format!("timeout={}", millis(timeout)));
    }
    if let Some(timeout) = traits.timeout {
        flag(true, format!("own-timeout={}", millis(timeout)));
    }
    match meta.poll {
        Poll::Never => {}
        Poll::Once => flag(true, "poll=once".into()),
        Poll::Every(interval) => flag(true, format!("poll={}", millis(interval))),
    }
    if let Some(pace) = meta.pace {
        flag(true, format!("pace={}/{}", pace.period_ns, pace.burst));
    }
    for semaphore in &meta.semaphores {
        flag(true, format!("uses={}", semaphore.0));
    }
    flag(meta.on_conflict == Conflict::Win, "win".into());
    flag(meta.on_conflict == Conflict::Yield, "yield".into());
    flag(meta.realize, "realize".into());
    if let Some(window) = meta.window {
        flag(true, format!("window={}", window.0));
    }
    flag(traits.executor == ExecutorKind::Command, "command".into());
    flag(!traits.cancellable, "fixed".into());
    flag(!traits.failure_blocks, "lenient".into());
    flag(traits.repeat == RunPolicy::Once, "once".into());
    flag(traits.repeat == RunPolicy::EachStart, "each-start".into());
    flag(traits.repeat == RunPolicy::Events, "events".into());
    flag(traits.on_interrupt == OnInterrupt::Skip, "skip".into());
    flag(traits.on_interrupt == OnInterrupt::Wait, "ask".into());
    words.iter().fold(String::new(), |all, word| all + " " + word)
}

pub(super) fn read_shape(shape: &mut Shape, verb: &str, words: &[&str]) {
    match (verb, words) {
        ("semaphore", [count]) => shape.semaphores.push(number(count)),
        ("edge" | "notify", [from, to]) => {
            let (from, to) = (vertex(from), vertex(to));
            shape.edges.push(Edge { from, to, notify: verb == "notify" });
        }
        ("vertex", [id, definition, words @ ..]) => {
            let (mut meta, mut traits) = (Meta::default(), Traits::default());
            for word in words {
                read_word(&mut meta, &mut traits, word);
            }
            shape.vertices.push(VertexSpec {
                id: v(number(id)),
                definition: number(definition),
                meta: Arc::new(meta),
                traits,
            });
        }
        _ => panic!("expected a line of a graph, found {verb} {words:?}"),
    }
}

fn read_word(meta: &mut Meta, traits: &mut Traits, word: &str) {
    let (key, value) = word.split_once('=').unwrap_or((word, ""));
    match key {
        "noop" => meta.noop = true,
        "planned" => meta.planned = true,
        "retry" => meta.retry = (value != "ever").then(|| number(value)),
        "keeps-budget" => meta.retryreset = false,
        "reset" => meta.reset = true,
        "delay" => meta.delay = length(value),
        "delay-max" => meta.delay_max = length(value),
        "timeout" => meta.timeout = Some(length(value)),
        "own-timeout" => traits.timeout = Some(length(value)),
        "poll" if value == "once" => meta.poll = Poll::Once,
        "poll" => meta.poll = Poll::Every(length(value)),
        "pace" => {
            let (period, burst) = value.split_once('/').expect("pace=period/burst");
            meta.pace = Some(Pace { period_ns: number(period), burst: number(burst) });
        }
        "uses" => meta.semaphores.push(SemaphoreId(number(value))),
        "win" => meta.on_conflict = Conflict::Win,
        "yield" => meta.on_conflict = Conflict::Yield,
        "realize" => meta.realize = true,
        "window" => meta.window = Some(WindowId(number(value))),
        "command" => traits.executor = ExecutorKind::Command,
        "fixed" => traits.cancellable = false,
        "lenient" => traits.failure_blocks = false,
        "once" => traits.repeat = RunPolicy::Once,
        "each-start" => traits.repeat = RunPolicy::EachStart,
        "events" => traits.repeat = RunPolicy::Events,
        "skip" => traits.on_interrupt = OnInterrupt::Skip,
        "ask" => traits.on_interrupt = OnInterrupt::Wait,
        _ => panic!("expected a word about a vertex, found {word:?}"),
    }
}

pub(super) fn step_line(step: &Step) -> String {
    match *step {
        Step::Swap { graph, operator: false } => format!("swap {graph}"),
        Step::Swap { graph, operator: true } => format!("reload {graph}"),
        Step::Watching(id) => format!("watching {}", id.0),
        Step::Unwatched(id) => format!("unwatched {}", id.0),
        Step::Changed(id) => format!("changed {}", id.0),
        Step::Received(id) => format!("received {}", id.0),
        Step::Remade(id) => format!("remade {}", id.0),
        Step::Doubt { vertex, until } => format!("doubt {} {}", vertex.0, until.0),
        Step::Suspect(id) => format!("suspect {}", id.0),
        Step::Look(id) => format!("look {}", id.0),
        Step::RetryNow(id) => format!("retry-now {}", id.0),
        Step::Checked(id, RunVerdict::Same) => format!("checked {} same", id.0),
        Step::Checked(id, RunVerdict::Differs) => format!("checked {} differs", id.0),
        Step::Checked(id, RunVerdict::Unknown) => format!("checked {} unknown", id.0),
        Step::Commit => "commit".into(),
        Step::Refuse => "refuse".into(),
        Step::Ended(id, Outcome::Unchanged) => format!("ended {} unchanged", id.0),
        Step::Ended(id, Outcome::Changed) => format!("ended {} changed", id.0),
        Step::Ended(id, Outcome::Failed { touched: true }) => format!("ended {} failed", id.0),
        Step::Ended(id, Outcome::Failed { touched: false }) => {
            format!("ended {} failed-untouched", id.0)
        }
        Step::Ended(id, Outcome::Interrupted) => format!("ended {} interrupted", id.0),
        Step::Wait(time) => format!("wait {}", millis(time)),
        Step::Lag(time) => format!("lag {}", millis(time)),
        Step::Wake => "wake".into(),
        Step::Pause { drain: false, length } => format!("pause {}", millis(length)),
        Step::Pause { drain: true, length } => format!("drain {}", millis(length)),
        Step::Resume => "resume".into(),
        Step::Window { window, open: true } => format!("open {window}"),
        Step::Window { window, open: false } => format!("close {window}"),
        Step::PauseVertex { vertex, paused: true } => format!("pause-vertex {}", vertex.0),
        Step::PauseVertex { vertex, paused: false } => format!("resume-vertex {}", vertex.0),
        Step::Stop { grace } => format!("stop {}", millis(grace)),
        Step::Crash { kept } => format!("crash {kept}"),
    }
}

pub(super) fn read_step(words: &[&str]) -> Step {
    match words {
        ["swap", graph] => Step::Swap { graph: number(graph), operator: false },
        ["reload", graph] => Step::Swap { graph: number(graph), operator: true },
        ["watching", id] => Step::Watching(vertex(id)),
        ["unwatched", id] => Step::Unwatched(vertex(id)),
        ["changed", id] => Step::Changed(vertex(id)),
        ["received", id] => Step::Received(vertex(id)),
        ["remade", id] => Step::Remade(vertex(id)),
        ["doubt", id, until] => Step::Doubt { vertex: vertex(id), until: vertex(until) },
        ["suspect", id] => Step::Suspect(vertex(id)),
        ["look", id] => Step::Look(vertex(id)),
        ["retry-now", id] => Step::RetryNow(vertex(id)),
        ["checked", id, "same"] => Step::Checked(vertex(id), RunVerdict::Same),
        ["checked", id, "differs"] => Step::Checked(vertex(id), RunVerdict::Differs),
        ["checked", id, "unknown"] => Step::Checked(vertex(id), RunVerdict::Unknown),
        ["commit"] => Step::Commit,
        ["refuse"] => Step::Refuse,
        ["ended", id, "unchanged"] => Step::Ended(vertex(id), Outcome::Unchanged),
        ["ended", id, "changed"] => Step::Ended(vertex(id), Outcome::Changed),
        ["ended", id, "failed"] => Step::Ended(vertex(id), Outcome::Failed { touched: true }),
        ["ended", id, "failed-untouched"] => {
            Step::Ended(vertex(id), Outcome::Failed { touched: false })
        }
        ["ended", id, "interrupted"] => Step::Ended(vertex(id), Outcome::Interrupted),
        ["wait", time] => Step::Wait(length(time)),
        ["lag", time] => Step::Lag(length(time)),
        ["wake"] => Step::Wake,
        ["pause", time] => Step::Pause { drain: false, length: length(time) },
        ["drain", time] => Step::Pause { drain: true, length: length(time) },
        ["resume"] => Step::Resume,
        ["open", window] => Step::Window { window: number(window), open: true },
        ["close", window] => Step::Window { window: number(window), open: false },
        ["pause-vertex", id] => Step::PauseVertex { vertex: vertex(id), paused: true },
        ["resume-vertex", id] => Step::PauseVertex { vertex: vertex(id), paused: false },
        ["stop", grace] => Step::Stop { grace: length(grace) },
        ["crash", kept] => Step::Crash { kept: number(kept) },
        _ => panic!("expected a step, found {words:?}"),
    }
}
