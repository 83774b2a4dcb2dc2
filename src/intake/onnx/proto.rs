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

use crate::facts::{Node, Opset, Tensor, TensorFacts, WeightFacts};
use crate::intake::onnx::defect::Defect;
use crate::intake::onnx::kinds::{Kind, Kinds};
use crate::intake::onnx::wire::{Field, Wire};
use crate::intake::onnx::wiring::{Link, Wiring};

/// A node takes about so many bytes of a graph without weights, and room for so many is made ahead.
const NODE_BYTES: u64 = 64;
const MOST_RESERVED: u64 = 1 << 16;
/// What one name of a node takes beside its text: in the node, in the wiring, and in the table of names.
const VALUE_BYTES: u64 = size_of::<String>() as u64 + 4 + 2 * 16;

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
    /// Nodes of the top graph.
    pub nodes: Vec<Node>,
    /// Nodes of subgraphs and functions.
    pub nested: Vec<Node>,
    /// The kinds of the nodes.
    pub kinds: Kinds,
    /// Which node makes and takes which value.
    pub wiring: Wiring,
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
    let mut walk = Walk { wire, out: Contents::default(), depth: 0 };
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
            let nodes = (field.payload() / NODE_BYTES).min(MOST_RESERVED) as usize;
            self.out.nodes.reserve(nodes);
            self.out.wiring.reserve(nodes);
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
        self.out.wiring.add_tensor(&tensor.name, &tensor.dims);
        self.out.tensors.push(tensor);
    }

    fn node(&mut self, field: Field, top: bool) -> Result<(), Defect> {
        let message = self.wire.message(field, "NodeProto")?;
        self.wire.keep((size_of::<Node>() + size_of::<Link>()) as u64)?;
        let mut node = Node { top, ..Node::default() };
        let mut constants = Vec::new();
        while let Some(field) = self.wire.next(message)? {
            match field.number {
                1 | 2 => {
                    self.wire.keep(VALUE_BYTES)?;
                    let name = self.wire.text(field)?;
                    let names =
                        if field.number == 1 { &mut node.inputs } else { &mut node.outputs };
                    // Most nodes have one or two inputs and one output.
                    if names.capacity() == 0 {
                        names.reserve_exact(if field.number == 1 { 2 } else { 1 });
                    }
                    names.push(name);
                }
                3 => node.name = self.wire.text(field)?,
                4 => node.op_type = self.wire.text(field)?,
                5 => {
                    let parts = self.attribute(field)?;
                    self.keep_attribute(&mut node, &mut constants, parts)?;
                }
                7 => {
                    node.domain = self.wire.text(field)?;
                    if node.domain == "ai.onnx" {
                        node.domain.clear();
                    }
                }
                8 => self.wire.pass(field)?,
                _ => self.wire.skip(field)?,
            }
        }
        if node.op_type == "Constant" {
            for mut tensor in constants {
                tensor.name = node.outputs.first().cloned().unwrap_or_default();
                self.wire.keep((size_of::<Tensor>() + tensor.name.len()) as u64)?;
                self.out.wiring.add_tensor(&tensor.name, &tensor.dims);
                self.out.tensors.push(tensor);
            }
        }
        let (kind, new) = self.out.kinds.number(&node.domain, &node.op_type, top);
        if new {
            let names = node.domain.len() + node.op_type.len();
            self.wire.keep((size_of::<Kind>() + 3 * names) as u64)?;
        }
        self.out.wiring.add_node(&node, kind);
        let nodes = if top { &mut self.out.nodes } else { &mut self.out.nested };
        nodes.push(node);
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
