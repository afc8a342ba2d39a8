//! The text of a snapshot in the format `OpenMetrics` 1.0.

use super::{Classes, DriverValues, Histogram, ResourceState, Snapshot};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeMetric as _, MetricEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use std::fmt::Error;

/// The prefix of all names.
const PREFIX: &str = "steadfast";

/// Returns the text of a snapshot.
#[must_use]
pub fn to_open_metrics(snapshot: Snapshot) -> String {
    let mut registry = Registry::with_prefix(PREFIX);
    registry.register_collector(Box::new(SnapshotCollector(snapshot)));
    let mut text = String::with_capacity(16 * 1024);
    if let Err(error) = prometheus_client::encoding::text::encode(&mut text, &registry) {
        // Writing into a text fails only without memory.
        tracing::error!(%error, "the metrics could not be written");
    }
    text
}

/// A source of constant metrics for one scrape.
#[derive(Debug)]
struct SnapshotCollector(Snapshot);

impl Collector for SnapshotCollector {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let mut writer = Writer(encoder);
        daemon_values(&self.0, &mut writer)?;
        let Some(driver) = &self.0.driver else { return Ok(()) };
        host_values(driver, &mut writer)?;
        resource_values(driver, &mut writer)?;
        duration_values(driver, &mut writer)?;
        watch_values(driver, &mut writer)?;
        if self.0.lists_resources {
            listed_resources(driver, &mut writer)?;
        }
        Ok(())
    }
}

/// A writer of metric families.
struct Writer<'a>(DescriptorEncoder<'a>);

impl Writer<'_> {
    fn start_family(
        &mut self,
        (name, help, unit): (&'static str, &str, Option<&'static Unit>),
        metric: MetricType,
    ) -> Result<MetricEncoder<'_>, Error> {
        self.0.encode_descriptor(name, help, unit, metric)
    }

    /// Writes a gauge without labels.
    fn write_gauge(&mut self, name: &'static str, help: &str, value: i64) -> Result<(), Error> {
        ConstGauge::new(value).encode(self.start_family((name, help, None), MetricType::Gauge)?)
    }

    /// Writes a gauge of seconds; the name gets the suffix `_seconds`.
    fn write_seconds(&mut self, name: &'static str, help: &str, value: f64) -> Result<(), Error> {
        let unit = Some(&Unit::Seconds);
        ConstGauge::new(value).encode(self.start_family((name, help, unit), MetricType::Gauge)?)
    }

    /// Writes a gauge with one sample for each value of a label.
    fn write_gauges<'v>(
        &mut self,
        (name, help, label): (&'static str, &str, &'static str),
        samples: impl IntoIterator<Item = (&'v str, i64)>,
    ) -> Result<(), Error> {
        let mut family = self.start_family((name, help, None), MetricType::Gauge)?;
        for (value, sample) in samples {
            ConstGauge::new(sample).encode(family.encode_family(&[(label, value)])?)?;
        }
        Ok(())
    }

    /// Writes a counter without labels; its sample gets the suffix `_total`.
    fn write_counter(&mut self, name: &'static str, help: &str, value: u64) -> Result<(), Error> {
        ConstCounter::new(value).encode(self.start_family((name, help, None), MetricType::Counter)?)
    }

    /// Writes a counter with one sample for each value of a label.
    fn write_counters<'v>(
        &mut self,
        (name, help, label): (&'static str, &str, &'static str),
        samples: impl IntoIterator<Item = (&'v str, u64)>,
    ) -> Result<(), Error> {
        let mut family = self.start_family((name, help, None), MetricType::Counter)?;
        for (value, sample) in samples {
            ConstCounter::new(sample).encode(family.encode_family(&[(label, value)])?)?;
        }
        Ok(())
    }

    /// Writes a histogram of seconds; the name gets the suffix `_seconds`.
    fn write_histogram(
        &mut self,
        name: &'static str,
        help: &str,
        values: &Histogram,
    ) -> Result<(), Error> {
        let mut family =
            self.start_family((name, help, Some(&Unit::Seconds)), MetricType::Histogram)?;
        let buckets = values.buckets();
        family.encode_histogram::<NoLabelSet>(values.sum(), values.count(), &buckets, None)
    }

    /// Writes an info metric with one label; its sample gets the suffix `_info`.
    fn write_info(
        &mut self,
        (name, help): (&'static str, &str),
        label: (&str, &str),
    ) -> Result<(), Error> {
        self.start_family((name, help, None), MetricType::Info)?.encode_info(&[label])
    }
}

/// Returns 1 for true and 0 for false.
fn as_flag(value: bool) -> i64 {
    i64::from(value)
}

