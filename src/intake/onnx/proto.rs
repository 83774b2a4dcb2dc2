//! The messages of `onnx.proto`, walked once: what the file says, without judgement.
//!
//! Field numbers are those of `onnx.proto`. Values of tensors are skipped. Unknown fields are skipped too,
//! as protobuf asks for, except that fields which describe structure are read for the digest.

use std::collections::BTreeMap;
use std::io::{Read, Seek};
use std::mem::size_of;

use crate::facts::{Attribute, Dim, Node, Opset, Tensor, TensorFacts, WeightFacts};
use crate::intake::onnx::dtype;
use crate::intake::onnx::wire::{Defect, Field, Wire};

/// The longest integer list and string attribute that are kept.
const SHORT_INTS: usize = 16;
const SHORT_TEXT: u64 = 64;
/// Integer tensors up to this size (shapes, axes, pads) are structure, not weights, so the digest covers them.
const SHAPE_BYTES: u64 = 128;
/// `AttributeProto.AttributeType.INT`.
const INT: i64 = 2;

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

/// An attribute of a node.
#[derive(Default)]
struct Parts {
    name: String,
    value: Option<Attribute>,
    ints: Vec<i64>,
    int_count: u64,
    other_count: u64,
    text_bytes: u64,
    tensors: Vec<Tensor>,
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
        self.wire.keep(size_of::<Node>() as u64)?;
        let mut node = Node { top, ..Node::default() };
        let mut constants = Vec::new();
        while let Some(field) = self.wire.next(message)? {
            match field.number {
                1 | 2 => {
                    self.wire.keep(size_of::<String>() as u64)?;
                    let name = self.wire.text(field)?;
                    if field.number == 1 { node.inputs.push(name) } else { node.outputs.push(name) }
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
                self.out.tensors.push(tensor);
            }
        }
        if top {
            self.out.nodes.push(node)
        } else {
            self.out.nested.push(node)
        }
        Ok(())
    }

    /// Sorts the parts of an attribute into the node, the weights and the values of a Constant.
    fn keep_attribute(
        &mut self,
        node: &mut Node,
        constants: &mut Vec<Tensor>,
        mut parts: Parts,
    ) -> Result<(), Defect> {
        // Lists of a Constant are one-dimensional tensors in disguise.
        let disguised = match parts.name.as_str() {
            "value_int" | "value_ints" => Some(("int64", parts.int_count, 8)),
            "value_float" | "value_floats" => Some(("float32", parts.other_count, 4)),
            "value_string" | "value_strings" => Some(("string", parts.other_count, 0)),
            _ => None,
        };
        if let Some((dtype, count, size)) = disguised {
            let bytes = count.saturating_mul(size).saturating_add(parts.text_bytes);
            let dims = if parts.name.ends_with('s') { vec![count] } else { Vec::new() };
            parts.tensors.push(Tensor { name: String::new(), dtype: dtype.into(), dims, bytes });
        }
        for tensor in &parts.tensors {
            add(&mut self.out.weights.bytes, &tensor.dtype, tensor.bytes);
            let total = &mut self.out.weights.constant_bytes;
            *total = total.saturating_add(tensor.bytes);
        }
        constants.append(&mut parts.tensors);
        let value = if parts.value.is_some() {
            parts.value
        } else if (1..=SHORT_INTS as u64).contains(&parts.int_count) {
            Some(Attribute::Ints(parts.ints))
        } else {
            None
        };
        if let Some(value) = value
            && parts.name.len() as u64 <= SHORT_TEXT
        {
            self.wire.keep(size_of::<(String, Attribute)>() as u64)?;
            node.attributes.insert(parts.name, value);
        }
        Ok(())
    }

