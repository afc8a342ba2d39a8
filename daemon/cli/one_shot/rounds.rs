//! The rounds of an apply: after a round the graph is expanded again with the answers of probes and the present facts,
//! and a graph that differs is applied in another round.

use crate::config::{self, LiveInputs, LoadedGraph, Options, Text, probe_answer};
use crate::driver::{Notification, Observer};
use crate::expressions::Value;
use crate::facts::{self, HostRoot, SystemAnswers};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The largest number of rounds of one apply.
const MOST_ROUNDS: u32 = 5;

/// The rounds of one apply.
pub(super) struct Rounds {
    live: LiveInputs,
    texts: Vec<Text>,
    options: Options,
    shape: u64,
    answers: Answers,
    began: Instant,
    round: u32,
}

/// The answers of probes during a round.
type Answers = Arc<Mutex<BTreeMap<String, Value>>>;

impl Rounds {
    /// Begins the first round; returns `None` for a graph that uses neither facts nor probes.
    pub(super) fn begin(loaded: &LoadedGraph, options: Options) -> Option<Self> {
        let used = &loaded.used;
        if used.fact_names.is_empty() && used.probes.is_empty() {
            return None;
        }
        let mut live = LiveInputs::default();
        live.take_graph(used.clone());
        Some(Self {
            live,
            texts: loaded.texts.clone(),
            options,
            shape: loaded.shape(),
            answers: Answers::default(),
            began: Instant::now(),
            round: 1,
        })
    }

    /// Returns an observer that collects the answers of probes, and passes everything to another observer.
    pub(super) fn observe(&self, inner: Box<dyn Observer>) -> Box<dyn Observer> {
        Box::new(AnswerCollector { inner, answers: Arc::clone(&self.answers) })
    }

    /// Returns a line for each changed fact that names and paths do not have yet.
    pub(super) fn waiting_lines(&self) -> Vec<String> {
        self.live.waiting_lines("the next apply")
    }

    /// Returns the graph of the next round, or `None` if the inputs lead to the same graph.
    ///
    /// # Errors
    /// A message if the graph is not valid with the new inputs, or still changes after the last round.
    pub(super) fn next_graph(&mut self) -> Result<Option<LoadedGraph>, String> {
        let now = self.began.elapsed();
        let answers = std::mem::take(&mut *lock(&self.answers));
        let mut is_changed = false;
        // Facts that the caller gave do not change.
        if self.live.fact_names().next().is_some() && self.options.facts.is_none() {
            let collected =
                facts::collect(&HostRoot::of_this_host(), &SystemAnswers::of_this_host());
            is_changed |= self.live.take_facts(now, &collected.values);
        }
        for (probe, value) in answers {
            is_changed |= self.live.take_answer(now, &probe, value);
        }
        if !is_changed {
            return Ok(None);
        }
        let options = self.live.options(self.options.clone());
        let expanded = config::load_texts(self.texts.clone(), &options);
        let differs = expanded.as_ref().is_ok_and(|graph| graph.shape() != self.shape);
        let names = self.live.end_expansion(now, differs).join(", ");
        let graph = expanded.map_err(|rejected| {
            format!("the graph is not valid with the new values of {names}:\n{rejected}")
        })?;
        self.live.take_names(&graph.used);
        if !differs {
            return Ok(None);
        }
        if self.round >= MOST_ROUNDS {
            return Err(format!(
                "the graph still changes after {MOST_ROUNDS} rounds: {names} changes with what the graph does"
            ));
        }
        self.round += 1;
        self.shape = graph.shape();
        Ok(Some(graph))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An observer that collects the answers of probes.
struct AnswerCollector {
    inner: Box<dyn Observer>,
    answers: Answers,
}

impl Observer for AnswerCollector {
    fn hear(&mut self, news: &Notification<'_>) {
        if let Notification::Answered { identity, values } = news
            && let Some((probe, value)) = probe_answer(identity, values)
        {
            lock(&self.answers).insert(probe, value);
        }
        self.inner.hear(news);
    }

    fn wants_progress(&self) -> bool {
        self.inner.wants_progress()
    }

    fn wants_foresight(&self) -> bool {
        self.inner.wants_foresight()
    }
}
