//! The nodes of an ONNX model, one by one: what exclusions, coverage and size estimates look at.
//!
//! A large graph has names by the hundred thousand, and a text of its own for each would cost more than
//! reading the file. So all names lie behind each other in one text, a tensor name is a number, and a
//! [`Node`] is a view.

use std::{collections::BTreeMap, hash::BuildHasher};

use hashbrown::{DefaultHashBuilder, HashTable, hash_table};

/// The number of a tensor name; one name is one number in all graphs and functions of a model.
pub type Value = u32;

/// The name of inputs and outputs that are left out.
const NOTHING: Value = 0;

/// The nodes and tensors of a model.
///
/// It is read with the analysis, but it is not part of `model_analysis.json`.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    /// Tensors with a value in the file: initializers and Constant attributes.
    pub tensors: Vec<Tensor>,
    nodes: Vec<Entry>,
    kinds: Vec<Kind>,
    attributes: Vec<Attributes>,
    /// Inputs and then outputs of each node.
    ends: Vec<Value>,
    names: Names,
}

/// Attributes of a node by their names.
pub type Attributes = BTreeMap<String, Attribute>;

/// A domain with an op type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    /// Domain; empty for `ai.onnx`.
    pub domain: String,
    /// Op type.
    pub op_type: String,
    /// Nodes of this kind.
    pub count: u64,
    /// Those of them in the top graph.
    pub count_top: u64,
}

/// A short attribute of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attribute {
    /// An integer.
    Int(i64),
    /// A few integers.
    Ints(Vec<i64>),
    /// A short string.
    Text(String),
}

/// The header of a tensor with a value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tensor {
    /// Name; for a Constant the name of its output.
    pub name: String,
    /// Element type in lower case.
    pub dtype: String,
    /// Sizes of the dimensions.
    pub dims: Vec<u64>,
    /// Bytes of its value.
    pub bytes: u64,
}

impl Tensor {
    /// How many elements it has; as many as can be counted.
    pub fn elements(&self) -> u64 {
        self.dims.iter().fold(1_u64, |all, dim| all.saturating_mul(*dim))
    }
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    name: Span,
    kind: u32,
    /// Where its inputs begin.
    ends: u32,
    inputs: u32,
    outputs: u32,
    attributes: Option<u32>,
    top: bool,
}

/// A node of a graph.
#[derive(Debug, Clone, Copy)]
pub struct Node<'g> {
    graph: &'g Graph,
    entry: &'g Entry,
}

impl<'g> Node<'g> {
    /// Name; empty when it has none.
    pub fn name(self) -> &'g str {
        self.graph.names.text(self.entry.name)
    }

    /// Op type, for example `Conv`.
    pub fn op_type(self) -> &'g str {
        &self.graph.kinds[self.entry.kind as usize].op_type
    }

    /// Domain; empty for `ai.onnx`.
    pub fn domain(self) -> &'g str {
        &self.graph.kinds[self.entry.kind as usize].domain
    }

    /// Which of [`Graph::kinds`] it is.
    pub fn kind(self) -> usize {
        self.entry.kind as usize
    }

    /// Its inputs by number; the names of those that are left out are empty.
    pub fn inputs(self) -> &'g [Value] {
        let from = self.entry.ends as usize;
        &self.graph.ends[from..from + self.entry.inputs as usize]
    }

    /// Its outputs by number.
    pub fn outputs(self) -> &'g [Value] {
        let from = (self.entry.ends + self.entry.inputs) as usize;
        &self.graph.ends[from..from + self.entry.outputs as usize]
    }

    /// The name of one of its inputs.
    pub fn input(self, place: usize) -> Option<&'g str> {
        self.inputs().get(place).map(|value| self.graph.value_name(*value))
    }

    /// The short attribute with this name.
    pub fn attribute(self, name: &str) -> Option<&'g Attribute> {
        self.graph.attributes[self.entry.attributes? as usize].get(name)
    }

    /// Whether it stands in the top graph.
    pub fn is_top(self) -> bool {
        self.entry.top
    }
}

impl Graph {
    /// A graph of nodes that are written out.
    pub fn new(nodes: impl IntoIterator<Item = NodeText>, tensors: Vec<Tensor>) -> Self {
        let mut builder = Builder::default();
        for node in nodes {
            let mut numbers = |names: &[String]| -> Vec<Value> {
                names.iter().map(|name| builder.value(name).0).collect()
            };
            let (inputs, outputs) = (numbers(&node.inputs), numbers(&node.outputs));
            let new = NewNode {
                name: builder.text(&node.name),
                domain: builder.word(&node.domain).0,
                op_type: builder.word(&node.op_type).0,
                attributes: node.attributes,
                top: node.top,
            };
            builder.push(new, inputs.into_iter(), outputs.into_iter());
        }
        builder.finish(tensors)
    }

