//! The messages of `onnx.proto`, walked once: what the file says, without judgement.
//!
//! Field numbers are those of `onnx.proto`. Values of tensors are skipped. Unknown fields are skipped too,
//! as protobuf asks for, except that fields which describe structure are read for the digest.

mod attribute;
mod tensor;
mod value;

use std::collections::BTreeMap;
use std::io::{Read, Seek};
use std::mem::size_of;

use crate::facts::graph::{Builder, Kind, NewNode, Span, Tensor, Value, Word};
use crate::facts::{Opset, TensorFacts, WeightFacts};
use crate::intake::onnx::defect::Defect;
use crate::intake::onnx::wire::{Field, Wire};

/// A node takes about so many bytes of a graph without weights, and room for so many is made ahead.
const NODE_BYTES: u64 = 64;
const MOST_RESERVED: u64 = 1 << 16;
/// What a node takes beside its names and attributes, and once more while its vector grows.
const NODE_ENTRY: u64 = 2 * 32;
/// What a name takes beside its text where it is new: in the list of names and in their table.
const NAME_ENTRY: u64 = 2 * (size_of::<Span>() + 16) as u64;

/// What a model file says.
#[derive(Debug, Default)]
pub struct Contents {
    /// `ir_version`.
    pub ir_version: Option<i64>,
    /// `producer_name`.
    pub producer_name: String,
    /// `producer_version`.
    pub producer_version: String,
    /// Every import, repeated ones too, in file order; the empty domain is `ai.onnx`.
    pub opsets: Vec<Opset>,
    /// Inputs of the top graph, initializers among them.
    pub inputs: Vec<TensorFacts>,
    /// Outputs of the top graph.
    pub outputs: Vec<TensorFacts>,
    /// The nodes of all graphs and functions.
    pub graph: Builder,
    /// Initializers and values of Constant nodes.
    pub tensors: Vec<Tensor>,
    /// Which of `tensors` are initializers of the top graph.
    pub top_initializers: Vec<usize>,
    /// Counts and sizes of the weights; `initializers_as_inputs` is left to the caller.
    pub weights: WeightFacts,
    /// Other files, with how long each must be.
    pub external: BTreeMap<String, u64>,
    /// Domain and name of each model function.
    pub functions: Vec<(String, String)>,
    /// Tensors with a quantization annotation.
    pub annotations: u64,
}

/// Reads a whole `ModelProto`.
pub fn read<S: Read + Seek>(wire: &mut Wire<S>) -> Result<Contents, Defect> {
    let mut walk =
        Walk { wire, out: Contents::default(), depth: 0, text: String::new(), ends: Vec::new() };
    walk.model()?;
    Ok(walk.out)
}

/// The name of a domain as it is shown.
fn domain_name(domain: String) -> String {
    if domain.is_empty() { "ai.onnx".to_owned() } else { domain }
}

struct Walk<'a, S> {
    wire: &'a mut Wire<S>,
    out: Contents,
    depth: u32,
    /// The text that was read last.
    text: String,
    /// Inputs and outputs of the nodes that are being read; a node stands in an attribute of another.
    ends: Vec<(End, Value)>,
}

/// Which end of a node a value is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Input,
    Output,
}

