//! What a file that is no ONNX model looks like, by its first bytes.

/// A Git LFS pointer in place of the file it points to.
pub const LFS_POINTER: &str = "a Git LFS pointer";
/// Text that starts like a JSON object or list.
pub const JSON: &str = "JSON";

/// Names the format of a file by its first bytes, with its article; `None` when they say nothing.
pub fn looks_like(head: &[u8]) -> Option<&'static str> {
    const MAGIC: [(&[u8], &str); 15] = [
        (b"\x89PNG\r\n\x1a\n", "a PNG image"),
        (b"\xff\xd8\xff", "a JPEG image"),
        (b"GIF8", "a GIF image"),
        (b"PK\x03\x04", "a ZIP archive (PyTorch checkpoints are such archives)"),
        (b"GGUF", "a GGUF model"),
        (b"\x1f\x8b", "a gzip archive"),
        (b"\x89HDF\r\n\x1a\n", "an HDF5 file (Keras models are such files)"),
        (b"%PDF", "a PDF document"),
        (b"\x7fELF", "an ELF binary"),
        (b"MZ", "a Windows binary"),
        (b"\x80\x02", "a Python pickle"),
        (b"\x80\x03", "a Python pickle"),
        (b"\x80\x04", "a Python pickle"),
        (b"\x93NUMPY", "a NumPy array"),
        (b"version https://git-lfs", LFS_POINTER),
    ];
    if let Some((_, name)) = MAGIC.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Some(name);
    }
    if head.get(4..8) == Some(b"TFL3") {
        return Some("a TensorFlow Lite model");
    }
    if head.get(4..8) == Some(b"ORTM") {
        return Some("an ONNX Runtime model (`.ort`)");
    }
    // The length of the header, under 4 GiB, then the header.
    if head.get(4..8) == Some(&[0; 4]) && head.get(8..10) == Some(b"{\"") {
        return Some("a safetensors file");
    }
    // A character may be cut off at the end of the head.
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return None,
    };
    if text.is_empty() || text.chars().any(|c| c.is_control() && !c.is_whitespace()) {
        return None;
    }
    match text.trim_start().chars().next() {
        Some('{' | '[') => Some(JSON),
        Some('<') => Some("HTML or XML"),
        _ => Some("plain text"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_formats_are_recognized_by_their_first_bytes() {
        let check = |head: &[u8], expected: Option<&str>| assert_eq!(looks_like(head), expected);
        check(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", Some("a PNG image"));
        check(b"GGUF\x03\0\0\0", Some("a GGUF model"));
        check(b"\x48\0\0\0\0\0\0\0{\"a\":1}", Some("a safetensors file"));
        check(b"{\"model_type\": \"llama\"}", Some("JSON"));
        check(b"<!DOCTYPE html>", Some("HTML or XML"));
        check("hello, wörld".as_bytes(), Some("plain text"));
        check(b"version https://git-lfs.github.com/spec/v1\n", Some(LFS_POINTER));
        check(b"\x08\x08\x12\x07pytorch", None);
        check(b"\xfe\xff\x00", None);
        check(b"", None);
    }
}
