//! Look-ups in a graph: who makes a tensor, who reads it, which nodes an entry of a list means.

use std::cell::OnceCell;

use regex_lite::{Regex, RegexBuilder};

use crate::facts::{ByName, Graph, Node};

/// The ends of tensors: a name with the node that makes or reads it.
type Ends<'g> = ByName<(&'g str, &'g Node)>;

/// A graph whose tensors can be found by name.
#[derive(Debug)]
pub struct Lookup<'g> {
    /// The graph.
    pub graph: &'g Graph,
    producers: Ends<'g>,
    // Not every rule goes forwards.
    consumers: OnceCell<Ends<'g>>,
}

impl<'g> Lookup<'g> {
    /// Indexes the tensors of a graph.
    pub fn new(graph: &'g Graph) -> Self {
        let producers = Self::ends(graph, |node| &node.outputs);
        Self { graph, producers, consumers: OnceCell::new() }
    }

    fn ends(graph: &'g Graph, names: fn(&Node) -> &[String]) -> Ends<'g> {
        let of = move |node: &'g Node| {
            names(node).iter().map(move |name| (name.as_str(), (name.as_str(), node)))
        };
        ByName::new(graph.nodes.iter().flat_map(of))
    }

    /// The node that makes a tensor.
    pub fn producer(&self, tensor: &str) -> Option<&'g Node> {
        let mut found = self.producers.candidates(tensor);
        found.find(|(name, _)| *name == tensor).map(|(_, node)| *node)
    }

    /// The nodes that read a tensor.
    pub fn consumers<'a>(&'a self, tensor: &'a str) -> impl Iterator<Item = &'g Node> + 'a {
        let consumers = self.consumers.get_or_init(|| Self::ends(self.graph, |node| &node.inputs));
        let found = consumers.candidates(tensor);
        found.filter(move |(name, _)| *name == tensor).map(|(_, node)| *node)
    }

    /// The nodes that read what a node makes.
    pub fn readers<'a>(&'a self, node: &'a Node) -> impl Iterator<Item = &'g Node> + 'a {
        node.outputs.iter().flat_map(|output| self.consumers(output))
    }

    /// Whether folding BatchNormalization will merge this node and rename it.
    pub fn is_folded(&self, node: &Node) -> bool {
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
    pub fn means(&self, node: &Node) -> bool {
        match self {
            Self::Name(name) => !name.is_empty() && node.name == *name,
            Self::Pattern { prefix, regex } => {
                !node.name.is_empty() && node.name.starts_with(prefix) && regex.is_match(&node.name)
            }
            Self::Broken => false,
        }
    }

    /// The nodes of a graph that it means.
    pub fn nodes<'g>(&self, graph: &'g Graph) -> Vec<&'g Node> {
        graph.nodes.iter().filter(|node| self.means(node)).collect()
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
