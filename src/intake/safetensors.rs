//! Reads the headers of safetensors files: names, shapes, types and places of tensors, never a weight.
//!
//! A file is eight bytes with the length of the header (little-endian), the header (JSON), then the data. The
//! `safetensors` crate validates as well, but it stops at the first fault without naming the tensor, and
//! drops repeated names; here every fault is a [`Defect`] that says which tensor and where.

pub mod dtype;
pub mod problem;
pub mod shards;

mod header;

use std::collections::HashSet;
use std::io::{self, Read};

use sha2::{Digest as _, Sha256};
use thiserror::Error;

use crate::intake::escape;
use crate::intake::safetensors::dtype::Dtype;

/// How much of the files the reader is willing to take in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one header or index; the library of the format refuses more as well.
    pub header: u64,
    /// Bytes of all headers together.
    pub work: u64,
    /// Files of one model.
    pub files: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { header: 100_000_000, work: 512 << 20, files: 10_000 }
    }
}

/// One tensor, as a header states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    /// Name; text from the file.
    pub name: String,
    /// Element type.
    pub dtype: &'static Dtype,
    /// Sizes of the dimensions, at most 32.
    pub shape: Vec<u64>,
    /// First byte, from the start of the data.
    pub begin: u64,
    /// The byte after the last.
    pub end: u64,
}

impl Tensor {
    /// Bytes of its data; 0 when the header is nonsense.
    pub fn bytes(&self) -> u64 {
        self.end.saturating_sub(self.begin)
    }

    /// Number of elements; at most `u64::MAX`.
    pub fn elements(&self) -> u64 {
        self.shape.iter().fold(1_u64, |product, size| product.saturating_mul(*size))
    }
}

/// What a header says, and what is wrong with it.
#[derive(Debug, Default)]
pub struct Header {
    /// The tensors, in the order of the header.
    pub tensors: Vec<Tensor>,
    /// Faults that leave the tensors readable.
    pub defects: Vec<Defect>,
    /// Bytes of the header.
    pub length: u64,
}

/// What is wrong with a safetensors file or its index.
#[derive(Debug, Error)]
pub enum Defect {
    /// Not even room for the length.
    #[error("the file has {length} bytes, too few for a header")]
    TooShort {
        /// Bytes of the file.
        length: u64,
    },
    /// A header that does not fit into the file.
    #[error("the header ends at byte {end}, the file at {length}")]
    HeaderPastEnd {
        /// Where the header says it ends.
        end: u64,
        /// Bytes of the file.
        length: u64,
    },
    /// A header beyond the limits.
    #[error("the header has {header} bytes, over {limit}")]
    TooLarge {
        /// Its length.
        header: u64,
        /// The limit.
        limit: u64,
    },
    /// Headers beyond the limits, taken together.
    #[error("the headers of all files have more than {limit} bytes")]
    TooMuchWork {
        /// The limit.
        limit: u64,
    },
    /// Not JSON, or not UTF-8.
    #[error("the header is not JSON at byte {offset}")]
    NotJson {
        /// Where, in the file.
        offset: u64,
    },
    /// JSON of another shape.
    #[error("the header is not a table of tensors at byte {offset}")]
    NotATable {
        /// Where, in the file.
        offset: u64,
    },
    /// Data that end before the last tensor does.
    #[error("the tensors end at byte {end}, the file at {length}: it is cut off")]
    CutOff {
        /// Where the last tensor ends, in the file.
        end: u64,
        /// Bytes of the file.
        length: u64,
    },
    /// More data than tensors.
    #[error("the tensors end at byte {end}, the file at {length}")]
    Trailing {
        /// Where the last tensor ends, in the file.
        end: u64,
        /// Bytes of the file.
        length: u64,
    },
    /// An end before the begin.
    #[error("tensor `{}` begins at {begin} and ends at {end}", escape(tensor))]
    Backwards {
        /// The tensor.
        tensor: String,
        /// Where it begins.
        begin: u64,
        /// Where it ends.
        end: u64,
    },
    /// A shape and a place that do not agree.
    #[error("tensor `{}` has {found} bytes, its shape and type need {needed}", escape(tensor))]
    Length {
        /// The tensor.
        tensor: String,
        /// What its place has.
        found: u64,
        /// What its shape needs.
        needed: u64,
    },
    /// An element type that the format does not know.
    #[error("tensor `{}` has an element type that is not known", escape(tensor))]
    UnknownType {
        /// The tensor.
        tensor: String,
    },
    /// Two tensors in one place.
    #[error("tensors `{}` and `{}` overlap", escape(first), escape(second))]
    Overlap {
        /// The one that begins first.
        first: String,
        /// The other.
        second: String,
    },
    /// Bytes that belong to no tensor.
    #[error("{bytes} bytes before tensor `{}` belong to no tensor", escape(tensor))]
    Hole {
        /// The tensor after the hole.
        tensor: String,
        /// Its size.
        bytes: u64,
    },
    /// One name twice.
    #[error("tensor `{}` is there twice", escape(tensor))]
    Twice {
        /// The tensor.
        tensor: String,
    },
    /// The file could not be read.
    #[error("reading stopped")]
    Io(#[from] io::Error),
}

impl Defect {
    /// Whether it is a limit of this reader rather than a fault of the file.
    pub fn is_limit(&self) -> bool {
        matches!(self, Self::TooLarge { .. } | Self::TooMuchWork { .. })
    }
}

/// Reads headers one after the other, within limits that hold for all of them.
#[derive(Debug)]
pub struct Reader {
    limits: Limits,
    work: u64,
    digest: Sha256,
    buffer: Vec<u8>,
}

impl Reader {
    /// A reader that has read nothing.
    pub fn new(limits: Limits) -> Self {
        Self { limits, work: 0, digest: Sha256::new(), buffer: Vec::new() }
    }

