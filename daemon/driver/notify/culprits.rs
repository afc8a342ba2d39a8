//! The search for culprits: the resources of the graph that may have undone a contended resource.

use crate::driver::Driver;
use steadfast_engine::{Class, Culprit, VertexId};
use steadfast_resources::HostObject;

impl Driver {
    /// Returns the resource that undoes a contended one, if the engine names candidates. Among several candidates, the
    /// first that may have changed the object is the culprit.
    pub(in crate::driver) fn culprit(&self, named: VertexId, id: VertexId) -> Option<VertexId> {
        let others = self.engine.culprits(id);
        let mut all = std::iter::once(named).chain(others);
        all.find(|other| self.may_have_undone(*other, id))
    }

    /// Returns true if a run of `other` may have changed the object of `id`. Any run may change an object without a
    /// path.
    fn may_have_undone(&self, other: VertexId, id: VertexId) -> bool {
        let Some((culprit, contended)) = self.graph.get(other).zip(self.graph.get(id)) else {
            return true;
        };
        let claims = contended.resource.footprint().claims;
        let others = culprit.resource.footprint().claims;
        let claims_too = |object: &HostObject| others.iter().any(|other| other.object == *object);
        let mut paths = claims.iter().filter_map(|claim| {
            let path = claim.object.as_path()?;
            Some(culprit.resource.may_change(path) || claims_too(&claim.object))
        });
        let first = paths.next();
        first.is_none_or(|may| may || paths.any(|may| may))
    }

    /// Returns the class of a change that begins now: a run that cannot have touched the object is not its culprit.
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
