//! The JSON of a header, straight into tensors: no tree in between, no dimension list of any length.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;

use crate::intake::safetensors::{Defect, Tensor, dtype};

/// More dimensions than any framework has.
const DIMENSIONS: usize = 32;
/// Bytes of a tensor's name; longer ones are no names.
const NAME: usize = 4096;

/// The tensors of a header.
pub fn parse(header: &[u8]) -> Result<Vec<Tensor>, Defect> {
    serde_json::from_slice::<Tensors>(header).map(|tensors| tensors.0).map_err(|error| {
        // What serde says of the error may quote the file; where it is does not.
        let offset = offset(header, error.line(), error.column());
        match error.classify() {
            Category::Data => Defect::NotATable { offset },
            Category::Syntax | Category::Eof | Category::Io => Defect::NotJson { offset },
        }
    })
}

/// The place in the file of a line and a column of the header.
fn offset(header: &[u8], line: usize, column: usize) -> u64 {
    let breaks = header.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    let line_start =
        line.checked_sub(2).and_then(|nth| breaks.map(|(at, _)| at + 1).nth(nth)).unwrap_or(0);
    (8 + line_start + column.saturating_sub(1)) as u64
}

struct Tensors(Vec<Tensor>);

impl<'de> Deserialize<'de> for Tensors {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(TensorsVisitor)
    }
}

struct TensorsVisitor;

impl<'de> Visitor<'de> for TensorsVisitor {
    type Value = Tensors;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tensors, A::Error> {
        let mut tensors = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            if name == "__metadata__" {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            if name.len() > NAME {
                return Err(A::Error::custom("name too long"));
            }
            let entry: Entry<'_> = map.next_value()?;
            let (begin, end) = entry.data_offsets;
            let dtype = dtype::by_code(&entry.dtype);
            tensors.push(Tensor { name, dtype, shape: entry.shape.0, begin, end });
        }
        Ok(Tensors(tensors))
    }
}

#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(borrow)]
    dtype: Cow<'a, str>,
    shape: Shape,
    data_offsets: (u64, u64),
}

struct Shape(Vec<u64>);

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ShapeVisitor)
    }
}

struct ShapeVisitor;

impl<'de> Visitor<'de> for ShapeVisitor {
    type Value = Shape;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of sizes")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sizes: A) -> Result<Shape, A::Error> {
        let mut shape = Vec::with_capacity(4);
        while let Some(size) = sizes.next_element()? {
            if shape.len() == DIMENSIONS {
                return Err(A::Error::custom("too many dimensions"));
            }
            shape.push(size);
        }
        Ok(Shape(shape))
    }
}
