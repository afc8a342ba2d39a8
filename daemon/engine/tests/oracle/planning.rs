//! What a plan doubts, as the books understand it (E-11).

use crate::books::{Books, Need, Phase};
use crate::invariants::E11_DOUBT;
use crate::oracle::Face;
use steadfast_engine::{Action, Event, Holding, Notice, Standing, VertexId};

impl Books {
    /// What was found of it is worth nothing: what is not asked again anyhow is held in this turn.
    pub(super) fn doubts(&mut self, id: VertexId) {
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

    fn failed_below(&self, id: VertexId) -> Vec<VertexId> {
        let all = self.vertices.iter().filter(|(_, vertex)| vertex.phase == Phase::Failed);
        all.filter(|(_, vertex)| vertex.ancestors.contains(&id)).map(|(id, _)| *id).collect()
    }

    /// It is held as unknown until the other, or is asked again.
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
        let unknown = Notice::Held(id, Holding::UnknownUntil(until));
        let is_told = actions.contains(&Action::Tell(unknown));
        let standing = face.standing(id);
        let right = match &standing {
            // Now, or before, and then perhaps until another.
            Some(Standing::Held(Holding::UnknownUntil(other))) => !is_told || *other == until,
            // It does nothing that could be another.
            Some(Standing::Held(Holding::Window(_) | Holding::Operator)) => !is_told,
            Some(Standing::Settled | Standing::Failed | Standing::Held(_)) => is_looked_at,
            Some(_) => !is_told,
            None => false,
        };
        if !right {
            let detail = format!("{id} is in doubt until {until} and stands as {standing:?}");
            self.broken(E11_DOUBT, &detail);
        }
        let failed = |id: &VertexId| face.standing(*id) == Some(Standing::Failed);
        if let Some(below) =
            self.failed_below(id).into_iter().find(|below| is_told && failed(below))
        {
            let detail = format!("{below} has failed below {id}, which is in doubt, and still has");
            self.broken(E11_DOUBT, &detail);
        }
    }
}
