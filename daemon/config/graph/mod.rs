//! Graph algorithms of the configuration. They must work without recursion, because a graph may have millions of edges.
//!
//! Reading order: `cycles` (the search for cycles), `acyclic` (the insertion of edges without closing a cycle).

pub(super) mod acyclic;
pub(super) mod cycles;
