//! The bounded reader of the protobuf wire format: every declared length is checked before it is used.
//!
//! A payload that is not wanted is skipped by seeking, so the work grows with what is read and not with the
//! size of the file. The same reader makes the structural digest, because it alone knows which bytes were
//! read: see [`Wire::digest`].

use std::io::{self, Read, Seek};

use rten_onnx::protobuf::varint::{MAX_VARINT_LEN, VarintError, read_varint};

use crate::intake::onnx::defect::Defect;
use crate::intake::onnx::source::Source;

/// How much of a file the reader is willing to take in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Graphs inside graphs.
    pub depth: u32,
    /// Bytes of one name or other text.
    pub text: u64,
    /// Bytes read in all; skipped payloads do not count.
    pub work: u64,
    /// Bytes kept in memory, roughly.
    pub memory: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { depth: 64, text: 64 << 10, work: 512 << 20, memory: 1 << 30 }
    }
}

/// A message that is being read.
#[derive(Debug, Clone, Copy)]
pub struct Message {
    name: &'static str,
    end: u64,
    holder: &'static str,
}

/// A field whose tag was read. A field with a length must then be read or skipped.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Its number.
    pub number: u64,
    message: &'static str,
    offset: u64,
    value: Value,
}

#[derive(Debug, Clone, Copy)]
enum Value {
    Varint(u64),
    Fixed64,
    Fixed32,
    Length(u64),
}

impl Field {
    /// The bytes of its payload; none when its value is a number.
    pub fn payload(&self) -> u64 {
        match self.value {
            Value::Length(length) => length,
            Value::Varint(_) | Value::Fixed64 | Value::Fixed32 => 0,
        }
    }

    /// Its value as a signed integer.
    pub fn int(&self) -> Result<i64, Defect> {
        match self.value {
            Value::Varint(value) => Ok(value.cast_signed()),
            _ => Err(self.kind("an integer")),
        }
    }

    fn length(&self, wanted: &'static str) -> Result<u64, Defect> {
        match self.value {
            Value::Length(length) => Ok(length),
            _ => Err(self.kind(wanted)),
        }
    }

    fn kind(&self, wanted: &'static str) -> Defect {
        let found = match self.value {
            Value::Varint(_) => "an integer",
            Value::Fixed64 => "a 64-bit number",
            Value::Fixed32 => "a 32-bit number",
            Value::Length(_) => "bytes",
        };
        Defect::Kind {
            message: self.message,
            field: self.number,
            offset: self.offset,
            found,
            wanted,
        }
    }
}

/// Reads fields from a file of known length.
pub struct Wire<S> {
    source: Source<S>,
    length: u64,
    memory: u64,
    limits: Limits,
}

impl<S: Read + Seek> Wire<S> {
    /// Starts at the beginning of `source`, which is `length` bytes long.
    pub fn new(source: S, length: u64, limits: Limits) -> Self {
        Self { source: Source::new(source), length, memory: 0, limits }
    }

    /// The limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The offset of the next byte.
    pub fn offset(&self) -> u64 {
        self.source.offset()
    }

    /// The file as one message.
    pub fn whole(&self, name: &'static str) -> Message {
        Message { name, end: self.length, holder: "the file" }
    }

    /// The next field of `message`, or `None` at its end.
    pub fn next(&mut self, message: Message) -> Result<Option<Field>, Defect> {
        let start = self.offset();
        if start >= message.end {
            return Ok(None);
        }
        if self.source.consumed() > self.limits.work {
            return Err(Defect::TooMuchWork { limit: self.limits.work, offset: start });
        }
        let tag = self.varint(message)?;
        let number = tag >> 3;
        let offset = self.offset();
        let value = match tag & 7 {
            0 => Value::Varint(self.varint(message)?),
            1 => Value::Fixed64,
            2 => Value::Length(self.varint(message)?),
            5 => Value::Fixed32,
            _ => return Err(Defect::Tag { message: message.name, tag, offset: start }),
        };
        if number == 0 {
            return Err(Defect::Tag { message: message.name, tag, offset: start });
        }
        let size = match value {
            Value::Varint(_) => 0,
            Value::Fixed64 => 8,
            Value::Fixed32 => 4,
            Value::Length(length) => length,
        };
        let end = self.offset().saturating_add(size);
        if end > message.end {
            return Err(Defect::PastEnd {
                message: message.name,
                field: number,
                end,
                holder: message.holder,
                limit: message.end,
            });
        }
        if matches!(value, Value::Fixed64 | Value::Fixed32) {
            self.source.pass(size).map_err(|cause| self.io(cause))?;
        }
        Ok(Some(Field { number, message: message.name, offset, value }))
    }

    /// The message in `field`.
    pub fn message(&mut self, field: Field, name: &'static str) -> Result<Message, Defect> {
        let length = field.length("a message")?;
        Ok(Message { name, end: self.offset() + length, holder: "the message" })
    }

    /// The text in `field`, which the caller is going to keep; bytes that are not UTF-8 are replaced.
    pub fn text(&mut self, field: Field) -> Result<String, Defect> {
        let mut text = String::new();
        self.read_text(field, &mut text)?;
        self.keep(text.len() as u64)?;
        Ok(text)
    }

    /// Reads the text in `field` into `text`, in place of what was there.
    pub fn read_text(&mut self, field: Field, text: &mut String) -> Result<(), Defect> {
        let length = field.length("a text")?;
        if length > self.limits.text {
            return Err(Defect::TooLong {
                message: field.message,
                field: field.number,
                offset: field.offset,
                length,
                limit: self.limits.text,
            });
        }
        let mut bytes = std::mem::take(text).into_bytes();
        bytes.clear();
        self.source.take_bytes(length, &mut bytes).map_err(|cause| self.io(cause))?;
        *text = String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        Ok(())
    }