    /// The limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Adds what is not in a header to the digest.
    pub fn also_digest(&mut self, name: &str, bytes: &[u8]) {
        for part in [name.as_bytes(), bytes] {
            self.digest.update((part.len() as u64).to_le_bytes());
            self.digest.update(part);
        }
    }

    /// SHA-256 over everything read, as `sha256:<hex>`.
    pub fn finish(self) -> String {
        let mut text = String::from("sha256:");
        for byte in self.digest.finalize() {
            text.push_str(&format!("{byte:02x}"));
        }
        text
    }

    /// Reads the header of a file of `length` bytes.
    pub fn read(&mut self, mut source: impl Read, length: u64) -> Result<Header, Defect> {
        let mut start = [0; 8];
        if length < 8 {
            return Err(Defect::TooShort { length });
        }
        source.read_exact(&mut start)?;
        let size = u64::from_le_bytes(start);
        let end = size.saturating_add(8);
        if end > length {
            return Err(Defect::HeaderPastEnd { end, length });
        }
        if size > self.limits.header {
            return Err(Defect::TooLarge { header: size, limit: self.limits.header });
        }
        self.work = self.work.saturating_add(size);
        if self.work > self.limits.work {
            return Err(Defect::TooMuchWork { limit: self.limits.work });
        }
        self.buffer.clear();
        source.take(size).read_to_end(&mut self.buffer)?;
        if (self.buffer.len() as u64) < size {
            // The file shrank after its length was asked for.
            return Err(Defect::HeaderPastEnd { end, length: self.buffer.len() as u64 + 8 });
        }
        self.digest.update(start);
        self.digest.update(&self.buffer);
        let tensors = header::parse(&self.buffer)?;
        let defects = check(&tensors, end, length);
        Ok(Header { tensors, defects, length: size })
    }
}

/// Everything that is wrong with the places of the tensors, in the order of the data.
fn check(tensors: &[Tensor], start: u64, length: u64) -> Vec<Defect> {
    let mut defects = Vec::new();
    let mut names = HashSet::with_capacity(tensors.len());
    for tensor in tensors {
        let name = || tensor.name.clone();
        if !names.insert(tensor.name.as_str()) {
            defects.push(Defect::Twice { tensor: name() });
        }
        if tensor.end < tensor.begin {
            defects.push(Defect::Backwards {
                tensor: name(),
                begin: tensor.begin,
                end: tensor.end,
            });
            continue;
        }
        if tensor.dtype.bits == 0 {
            defects.push(Defect::UnknownType { tensor: name() });
            continue;
        }
        let needed = tensor.elements().saturating_mul(tensor.dtype.bits).div_ceil(8);
        if needed != tensor.bytes() {
            defects.push(Defect::Length { tensor: name(), found: tensor.bytes(), needed });
        }
    }
    let mut placed: Vec<&Tensor> = tensors.iter().filter(|tensor| tensor.bytes() > 0).collect();
    placed.sort_by_key(|tensor| (tensor.begin, tensor.end));
    let mut last: Option<&Tensor> = None;
    for tensor in placed {
        let reached = last.map_or(0, |last| last.end);
        match last {
            Some(last) if tensor.begin < reached => defects
                .push(Defect::Overlap { first: last.name.clone(), second: tensor.name.clone() }),
            _ if tensor.begin > reached => defects
                .push(Defect::Hole { tensor: tensor.name.clone(), bytes: tensor.begin - reached }),
            _ => {}
        }
        if tensor.end >= reached {
            last = Some(tensor);
        }
    }
    let end = start.saturating_add(last.map_or(0, |last| last.end));
    if end > length {
        defects.push(Defect::CutOff { end, length });
    } else if end < length {
        defects.push(Defect::Trailing { end, length });
    }
    defects
}
