//! Look-ups in a graph: who makes a tensor, who reads it, which nodes an entry of a list means.

use std::cell::OnceCell;

use regex_lite::{Regex, RegexBuilder};

use crate::facts::graph::{Graph, Node, Value};

/// A graph in which one can go from node to node.
#[derive(Debug)]
pub struct Lookup<'g> {
    /// The graph.
    pub graph: &'g Graph,
    /// The place of the node that makes each value.
    producers: Vec<Option<u32>>,
    // Not every rule goes forwards.
    consumers: OnceCell<Consumers>,
}

/// Values with the places of the nodes that read them, sorted.
type Consumers = Vec<(Value, u32)>;

impl<'g> Lookup<'g> {
    /// Indexes the tensors of a graph.
    pub fn new(graph: &'g Graph) -> Self {
        let mut producers = vec![None; graph.value_count()];
        for (at, node) in (0_u32..).zip(graph.nodes()) {
            for value in Graph::named(node.outputs()) {
                producers[value as usize].get_or_insert(at);
            }
        }
        Self { graph, producers, consumers: OnceCell::new() }
    }

    /// The node that makes a value.
    pub fn producer(&self, value: Value) -> Option<Node<'g>> {
        let at = self.producers.get(value as usize).copied().flatten()?;
        self.graph.node(at as usize)
    }

    /// The nodes that read a value, each as often as it reads it.
    pub fn consumers(&self, value: Value) -> impl Iterator<Item = Node<'g>> {
        let all = self.consumers.get_or_init(|| consumers(self.graph));
        let from = all.partition_point(|(known, _)| *known < value);
        let found = all[from..].iter().take_while(move |(known, _)| *known == value);
        found.filter_map(|(_, at)| self.graph.node(*at as usize))
    }

    /// The nodes that read what a node makes.
    pub fn readers(&self, node: Node<'g>) -> impl Iterator<Item = Node<'g>> {
        Graph::named(node.outputs()).flat_map(|output| self.consumers(output))
    }

    /// Whether folding BatchNormalization will merge this node and rename it.
    pub fn is_folded(&self, node: Node<'g>) -> bool {
        let mut readers = self.readers(node);
        matches!(node.op_type(), "Conv" | "ConvTranspose" | "Gemm")
            && readers.next().is_some_and(|next| next.op_type() == "BatchNormalization")
            && readers.next().is_none()
    }
}

fn consumers(graph: &Graph) -> Consumers {
    let of = |(at, node): (u32, Node<'_>)| {
        node.inputs().iter().map(move |value| (*value, at)).collect::<Vec<_>>()
    };
    let mut found: Consumers = (0_u32..).zip(graph.nodes()).flat_map(of).collect();
    found.sort_unstable();
    found
}

/// An entry of a list of nodes: a name, or a pattern as Quark takes it.
#[derive(Debug)]
pub enum Entry<'a> {
    /// A name.
    Name(&'a str),
    /// A regular expression, which starts with `^` and contains `.*`.
    Pattern {
        /// The text that every name it means begins with; most names are told apart by it alone.
        prefix: String,
        /// The expression.
        regex: Regex,
    },
    /// A pattern that is no regular expression.
    Broken,
}

impl<'a> Entry<'a> {
    /// Reads an entry.
    pub fn read(text: &'a str) -> Self {
        if !(text.starts_with('^') && text.contains(".*")) {
            return Self::Name(text);
        }
        match RegexBuilder::new(text).size_limit(1 << 20).build() {
            Ok(regex) => Self::Pattern { prefix: literal_prefix(text), regex },
            Err(_) => Self::Broken,
        }
    }

    /// Whether it means this node.
    pub fn means(&self, node: Node<'_>) -> bool {
        let given = node.name();
        match self {
            _ if given.is_empty() => false,
            Self::Name(name) => given == *name,
            Self::Pattern { prefix, regex } => given.starts_with(prefix) && regex.is_match(given),
            Self::Broken => false,
        }
    }

    /// The nodes of a graph that it means.
    pub fn nodes<'g>(&self, graph: &'g Graph) -> Vec<Node<'g>> {
        graph.nodes().filter(|node| self.means(*node)).collect()
    }
}

/// What every match of a pattern that starts with `^` begins with; nothing where alternatives make it unsure.
fn literal_prefix(pattern: &str) -> String {
    let mut prefix = String::new();
    if pattern.contains('|') {
        return prefix;
    }
    let mut chars = pattern.chars().skip(1).peekable();
    while let Some(next) = chars.next() {
        let literal = match next {
            '\\' => chars.next().filter(|escaped| !escaped.is_alphanumeric()),
            c if ".*+?()[]{}^$".contains(c) => None,
            c => Some(c),
        };
        let Some(literal) = literal else { break };
        if matches!(chars.peek(), Some('*' | '?' | '{')) {
            break;
        }
        prefix.push(literal);
    }
    prefix
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_only_what_every_match_begins_with() {
        let check = |pattern: &str, expected: &str| {
            assert_eq!(literal_prefix(pattern), expected, "`{pattern}`")
        };
        check(r"^/model\.1.*Sigmoid", "/model.1");
        check("^/relu.*", "/relu");
        check("^/a?b.*", "/");
        check("^/a{0,1}.*", "/");
        check("^/a+.*", "/a");
        check("^/a.*|^/b.*", "");
        check(r"^\d.*", "");
        check("^(?i)/a.*", "");
    }
}
