//! The goal in the user's words: which precision it asks for and how much accuracy matters.
//!
//! Pure word matching, on purpose: what it does not know it leaves to the other facts.

use crate::{
    catalogue::presets::Preset,
    intent::Accuracy,
    rules::{Context, phrase},
};

/// What a goal asks of the number format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wish {
    /// Four-bit weights, float activations.
    WeightsOnly,
    /// Block formats: BFP and MX.
    Block,
    /// Two precisions in one model.
    Mixed,
    /// Activations quantized at run time.
    Dynamic,
    /// Bfloat16.
    Bf16,
    /// Half.
    Fp16,
    /// Sixteen-bit integers.
    Int16,
    /// The smallest file.
    Smallest,
    /// The best accuracy, whatever the format.
    BestAccuracy,
    /// Eight-bit integers.
    Int8,
}

impl Wish {
    /// The wish in the words of a reason.
    pub fn words(self) -> &'static str {
        match self {
            Self::WeightsOnly => "four-bit weights only",
            Self::Block => "a block format",
            Self::Mixed => "mixed precision",
            Self::Dynamic => "dynamic quantization",
            Self::Bf16 => "bfloat16",
            Self::Fp16 => "half precision",
            Self::Int16 => "sixteen-bit integers",
            Self::Smallest => "the smallest model",
            Self::BestAccuracy => "the best accuracy",
            Self::Int8 => "eight-bit integers",
        }
    }
}

/// A goal, understood.
#[derive(Debug, Clone, Default)]
pub struct Goal {
    /// The text, in lower case, words separated by single spaces.
    text: String,
    /// What it asks of the number format.
    pub wish: Option<Wish>,
    /// How much accuracy matters: what the intent says, else what the goal says.
    pub accuracy: Option<Accuracy>,
    /// The one preset whose id stands in it.
    pub preset: Option<&'static Preset>,
}

impl Goal {
    /// Whether one of these words or phrases stands in it.
    pub fn says(&self, phrases: &[&str]) -> bool {
        let text = format!(" {} ", self.text);
        phrases.iter().any(|phrase| text.contains(&format!(" {phrase} ")))
    }

    /// Whether accuracy is worth a fine-tuning step.
    pub fn is_tight(&self) -> bool {
        matches!(self.accuracy, Some(Accuracy::Tight | Accuracy::Critical))
    }
}

/// The goal of the intent, else the one that a router recorded; empty when there is none.
pub fn text<'a>(ctx: &Context<'a>) -> &'a str {
    ctx.intent
        .goal
        .as_deref()
        .or_else(|| ctx.session_context.and_then(|session| session.user_goal.as_deref()))
        .unwrap_or_default()
}

/// Reads the goal of the intent, else the one that a router recorded.
pub fn read(ctx: &Context<'_>) -> Goal {
    let text = text(ctx);
    let words = phrase::words(text);
    let mut goal = Goal { text: words.join(" "), ..Goal::default() };
    goal.wish = wish(&goal, &words);
    goal.accuracy = ctx.intent.accuracy.or_else(|| accuracy(&goal));
    goal.preset = named_preset(ctx, text);
    goal
}

