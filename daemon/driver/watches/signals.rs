//! Signals of the watches, turned into events of the engine; and watches without a reply.

use crate::driver::queries::statistics::Moment;
use crate::driver::{Driver, Notification};
use crate::watch::Signal;
use std::time::Duration;
use steadfast_engine::{Event, Mode, VertexId, VertexStatus};
use steadfast_resources::host::world::WorldKey;
use tokio::time::Instant;

/// The time that active runs get after the event source has ended.
const LAST: Duration = Duration::from_secs(30);

impl Driver {
    /// Requests the watch of a vertex.
    pub(in crate::driver) fn watch(&mut self, id: VertexId) {
        let mut sources = self.graph.sources(id);
        if let Some(entry) = self.graph.get(id).filter(|entry| !entry.removes) {
            sources.extend(entry.recipe.iter().flat_map(|recipe| recipe.watch()));
        }
        if !self.watches.request(id, sources) {
            self.next_events.push_back(Event::Watching(id));
        }
    }

    /// Handles a vertex without a working watch: its sweeps become frequent, and the watch is tried again unless its
    /// graph forbids it.
    fn unwatched(&mut self, id: VertexId, why: &str) -> Event {
        let rewatch = self.graph.get(id).is_none_or(|entry| entry.rewatch);
        if self.watches.note_failed(id, rewatch) {
            let identity = self.graph.name(id);
            self.notifier.notify(&Notification::Unwatched { identity, why });
        }
        Event::Unwatched(id)
    }

    /// E-6, F-12: gives up watches that do not reply in time, as on a hanging file system.
    pub(in crate::driver) fn give_up_watches(&mut self, now: Instant) {
        for id in self.watches.late(now) {
            let event = self.unwatched(id, "the watched path does not respond");
            self.turn(event);
        }
    }

    /// Stops the driver after its event source has ended; active runs may end, and then another driver checks
    /// everything.
    fn breaks(&mut self, why: String) -> Event {
        tracing::error!(event = "driver_restart", "{why}: the driver restarts");
        self.mode.break_off(why);
        if self.engine.mode() == Mode::Stopping {
            // The driver is already stopping, with its own grace period.
            return Event::Wake;
        }
        Event::Stop { grace: LAST }
    }

    /// Notes the time of an event that causes a run, unless the daemon or the resource is paused.
    fn note_watch_event(&mut self, id: VertexId) {
        if self.engine.mode() == Mode::Running
            && self.engine.vertex_status(id) == Some(VertexStatus::Settled)
        {
            self.runs.metrics.note_event(id);
        }
    }

    /// Processes changed keys of the world. No change counts as an echo of the own write: another host may have written
    /// at the same moment, and only a run passes the new value on.
    pub(in crate::driver) fn changed_in_world(&mut self, keys: &[WorldKey]) {
        let mut ids = self.watches.of_world(keys);
        ids.sort_by_key(|id| self.engine.position(*id));
        for id in ids {
            self.runs.statistics.note(id, Moment::Heard);
            self.note_watch_event(id);
            self.turn(Event::Changed(id));
        }
    }

    /// Processes signals of the watches.
    pub(in crate::driver) fn watched(&mut self, mut signals: Vec<Signal>) {
        // Parents come first within a batch. A broken source comes last.
        signals.sort_by_key(|signal| {
            signal.vertex().map_or(usize::MAX, |id| self.engine.position(id))
        });
        for signal in signals {
            if let Signal::Changed(id) | Signal::Supplied(id) | Signal::Suspect(id) = signal {
                for id in self.graph.groups().members(&id) {
                    self.runs.statistics.note(*id, Moment::Heard);
                }
            }
            let event = match signal {
                Signal::Established(id) => {
                    // A run that started before the watch was established (or an earlier watch was answered) is checked
                    // again: the object may have changed in between.
                    let late = self.watches.states.note_established(id);
                    self.suspect_secrets(id);
                    self.turn(Event::Watching(id));
                    if !late {
                        continue;
                    }
                    Event::Suspect(id)
                }
                Signal::Absent(id, why) => self.unwatched(id, &why),
                // An event that may be an echo of the daemon's own write causes a check only, if a check can see the
                // effect.
                Signal::Changed(id) if self.runs.echo.covers(id) && !self.graph.is_deed(id) => {
                    self.note_watch_event(id);
                    Event::Look(id)
                }
                // A change of a received input is never an echo of the daemon's own write.
                // One write to a watched file causes one run of a command.
                Signal::Changed(id)
                    if self.graph.is_deed(id) && self.watches.states.watches_files(id) =>
                {
                    self.watches.debounce.put(id, Instant::now());
                    continue;
                }
                Signal::Supplied(id) => {
                    self.values.rotation.settling.put(id, Instant::now());
                    continue;
                }
                Signal::Broken(why) => self.breaks(why),
                Signal::Changed(id) => {
                    self.note_watch_event(id);
                    Event::Changed(id)
                }
                Signal::Suspect(id) => {
                    self.suspect_secrets(id);
                    Event::Suspect(id)
                }
            };
            self.turn(event);
        }
    }
}
