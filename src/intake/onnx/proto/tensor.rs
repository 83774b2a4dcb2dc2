//! Headers of tensors, dense and sparse; their values are skipped.

use std::io::{Read, Seek};
use std::mem::size_of;

use crate::facts::graph::Tensor;
use crate::intake::onnx::defect::Defect;
use crate::intake::onnx::dtype;
use crate::intake::onnx::proto::Walk;
use crate::intake::onnx::wire::Field;

/// Integer tensors up to this size (shapes, axes, pads) are structure, not weights, so the digest covers them.
const SHAPE_BYTES: u64 = 128;

impl<S: Read + Seek> Walk<'_, S> {
    pub fn sparse(&mut self, field: Field) -> Result<Tensor, Defect> {
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

    pub fn tensor(&mut self, field: Field) -> Result<Tensor, Defect> {
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
}
