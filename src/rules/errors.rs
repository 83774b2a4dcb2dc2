//! Recognises error texts and tells which half of Quark raised them.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use crate::{
    catalogue::{Catalogue, recoveries::Recovery},
    vocab::Backend,
};

/// The known error that a text is, when it is one; see [`crate::catalogue::recoveries`] for the matching.
///
/// Errors of the other half of Quark are left out when the half is known.
pub fn recognise(
    catalogue: Catalogue,
    text: &str,
    backend: Option<Backend>,
) -> Option<&'static Recovery> {
    let text = Text::of(text);
    catalogue
        .recoveries()
        .all()
        .iter()
        .filter(|entry| entry.backend.is_none() || backend.is_none_or(|b| entry.backend == Some(b)))
        .filter_map(|entry| {
            let length = entry.patterns.iter().filter_map(|group| text.length_of(group)).max()?;
            Some((entry, (!entry.logged, length)))
        })
        // The first of the best: the data's order decides.
        .rev()
        .max_by_key(|(_, rank)| *rank)
        .map(|(entry, _)| entry)
}

/// The half of Quark whose frames or libraries a text names; in doubt the outermost.
///
/// Quark-ONNX uses torch, and Quark-Torch exports to ONNX, so Quark's own frames decide before libraries do.
pub fn backend_of(text: &str) -> Option<Backend> {
    let whole = Text::of(text).whole;
    surely(&whole).or_else(|| {
        first_named(
            &whole,
            &["site-packages/onnx", ".onnx", "onnx.", "quantizelinear", "onnx opset"],
            &["site-packages/torch", "torch.", "llm_ptq", "accelerate/", "nccl"],
        )
    })
}

/// The same, without what either half may say.
pub fn sure_backend_of(text: &str) -> Option<Backend> {
    surely(&Text::of(text).whole)
}

fn surely(text: &str) -> Option<Backend> {
    first_named(
        text,
        &["quark/onnx", "quark.onnx", "com.amd.quark"],
        &["quark/torch", "quark.torch", "quantize_quark", "torch_llm_ptq", "torch-llm-ptq"],
    )
    .or_else(|| {
        first_named(
            text,
            &["onnxruntime", "quantize_static", "executionprovider", "onnx_cpp2py", "vitis"],
            &["transformers", "safetensors", "huggingface", "vllm", "sglang"],
        )
    })
}

fn first_named(text: &str, onnx: &[&str], torch: &[&str]) -> Option<Backend> {
    let first = |names: &[&str]| names.iter().filter_map(|name| text.find(name)).min();
    match (first(onnx), first(torch)) {
        (Some(onnx), Some(torch)) if onnx > torch => Some(Backend::Torch),
        (Some(_), _) => Some(Backend::Onnx),
        (None, Some(_)) => Some(Backend::Torch),
        (None, None) => None,
    }
}

/// An error text as patterns see it.
struct Text {
    whole: String,
    /// Without the frames of tracebacks.
    messages: String,
}

impl Text {
    fn of(text: &str) -> Self {
        let mut messages = String::new();
        let mut in_frame = false;
        for line in text.lines() {
            let trimmed = line.trim_start();
            let deep = line.len() - trimmed.len() >= 4;
            if trimmed.starts_with("File \"") {
                in_frame = true;
            } else if !(in_frame && deep) {
                in_frame = false;
                messages.push_str(line);
                messages.push('\n');
            }
        }
        Self { whole: folded(text), messages: folded(&messages) }
    }

    /// The number of letters that a group matches; `None` when it does not match.
    fn length_of(&self, group: &[String]) -> Option<usize> {
        let all = group.iter().all(|part| self.whole.contains(part.as_str()));
        let said = group.iter().any(|part| self.messages.contains(part.as_str()));
        (all && said).then(|| group.iter().map(String::len).sum())
    }
}

fn folded(text: &str) -> String {
    let text = text.replace('\\', "/").replace(['’', '‘'], "'").to_lowercase();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
