//! Attributes of nodes: the short ones are kept, subgraphs are walked, values of a Constant are weights.

use std::io::{Read, Seek};
use std::mem::size_of;

use crate::facts::graph::{Attribute, Attributes, Tensor};
use crate::intake::onnx::defect::Defect;
use crate::intake::onnx::proto::{Walk, add};
use crate::intake::onnx::wire::Field;

/// The longest integer list and string attribute that are kept.
const SHORT_INTS: usize = 16;
const SHORT_TEXT: u64 = 64;
/// `AttributeProto.AttributeType.INT`.
const INT: i64 = 2;

/// An attribute of a node.
#[derive(Default)]
pub struct Parts {
    name: String,
    value: Option<Attribute>,
    ints: Vec<i64>,
    int_count: u64,
    other_count: u64,
    text_bytes: u64,
    tensors: Vec<Tensor>,
}

impl<S: Read + Seek> Walk<'_, S> {
    /// Sorts the parts of an attribute into those of the node, the weights and the values of a Constant.
    pub fn keep_attribute(
        &mut self,
        attributes: &mut Attributes,
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
            attributes.insert(parts.name, value);
        }
        Ok(())
    }

    pub fn attribute(&mut self, field: Field) -> Result<Parts, Defect> {
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
}