/// Returns a count as a sample.
fn as_count(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Writes the values of the daemon and its workers.
fn daemon_values(values: &Snapshot, to: &mut Writer<'_>) -> Result<(), Error> {
    to.write_info(("build", "The version of steadfast"), ("version", values.version))?;
    to.write_seconds(
        "start_time",
        "Start of the daemon, in seconds since 1970",
        values.started.as_secs_f64(),
    )?;
    let help = "1 if the driver of the graph answers";
    to.write_gauge("driver_up", help, as_flag(values.driver.is_some()))?;
    let running = values.workers.iter().map(|it| (it.name.as_str(), as_flag(it.running)));
    to.write_gauges(("worker_up", "1 if this worker of the daemon runs", "worker"), running)?;
    let restarts = values.workers.iter().map(|it| (it.name.as_str(), it.restarts));
    to.write_counters(
        ("worker_restarts", "Restarts of this worker of the daemon", "worker"),
        restarts,
    )?;
    to.write_gauge(
        "lease_held",
        "1 if the daemon has the right to change the host",
        as_flag(values.has_lease),
    )?;
    if let Some(left) = values.lease_left {
        let help = "Time until the lease ends unless it is renewed";
        to.write_seconds("lease_remaining", help, left.as_secs_f64())?;
    }
    if let Some(world) = values.world {
        let help = "1 if the values of the world are up to date";
        to.write_gauge("world_connected", help, as_flag(world.connected))?;
        let help = "Time for which the values of the world may be out of date";
        to.write_seconds("world_stale", help, world.stale.as_secs_f64())?;
    }
    to.write_counter(
        "log_lines_dropped",
        "Log lines dropped because nobody read the log",
        values.dropped_lines,
    )?;
    let help = "Recorders of events whose destination does not take events now";
    to.write_gauge("recorders_failing", help, as_count(values.failing_recorders))
}

/// Writes the values of the host as a whole.
fn host_values(values: &DriverValues, to: &mut Writer<'_>) -> Result<(), Error> {
    to.write_info(("graph", "The running graph"), ("graph", &values.graph))?;
    to.write_gauge(
        "graph_rejected",
        "1 if the present graph file is rejected",
        as_flag(values.graph_rejected),
    )?;
    to.write_gauge("converged", "1 if all resources are as declared", as_flag(values.converged))?;
    if let Some(at) = values.last_convergence {
        let help = "Last time at which all resources became as declared, in seconds since 1970";
        to.write_seconds("last_convergence_timestamp", help, at.as_secs_f64())?;
    }
    to.write_gauge(
        "read_only",
        "1 if nothing is changed because the state cannot be used",
        as_flag(values.read_only),
    )?;
    to.write_gauge("paused", "1 if the daemon is paused", as_flag(values.paused))?;
    let help = "Resources that are paused on their own";
    to.write_gauge("paused_resources", help, as_count(values.paused_resources))?;
    let help = "Resources whose repairs are undone again and again";
    to.write_gauge("contended_resources", help, i64::from(values.contended))?;
    let help = "Resources that are owed a refresh by another resource";
    to.write_gauge("refreshes_owed", help, i64::from(values.refreshes_owed))?;
    let queues = [
        ("driver", as_count(values.inbox)),
        ("journal", as_count(values.journal_queue)),
        ("runs", as_count(values.runs)),
    ];
    to.write_gauges(
        ("queue_entries", "Entries that wait or are in progress, by queue", "queue"),
        queues,
    )
}

/// Writes the numbers of resources, changes and failures by kind.
fn resource_values(values: &DriverValues, to: &mut Writer<'_>) -> Result<(), Error> {
    let head = ("resources", "Resources of the running graph by kind and state", None);
    let mut family = to.start_family(head, MetricType::Gauge)?;
    for (kind, counts) in &values.resources {
        for (state, name) in ResourceState::NAMES {
            let labels = [("kind", &**kind), ("state", name)];
            let sample = family.encode_family(&labels)?;
            ConstGauge::new(i64::from(counts.get(state))).encode(sample)?;
        }
    }
    let head = ("changes", "Changes made to the host by kind and class", None);
    let mut family = to.start_family(head, MetricType::Counter)?;
    for (kind, classes) in &values.changes {
        for (class, count) in Classes::NAMES.into_iter().zip(classes.0) {
            let labels = [("kind", &**kind), ("class", class)];
            ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
        }
    }
    let failures = values.failures.iter().map(|(kind, count)| (&**kind, *count));
    to.write_counters(("run_failures", "Failed checks and applies by kind", "kind"), failures)
}

/// Writes the histograms.
fn duration_values(values: &DriverValues, to: &mut Writer<'_>) -> Result<(), Error> {
    to.write_histogram(
        "check_duration",
        "Time from the start of a run to the end of its check",
        &values.checks,
    )?;
    to.write_histogram(
        "repair_duration",
        "Time from the start of a run to the end of its apply",
        &values.repairs,
    )?;
    let help = "Time from the event of a watch to the start of the run that it causes";
    to.write_histogram("event_to_start", help, &values.reactions)?;
    to.write_histogram("store_commit_duration", "Time of a commit to the state", &values.commits)
}

/// Writes the values of the watches.
fn watch_values(values: &DriverValues, to: &mut Writer<'_>) -> Result<(), Error> {
    let watches = values.watches.unwrap_or_default();
    let sources = [
        ("directory", as_count(watches.directories)),
        ("systemd", as_count(watches.units)),
        ("timer_or_command", as_count(watches.timers_and_commands)),
        ("polled", as_count(values.polled)),
    ];
    to.write_gauges(
        ("watches", "Watches by source; polled sources have no events", "source"),
        sources,
    )?;
    let help = "Resources whose watch does not work, so that only sweeps check them";
    to.write_gauge("unwatched_resources", help, as_count(values.unwatched))?;
    to.write_counter(
        "watch_overflows",
        "Times at which the kernel dropped file events",
        watches.overflows,
    )
}

/// Writes single resources that are not converged, as far as the settings ask for them.
fn listed_resources(values: &DriverValues, to: &mut Writer<'_>) -> Result<(), Error> {
    let help = "1 for a resource that is not as declared, limited by metrics_resources";
    let mut family = to.start_family(("resource_unconverged", help, None), MetricType::Gauge)?;
    for (resource, state) in &values.listed {
        let labels = [("resource", resource.as_str()), ("state", state.name())];
        ConstGauge::new(1_i64).encode(family.encode_family(&labels)?)?;
    }
    let help = "Resources that are not as declared and exceed metrics_resources";
    to.write_gauge("resource_unconverged_omitted", help, as_count(values.omitted))
}
