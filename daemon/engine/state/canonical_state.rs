//! A canonical form of the engine for model checking: ranks replace ever-growing numbers, so that equal states compare
//! equal.

use crate::contention::attribution::{ECHO, Wrote};
use crate::contention::global_limit::MINUTE;
use crate::contention::record::SUMMARY;
use crate::engine::Engine;
use crate::interface::ids::{RunId, Stamp, Tick, VertexId};
use crate::interface::metaparams::Meta;
use crate::state::vertex::{Phase, Place, RunKind, Vertex};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

impl Engine {
    /// Returns an engine that behaves like this one, up to the names of stamps, runs and tickets and the origin of
    /// time. Two engines that behave alike are mostly equal in this form.
    #[must_use]
    pub fn ranked(&self) -> Self {
        let mut same = self.clone();
        same.purge_lanes();
        let now = same.now;
        same.round_checks();
        same.wrote.retain(|wrote| wrote.at.after(ECHO) > now);
        let mut stamps = BTreeSet::from([Stamp::NEVER, same.stamp]);
        same.each_stamp(&mut |stamp| {
            stamps.insert(*stamp);
        });
        stamps.remove(&Stamp::CLEAR);
        let rank: BTreeMap<Stamp, Stamp> = stamps.into_iter().zip((0..).map(Stamp)).collect();
        same.each_stamp(&mut |stamp| *stamp = rank.get(stamp).copied().unwrap_or(*stamp));
        same.stamp = rank.get(&same.stamp).copied().unwrap_or(same.stamp);
        same.rank_numbers();
        same.shift_past(now);
        same.shift_time(|at| Tick(at.0.saturating_sub(now.0)));
        same
    }

    /// Returns the runs in progress or closing, in the order of their start. The index of a run is its rank.
    #[must_use]
    pub fn runs(&self) -> Vec<RunId> {
        let all: BTreeSet<RunId> =
            self.in_flight.keys().chain(self.closing.keys()).copied().collect();
        all.into_iter().collect()
    }

    /// Rounds the stamps of checks: a check matters only to failures of descendants that are in progress or suspended,
    /// and only as earlier or later than their start.
    fn round_checks(&mut self) {
        let start = |vertex: &Vertex| match &vertex.phase {
            Phase::Running(run) if run.kind == RunKind::Process => Some(run.stamp),
            Phase::Asking(asking) => Some(asking.run.stamp),
            Phase::Running(_)
            | Phase::Resting
            | Phase::Delayed(_)
            | Phase::Failed { .. }
            | Phase::Held(_) => None,
        };
        for number in 0..u32::try_from(self.vertices.len()).unwrap_or(u32::MAX) {
            let below = self.all_after(VertexId(number));
            let starts: Vec<Stamp> =
                below.into_iter().filter_map(|id| self.vertex(id).and_then(start)).collect();
            let round = |at: Stamp| {
                let earlier = starts.iter().filter(|start| **start < at);
                earlier.max().copied().unwrap_or(Stamp::NEVER)
            };
            if let Some(vertex) = self.vertex_mut(VertexId(number)) {
                (vertex.seen, vertex.moved) = (round(vertex.seen), round(vertex.moved));
            }
        }
    }

    fn each_stamp(&mut self, f: &mut dyn FnMut(&mut Stamp)) {
        for vertex in self.vertices.iter_mut().flatten() {
            if !vertex.causes.any() {
                vertex.dirty_since = Stamp::NEVER;
            }
            f(&mut vertex.dirty_since);
            f(&mut vertex.right);
            f(&mut vertex.seen);
            f(&mut vertex.moved);
            f(&mut vertex.clearance);
            f(&mut vertex.gate.least);
            f(&mut vertex.owed);
            if let Some(crowd) = &mut vertex.gate.crowd {
                *crowd = std::mem::take(crowd)
                    .into_iter()
                    .map(|(mut stamp, n)| {
                        f(&mut stamp);
                        (stamp, n)
                    })
                    .collect();
            }
            if let Phase::Running(run) = &mut vertex.phase {
                f(&mut run.stamp);
                f(&mut run.pays);
                if let Some(begun) = &mut run.begun {
                    f(begun);
                }
            }
            if let Phase::Asking(asking) = &mut vertex.phase {
                f(&mut asking.run.stamp);
                asking.run.begun.iter_mut().for_each(&mut *f);
            }
        }
        for contention in self.contentions.values_mut() {
            f(&mut contention.begun);
        }
        for wrote in &mut self.wrote {
            f(&mut wrote.begun);
        }
        f(&mut self.pause.since);
    }

