//! Inputs and outputs: names, element types and shapes.

use std::io::{Read, Seek};
use std::mem::size_of;

use crate::facts::{Dim, TensorFacts};
use crate::intake::onnx::defect::Defect;
use crate::intake::onnx::dtype;
use crate::intake::onnx::proto::Walk;
use crate::intake::onnx::wire::Field;

impl<S: Read + Seek> Walk<'_, S> {
    pub fn value_info(&mut self, field: Field) -> Result<TensorFacts, Defect> {
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