    fn attribute(&mut self, field: Field) -> Result<Parts, Defect> {
        let message = self.wire.message(field, "AttributeProto")?;
        let mut parts = Parts::default();
        let mut kind = 0;
        while let Some(field) = self.wire.next(message)? {
            match field.number {
                1 => parts.name = self.wire.text(field)?,
                3 => {
                    parts.int_count += 1;
                    parts.value = Some(Attribute::Int(field.int()?));
                }
                4 => {
                    parts.other_count += 1;
                    parts.text_bytes += field.payload();
                    if field.payload() <= SHORT_TEXT {
                        parts.value = Some(Attribute::Text(self.wire.text(field)?));
                    } else {
                        self.wire.pass(field)?;
                    }
                }
                5 | 10 => {
                    let tensor = self.tensor(field)?;
                    parts.tensors.push(tensor);
                }
                6 | 11 => self.graph(field, false)?,
                8 => {
                    let Parts { ints, int_count, .. } = &mut parts;
                    self.wire.ints(field, |value| {
                        *int_count += 1;
                        if ints.len() < SHORT_INTS {
                            ints.push(value);
                        }
                    })?;
                }
                2 | 7 => {
                    parts.other_count += (field.payload() / 4).max(1);
                    self.wire.pass(field)?;
                }
                9 => {
                    parts.other_count += 1;
                    parts.text_bytes += field.payload();
                    self.wire.pass(field)?;
                }
                22 | 23 => {
                    let tensor = self.sparse(field)?;
                    parts.tensors.push(tensor);
                }
                13 => self.wire.skip(field)?,
                20 => kind = field.int()?,
                _ => self.wire.pass(field)?,
            }
        }
        // Writers of proto3 leave a zero out.
        if kind == INT && parts.int_count == 0 {
            parts.int_count = 1;
            parts.value = Some(Attribute::Int(0));
        }
        Ok(parts)
    }

    fn sparse(&mut self, field: Field) -> Result<Tensor, Defect> {
        let message = self.wire.message(field, "SparseTensorProto")?;
        let mut tensor = Tensor { dtype: "unknown".into(), ..Tensor::default() };
        let (mut index_bytes, mut dims) = (0, Vec::new());
        while let Some(field) = self.wire.next(message)? {
            match field.number {
                1 => tensor = self.tensor(field)?,
                2 => index_bytes = self.tensor(field)?.bytes,
                3 => self.dims(field, &mut dims)?,
                _ => self.wire.skip(field)?,
            }
        }
        tensor.dims = dims;
        tensor.bytes = tensor.bytes.saturating_add(index_bytes);
        Ok(tensor)
    }

    fn dims(&mut self, field: Field, dims: &mut Vec<u64>) -> Result<(), Defect> {
        // A packed list holds at most one size a byte.
        self.wire.keep(field.payload().max(1).saturating_mul(size_of::<u64>() as u64))?;
        self.wire.ints(field, |dim| dims.push(u64::try_from(dim).unwrap_or(0)))
    }

    fn tensor(&mut self, field: Field) -> Result<Tensor, Defect> {
        let message = self.wire.message(field, "TensorProto")?;
        self.wire.keep(size_of::<Tensor>() as u64)?;
        let mut tensor = Tensor::default();
        let mut number = 0;
        let mut external = false;
        let (mut stored, mut strings) = (None, 0_u64);
        let (mut location, mut start, mut length) = (String::new(), 0_u64, None);
        while let Some(field) = self.wire.next(message)? {
            match field.number {
                1 => self.dims(field, &mut tensor.dims)?,
                2 => number = field.int()?,
                8 => tensor.name = self.wire.text(field)?,
                // Floats and doubles have a fixed size, so the length of the list is that of the value.
                4 | 9 | 10 => {
                    stored = Some(stored.unwrap_or(0_u64).saturating_add(field.payload()));
                    let structure = matches!(number, dtype::INT32 | dtype::INT64)
                        && field.payload() <= SHAPE_BYTES;
                    if structure { self.wire.pass(field)? } else { self.wire.skip(field)? }
                }
                6 => {
                    strings = strings.saturating_add(field.payload());
                    self.wire.skip(field)?;
                }
                13 => {
                    let (key, value) = self.entry(field)?;
                    match key.as_str() {
                        "location" => location = value,
                        "offset" => start = value.trim().parse().unwrap_or(0),
                        "length" => length = value.trim().parse().ok(),
                        _ => {}
                    }
                }
                14 => external = field.int()? == 1,
                _ => self.wire.skip(field)?,
            }
        }
        let elements = tensor.dims.iter().fold(1_u64, |product, dim| product.saturating_mul(*dim));
        let computed = dtype::bytes(number, elements).saturating_add(strings);
        tensor.dtype = dtype::name(number).to_owned();
        if external {
            tensor.bytes = length.unwrap_or(computed);
            self.external(location, start, tensor.bytes)?;
        } else {
            // A list without a payload is not packed, one field for each element.
            tensor.bytes = stored.filter(|bytes| *bytes > 0).unwrap_or(computed);
        }
        Ok(tensor)
    }

