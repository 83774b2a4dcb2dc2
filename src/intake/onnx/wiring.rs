//! Which node makes and takes which value, in numbers, so that following a graph does not compare names.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};
use std::ops::Range;

use crate::facts::Node;

/// The number of a value.
pub type Value = u32;

/// The nodes of all graphs and functions together.
///
/// A name that several graphs use is one value here, which is good enough for guesses.
#[derive(Debug, Default)]
pub struct Wiring {
    /// The nodes, in the order in which they end in the file.
    pub links: Vec<Link>,
    /// The value of each tensor of the graph, and its number of elements.
    pub tensors: Vec<(Value, u64)>,
    values: Vec<Value>,
    numbers: HashMap<u64, Value, BuildHasherDefault<Hashed>>,
    /// Keyed at random, so that nobody can make names that collide.
    hash: RandomState,
}

/// A node in numbers.
#[derive(Debug, Clone)]
pub struct Link {
    /// The number of its kind.
    pub kind: u32,
    /// Whether it stands in the top graph.
    pub top: bool,
    inputs: Range<usize>,
    outputs: Range<usize>,
}

impl Wiring {
    /// Makes room for about so many nodes.
    pub fn reserve(&mut self, nodes: usize) {
        self.links.reserve(nodes);
        self.values.reserve(3 * nodes);
    }

    /// Adds a node of that kind.
    pub fn add_node(&mut self, node: &Node, kind: u32) {
        let start = self.values.len();
        // An output that is left out has no name; an input keeps its place.
        let outputs = node.outputs.iter().filter(|name| !name.is_empty());
        for name in node.inputs.iter().chain(outputs) {
            let value = self.number(name);
            self.values.push(value);
        }
        let middle = start + node.inputs.len();
        let (inputs, outputs) = (start..middle, middle..self.values.len());
        self.links.push(Link { kind, top: node.top, inputs, outputs });
    }

    /// Adds the tensor that makes the value `name`.
    pub fn add_tensor(&mut self, name: &str, dims: &[u64]) {
        let elements = dims.iter().fold(1_u64, |all, dim| all.saturating_mul(*dim));
        let value = self.number(name);
        self.tensors.push((value, elements));
    }

    /// The values that a node takes.
    pub fn inputs(&self, link: &Link) -> &[Value] {
        &self.values[link.inputs.clone()]
    }

    /// The values that a node makes.
    pub fn outputs(&self, link: &Link) -> &[Value] {
        &self.values[link.outputs.clone()]
    }

    /// How many values there are.
    pub fn count(&self) -> usize {
        self.numbers.len()
    }

    fn number(&mut self, name: &str) -> Value {
        // Two names with one 64-bit hash are less likely than a fault of the memory.
        let next = self.numbers.len() as Value;
        *self.numbers.entry(self.hash.hash_one(name)).or_insert(next)
    }
}

/// Takes a number that is a hash already.
#[derive(Debug, Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_is_one_value() {
        let node = |inputs: &[&str], outputs: &[&str]| Node {
            inputs: inputs.iter().map(|name| (*name).into()).collect(),
            outputs: outputs.iter().map(|name| (*name).into()).collect(),
            ..Node::default()
        };
        let mut wiring = Wiring::default();
        wiring.add_tensor("w", &[2, 3]);
        wiring.add_node(&node(&["x", "w"], &["y"]), 0);
        wiring.add_node(&node(&["y"], &[]), 1);
        let (first, second) = (&wiring.links[0], &wiring.links[1]);
        assert_eq!(wiring.inputs(first)[1], wiring.tensors[0].0);
        assert_eq!(wiring.outputs(first), wiring.inputs(second));
        assert_eq!(wiring.count(), 3);
    }
}