impl<S: Read + Seek> Walk<'_, S> {
    fn model(&mut self) -> Result<(), Defect> {
        let model = self.wire.whole("ModelProto");
        let mut has_graph = false;
        while let Some(field) = self.wire.next(model)? {
            match field.number {
                1 => self.out.ir_version = Some(field.int()?),
                2 => self.out.producer_name = self.wire.text(field)?,
                3 => self.out.producer_version = self.wire.text(field)?,
                7 => {
                    has_graph = true;
                    self.graph(field, true)?;
                }
                8 => {
                    let opset = self.opset(field)?;
                    self.out.opsets.push(opset);
                }
                25 => self.function(field)?,
                _ => self.wire.skip(field)?,
            }
        }
        if !has_graph {
            return Err(Defect::NoGraph);
        }
        // Imports came with IR version 3.
        if self.out.opsets.is_empty() && self.out.ir_version.is_none_or(|version| version >= 3) {
            return Err(Defect::NoOpset);
        }
        Ok(())
    }

    fn opset(&mut self, field: Field) -> Result<Opset, Defect> {
        let message = self.wire.message(field, "OperatorSetIdProto")?;
        self.wire.keep(size_of::<Opset>() as u64)?;
        let (mut domain, mut version) = (String::new(), 0);
        while let Some(field) = self.wire.next(message)? {
            match field.number {
                1 => domain = self.wire.text(field)?,
                2 => version = field.int()?,
                _ => self.wire.skip(field)?,
            }
        }
        Ok(Opset { domain: domain_name(domain), version })
    }

    fn function(&mut self, field: Field) -> Result<(), Defect> {
        let message = self.wire.message(field, "FunctionProto")?;
        self.wire.keep(size_of::<(String, String)>() as u64)?;
        let (mut name, mut domain) = (String::new(), String::new());
        while let Some(field) = self.wire.next(message)? {
            match field.number {
                1 => name = self.wire.text(field)?,
                7 => self.node(field, false)?,
                10 => domain = self.wire.text(field)?,
                4..=6 | 9 | 11..=13 => self.wire.pass(field)?,
                _ => self.wire.skip(field)?,
            }
        }
        self.out.functions.push((domain, name));
        Ok(())
    }

    fn graph(&mut self, field: Field, top: bool) -> Result<(), Defect> {
        let limit = self.wire.limits().depth;
        if self.depth >= limit {
            return Err(Defect::TooDeep { limit, offset: self.wire.offset() });
        }
        self.depth += 1;
        let graph = self.wire.message(field, "GraphProto")?;
        if top {
            // A guess that saves copying while the vectors grow; what is not used is never touched.
            let nodes = (field.payload() / NODE_BYTES).min(MOST_RESERVED);
            self.out.graph.reserve(nodes as usize, (nodes * NODE_BYTES) as usize);
        }
        while let Some(field) = self.wire.next(graph)? {
            match field.number {
                1 => self.node(field, top)?,
                5 => {
                    let tensor = self.tensor(field)?;
                    self.initializer(tensor, top);
                }
                11 if top => {
                    let value = self.value_info(field)?;
                    self.out.inputs.push(value);
                }
                12 if top => {
                    let value = self.value_info(field)?;
                    self.out.outputs.push(value);
                }
                2 | 11..=13 => self.wire.pass(field)?,
                14 => {
                    self.out.annotations += 1;
                    self.wire.pass(field)?;
                }
                15 => {
                    let tensor = self.sparse(field)?;
                    self.initializer(tensor, top);
                }
                _ => self.wire.skip(field)?,
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn initializer(&mut self, tensor: Tensor, top: bool) {
        let weights = &mut self.out.weights;
        weights.initializers += 1;
        add(&mut weights.dtypes, &tensor.dtype, 1);
        add(&mut weights.bytes, &tensor.dtype, tensor.bytes);
        weights.initializer_bytes = weights.initializer_bytes.saturating_add(tensor.bytes);
        if top {
            self.out.top_initializers.push(self.out.tensors.len());
        }
        self.out.tensors.push(tensor);
    }

    fn node(&mut self, field: Field, top: bool) -> Result<(), Defect> {
        let message = self.wire.message(field, "NodeProto")?;
        self.wire.keep(NODE_ENTRY)?;
        let mut node = NewNode { top, ..NewNode::default() };
        let mut constants = Vec::new();
        let first = self.ends.len();
        while let Some(field) = self.wire.next(message)? {
            match field.number {
                1 => self.end(field, End::Input)?,
                2 => self.end(field, End::Output)?,
                3 => {
                    self.wire.read_text(field, &mut self.text)?;
                    self.wire.keep(self.text.len() as u64)?;
                    node.name = self.out.graph.text(&self.text);
                }
                4 => {
                    self.wire.read_text(field, &mut self.text)?;
                    node.op_type = self.word()?;
                }
                5 => {
                    let parts = self.attribute(field)?;
                    self.keep_attribute(&mut node.attributes, &mut constants, parts)?;
                }
                7 => {
                    self.wire.read_text(field, &mut self.text)?;
                    if self.text == "ai.onnx" {
                        self.text.clear();
                    }
                    node.domain = self.word()?;
                }
                8 => self.wire.pass(field)?,
                _ => self.wire.skip(field)?,
            }
        }
        let ends = &self.ends[first..];
        let of = |end: End| ends.iter().filter(move |(at, _)| *at == end).map(|(_, value)| *value);
        let constant_name = of(End::Output).next();
        let kind = self.out.graph.push(node, of(End::Input), of(End::Output));
        if kind.count == 1 {
            let names = kind.domain.len() + kind.op_type.len();
            self.wire.keep((size_of::<Kind>() + 3 * names) as u64)?;
        }
        if kind.op_type == "Constant" {
            let name = constant_name.map(|value| self.out.graph.value_name(value));
            let name = name.unwrap_or_default().to_owned();
            for mut tensor in constants {
                tensor.name.clone_from(&name);
                self.wire.keep((size_of::<Tensor>() + name.len()) as u64)?;
                self.out.tensors.push(tensor);
            }
        }
        self.ends.truncate(first);
        Ok(())
    }

    /// The number of the op type or domain that was read last.
    fn word(&mut self) -> Result<Word, Defect> {
        let (word, new) = self.out.graph.word(&self.text);
        self.wire.keep(if new { NAME_ENTRY + self.text.len() as u64 } else { 0 })?;
        Ok(word)
    }

    fn end(&mut self, field: Field, end: End) -> Result<(), Defect> {
        self.wire.read_text(field, &mut self.text)?;
        let (value, new) = self.out.graph.value(&self.text);
        let name = if new { NAME_ENTRY + self.text.len() as u64 } else { 0 };
        self.wire.keep(2 * size_of::<Value>() as u64 + name)?;
        self.ends.push((end, value));
        Ok(())
    }
}

/// Adds to a counter and copies its name only once.
pub fn add(counts: &mut BTreeMap<String, u64>, name: &str, amount: u64) {
    match counts.get_mut(name) {
        Some(count) => *count = count.saturating_add(amount),
        None => {
            counts.insert(name.to_owned(), amount);
        }
    }
}
