//! The guide to schemes, as data: wish and kind of device to schemes with a reason.
//!
//! Every line that fits adds its schemes, in the order of the table; what a device, an engine, a release or
//! the shapes of the model do not allow is for the rule to leave out.

use crate::rules::torch::wishes::Wish;

use Abilities::{Fp4, Fp8, Nvfp4, Unknown, Without};
use Wish::{BestAccuracy, Cpu, Experiment, FourBit, Gguf, Smallest};

/// What the devices that will run the result compute with, all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Abilities {
    /// OCP FP4 and FP8.
    Fp4,
    /// NVFP4 and FP8.
    Nvfp4,
    /// FP8, no FP4.
    Fp8,
    /// Neither.
    Without,
    /// No device is known.
    Unknown,
}

struct Line {
    wish: Option<Wish>,
    on: &'static [Abilities],
    schemes: &'static [(&'static str, &'static str)],
}

const ANY: &[Abilities] = &[];
const FP8: (&str, &str) =
    ("fp8", "FP8 halves the size for hardly any loss and is what most engines load");
const PTPC: (&str, &str) = (
    "ptpc_fp8",
    "FP8 with a scale a row and a token is at least as accurate and needs no calibration data",
);
const MXFP4: (&str, &str) =
    ("mxfp4", "it computes with MXFP4 as it is, at about a quarter of the size");
const INT8: (&str, &str) = ("int8", "INT8 runs on anything and loses little");
const INT4_32: (&str, &str) =
    ("int4_wo_32", "four-bit weights in groups of 32 lose least of the four-bit integers");
const INT4_64: (&str, &str) = ("int4_wo_64", "groups of 64 are between accuracy and overhead");
const INT4_128: (&str, &str) = (
    "int4_wo_128",
    "groups of 128 are the usual four-bit layout, with 16-bit arithmetic on any device",
);
const INT4_ROW: (&str, &str) =
    ("int4_wo_per_channel", "a scale a row needs no groups, so any width will do");

#[rustfmt::skip]
const LINES: &[Line] = &[
    Line { wish: Some(Gguf), on: ANY, schemes: &[("uint4_wo_32", "it is the only scheme that Quark's GGUF writer takes")] },
    Line { wish: Some(Cpu), on: ANY, schemes: &[("int8", "INT8 is what CPUs compute with well"), INT4_128, INT4_64, INT4_32] },
    Line { wish: Some(Smallest), on: &[Fp4], schemes: &[MXFP4, INT4_32, INT4_64, INT4_128, INT4_ROW, FP8] },
    Line { wish: Some(Smallest), on: &[Nvfp4], schemes: &[INT4_32, ("nvfp4", "it computes with NVFP4 as it is"), INT4_64, INT4_128, INT4_ROW, FP8] },
    Line { wish: Some(Smallest), on: ANY, schemes: &[INT4_32, INT4_64, INT4_128, INT4_ROW, FP8, PTPC] },
    Line { wish: Some(FourBit), on: ANY, schemes: &[INT4_128, INT4_64, INT4_32, INT4_ROW] },
    Line { wish: Some(BestAccuracy), on: &[Fp4, Nvfp4, Fp8, Unknown], schemes: &[FP8, PTPC] },
    Line { wish: Some(BestAccuracy), on: &[Without], schemes: &[INT8, INT4_32, INT4_64, INT4_128] },
    Line { wish: Some(Experiment), on: ANY, schemes: &[("mxfp4", "MXFP4 is the aggressive compression to experiment with"), ("mxfp6_e2m3", "six bits lose less"), ("mxfp4_mxfp6_e2m3", "MXFP4 weights with six-bit activations")] },
    // What fits the devices when nothing else is said.
    Line { wish: None, on: &[Fp4], schemes: &[MXFP4, ("mxfp4_fp8", "FP8 activations lose less than four-bit ones"), FP8, PTPC] },
    Line { wish: None, on: &[Nvfp4], schemes: &[FP8, ("nvfp4", "it computes with NVFP4 as it is"), PTPC] },
    Line { wish: None, on: &[Fp8], schemes: &[FP8, PTPC, INT4_128] },
    Line { wish: None, on: &[Without], schemes: &[INT4_128, INT8, INT4_64, INT4_32, INT4_ROW] },
    Line { wish: None, on: &[Unknown], schemes: &[FP8, PTPC, INT4_128, INT8] },
];

/// The schemes for a wish, best first, each with the clause that its reason ends in.
pub fn schemes(wish: Option<Wish>, on: Abilities) -> Vec<(&'static str, &'static str)> {
    let fits = |line: &&Line| {
        line.wish.is_none_or(|needed| wish == Some(needed))
            && (line.on.is_empty() || line.on.contains(&on))
    };
    let mut found: Vec<(&str, &str)> = Vec::new();
    for scheme in LINES.iter().filter(fits).flat_map(|line| line.schemes) {
        if !found.iter().any(|(id, _)| *id == scheme.0) {
            found.push(*scheme);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Catalogue;

    #[test]
    fn every_scheme_of_the_guide_exists() {
        for (id, _) in LINES.iter().flat_map(|line| line.schemes) {
            assert!(Catalogue.schemes().get(id).is_some(), "`{id}`");
        }
    }
}
