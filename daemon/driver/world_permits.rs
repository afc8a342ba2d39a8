//! Permits of the world: semaphores that hosts share, and slots of rolling changes.
//!
//! A vertex with such a permit has a gate instead of a plain maintenance window: it is checked freely, and an apply
//! waits until the gate is open. The gate asks the world only while the vertex is held for the gate alone, so that a
//! waiting vertex has no slot, token or local semaphore. A permit that nobody uses is given back.

use super::Driver;
use crate::config::{Gate, Vertex};
use crate::driver::runs::ActiveRun;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use steadfast_engine::{Event, HeldReason, Mode, VertexId, VertexStatus, WindowId};
use steadfast_resources::host::world::{NumberedPermit, PermitRequest};
use steadfast_resources::{Failure, SentValue, Value};
use tokio::time::Instant;

/// The interval of questions to the probe of a roll whose answer is not `true`.
const ASK_AGAIN: Duration = Duration::from_secs(5);

/// The number of the next request for a permit, in all sessions of the driver.
static NEXT_REQUEST: AtomicU64 = AtomicU64::new(1);

/// The state of the permits of this host.
#[derive(Debug, Default)]
pub(super) struct WorldPermits {
    /// The permits that the world grants at present, with the numbers of the answered requests.
    granted: BTreeMap<PermitRequest, u64>,
    /// The permits that were requested last, with the numbers of the requests.
    wanted: BTreeMap<PermitRequest, u64>,
    /// The vertices behind each gate; none until they are looked for in a new graph.
    members: Option<Arc<BTreeMap<WindowId, Vec<VertexId>>>>,
    /// The open gates.
    open: BTreeSet<WindowId>,
    /// The time since which all members of a roll have been converged.
    settled: BTreeMap<WindowId, Instant>,
    /// The time at which the probe of a roll was last asked since the members converged.
    asked: BTreeMap<WindowId, Instant>,
    /// The time of the next look, while a roll settles.
    due: Option<Instant>,
}

/// The needs of one gate at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GateNeed {
    /// No member waits or runs: the permits are given back.
    Nothing,
    /// A member waits for the gate, or runs.
    Permits,
    /// A roll whose members are converged, since a time that is not long enough yet.
    SettlesUntil(Instant),
}

impl WorldPermits {
    /// Forgets the vertices behind the gates: another graph runs.
    pub(super) fn forget_members(&mut self) {
        self.members = None;
    }

    /// Returns the time of the next look; none if no roll settles.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Returns true if the world has granted all permits of a gate. An answer to an earlier request does not count: the
    /// permit was given back since, and another host may hold it.
    pub(super) fn is_open(&self, gate: &Gate) -> bool {
        let is_held = |permit: &PermitRequest| {
            self.wanted.get(permit).is_some_and(|number| self.granted.get(permit) == Some(number))
        };
        gate.permits.iter().all(is_held)
    }

    /// Takes the permits that are wanted now; returns the requests if they have changed.
    fn request(&mut self, wanted: BTreeSet<PermitRequest>) -> Option<Vec<NumberedPermit>> {
        if self.wanted.keys().eq(wanted.iter()) {
            return None;
        }
        // What is given back is not held any more, before the world answers.
        let before = std::mem::take(&mut self.wanted);
        self.granted.retain(|permit, _| wanted.contains(permit) || !before.contains_key(permit));
        let number = |permit: &PermitRequest| {
            let known = before.get(permit).copied();
            known.unwrap_or_else(|| NEXT_REQUEST.fetch_add(1, Ordering::Relaxed))
        };
        self.wanted = wanted.into_iter().map(|permit| (permit.clone(), number(&permit))).collect();
        let numbered = |(permit, number): (&PermitRequest, &u64)| NumberedPermit {
            permit: permit.clone(),
            number: *number,
        };
        Some(self.wanted.iter().map(numbered).collect())
    }
}

