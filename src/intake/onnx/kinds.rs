//! Sums over the kinds of nodes of a model.

use std::collections::BTreeMap;

use crate::facts::graph::{Graph, Kind};

/// Whether there is a node of this op type, in any domain.
pub fn has(graph: &Graph, op_type: &str) -> bool {
    graph.kinds().iter().any(|kind| kind.op_type == op_type)
}

/// Sums `count` over the kinds that have the same name by `name`, leaving zeros out.
pub fn sum(
    graph: &Graph,
    name: impl Fn(&Kind) -> &str,
    count: impl Fn(&Kind) -> u64,
) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for kind in graph.kinds().iter().filter(|kind| count(kind) > 0) {
        *sums.entry(name(kind).to_owned()).or_insert(0) += count(kind);
    }
    sums
}
