//! # What it does
//!
//! Looks at experts that are stacked in tensors of three dimensions: whether Quark makes linear layers of them
//! before it quantizes.
//!
//! # Why
//!
//! Quark quantizes linear layers. Where it does not take the stacks apart, most of the model stays as it is and
//! nothing says so: one came out at 216 of 223 GB.
//!
//! # Example
//!
//! The experts of Llama 4 are stacked and the registry of transformers 5 replaces none of its modules, so they
//! stay in 16 bits: a high risk, and the expected size counts them whole.
//!
//! # Sources
//!
//! - 0.13, `quark/torch/utils/llm/model_preparation.py` (its registry of replaced modules)
//! - ModelCloud/GPTQModel#2114; vllm-project/llm-compressor#2163

use crate::{
    rules::{
        Context, Stage,
        sheet::{Sheet, list},
    },
    vocab::Severity,
};

/// The reason code.
pub const ID: &str = "experts";
/// When it runs.
pub const STAGE: Stage = Stage::Assess;

/// Looks at the experts.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    if ctx.analysis.model.is_moe != Some(true) {
        return;
    }
    let known = ctx.analysis.quantization_targets.has_non_linear_experts;
    let stacked = known == Some(true);
    let family = sheet.torch.family;
    let apart = sheet.torch.takes_experts_apart();
    if let (None, Some(family), false) = (known, family, apart) {
        let text = format!(
            "Quark replaces no module of `{}`: if its experts are stacked in tensors of three dimensions, they stay as they are, and with them most of the model",
            family.id
        );
        let hint = "analyse the folder with its safetensors files: their headers tell".to_owned();
        sheet.by(ID).risk(Severity::High, text, Some(hint));
        return;
    }
    if stacked && !apart {
        let name =
            family.map_or(ctx.analysis.model.model_type.as_str(), |family| family.id.as_str());
        let text = format!(
            "the experts are stacked in tensors of three dimensions, and Quark takes those of `{name}` not apart: they stay as they are, and with them most of the model"
        );
        sheet.by(ID).risk(
            Severity::High,
            text,
            Some(
                "compare the size of the result with the expected one before it is used".to_owned(),
            ),
        );
        return;
    }
    if !stacked && family.is_some() {
        return;
    }
    let text = match family {
        Some(family) => format!("the experts are prepared before quantization ({} become linear layers), which takes memory and time", list(&family.replaced_modules, 3)),
        None => "nothing is known of how Quark prepares the experts of this family: those that are no linear layers stay as they are".to_owned(),
    };
    let severity = if family.is_some() { Severity::Low } else { Severity::High };
    sheet.by(ID).risk(severity, text, None);
}