impl Driver {
    /// Takes the permits that the world grants at present, and interrupts the runs whose permit has ended.
    pub(super) fn take_world_permits(&mut self, granted: Vec<NumberedPermit>) {
        let granted = granted.into_iter().map(|one| (one.permit, one.number));
        self.permission.world.granted = granted.collect();
        self.update_world_permits();
        let closed: Vec<VertexId> = {
            let is_closed = |id: &VertexId| {
                let window = self.graph.get(*id).and_then(|vertex| vertex.meta.window);
                window.is_some_and(|window| {
                    self.graph.gate(window).is_some_and(|gate| !self.permission.world.is_open(gate))
                })
            };
            self.runs.active.values().map(|run| run.vertex).filter(is_closed).collect()
        };
        let is_closed = |run: &&mut ActiveRun| run.begun && closed.contains(&run.vertex);
        for run in self.runs.active.values_mut().filter(is_closed) {
            tracing::warn!(
                event = "permit_lost",
                "{}: the permit of the world has ended: the run is interrupted",
                run.identity
            );
            let what = "the permit of the world has ended: the run was interrupted";
            let failure = Failure::new(what).hint("it runs again when the permit is granted again");
            run.failure = Some(failure.passing());
            run.cancel.cancel();
        }
    }

    /// Returns the failure of an apply whose permit of the world has probably ended: the host was suspended for longer
    /// than its lease, and the end of the permit has not been told yet.
    pub(super) fn refuse_begin_without_permit(&self, vertex: VertexId) -> Option<Failure> {
        let window = self.graph.get(vertex)?.meta.window?;
        let mut permits = self.graph.gate(window)?.permits.iter();
        let needs_lease = permits.any(|permit| permit.resource.is_some());
        if !needs_lease || self.runtime.host.world().is_some_and(|world| world.has_safe_lease()) {
            return None;
        }
        let what = "no changes are started without the permit of the world: its lease has expired";
        Some(Failure::new(what).hint("the resource is retried when the permit is granted again"))
    }

    /// Returns the vertices behind each gate, with the gate's window.
    fn gated_vertices(&self) -> BTreeMap<WindowId, Vec<VertexId>> {
        let mut gated: BTreeMap<WindowId, Vec<VertexId>> = BTreeMap::new();
        if !self.graph.has_gates() {
            return gated;
        }
        for id in self.graph.vertices() {
            let window = self.graph.get(id).and_then(|vertex| vertex.meta.window);
            if let Some(window) = window.filter(|window| self.graph.gate(*window).is_some()) {
                gated.entry(window).or_default().push(id);
            }
        }
        gated
    }

    /// Opens and closes the gates, and tells the world which permits this host wants.
    pub(super) fn update_world_permits(&mut self) {
        if self.permission.world.members.is_none() {
            self.permission.world.members = Some(Arc::new(self.gated_vertices()));
        }
        let gated = self.permission.world.members.clone().unwrap_or_default();
        if gated.is_empty() && self.permission.world.wanted.is_empty() {
            return;
        }
        let now = Instant::now();
        let (mut wanted, mut due) = (BTreeSet::new(), None);
        let mut rolls: BTreeMap<PermitRequest, Vec<VertexId>> = BTreeMap::new();
        for (window, members) in gated.iter() {
            if let Some(gate) = self.graph.gate(*window).filter(|gate| gate.settle.is_some()) {
                for permit in &gate.permits {
                    rolls.entry(permit.clone()).or_default().extend(members);
                }
            }
        }
        for (window, members) in gated.iter() {
            let window = *window;
            let Some(gate) = self.graph.gate(window).cloned() else { continue };
            // The slot of a roll serves all of its members, also those with other times.
            let roll = gate.permits.first().and_then(|permit| rolls.get(permit));
            let members = roll.unwrap_or(members);
            let hours = self.permission.windows.is_open(window);
            let mut need = self.gate_need((window, &gate), members, now);
            if !hours && need == GateNeed::Permits && !self.any_running(members) {
                need = GateNeed::Nothing;
            }
            if let GateNeed::SettlesUntil(at) = need {
                due = Some(due.map_or(at, |before: Instant| before.min(at)));
            }
            if need != GateNeed::Nothing {
                wanted.extend(gate.permits.iter().cloned());
            }
            let open = hours && need != GateNeed::Nothing && self.permission.world.is_open(&gate);
            let was = self.permission.world.open.contains(&window);
            if open != was {
                if open {
                    self.permission.world.open.insert(window);
                } else {
                    self.permission.world.open.remove(&window);
                }
                self.turn(Event::Window { window, open });
            }
        }
        self.permission.world.due = due;
        if let Some(requests) = self.permission.world.request(wanted)
            && let Some(world) = self.runtime.host.world()
        {
            world.want_permits(requests);
        }
    }