    fn external(&mut self, location: String, start: u64, bytes: u64) -> Result<(), Defect> {
        let weights = &mut self.out.weights;
        weights.external_tensors += 1;
        weights.external_bytes = weights.external_bytes.saturating_add(bytes);
        let end = start.saturating_add(bytes);
        match self.out.external.get_mut(&location) {
            Some(known) => *known = end.max(*known),
            None => {
                self.wire.keep((size_of::<(String, u64)>() + location.len()) as u64)?;
                self.out.external.insert(location, end);
            }
        }
        Ok(())
    }

    fn entry(&mut self, field: Field) -> Result<(String, String), Defect> {
        let message = self.wire.message(field, "StringStringEntryProto")?;
        let (mut key, mut value) = (String::new(), String::new());
        while let Some(field) = self.wire.next(message)? {
            match field.number {
                1 => key = self.wire.text(field)?,
                2 => value = self.wire.text(field)?,
                _ => self.wire.skip(field)?,
            }
        }
        Ok((key, value))
    }

    fn value_info(&mut self, field: Field) -> Result<TensorFacts, Defect> {
        let message = self.wire.message(field, "ValueInfoProto")?;
        self.wire.keep(size_of::<TensorFacts>() as u64)?;
        let mut facts =
            TensorFacts { name: String::new(), dtype: "unknown".to_owned(), shape: None };
        while let Some(field) = self.wire.next(message)? {
            match field.number {
                1 => facts.name = self.wire.text(field)?,
                2 => self.value_type(field, &mut facts)?,
                _ => self.wire.skip(field)?,
            }
        }
        Ok(facts)
    }

    fn value_type(&mut self, field: Field, facts: &mut TensorFacts) -> Result<(), Defect> {
        let message = self.wire.message(field, "TypeProto")?;
        while let Some(field) = self.wire.next(message)? {
            let container = match field.number {
                1 | 8 => {
                    self.tensor_type(field, facts)?;
                    continue;
                }
                4 => "sequence",
                5 => "map",
                7 => "opaque",
                9 => "optional",
                _ => {
                    self.wire.pass(field)?;
                    continue;
                }
            };
            facts.dtype = container.to_owned();
            self.wire.pass(field)?;
        }
        Ok(())
    }

    fn tensor_type(&mut self, field: Field, facts: &mut TensorFacts) -> Result<(), Defect> {
        let message = self.wire.message(field, "TypeProto.Tensor")?;
        while let Some(field) = self.wire.next(message)? {
            match field.number {
                1 => facts.dtype = dtype::name(field.int()?).to_owned(),
                2 => {
                    let shape = self.wire.message(field, "TensorShapeProto")?;
                    let dims = facts.shape.get_or_insert_default();
                    while let Some(field) = self.wire.next(shape)? {
                        if field.number == 1 {
                            self.wire.keep(size_of::<Dim>() as u64)?;
                            dims.push(self.dim(field)?);
                        } else {
                            self.wire.skip(field)?;
                        }
                    }
                }
                _ => self.wire.skip(field)?,
            }
        }
        Ok(())
    }

    fn dim(&mut self, field: Field) -> Result<Dim, Defect> {
        let message = self.wire.message(field, "TensorShapeProto.Dimension")?;
        let mut dim = Dim::Unknown;
        while let Some(field) = self.wire.next(message)? {
            match field.number {
                1 => dim = Dim::Size(field.int()?),
                2 => {
                    let symbol = self.wire.text(field)?;
                    dim = if symbol.is_empty() { Dim::Unknown } else { Dim::Symbol(symbol) };
                }
                _ => self.wire.pass(field)?,
            }
        }
        Ok(dim)
    }
}

/// Adds to a counter and copies its name only once.
fn add(counts: &mut BTreeMap<String, u64>, name: &str, amount: u64) {
    match counts.get_mut(name) {
        Some(count) => *count = count.saturating_add(amount),
        None => {
            counts.insert(name.to_owned(), amount);
        }
    }
}