    fn rank_numbers(&mut self) {
        let runs = self.runs();
        let rank =
            |run: RunId| RunId(runs.iter().position(|r| *r == run).map_or(0, |n| n as u64 + 1));
        self.in_flight = self.in_flight.iter().map(|(run, v)| (rank(*run), *v)).collect();
        self.closing =
            std::mem::take(&mut self.closing).into_iter().map(|(run, n)| (rank(run), n)).collect();
        for (_, run, _) in &mut self.patience {
            *run = rank(*run);
        }
        self.next_run = runs.len() as u64 + 1;
        let tickets: BTreeSet<u64> =
            self.vertices.iter().flatten().map(|v| v.ticket).filter(|t| *t != 0).collect();
        let ticket = |old: u64| tickets.iter().position(|t| *t == old).map_or(0, |n| n as u64 + 1);
        for semaphore in &mut self.semaphores.0 {
            semaphore.queue = semaphore.queue.iter().map(|(t, v)| (ticket(*t), *v)).collect();
        }
        self.next_ticket = tickets.len() as u64 + 1;
        let mut number = 0;
        let vertices = &mut self.vertices;
        for lane in [&mut self.lanes.threads, &mut self.lanes.commands] {
            for (entry, id) in lane.entries() {
                number += 1;
                *entry = number;
                if let Some(vertex) = vertices.get_mut(id.0 as usize).and_then(Option::as_mut) {
                    vertex.place = match vertex.place {
                        Place::Look(_) => Place::Look(number),
                        Place::Slot(_) => Place::Slot(number),
                        other @ (Place::Nowhere
                        | Place::Shelf
                        | Place::Limit(_)
                        | Place::Backoff(_)
                        | Place::Semaphores) => other,
                    };
                }
            }
        }
        self.next_entry = number + 1;
        for vertex in vertices.iter_mut().flatten() {
            vertex.ticket = ticket(vertex.ticket);
            if let Phase::Running(run) = &mut vertex.phase {
                run.id = rank(run.id);
            }
            if let Phase::Asking(asking) = &mut vertex.phase {
                asking.run.id = rank(asking.run.id);
            }
        }
    }

    /// Caps the age of everything past (E-20): beyond the time for which an entry matters, all ages are equal.
    fn shift_past(&mut self, now: Tick) {
        let within = |most: Duration| move |at: Tick| Tick(at.after(most).0.saturating_sub(now.0));
        // A series of repairs that lasts exactly as long as the window still counts as contention.
        let window = Meta::REVERSAL_WINDOW + Duration::from_nanos(1);
        for contention in self.contentions.values_mut() {
            contention.map_past(within(window), within(SUMMARY));
        }
        let age = within(ECHO);
        let mut wrote: Vec<_> =
            self.wrote.drain(..).map(|wrote| Wrote { at: age(wrote.at), ..wrote }).collect();
        wrote.sort_unstable();
        self.wrote = wrote.into();
        self.repair_limiter.map_past(within(MINUTE));
    }

    fn shift_time(&mut self, f: impl Fn(Tick) -> Tick + Copy) {
        self.now = f(self.now);
        for contention in self.contentions.values_mut() {
            contention.map(f);
        }
        self.repair_limiter.until = self.repair_limiter.until.map(f);
        self.timers.map(f);
        self.pause.map(f);
        for (at, _, _) in &mut self.patience {
            *at = f(*at);
        }
        for vertex in self.vertices.iter_mut().flatten() {
            vertex.pace = vertex.pace.map(|n| f(Tick(n)).0);
            vertex.poll_at = vertex.poll_at.map(f);
            if let Place::Limit(at) | Place::Backoff(at) = &mut vertex.place {
                *at = f(*at);
            }
            match &mut vertex.phase {
                Phase::Delayed(at) | Phase::Failed { until: at } => *at = f(*at),
                Phase::Running(run) => {
                    run.since = f(run.since);
                    run.deadline = run.deadline.map(f);
                    run.returns = run.returns.map(f);
                }
                Phase::Resting | Phase::Asking(_) | Phase::Held(_) => {}
            }
        }
        if let Some(pending) = &mut self.pending {
            pending.cancel_at = pending.cancel_at.map(f);
        }
        if let Some(stop) = &mut self.stop {
            stop.cancel_at = stop.cancel_at.map(f);
        }
    }
}