    /// Returns true if the probe of a roll has answered `true` after the members of the roll had converged. The probe
    /// is asked again while its answer is another one.
    fn is_healthy(&mut self, window: WindowId, probe: &str, now: Instant) -> bool {
        let Some(id) = self.graph.number(probe) else { return false };
        let asked = self.permission.world.asked.get(&window).copied();
        let is_yes = |(key, value): &(&str, SentValue)| {
            *key == "bool" && *value == SentValue::Shown(Value::Bool(true))
        };
        let says_yes = |vertex: &Vertex| vertex.resource.sends().iter().any(is_yes);
        let is_settled = self.current_status(id) == Some(VertexStatus::Settled);
        let is_healthy = asked.is_some() && is_settled && self.graph.get(id).is_some_and(says_yes);
        if !is_healthy && asked.is_none_or(|at| at + ASK_AGAIN <= now) {
            self.permission.world.asked.insert(window, now);
            self.turn(Event::Suspect(id));
        }
        is_healthy
    }

    fn any_running(&self, members: &[VertexId]) -> bool {
        let is_running =
            |id: &VertexId| matches!(self.current_status(*id), Some(VertexStatus::Running(..)));
        members.iter().any(is_running)
    }

    /// Returns the present need of a gate.
    fn gate_need(
        &mut self,
        (window, gate): (WindowId, &Gate),
        members: &[VertexId],
        now: Instant,
    ) -> GateNeed {
        let is_held = |status: &Option<VertexStatus>| match status {
            Some(VertexStatus::Held(HeldReason::Window(own))) => {
                *own == window || gate.settle.is_some()
            }
            _ => false,
        };
        let is_running = self.engine.mode() == Mode::Running;
        let has_it = self.permission.world.open.contains(&window);
        let mut is_settled = true;
        let mut waits = false;
        for id in members {
            let status = self.current_status(*id);
            waits |= is_held(&status) && is_running;
            // A vertex that runs under an open gate holds its permit.
            waits |= has_it && matches!(status, Some(VertexStatus::Running(..)));
            is_settled &= match status {
                Some(VertexStatus::Settled) => true,
                Some(VertexStatus::Failed) => !gate.stops_on_failure,
                _ => false,
            };
        }
        let Some(settle) = gate.settle else {
            return if waits { GateNeed::Permits } else { GateNeed::Nothing };
        };
        // A slot of a roll is kept until all members have been converged for a while; another session may have left it.
        let owns =
            gate.permits.iter().any(|permit| self.permission.world.granted.contains_key(permit));
        if waits || (owns && !is_settled) {
            self.permission.world.settled.remove(&window);
            self.permission.world.asked.remove(&window);
            return GateNeed::Permits;
        }
        if !owns {
            return GateNeed::Nothing;
        }
        let probe = gate.healthy.as_ref();
        let healthy = probe.is_none_or(|probe| self.is_healthy(window, probe, now));
        if !healthy {
            self.permission.world.settled.remove(&window);
            return GateNeed::SettlesUntil(now + Duration::from_secs(1));
        }
        let since = *self.permission.world.settled.entry(window).or_insert(now);
        if since + settle <= now {
            self.permission.world.settled.remove(&window);
            self.permission.world.asked.remove(&window);
            return GateNeed::Nothing;
        }
        GateNeed::SettlesUntil(since + settle)
    }
}
