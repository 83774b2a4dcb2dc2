//! Look-ups in a graph: who makes a tensor, who reads it, which nodes an entry of a list means.

use regex_lite::{Regex, RegexBuilder};

use crate::facts::{Graph, Node};

/// A graph with its tensors sorted by name.
#[derive(Debug)]
pub struct Lookup<'g> {
    /// The graph.
    pub graph: &'g Graph,
    producers: Vec<(&'g str, &'g Node)>,
    consumers: Vec<(&'g str, &'g Node)>,
}

impl<'g> Lookup<'g> {
    /// Sorts the tensors of a graph.
    pub fn new(graph: &'g Graph) -> Self {
        let mut producers: Vec<(&str, &Node)> = Vec::with_capacity(graph.nodes.len());
        let mut consumers: Vec<(&str, &Node)> = Vec::with_capacity(2 * graph.nodes.len());
        for node in &graph.nodes {
            producers.extend(node.outputs.iter().map(|name| (name.as_str(), node)));
            consumers.extend(node.inputs.iter().map(|name| (name.as_str(), node)));
        }
        producers.sort_by_key(|(name, _)| *name);
        consumers.sort_by_key(|(name, _)| *name);
        Self { graph, producers, consumers }
    }

    /// The node that makes a tensor.
    pub fn producer(&self, tensor: &str) -> Option<&'g Node> {
        let at = self.producers.binary_search_by_key(&tensor, |(name, _)| *name).ok()?;
        Some(self.producers[at].1)
    }

    /// The nodes that read a tensor.
    pub fn consumers(&self, tensor: &str) -> impl Iterator<Item = &'g Node> {
        let from = self.consumers.partition_point(|(name, _)| *name < tensor);
        self.consumers[from..]
            .iter()
            .take_while(move |(name, _)| *name == tensor)
            .map(|(_, node)| *node)
    }

    /// The nodes that read what a node makes.
    pub fn readers(&self, node: &'g Node) -> impl Iterator<Item = &'g Node> {
        node.outputs.iter().flat_map(|output| self.consumers(output))
    }

    /// Whether folding BatchNormalization will merge this node and rename it.
    pub fn is_folded(&self, node: &'g Node) -> bool {
        let mut readers = self.readers(node);
        matches!(node.op_type.as_str(), "Conv" | "ConvTranspose" | "Gemm")
            && readers.next().is_some_and(|next| next.op_type == "BatchNormalization")
            && readers.next().is_none()
    }
}

/// An entry of a list of nodes: a name, or a pattern as Quark takes it.
#[derive(Debug)]
pub enum Entry<'a> {
    /// A name.
    Name(&'a str),
    /// A regular expression, which starts with `^` and contains `.*`.
    Pattern(Regex),
    /// A pattern that is no regular expression.
    Broken,
}

impl<'a> Entry<'a> {
    /// Reads an entry.
    pub fn read(text: &'a str) -> Self {
        if !(text.starts_with('^') && text.contains(".*")) {
            return Self::Name(text);
        }
        RegexBuilder::new(text).size_limit(1 << 20).build().map_or(Self::Broken, Self::Pattern)
    }

    /// Whether it means this node.
    pub fn means(&self, node: &Node) -> bool {
        match self {
            Self::Name(name) => !name.is_empty() && node.name == *name,
            Self::Pattern(pattern) => !node.name.is_empty() && pattern.is_match(&node.name),
            Self::Broken => false,
        }
    }

    /// The nodes of a graph that it means.
    pub fn nodes<'g>(&self, graph: &'g Graph) -> Vec<&'g Node> {
        graph.nodes.iter().filter(|node| self.means(node)).collect()
    }
}
