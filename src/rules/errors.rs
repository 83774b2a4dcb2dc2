//! Recognises error texts and tells which half of Quark raised them.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use crate::{
    catalogue::{Catalogue, raised::Raised, recoveries::Recovery},
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

/// The messages of the file that raises what a text says, when one of the libraries does; the longest decides.
pub fn raised(catalogue: Catalogue, text: &str) -> Option<&'static Raised> {
    raised_in(catalogue, &Text::of(text))
}

fn raised_in(catalogue: Catalogue, text: &Text) -> Option<&'static Raised> {
    let longest = |raised: &'static Raised| {
        let said = raised.texts.iter().filter(|part| text.messages.contains(part.as_str()));
        Some((said.map(String::len).max()?, raised))
    };
    let found = catalogue.raised().iter().filter_map(longest);
    found.max_by_key(|(length, _)| *length).map(|(_, raised)| raised)
}

/// The half of Quark whose frames, messages or libraries a text names; in doubt the outermost.
///
/// Quark-ONNX uses torch, and Quark-Torch exports to ONNX, so Quark's own frames decide before libraries do.
pub fn backend_of(catalogue: Catalogue, text: &str) -> Option<Backend> {
    let text = Text::of(text);
    surely(catalogue, &text).or_else(|| {
        first_named(
            &text.whole,
            &[
                "site-packages/onnx",
                ".onnx",
                "onnx.",
                "onnx ",
                "quantizelinear",
                "initializer",
                "calibrationdatareader",
                "data reader",
                "xclbin",
                "xrt::",
                "graph input",
                "custom ops library",
            ],
            &[
                "site-packages/torch",
                "torch.",
                "torch ",
                "llm_ptq",
                "accelerate/",
                "nccl",
                "self_attn",
                "lm_head",
                "qkv_proj",
                "hip error",
                "flash_attn",
                "flash-attn",
                "state_dict",
                "tensor parallel",
                "trust_remote_code",
                "tokenizer",
                "decoderlayer",
                "bitsandbytes",
                "compressed-tensors",
                "deepspeed",
                "desc_act",
                "aiter",
            ],
        )
    })
}

/// The same, without what either half may say.
pub fn sure_backend_of(catalogue: Catalogue, text: &str) -> Option<Backend> {
    surely(catalogue, &Text::of(text))
}

fn surely(catalogue: Catalogue, text: &Text) -> Option<Backend> {
    first_named(
        &text.whole,
        &["quark/onnx", "quark.onnx", "com.amd.quark"],
        &["quark/torch", "quark.torch", "quantize_quark", "torch_llm_ptq", "torch-llm-ptq"],
    )
    .or_else(|| raised_in(catalogue, text).map(|raised| raised.backend))
    .or_else(|| {
        first_named(
            &text.whole,
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
