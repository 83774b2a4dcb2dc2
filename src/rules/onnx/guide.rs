//! The guide to presets, as data: wish, accuracy, architecture and target to presets with a reason.
//!
//! Every line that fits adds its presets, in the order of the table; what a target, a release or missing
//! custom ops forbid is removed later.

use crate::{
    rules::common::goal::Wish::{self, *},
    vocab::Architecture::{self, *},
};

/// A line of the guide.
struct Line {
    /// The wish it is for; `None` when it is for any, or none.
    wish: Option<Wish>,
    /// Whether it is for tight accuracy; `None` when that does not matter.
    tight: Option<bool>,
    /// Architectures it is for; empty when any.
    architectures: &'static [Architecture],
    /// Targets it is for; empty when any.
    targets: &'static [&'static str],
    /// Presets, best first, each with the clause that its reason ends in.
    presets: &'static [(&'static str, &'static str)],
}

const ANY: Line = Line { wish: None, tight: None, architectures: &[], targets: &[], presets: &[] };
const CONVOLUTIONAL: &[Architecture] = &[Cnn, Hybrid];
const GENERAL: &[&str] = &["cpu", "cuda", "rocm"];
const GPU: &[&str] = &["cuda", "rocm"];

const BF16: (&str, &str) =
    ("BF16", "bfloat16 keeps the range of float and is the float format with the least loss");
const BF16_NPU: (&str, &str) =
    ("BF16", "bfloat16 is what Ryzen AI documents for transformers on this NPU");
const BF16_MIXED: (&str, &str) =
    ("BF16_MIXED_BFP16", "bfloat16 with BFP16 where layers bear it keeps most of the accuracy");
const DYNAMIC: (&str, &str) = (
    "UINT8_DYNAMIC_QUANT",
    "activations quantized at run time need no calibration and follow inputs of any range",
);
const NBITS: (&str, &str) =
    ("MATMUL_NBITS", "it stores the constant weights of MatMul in four bits");
const XINT8: (&str, &str) = (
    "XINT8",
    "power-of-two INT8 is what every Ryzen AI NPU runs, and plain `XINT8` is its default",
);
const XINT8_ADAROUND: (&str, &str) =
    ("XINT8_ADAROUND", "AdaRound is the first step when plain XINT8 loses accuracy");
const XINT8_ADAQUANT: (&str, &str) =
    ("XINT8_ADAQUANT", "AdaQuant is the next step when AdaRound is not enough");
const INT8_TRANSFORMER: (&str, &str) = (
    "INT8_TRANSFORMER_DEFAULT",
    "static INT8 for MatMul and Gemm is the faster form for transformers",
);
const INT8_TRANSFORMER_TUNED: (&str, &str) = (
    "INT8_TRANSFORMER_ACCURATE",
    "Percentile and AdaRound recover what static INT8 loses in transformers",
);
const INT16_TRANSFORMER: (&str, &str) =
    ("INT16_TRANSFORMER_DEFAULT", "sixteen bits hold the outliers of activations in transformers");
const INT16_TRANSFORMER_TUNED: (&str, &str) = (
    "INT16_TRANSFORMER_ACCURATE",
    "sixteen bits with Percentile and AdaRound have the most headroom of the integers",
);
const INT8_CNN: (&str, &str) =
    ("INT8_CNN_DEFAULT", "it is the INT8 recipe tuned for convolutions and writes standard Q/DQ");
const INT8_CNN_TUNED: (&str, &str) =
    ("INT8_CNN_ACCURATE", "Percentile and AdaRound recover what plain INT8 loses in convolutions");
const INT16_CNN: (&str, &str) =
    ("INT16_CNN_DEFAULT", "sixteen bits lose less than eight in convolutions");
const A8W8: (&str, &str) =
    ("A8W8", "symmetric INT8 without zero points is the plain form for any architecture");
const A8W8_ADAROUND: (&str, &str) = ("A8W8_ADAROUND", "AdaRound recovers what plain A8W8 loses");
const A16W8: (&str, &str) = (
    "A16W8",
    "sixteen-bit activations with eight-bit weights lose less than A8W8 at the same size",
);

