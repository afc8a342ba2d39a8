//! Uncertain findings of a plan in the oracle's records (E-11).

use crate::invariants::{E11_DOUBT, E11_NOOP};
use crate::oracle::Face;
use crate::oracle_log::{Books, Need, Phase};
use steadfast_engine::{
    Action, Event, HeldReason, Notice, Outcome, RunVerdict, VertexId, VertexStatus,
};

impl Books {
    /// Records that the finding of a vertex is uncertain: unless it is checked again anyway, it is held in this turn.
    pub(super) fn record_doubt(&mut self, id: VertexId) {
        let Some(vertex) = self.vertices.get_mut(&id) else { return };
        let rests = matches!(vertex.phase, Phase::Rest | Phase::Held | Phase::Failed);
        let is_asked = vertex.running.is_some() || matches!(vertex.need, Need::Must { .. });
        if vertex.declared.meta.noop && rests && !is_asked {
            vertex.phase = Phase::Unsure;
        }
        for below in self.failed_below(id) {
            let clock = self.clock;
            if let Some(vertex) = self.vertices.get_mut(&below) {
                vertex.may(clock);
            }
            self.back_poke(below);
        }
    }

    /// Checks that a failing check below a vertex that would change is unknown until that one has converged or is gone,
    /// and that due checks are repeated (E-11).
    pub(crate) fn findings_are_known(&mut self, face: &impl Face) {
        let would_change = |id: &VertexId| {
            let held = HeldReason::WouldChange;
            matches!(face.standing(*id), Some(VertexStatus::Held(how))
                if how == held || matches!(how, HeldReason::UnknownUntil(_)))
        };
        let failed = |id: &VertexId| {
            matches!(face.standing(*id), Some(VertexStatus::Failed | VertexStatus::Delayed(_)))
        };
        let above = |id: &VertexId| self.vertices.get(id).map(|v| v.ancestors.clone());
        let mut wrong = Vec::new();
        if let Some(id) = self.unchecked.filter(failed)
            && above(&id).is_some_and(|above| above.iter().any(would_change))
        {
            wrong.push(format!("{id} is called failed below what would change"));
        }
        for id in
            self.asked_again.iter().filter(|id| face.standing(**id) == Some(VertexStatus::Failed))
        {
            wrong.push(format!("{id} had failed, must be asked again, and is not"));
        }
        for id in self.order.iter().filter(|_| !self.one_shot) {
            let Some(VertexStatus::Held(HeldReason::UnknownUntil(other))) = face.standing(*id)
            else {
                continue;
            };
            let settled = Some(VertexStatus::Settled);
            if face.standing(other) == settled || !self.vertices.contains_key(&other) {
                wrong.push(format!("{id} is unknown until {other}, which is right or gone"));
            }
        }
        for detail in wrong {
            self.broken(E11_NOOP, &detail);
        }
    }

    /// Allows another check of a vertex that is unknown until another one, after that one has converged, or after a
    /// look that can decide (E-11).
    pub(crate) fn allow_what_is_known(&mut self, event: &Event) {
        let right = matches!(
            event,
            Event::Checked(_, RunVerdict::Same)
                | Event::Ended(_, Outcome::Unchanged | Outcome::Changed)
        );
        let other = self.turn_of.filter(|_| right);
        let own = self.turn_of.filter(|_| matches!(event, Event::Checked(_, RunVerdict::Differs)));
        self.allow_unknown(|id, until| other == Some(until) || own == Some(id));
    }

    /// Allows another check of unknown vertices for which `is_known` is true.
    pub(crate) fn allow_unknown(&mut self, is_known: impl Fn(VertexId, VertexId) -> bool) {
        let clock = self.clock;
        for id in self.order.clone() {
            if let Some(vertex) = self.vertices.get_mut(&id)
                && vertex.unknown_until.is_some_and(|until| is_known(id, until))
            {
                vertex.may(clock);
                self.back_poke(id);
            }
        }
    }

    fn failed_below(&self, id: VertexId) -> Vec<VertexId> {
        let all = self.vertices.iter().filter(|(_, vertex)| vertex.phase == Phase::Failed);
        all.filter(|(_, vertex)| vertex.ancestors.contains(&id)).map(|(id, _)| *id).collect()
    }

    /// Checks that an uncertain vertex is held as unknown until the other one, or is checked again.
    pub(crate) fn doubts_are_heeded(
        &mut self,
        event: &Event,
        actions: &[Action],
        face: &impl Face,
    ) {
        let Event::Doubt { vertex: id, until } = *event else { return };
        let Some(vertex) = self.vertices.get(&id).filter(|vertex| vertex.declared.meta.noop) else {
            return;
        };
        let is_looked_at = vertex.running.as_ref().is_some_and(|run| run.look);
        let unknown = Notice::Held(id, HeldReason::UnknownUntil(until));
        let is_told = actions.contains(&Action::Notify(unknown));
        let standing = face.standing(id);
        let right = match &standing {
            // Held now or before; an earlier hold may name another vertex.
            Some(VertexStatus::Held(HeldReason::UnknownUntil(other))) => {
                !is_told || *other == until
            }
            // A held vertex makes no change that could differ.
            Some(VertexStatus::Held(HeldReason::Window(_) | HeldReason::Operator)) => !is_told,
            Some(VertexStatus::Settled | VertexStatus::Failed | VertexStatus::Held(_)) => {
                is_looked_at
            }
            Some(_) => !is_told,
            None => false,
        };
        if !right {
            let detail = format!("{id} is in doubt until {until} and stands as {standing:?}");
            self.broken(E11_DOUBT, &detail);
        }
        let failed = |id: &VertexId| face.standing(*id) == Some(VertexStatus::Failed);
        if let Some(below) =
            self.failed_below(id).into_iter().find(|below| is_told && failed(below))
        {
            let detail = format!("{below} has failed below {id}, which is in doubt, and still has");
            self.broken(E11_DOUBT, &detail);
        }
    }
}
