//! Live facts and probes: when an input of the running graph changes, its texts are expanded again, and a graph that
//! differs is delivered. The files are not read: they may hold a graph that nobody has accepted.

use super::{GraphSource, ReloadRequest, lock};
use crate::config::{self, Inactive, LiveInputs, LoadedGraph, Options, Text};
use crate::driver::{DriverEvent, LoadError};
use crate::expressions::Value;
use crate::facts::{self, HostRoot, SystemAnswers};
use crate::supervisor::WorkerContext;
use crate::workers::graph::fact_watch::{FactWatch, JOIN};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;
use tokio::time::Instant;

/// A delivered graph, as far as a later expansion needs it.
#[derive(Clone, Debug, Default)]
struct DeliveredGraph {
    /// The number of the delivery.
    number: u64,
    inputs: LiveInputs,
    /// The texts; empty for a graph that uses neither facts nor probes.
    texts: Arc<[Text]>,
    shape: u64,
    inactive: Arc<[Inactive]>,
    files: Arc<[PathBuf]>,
    /// An answer was dropped because its probe is inactive: the texts are expanded once more.
    must_expand: bool,
    /// The last expansion failed: the next valid graph is delivered also if it is equal, which ends the rejection.
    is_rejected: bool,
}

impl DeliveredGraph {
    fn take_inactive(&mut self, graph: &LoadedGraph) {
        self.inactive = graph.inactive.clone().into();
        self.files = graph.files.clone().into();
        let inactive = graph.inactive.iter().map(|it| it.identity.as_ref());
        self.must_expand |= self.inputs.forget_answers(inactive);
    }
}

/// The inputs of the delivered graph, and the answers of probes that are not used yet.
#[derive(Debug)]
pub(super) struct LiveGraph {
    current: Mutex<DeliveredGraph>,
    /// The last graph that the driver has accepted: it runs on if the driver rejects its successor.
    accepted: Mutex<DeliveredGraph>,
    answers: Mutex<BTreeMap<String, Value>>,
    /// The number of answers that came, and that of those which an expansion has used.
    answer_counts: (AtomicU64, AtomicU64),
    wake: Notify,
    began: Instant,
}

/// The conditions of the running graph, for the status.
#[derive(Clone, Debug, Default)]
pub(in crate::workers) struct ConditionReport {
    /// The inactive resources.
    pub(in crate::workers) inactive: Arc<[Inactive]>,
    /// The files of the graph, for their places.
    pub(in crate::workers) files: Arc<[PathBuf]>,
    /// A line for each fact that waits for a reload, and for each contended input.
    pub(in crate::workers) lines: Vec<String>,
}

impl LiveGraph {
    pub(super) fn new() -> Self {
        Self {
            current: Mutex::default(),
            accepted: Mutex::default(),
            answers: Mutex::default(),
            answer_counts: Default::default(),
            wake: Notify::new(),
            began: Instant::now(),
        }
    }

    /// Takes a graph that was read from its files, or that was stored.
    pub(super) fn take_graph(&self, graph: &LoadedGraph) {
        lock(&self.current).inputs.take_graph(graph.used.clone());
    }

    /// Notes the delivery of a graph to the driver.
    pub(super) fn note_delivery(&self, number: u64, graph: &LoadedGraph, texts: &Arc<[Text]>) {
        let mut current = lock(&self.current);
        let is_used = !graph.used.fact_names.is_empty() || !graph.used.probes.is_empty();
        if !is_used {
            current.texts = Arc::default();
        } else if !texts.is_empty() {
            current.texts = Arc::clone(texts);
        }
        if number > 0 {
            current.number = number;
        }
        current.shape = graph.shape();
        current.take_inactive(graph);
        self.wake_if_needed(&current);
    }

    /// Wakes the worker for another expansion.
    fn wake_if_needed(&self, current: &DeliveredGraph) {
        if current.must_expand {
            self.answer_counts.0.fetch_add(1, Ordering::SeqCst);
            self.wake.notify_one();
        }
    }

    /// Notes the driver's decision about a delivered graph.
    pub(super) fn note_decision(&self, number: u64, is_accepted: bool) {
        let mut current = lock(&self.current);
        if current.number != number {
            return;
        }
        let mut accepted = lock(&self.accepted);
        if is_accepted {
            accepted.clone_from(&current);
        } else {
            current.clone_from(&accepted);
        }
    }

    /// Takes the answer of a probe.
    pub(super) fn take_answer(&self, probe: &str, value: Value) {
        if !lock(&self.current).inputs.is_new_answer(probe, &value) {
            return;
        }
        self.answer_counts.0.fetch_add(1, Ordering::SeqCst);
        lock(&self.answers).insert(probe.to_owned(), value);
        self.wake.notify_one();
    }

    /// Returns true if the running graph does not use the last answers yet.
    pub(super) fn has_unused_answers(&self) -> bool {
        let (came, used) = &self.answer_counts;
        used.load(Ordering::SeqCst) != came.load(Ordering::SeqCst)
    }