fn wish(goal: &Goal, words: &[String]) -> Option<Wish> {
    // "a FP16 model" and "dynamic shapes" describe what there is, not what is wanted.
    let describes = |i: usize| {
        words.get(i + 1).is_some_and(|next| {
            [
                "model",
                "models",
                "input",
                "inputs",
                "onnx",
                "checkpoint",
                "shape",
                "shapes",
                "axes",
                "batch",
                "dims",
                "dim",
                "dimensions",
            ]
            .contains(&next.as_str())
        })
    };
    let any = |test: &dyn Fn(&str) -> bool| words.iter().any(|word| test(word));
    let wanted = |test: &dyn Fn(&str) -> bool| {
        words.iter().enumerate().any(|(i, word)| test(word) && !describes(i))
    };
    if any(&|w| ["int4", "4bit", "w4a16", "matmulnbits", "matmul_nbits"].contains(&w))
        || goal.says(&["4 bit", "four bit", "weight only", "weights only"])
    {
        Some(Wish::WeightsOnly)
    } else if any(&|w| w == "mixed" || w == "automixprecision")
        || goal.says(&["hybrid precision", "hybrid mixed precision"])
    {
        Some(Wish::Mixed)
    } else if any(&names_block_format)
        || goal.says(&["block format", "block formats", "block floating point"])
    {
        Some(Wish::Block)
    } else if wanted(&|w| w == "dynamic" || w == "dynamically") {
        Some(Wish::Dynamic)
    } else if wanted(&|w| w == "bf16" || w == "bfloat16") {
        Some(Wish::Bf16)
    } else if wanted(&|w| w == "fp16" || w == "float16") || goal.says(&["half precision"]) {
        Some(Wish::Fp16)
    } else if any(&|w| w == "int16" || w == "a16w8" || w == "16bit") || goal.says(&["16 bit"]) {
        Some(Wish::Int16)
    } else if any(&|w| w == "smallest" || w == "tiniest")
        || goal.says(&["as small as possible", "minimal size", "minimum size"])
    {
        Some(Wish::Smallest)
    } else if any(&|w| w == "int8" || w == "8bit" || w == "fastest")
        || goal.says(&["8 bit", "eight bit"])
    {
        Some(Wish::Int8)
    } else if goal.says(&[
        "best accuracy",
        "highest accuracy",
        "maximum accuracy",
        "accuracy first",
        "most accurate",
    ]) {
        Some(Wish::BestAccuracy)
    } else {
        None
    }
}

fn accuracy(goal: &Goal) -> Option<Accuracy> {
    if goal.says(&[
        "best accuracy",
        "highest accuracy",
        "maximum accuracy",
        "accuracy critical",
        "accuracy is critical",
        "most accurate",
    ]) {
        Some(Accuracy::Critical)
    } else if goal.says(&[
        "accuracy tight",
        "tight accuracy",
        "accuracy is tight",
        "accurate",
        "accuracy sensitive",
        "keep accuracy",
        "keep the accuracy",
        "accuracy matters",
        "accuracy is important",
        "accuracy counts",
        "accuracy drops",
        "loses accuracy",
        "lost accuracy",
    ]) {
        Some(Accuracy::Tight)
    } else {
        None
    }
}

/// The one preset whose id stands in the text as a word, spelled as upstream spells it. `BF16` and `FP16`
/// are words of their own (what is wanted, what there is), so they only make a wish; and a block format that
/// is no id ("MXFP4 or BFP16") makes the choice open again.
fn named_preset(ctx: &Context<'_>, text: &str) -> Option<&'static Preset> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let mut named: Option<&Preset> = None;
    for word in words.filter(|word| !["BF16", "FP16"].contains(word)) {
        match ctx.catalogue.presets().get(word) {
            Some(preset) if named.is_none_or(|named| named.id == preset.id) => named = Some(preset),
            Some(_) => return None,
            None if names_block_format(&word.to_lowercase()) => return None,
            None => {}
        }
    }
    named
}

fn names_block_format(word: &str) -> bool {
    ["bfp", "mx"].iter().any(|prefix| {
        word.strip_prefix(prefix).is_some_and(|rest| {
            rest.starts_with(|c: char| c.is_ascii_digit())
                || rest.starts_with("fp")
                || rest.starts_with("int")
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_make_wishes_and_descriptions_do_not() {
        let check = |text: &str, expected: Option<Wish>| {
            let words = phrase::words(text);
            let goal = Goal { text: words.join(" "), ..Goal::default() };
            assert_eq!(wish(&goal, &words), expected, "`{text}`");
        };
        check("INT8 for the Ryzen AI NPU", Some(Wish::Int8));
        check("quantize my FP16 model to INT8", Some(Wish::Int8));
        check("best accuracy on an AMD GPU", Some(Wish::BestAccuracy));
        check("INT8 with the best accuracy", Some(Wish::Int8));
        check("weights-only INT4", Some(Wish::WeightsOnly));
        check("MXFP4 or BFP16, whatever works", Some(Wish::Block));
        check("model with dynamic shapes for CPU", None);
        check("dynamic quantization", Some(Wish::Dynamic));
        check("hybrid mixed-precision", Some(Wish::Mixed));
        check("smallest model", Some(Wish::Smallest));
        check("an INT8 model", Some(Wish::Int8));
        check("", None);
    }
}
