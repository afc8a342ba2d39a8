//! The list of all resources: filtered, sorted, and returned page by page.

use super::phase;
use super::statistics::Moment;
use crate::api::{List, Order, Phase};
use crate::driver::Driver;
use std::cmp::Reverse;
use steadfast_engine::{VertexId, VertexStatus};

/// A request for a page of the list of resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListRequest {
    /// The text that an identity must contain; empty admits all.
    pub filter: String,
    /// The order of the list.
    pub order: Order,
    /// The number of entries to skip.
    pub from: usize,
    /// The maximum number of entries to return.
    pub limit: usize,
}

/// The sort key of a row, ascending; rows with equal keys are sorted by name.
type Rank = (Phase, Reverse<u64>);

impl Driver {
    pub(in crate::driver) fn list(&self, wanted: &ListRequest) -> List {
        let fits = |id: &VertexId| {
            wanted.filter.is_empty() || self.graph.name(*id).contains(&wanted.filter)
        };
        let mut rows: Vec<(Rank, &str, VertexId, VertexStatus)> = self
            .graph
            .ids()
            .filter(fits)
            .filter_map(|id| {
                let standing = self.current_status(id)?;
                Some((self.rank(id, &standing, wanted.order), self.graph.name(id), id, standing))
            })
            .collect();
        rows.sort_unstable_by(|one, other| (one.0, one.1).cmp(&(other.0, other.1)));
        let total = rows.len();
        let part = rows.into_iter().skip(wanted.from).take(wanted.limit);
        let rows = part.map(|(_, _, id, standing)| self.resource_status(id, &standing)).collect();
        List { rows, total }
    }

    fn rank(&self, id: VertexId, standing: &VertexStatus, order: Order) -> Rank {
        match order {
            Order::Name => (Phase::Stuck, Reverse(0)),
            Order::State => (phase(standing), Reverse(0)),
            // The last change first; unchanged resources come last.
            Order::Changed => {
                let age = self.runs.statistics.age(id, Moment::Changed);
                (Phase::Stuck, Reverse(age.map_or(0, |age| u64::MAX - age)))
            }
            Order::Repairs => (Phase::Stuck, Reverse(u64::from(self.runs.statistics.changes(id)))),
        }
    }
}
