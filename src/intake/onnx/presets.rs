//! Which presets are realistic for a kind of network, by deployment target: the intake's short list.
//!
//! What a preset is, and which one is right, the catalogue and the rules know; the skills that read
//! `model_analysis.json` want one to three names here.

use std::collections::BTreeMap;

use crate::vocab::Architecture;

/// Targets that run any preset.
const GENERAL: [&str; 3] = ["cpu", "cuda", "rocm"];

/// One to three presets for any target, and those for each target.
///
/// Both are empty when the graph does not say what it is. `MATMUL_NBITS` needs `MatMul` by weights.
pub fn candidates(
    architecture: Architecture,
    multiplies_by_weights: bool,
) -> (Vec<String>, BTreeMap<String, Vec<String>>) {
    let (any, general, npu_cnn, npu_transformer): (&[&str], &[&str], &[&str], &[&str]) =
        match architecture {
            Architecture::Cnn => (
                &["XINT8", "A8W8", "INT8_CNN_DEFAULT"],
                &["INT8_CNN_DEFAULT", "A8W8"],
                &["XINT8", "XINT8_ADAROUND"],
                &[],
            ),
            Architecture::Hybrid => (
                &["A8W8", "UINT8_DYNAMIC_QUANT", "BF16"],
                &["A8W8", "UINT8_DYNAMIC_QUANT"],
                &["XINT8"],
                &["BF16", "INT8_TRANSFORMER_DEFAULT"],
            ),
            Architecture::Transformer | Architecture::Mlp | Architecture::Recurrent => (
                &["UINT8_DYNAMIC_QUANT", "INT8_TRANSFORMER_DEFAULT", "MATMUL_NBITS"],
                &["UINT8_DYNAMIC_QUANT", "INT8_TRANSFORMER_DEFAULT", "MATMUL_NBITS"],
                &[],
                &["BF16", "INT8_TRANSFORMER_DEFAULT", "INT16_TRANSFORMER_DEFAULT"],
            ),
            Architecture::Unknown => (&[], &[], &[], &[]),
        };
    let names = |presets: &[&str]| -> Vec<String> {
        let usable =
            presets.iter().filter(|name| multiplies_by_weights || **name != "MATMUL_NBITS");
        usable.map(|name| (*name).to_owned()).collect()
    };
    let rows = GENERAL.map(|target| (target, general));
    let rows = rows.into_iter().chain([("npu_cnn", npu_cnn), ("npu_transformer", npu_transformer)]);
    let by_target = rows
        .filter(|(_, presets)| !presets.is_empty())
        .map(|(target, presets)| (target.to_owned(), names(presets)))
        .collect();
    (names(any), by_target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_lists_hold_one_to_three_names_and_xint8_only_for_npu_cnn() {
        for architecture in [
            Architecture::Cnn,
            Architecture::Transformer,
            Architecture::Recurrent,
            Architecture::Hybrid,
            Architecture::Mlp,
        ] {
            let (any, by_target) = candidates(architecture, true);
            assert!((1..=3).contains(&any.len()));
            for (target, presets) in by_target {
                assert!((1..=3).contains(&presets.len()));
                let has_xint8 = presets.iter().any(|name| name.starts_with("XINT8"));
                assert_eq!(has_xint8, target == "npu_cnn", "{architecture:?} on {target}");
            }
        }
        assert_eq!(candidates(Architecture::Unknown, true), (Vec::new(), BTreeMap::new()));
    }
}