    /// Nodes of the top graph in file order, then those of subgraphs and functions.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = Node<'_>> + ExactSizeIterator + Clone {
        self.nodes.iter().map(|entry| Node { graph: self, entry })
    }

    /// The node at a place of [`Graph::nodes`].
    pub fn node(&self, at: usize) -> Option<Node<'_>> {
        self.nodes.get(at).map(|entry| Node { graph: self, entry })
    }

    /// The domains and op types there are, in the order in which they come, with their numbers of nodes.
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// The number of a tensor name; `None` when no node has it, and for the empty name.
    pub fn value(&self, name: &str) -> Option<Value> {
        self.names.find(name).filter(|value| *value != NOTHING)
    }

    /// The name of a value.
    pub fn value_name(&self, value: Value) -> &str {
        self.names.text(self.names.values[value as usize])
    }

    /// How many values there are, the one without a name among them: every [`Value`] is below it.
    pub fn value_count(&self) -> usize {
        self.names.values.len()
    }

    /// The values of a list that have a name.
    pub fn named(values: &[Value]) -> impl Iterator<Item = Value> {
        values.iter().copied().filter(|value| *value != NOTHING)
    }
}

/// A node with its names written out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeText {
    /// Name; empty when it has none.
    pub name: String,
    /// Op type, for example `Conv`.
    pub op_type: String,
    /// Domain; empty for `ai.onnx`.
    pub domain: String,
    /// Names of its inputs.
    pub inputs: Vec<String>,
    /// Names of its outputs.
    pub outputs: Vec<String>,
    /// Short integer and string attributes (`group`, `mode`, `ceil_mode`, `auto_pad`, …).
    pub attributes: Attributes,
    /// Whether it stands in the top graph.
    pub top: bool,
}

/// Makes a graph node by node.
#[derive(Debug, Default)]
pub struct Builder {
    graph: Graph,
    /// Domains and op types.
    words: Names,
    kinds: BTreeMap<(Word, Word), u32>,
}

/// The number of a domain or an op type; that of the empty one is 0.
pub type Word = u32;

/// A node for a [`Builder`].
#[derive(Debug, Default)]
pub struct NewNode {
    /// From [`Builder::text`].
    pub name: Span,
    /// From [`Builder::word`]; empty for `ai.onnx`.
    pub domain: Word,
    /// From [`Builder::word`].
    pub op_type: Word,
    /// Its short attributes.
    pub attributes: Attributes,
    /// Whether it stands in the top graph.
    pub top: bool,
}

impl Builder {
    /// Makes room for about so many nodes with names of so many bytes in all.
    pub fn reserve(&mut self, nodes: usize, text: usize) {
        self.graph.nodes.reserve(nodes);
        self.graph.ends.reserve(3 * nodes);
        self.graph.names.reserve(nodes, text);
    }

    /// The number of a tensor name, and whether it is a new one.
    pub fn value(&mut self, name: &str) -> (Value, bool) {
        self.graph.names.number(name)
    }

    /// The number of a domain or op type, and whether it is a new one.
    pub fn word(&mut self, text: &str) -> (Word, bool) {
        self.words.number(text)
    }

    /// Keeps the name of a node.
    pub fn text(&mut self, name: &str) -> Span {
        self.graph.names.keep(name)
    }

    /// The name of a value.
    pub fn value_name(&self, value: Value) -> &str {
        self.graph.value_name(value)
    }

    /// Adds a node with its inputs and outputs, and gives its kind, in which it is counted already.
    pub fn push(
        &mut self,
        node: NewNode,
        inputs: impl Iterator<Item = Value>,
        outputs: impl Iterator<Item = Value>,
    ) -> &Kind {
        let kind = self.kind(node.domain, node.op_type);
        let Graph { nodes, attributes, ends, kinds, .. } = &mut self.graph;
        let first = ends.len();
        ends.extend(inputs);
        let middle = ends.len();
        ends.extend(outputs);
        let attributes = (!node.attributes.is_empty()).then(|| {
            attributes.push(node.attributes);
            attributes.len() as u32 - 1
        });
        nodes.push(Entry {
            name: node.name,
            kind,
            ends: first as u32,
            inputs: (middle - first) as u32,
            outputs: (ends.len() - middle) as u32,
            attributes,
            top: node.top,
        });
        let counted = &mut kinds[kind as usize];
        counted.count += 1;
        counted.count_top += u64::from(node.top);
        counted
    }

    /// The whole graph.
    pub fn finish(mut self, tensors: Vec<Tensor>) -> Graph {
        self.graph.nodes.sort_by_key(|entry| !entry.top);
        self.graph.tensors = tensors;
        self.graph
    }

    fn kind(&mut self, domain: Word, op_type: Word) -> u32 {
        let Self { graph, words, kinds } = self;
        *kinds.entry((domain, op_type)).or_insert_with(|| {
            let text = |word: Word| words.text(words.values[word as usize]).to_owned();
            graph.kinds.push(Kind {
                domain: text(domain),
                op_type: text(op_type),
                count: 0,
                count_top: 0,
            });
            graph.kinds.len() as u32 - 1
        })
    }
}

