//! The resources of ours that may have undone a contended one, as far as their kinds know what they change.

use crate::driver::Driver;
use steadfast_engine::{Class, Culprit, VertexId};
use steadfast_resources::Claim;

impl Driver {
    /// The resource of ours that undoes a contended one, where the engine names one; of several that were at work each time, the first
    /// that may have changed the object.
    pub(in crate::driver) fn culprit(&self, named: VertexId, id: VertexId) -> Option<VertexId> {
        let others = self.engine.culprits(id);
        let mut all = std::iter::once(named).chain(others);
        all.find(|other| self.may_have_undone(*other, id))
    }

    /// Tells whether a run of `other` may have changed the object of `id`. An object without a path may have been changed by anyone.
    fn may_have_undone(&self, other: VertexId, id: VertexId) -> bool {
        let Some((culprit, contended)) = self.table.get(other).zip(self.table.get(id)) else {
            return true;
        };
        let claims = contended.resource.claims();
        let others = culprit.resource.claims();
        let mut paths = claims.iter().filter_map(|claim| match claim {
            Claim::Path(path) => Some(culprit.resource.may_change(path) || others.contains(claim)),
            _ => None,
        });
        let first = paths.next();
        first.is_none_or(|may| may || paths.any(|may| may))
    }

    /// The class of a change that begins now: a run of ours that cannot have touched the object did not undo it.
    pub(in crate::driver) fn class_by_culprit(&self, id: VertexId, class: Class) -> Class {
        match self.engine.contended_by(id) {
            Some(Culprit::Ours(other))
                if class == Class::NotIdempotent && self.culprit(other, id).is_none() =>
            {
                Class::Contended
            }
            _ => class,
        }
    }
}
