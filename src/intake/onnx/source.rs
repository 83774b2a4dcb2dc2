//! The bytes of a file, through a buffer, with a digest of those that were consumed.

use std::io::{self, BufRead, Read, Seek, SeekFrom};

use sha2::{Digest as _, Sha256};

/// Bytes that one refill reads: large enough for a dense graph, small enough that skipping a weight reads
/// little of it.
const BUFFER: usize = 8 * 1024;

/// A buffered reader that hashes what is consumed and nothing else.
pub struct Source<S> {
    inner: S,
    buffer: Box<[u8]>,
    /// Offset in the file of the buffer's first byte.
    base: u64,
    at: usize,
    filled: usize,
    /// How much of the buffer is hashed or skipped.
    hashed: usize,
    /// Bytes consumed in all.
    read: u64,
    hasher: Sha256,
}

impl<S: Read + Seek> Source<S> {
    /// Bytes consumed in all; skipped ones do not count.
    pub fn consumed(&self) -> u64 {
        self.read
    }

    /// Starts at the beginning of `inner`.
    pub fn new(inner: S) -> Self {
        Self {
            inner,
            buffer: vec![0; BUFFER].into_boxed_slice(),
            base: 0,
            at: 0,
            filled: 0,
            hashed: 0,
            read: 0,
            hasher: Sha256::new(),
        }
    }

    /// The offset of the next byte.
    pub fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    /// The next varint, when it has at most `most` bytes and they are in the buffer, and it is not one of the
    /// rare ones of ten bytes.
    pub fn buffered_varint(&mut self, most: u64) -> Option<u64> {
        let most = usize::try_from(most.min(9)).unwrap_or(9);
        // Nearly all of them have one byte.
        if most > 0
            && let Some(&byte) = self.buffer[..self.filled].get(self.at)
            && byte < 0x80
        {
            self.at += 1;
            self.read += 1;
            return Some(u64::from(byte));
        }
        let mut value = 0;
        for (place, byte) in self.buffer[self.at..self.filled].iter().take(most).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * place);
            if *byte < 0x80 {
                self.consume(place + 1);
                return Some(value);
            }
        }
        None
    }

    /// Adds the next `length` bytes to `out`; memory is taken as bytes arrive.
    pub fn take_bytes(&mut self, length: u64, out: &mut Vec<u8>) -> io::Result<()> {
        let mut left = length;
        while left > 0 {
            let chunk = self.fill_buf()?;
            if chunk.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let take = chunk.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            out.extend_from_slice(&chunk[..take]);
            self.consume(take);
            left -= take as u64;
        }
        Ok(())
    }

    /// Consumes `length` bytes unseen.
    pub fn pass(&mut self, length: u64) -> io::Result<()> {
        let mut left = length;
        while left > 0 {
            let available = self.fill_buf()?.len();
            if available == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let take = available.min(usize::try_from(left).unwrap_or(usize::MAX));
            self.consume(take);
            left -= take as u64;
        }
        Ok(())
    }

    /// Goes `length` bytes ahead without reading what is not in the buffer yet.
    pub fn skip(&mut self, length: u64) -> io::Result<()> {
        self.hash();
        let buffered = (self.filled - self.at) as u64;
        if length <= buffered {
            self.at += length as usize;
            self.hashed = self.at;
        } else {
            let target = self.offset() + length;
            self.inner.seek(SeekFrom::Start(target))?;
            self.base = target;
            (self.at, self.filled, self.hashed) = (0, 0, 0);
        }
        Ok(())
    }

    fn hash(&mut self) {
        self.hasher.update(&self.buffer[self.hashed..self.at]);
        self.hashed = self.at;
    }

    /// SHA-256 over everything that was consumed.
    pub fn digest(mut self) -> [u8; 32] {
        self.hash();
        self.hasher.finalize().into()
    }
}

impl<S: Read + Seek> Read for Source<S> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let chunk = self.fill_buf()?;
        let take = chunk.len().min(out.len());
        out[..take].copy_from_slice(&chunk[..take]);
        self.consume(take);
        Ok(take)
    }
}

impl<S: Read + Seek> BufRead for Source<S> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at == self.filled {
            self.hash();
            self.base += self.filled as u64;
            (self.at, self.filled, self.hashed) = (0, 0, 0);
            self.filled = loop {
                match self.inner.read(&mut self.buffer) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    result => break result?,
                }
            };
        }
        Ok(&self.buffer[self.at..self.filled])
    }

    fn consume(&mut self, amount: usize) {
        self.at = self.filled.min(self.at + amount);
        self.read += amount as u64;
    }
}