#[rustfmt::skip]
const LINES: &[Line] = &[
    Line { wish: Some(WeightsOnly), presets: &[NBITS], ..ANY },
    Line { wish: Some(Dynamic), presets: &[DYNAMIC], ..ANY },
    Line { wish: Some(Block), presets: &[
        ("BFP16", "BFP16 is the block format that loses least"),
        ("MXFP4E2M1", "MXFP4 is the smallest OCP block format; try it with AutoMixprecision"),
        ("MXINT8", "MXINT8 is the block format nearest to INT8"),
    ], ..ANY },
    Line { wish: Some(Mixed), presets: &[
        BF16_MIXED,
        ("S16S16_MIXED_S8S8", "INT16 with INT8 where layers bear it needs no custom ops"),
    ], ..ANY },
    Line { wish: Some(Bf16), targets: &["npu_transformer"], presets: &[BF16_NPU], ..ANY },
    Line { wish: Some(Bf16), tight: Some(true), presets: &[
        ("BF16_ADAQUANT", "AdaQuant recovers what plain bfloat16 loses"), BF16,
    ], ..ANY },
    Line { wish: Some(Bf16), presets: &[BF16], ..ANY },
    Line { wish: Some(Fp16), presets: &[("FP16", "half precision is what you ask for"), BF16], ..ANY },
    Line { wish: Some(Int16), tight: Some(true), architectures: &[Transformer], presets: &[INT16_TRANSFORMER_TUNED, INT16_TRANSFORMER], ..ANY },
    Line { wish: Some(Int16), architectures: &[Transformer], presets: &[INT16_TRANSFORMER, A16W8], ..ANY },
    Line { wish: Some(Int16), targets: &["npu_transformer"], presets: &[INT16_TRANSFORMER], ..ANY },
    Line { wish: Some(Int16), tight: Some(true), presets: &[
        ("A16W8_ADAROUND", "AdaRound recovers what plain A16W8 loses"), A16W8,
    ], ..ANY },
    Line { wish: Some(Int16), presets: &[A16W8, INT16_CNN], ..ANY },
    Line { wish: Some(Int8), tight: Some(true), targets: &["npu_transformer"], presets: &[INT8_TRANSFORMER_TUNED, INT8_TRANSFORMER], ..ANY },
    Line { wish: Some(Int8), targets: &["npu_transformer"], presets: &[INT8_TRANSFORMER, INT8_TRANSFORMER_TUNED], ..ANY },
    Line { wish: Some(BestAccuracy), targets: &["npu_cnn"], presets: &[
        ("BF16", "bfloat16 is the most accurate of what Ryzen AI 1.6 admits on this NPU"), A16W8, XINT8_ADAROUND,
    ], ..ANY },
    Line { wish: Some(BestAccuracy), targets: &["npu_transformer"], presets: &[BF16_NPU, INT16_TRANSFORMER_TUNED], ..ANY },
    Line { wish: Some(BestAccuracy), presets: &[BF16, BF16_MIXED], ..ANY },
    // What fits when nothing else is said.
    Line { tight: Some(true), targets: &["npu_cnn"], presets: &[XINT8_ADAROUND, XINT8_ADAQUANT], ..ANY },
    Line { targets: &["npu_cnn"], presets: &[XINT8, A8W8, A16W8, XINT8_ADAROUND, XINT8_ADAQUANT], ..ANY },
    Line { tight: Some(true), targets: &["npu_transformer"], presets: &[BF16_NPU, INT16_TRANSFORMER_TUNED, INT8_TRANSFORMER_TUNED], ..ANY },
    Line { targets: &["npu_transformer"], presets: &[BF16_NPU, INT16_TRANSFORMER, INT8_TRANSFORMER], ..ANY },
    Line { tight: Some(true), architectures: CONVOLUTIONAL, targets: GENERAL, presets: &[INT8_CNN_TUNED, A8W8_ADAROUND, INT16_CNN], ..ANY },
    Line { architectures: CONVOLUTIONAL, targets: GENERAL, presets: &[INT8_CNN, A8W8, INT8_CNN_TUNED], ..ANY },
    Line { tight: Some(true), architectures: &[Transformer], targets: GENERAL, presets: &[INT8_TRANSFORMER_TUNED, BF16, INT16_TRANSFORMER], ..ANY },
    Line { architectures: &[Transformer], targets: &["cpu"], presets: &[DYNAMIC, INT8_TRANSFORMER, NBITS], ..ANY },
    Line { architectures: &[Transformer], targets: GPU, presets: &[INT8_TRANSFORMER, BF16, NBITS], ..ANY },
    Line { architectures: &[Recurrent], targets: GENERAL, presets: &[DYNAMIC, A8W8, BF16], ..ANY },
    Line { architectures: &[Mlp], targets: GENERAL, presets: &[A8W8, DYNAMIC, A8W8_ADAROUND], ..ANY },
    // Nothing is known of the architecture, but a wish is.
    Line { wish: Some(Int8), architectures: &[Unknown], targets: GENERAL, presets: &[A8W8], ..ANY },
];

/// The presets for a wish, best first, each with the clause that its reason ends in.
pub fn presets(
    wish: Option<Wish>,
    tight: bool,
    architecture: Architecture,
    target: &str,
) -> Vec<(&'static str, &'static str)> {
    let fits = |line: &&Line| {
        line.wish.is_none_or(|needed| wish == Some(needed))
            && line.tight.is_none_or(|needed| needed == tight)
            && (line.architectures.is_empty() || line.architectures.contains(&architecture))
            && (line.targets.is_empty() || line.targets.contains(&target))
    };
    let mut found: Vec<(&str, &str)> = Vec::new();
    for preset in LINES.iter().filter(fits).flat_map(|line| line.presets) {
        if !found.iter().any(|(id, _)| *id == preset.0) {
            found.push(*preset);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Catalogue;

    #[test]
    fn every_preset_of_the_guide_exists() {
        for (id, _) in LINES.iter().flat_map(|line| line.presets) {
            assert!(Catalogue.presets().get(id).is_some(), "`{id}`");
        }
    }
}