    /// Watches the sources of the facts that the graph uses; none if the command line gives the facts.
    pub(super) fn follow(&self, watch: &mut FactWatch, source: &GraphSource) {
        let current = lock(&self.current);
        let is_host = source.options.facts.is_none();
        let names = current.inputs.fact_names().filter(|_| is_host);
        if watch.follow(facts::sources_of_facts(names)) {
            self.wake.notify_one();
        }
    }

    /// Waits until an input may have changed.
    pub(super) async fn changed(&self, watch: &mut FactWatch) {
        let is_contended = lock(&self.current).inputs.is_contended();
        tokio::select! {
            () = self.wake.notified() => {}
            () = watch.changed(is_contended) => {}
        }
    }

    /// Returns options with the values in use.
    pub(super) fn options(&self, options: Options) -> Options {
        lock(&self.current).inputs.options(options)
    }

    /// Returns options with the last answers of the probes, for a reload of the files.
    pub(super) fn reload_options(&self, options: Options) -> Options {
        lock(&self.current).inputs.reload_options(options)
    }

    /// Takes changed inputs. Returns the texts to expand, if an expression uses one of the changed inputs.
    fn take_changes(&self, collected: Option<&Value>) -> Option<Arc<[Text]>> {
        let now = self.began.elapsed();
        let answers = std::mem::take(&mut *lock(&self.answers));
        let mut current = lock(&self.current);
        let mut is_needed = std::mem::take(&mut current.must_expand);
        is_needed |= collected.is_some_and(|facts| current.inputs.take_facts(now, facts));
        for (probe, value) in answers {
            is_needed |= current.inputs.take_answer(now, &probe, value);
        }
        (is_needed && !current.texts.is_empty()).then(|| Arc::clone(&current.texts))
    }

    /// Ends an expansion; returns true if the graph differs, and the names of the changed inputs.
    fn end_expansion(&self, graph: Option<&LoadedGraph>) -> (bool, String) {
        let mut current = lock(&self.current);
        let is_new = |graph: &LoadedGraph| current.is_rejected || graph.shape() != current.shape;
        let differs = graph.is_some_and(is_new);
        current.is_rejected = graph.is_none();
        if let Some(graph) = graph {
            current.inputs.take_names(&graph.used);
            current.take_inactive(graph);
            self.wake_if_needed(&current);
        }
        let names = current.inputs.end_expansion(self.began.elapsed(), differs);
        (differs, names.join(", "))
    }

    /// Returns the inactive resources and the inputs that do not apply.
    pub(super) fn report(&self) -> ConditionReport {
        let current = lock(&self.current);
        let mut lines = current.inputs.waiting_lines("a reload");
        lines.extend(current.inputs.contended_lines());
        let (inactive, files) = (Arc::clone(&current.inactive), Arc::clone(&current.files));
        ConditionReport { inactive, files, lines }
    }

    fn uses_facts(&self) -> bool {
        lock(&self.current).inputs.fact_names().next().is_some()
    }
}

impl ReloadRequest {
    /// Expands the running graph again after a change of its inputs. Changes within [`JOIN`] are joined.
    pub(super) async fn expand_again(this: &Arc<Self>, life: &WorkerContext) {
        life.during(tokio::time::sleep(JOIN)).await;
        let (came, used) = &this.live.answer_counts;
        let with_answers = came.load(Ordering::SeqCst);
        Self::expand_with_answers(this, life).await;
        // The driver has the new graph before the answers count as used.
        used.store(with_answers, Ordering::SeqCst);
    }

    async fn expand_with_answers(this: &Arc<Self>, life: &WorkerContext) {
        let is_host = this.graph().options.facts.is_none();
        let is_used = is_host && this.live.uses_facts();
        let collected = if is_used { collect_facts().await } else { None };
        let Some(texts) = this.live.take_changes(collected.as_ref()) else { return };
        let options = this.live.options(Options { refuse_empty: false, ..this.graph().options });
        let expand = move || config::load_texts(texts.to_vec(), &options);
        let expanded = match life.during(tokio::task::spawn_blocking(expand)).await {
            Ok(Ok(graph)) => Ok(Box::new(graph)),
            Ok(Err(rejected)) => Err(rejected.without_values()),
            Err(panic) => Err(format!("the expansion panicked: {panic}")),
        };
        let (differs, names) = this.live.end_expansion(expanded.as_deref().ok());
        match expanded {
            Ok(graph) if differs => {
                tracing::info!(event = "conditions_changed", "the graph changes with {names}");
                Self::put(this, graph, false);
            }
            Ok(_) => {}
            Err(why) => {
                let why = LoadError::Invalid(format!("after a change of {names}: {why}"));
                this.requests.put(DriverEvent::Graph { graph: Err(why), operator: false });
            }
        }
    }
}

async fn collect_facts() -> Option<Value> {
    let collect = || facts::collect(&HostRoot::of_this_host(), &SystemAnswers::of_this_host());
    let collected = tokio::task::spawn_blocking(collect).await.ok()?;
    for problem in &collected.problems {
        tracing::debug!(event = "warning", "{problem}");
    }
    Some(collected.values)
}
