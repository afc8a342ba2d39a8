//! The resources of ours that may have undone a contended one, as far as their kinds know what they change.

use crate::driver::Driver;
use steadfast_engine::{Class, Culprit, VertexId};
use steadfast_resources::Claim;

impl Driver {
    /// Tells whether a run of `other` may have changed the object of `id`. An object without a path may have been changed by anyone.
    pub(in crate::driver) fn may_have_undone(&self, other: VertexId, id: VertexId) -> bool {
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
                if class == Class::NotIdempotent && !self.may_have_undone(other, id) =>
            {
                Class::Contended
            }
            _ => class,
        }
    }
}