    /// Calls `each` for every integer in `field`, packed or not.
    pub fn ints(&mut self, field: Field, mut each: impl FnMut(i64)) -> Result<(), Defect> {
        let Value::Length(_) = field.value else {
            each(field.int()?);
            return Ok(());
        };
        let packed = self.message(field, field.message)?;
        while self.offset() < packed.end {
            each(self.varint(packed)?.cast_signed());
        }
        Ok(())
    }

    /// Leaves the payload of `field` out: it is not read, and only its length enters the digest.
    pub fn skip(&mut self, field: Field) -> Result<(), Defect> {
        self.source.skip(field.payload()).map_err(|cause| self.io(cause))
    }

    /// Reads the payload of `field` for the digest only.
    pub fn pass(&mut self, field: Field) -> Result<(), Defect> {
        let length = field.payload();
        if self.source.consumed().saturating_add(length) > self.limits.work {
            return Err(Defect::TooMuchWork { limit: self.limits.work, offset: field.offset });
        }
        self.source.pass(length).map_err(|cause| self.io(cause))
    }

    /// Counts `bytes` that the caller is going to keep.
    pub fn keep(&mut self, bytes: u64) -> Result<(), Defect> {
        self.memory = self.memory.saturating_add(bytes);
        if self.memory > self.limits.memory {
            return Err(Defect::TooMuchMemory { limit: self.limits.memory, offset: self.offset() });
        }
        Ok(())
    }

    /// SHA-256 over the file without the payloads that were skipped, in hex.
    ///
    /// The length of a skipped payload stands in front of it and was read, so it counts.
    pub fn digest(self) -> String {
        self.source.digest().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn varint(&mut self, message: Message) -> Result<u64, Defect> {
        let offset = self.offset();
        // `read_varint` never returns when eleven bytes in a row have the high bit set, so it is shown ten.
        let window = message.end.saturating_sub(offset).min(MAX_VARINT_LEN as u64);
        if let Some(value) = self.source.buffered_varint(window) {
            return Ok(value);
        }
        read_varint((&mut self.source).take(window)).map_err(|error| match error {
            VarintError::IoError(cause) => Defect::Io { offset, cause },
            VarintError::Eof | VarintError::InvalidVarint => {
                Defect::Varint { message: message.name, offset }
            }
        })
    }

    fn io(&self, cause: io::Error) -> Defect {
        Defect::Io { offset: self.offset(), cause }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn wire(bytes: &[u8]) -> Wire<Cursor<Vec<u8>>> {
        Wire::new(Cursor::new(bytes.to_vec()), bytes.len() as u64, Limits::default())
    }

    fn first_error(bytes: &[u8]) -> String {
        let mut wire = wire(bytes);
        let message = wire.whole("M");
        loop {
            match wire.next(message) {
                Ok(Some(field)) => wire.skip(field).unwrap(),
                Ok(None) => return String::new(),
                Err(defect) => return defect.to_string(),
            }
        }
    }

    #[test]
    fn broken_bytes_are_named_with_their_place() {
        let check = |bytes: &[u8], expected: &str| assert_eq!(first_error(bytes), expected);
        check(&[], "");
        check(&[0x08, 0x01], "");
        check(&[0x3a, 0x05, 1], "field 7 of `M` ends at byte 7, the file at 3");
        check(
            &[0x3a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
            "field 7 of `M` ends at byte 18446744073709551615, the file at 11",
        );
        check(&[0x0d, 0, 0, 0], "field 1 of `M` ends at byte 5, the file at 4");
        check(&[0x08], "`M` has a broken varint at byte 1");
        check(&[0xff; 64], "`M` has a broken varint at byte 0");
        check(&[0x00, 0x01], "`M` has a broken tag 0 at byte 0");
        check(&[0x0b], "`M` has a broken tag 11 at byte 0");
    }

    #[test]
    fn digest_ignores_skipped_bytes_but_not_their_number() {
        let digest = |bytes: &[u8]| {
            let mut wire = wire(bytes);
            let message = wire.whole("M");
            while let Some(field) = wire.next(message).unwrap() {
                if field.number == 9 {
                    wire.skip(field).unwrap()
                } else {
                    wire.pass(field).unwrap()
                }
            }
            wire.digest()
        };
        let base = digest(&[0x4a, 2, 1, 2, 0x12, 1, 7]);
        assert_eq!(base, digest(&[0x4a, 2, 3, 4, 0x12, 1, 7]));
        assert_ne!(base, digest(&[0x4a, 1, 1, 0x12, 1, 7]));
        assert_ne!(base, digest(&[0x4a, 2, 1, 2, 0x12, 1, 8]));
    }

    #[test]
    fn skipping_past_the_buffer_lands_on_the_right_byte() {
        let mut bytes = vec![0x4a];
        bytes.extend([0xa0, 0x8d, 0x06]);
        bytes.extend(vec![0u8; 100_000]);
        bytes.extend([0x10, 0x2a]);
        let mut wire = wire(&bytes);
        let message = wire.whole("M");
        let weights = wire.next(message).unwrap().unwrap();
        wire.skip(weights).unwrap();
        assert_eq!(wire.next(message).unwrap().unwrap().int().unwrap(), 42);
        assert!(wire.next(message).unwrap().is_none());
    }
}