/// Where a name stands in the text of all names. Models are read up to a gigabyte of names and numbers, so
/// 32 bits are enough.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span {
    from: u32,
    length: u32,
}

/// All names of a graph.
#[derive(Debug, Clone)]
struct Names {
    text: String,
    /// By the number of the value.
    values: Vec<Span>,
    /// The values by the hash of their name.
    numbers: HashTable<(u64, Value)>,
    /// Keyed at random, so that nobody can make names that collide.
    hash: DefaultHashBuilder,
}

impl Default for Names {
    fn default() -> Self {
        let mut names = Self {
            text: String::new(),
            values: Vec::new(),
            numbers: HashTable::new(),
            hash: DefaultHashBuilder::default(),
        };
        names.number("");
        names
    }
}

impl Names {
    fn reserve(&mut self, names: usize, text: usize) {
        self.text.reserve(text);
        self.values.reserve(names);
        self.numbers.reserve(names, |(hash, _)| *hash);
    }

    fn text(&self, span: Span) -> &str {
        &self.text[span.from as usize..(span.from + span.length) as usize]
    }

    fn keep(&mut self, name: &str) -> Span {
        let span = Span { from: self.text.len() as u32, length: name.len() as u32 };
        self.text.push_str(name);
        span
    }

    fn find(&self, name: &str) -> Option<Value> {
        let hash = self.hash.hash_one(name);
        let is_it = |(_, value): &(u64, Value)| self.text(self.values[*value as usize]) == name;
        self.numbers.find(hash, is_it).map(|(_, value)| *value)
    }

    fn number(&mut self, name: &str) -> (Value, bool) {
        let hash = self.hash.hash_one(name);
        let (text, values) = (&self.text, &self.values);
        let is_it = |(known, value): &(u64, Value)| {
            let span = values[*value as usize];
            *known == hash && text[span.from as usize..(span.from + span.length) as usize] == *name
        };
        match self.numbers.entry(hash, is_it, |(hash, _)| *hash) {
            hash_table::Entry::Occupied(known) => (known.get().1, false),
            hash_table::Entry::Vacant(free) => {
                let value = self.values.len() as Value;
                free.insert((hash, value));
                let span = self.keep(name);
                self.values.push(span);
                (value, true)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(domain: &str, op_type: &str, inputs: &[&str], outputs: &[&str], top: bool) -> NodeText {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        NodeText {
            name: format!("{op_type} node"),
            op_type: op_type.to_owned(),
            domain: domain.to_owned(),
            inputs: owned(inputs),
            outputs: owned(outputs),
            attributes: BTreeMap::from([("axis".to_owned(), Attribute::Int(1))]),
            top,
        }
    }

    #[test]
    fn a_node_shows_what_was_put_in() {
        let graph = Graph::new([node("acme", "Add", &["x", "", "w"], &["y"], true)], vec![]);
        let add = graph.node(0).unwrap();
        assert_eq!((add.name(), add.op_type(), add.domain()), ("Add node", "Add", "acme"));
        let names: Vec<&str> = add.inputs().iter().map(|value| graph.value_name(*value)).collect();
        assert_eq!(names, ["x", "", "w"]);
        assert_eq!(add.input(2), Some("w"));
        assert_eq!(add.input(3), None);
        assert_eq!(Graph::named(add.inputs()).count(), 2);
        assert_eq!(add.attribute("axis"), Some(&Attribute::Int(1)));
        assert_eq!(add.attribute("perm"), None);
    }

    #[test]
    fn one_name_is_one_value_and_the_empty_one_is_none() {
        let nodes =
            [node("", "Mul", &["x", "w"], &["y"], true), node("", "Neg", &["y"], &["z"], true)];
        let graph = Graph::new(nodes, vec![]);
        let (mul, neg) = (graph.node(0).unwrap(), graph.node(1).unwrap());
        assert_eq!(mul.outputs(), neg.inputs());
        assert_eq!(graph.value("y"), Some(neg.inputs()[0]));
        assert_eq!(graph.value(""), None);
        assert_eq!(graph.value("nowhere"), None);
        assert_eq!(graph.value_count(), 5);
    }

    #[test]
    fn the_top_graph_comes_first_and_kinds_are_told_apart_by_domain() {
        let nodes = [
            node("", "Add", &[], &[], false),
            node("", "If", &[], &[], true),
            node("acme", "Add", &[], &[], true),
            node("", "Add", &[], &[], true),
        ];
        let graph = Graph::new(nodes, vec![]);
        let order: Vec<(&str, &str)> =
            graph.nodes().map(|node| (node.domain(), node.op_type())).collect();
        assert_eq!(order, [("", "If"), ("acme", "Add"), ("", "Add"), ("", "Add")]);
        let kinds: Vec<(u64, u64)> =
            graph.kinds().iter().map(|kind| (kind.count, kind.count_top)).collect();
        assert_eq!(kinds, [(2, 1), (1, 1), (1, 1)]);
    }
}
