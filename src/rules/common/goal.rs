//! The goal in the user's words: which precision it asks for and how much accuracy matters.
//!
//! Pure word matching, on purpose: what it does not know it leaves to the other facts.

use crate::{
    catalogue::presets::{ElementType, Preset, PresetFamily},
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

    fn is_met_by(self, preset: &Preset) -> bool {
        let activation = preset.activation.r#type;
        match self {
            Self::WeightsOnly => preset.family == PresetFamily::WeightOnly,
            Self::Block => activation.is_block() || preset.weight.r#type.is_block(),
            Self::Mixed => preset.family == PresetFamily::Mixed,
            Self::Dynamic => preset.dynamic,
            Self::Bf16 => activation == ElementType::QBFloat16,
            Self::Fp16 => activation == ElementType::QFloat16,
            Self::Int16 => activation.is_int16(),
            Self::Int8 => matches!(activation, ElementType::QInt8 | ElementType::QUInt8),
            Self::Smallest | Self::BestAccuracy => true,
        }
    }
}

const BLOCK_FORMATS: [&str; 3] = ["block format", "block formats", "block floating point"];
const TUNING: [&str; 7] = [
    "finetuning",
    "finetune",
    "fine tuning",
    "fine tune",
    "fast_finetune",
    "fastfinetune",
    "tuning",
];
/// Algorithms that fine-tune, in lower case.
const TUNERS: [&str; 2] = ["adaround", "adaquant"];

/// A goal, understood.
#[derive(Debug, Clone, Default)]
pub struct Goal {
    /// What it wants, in lower case, words separated by single spaces.
    text: String,
    /// The words of what it does not want.
    unwanted: Vec<String>,
    /// The one block format that it names, in lower case.
    block: Option<String>,
    /// What it asks of the number format.
    pub wish: Option<Wish>,
    /// How much accuracy matters: what the intent says, else what the goal says.
    pub accuracy: Option<Accuracy>,
    /// The one preset whose id stands in it.
    pub preset: Option<&'static Preset>,
}

impl Goal {
    /// Whether one of these words or phrases stands in what it wants.
    pub fn says(&self, phrases: &[&str]) -> bool {
        says(&self.text, phrases)
    }

    /// What it asks of the number format, in the words of a reason.
    pub fn asks_for(&self) -> Option<String> {
        let block = self.block.as_ref().map(|block| format!("`{}`", block.to_uppercase()));
        match self.wish? {
            Wish::Block => block.or_else(|| Some(Wish::Block.words().to_owned())),
            wish => Some(wish.words().to_owned()),
        }
    }

    /// Whether a preset is what it asks for; so is any when it asks for none.
    pub fn is_met_by(&self, preset: &Preset) -> bool {
        match (self.wish, &self.block) {
            (Some(Wish::Block), Some(block)) => has_part(preset, block),
            (Some(wish), _) => wish.is_met_by(preset),
            (None, _) => true,
        }
    }

    /// Whether it says that the preset of this id is not wanted.
    pub fn refuses_name(&self, id: &str) -> bool {
        self.unwanted.iter().any(|word| id.eq_ignore_ascii_case(word))
    }

    /// Whether it says that a preset is not wanted: by name, by number format or by algorithm.
    pub fn refuses(&self, preset: &Preset) -> bool {
        if self.unwanted.is_empty() || self.preset.is_some_and(|named| named.id == preset.id) {
            return false;
        }
        let id = preset.id.as_str().to_lowercase();
        let by_name = |word: &String| {
            id == *word
                || id.strip_prefix(word.as_str()).is_some_and(|rest| rest.starts_with('_'))
                || (names_block_format(word) && has_part(preset, word))
        };
        let by_format = |wish: Wish| match wish {
            Wish::Smallest | Wish::BestAccuracy => false,
            Wish::Block => says(&self.unwanted.join(" "), &BLOCK_FORMATS) && wish.is_met_by(preset),
            wish => makes(wish, &self.unwanted) && wish.is_met_by(preset),
        };
        let no_tuning = says(&self.unwanted.join(" "), &TUNING);
        self.unwanted.iter().any(by_name)
            || WISHES.into_iter().any(by_format)
            || preset.algorithms.iter().any(|algorithm| {
                let algorithm = algorithm.as_str().to_lowercase();
                self.unwanted.contains(&algorithm)
                    || (no_tuning && TUNERS.contains(&algorithm.as_str()))
            })
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

/// The number of tensor-parallel ranks: what the intent says, else the goal.
pub fn tensor_parallel(ctx: &Context<'_>) -> Option<u64> {
    ctx.intent.tensor_parallel.or_else(|| {
        let (wanted, _) = phrase::wanted_and_not(text(ctx));
        ranks(&phrase::words(&wanted))
    })
}

/// `tensor parallel 3`, `TP=8`, `tp2`, `--tensor-parallel-size 8`, `8-way tensor parallelism`.
fn ranks(words: &[String]) -> Option<u64> {
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    // "tensor parallel, 8 bit" states no ranks.
    let is_bits = |at: usize| ["bit", "bits"].contains(&word(at + 1));
    let number = |at: usize| phrase::number(word(at)).filter(|ranks| *ranks > 0 && !is_bits(at));
    (0..words.len()).find_map(|at| {
        let end = match (word(at), word(at + 1)) {
            ("tp" | "tensor_parallel" | "tensor_parallel_size", _) => at + 1,
            ("tensor", "parallel" | "parallelism") => at + 2,
            (one, _) => return one.strip_prefix("tp")?.parse().ok().filter(|ranks| *ranks > 0),
        };
        let behind = (end..).find(|at| !["size", "of", "over", "is"].contains(&word(*at)))?;
        let before = at.checked_sub(1);
        // `8 way tp`, `over 2 GPUs`
        number(behind).or_else(|| {
            let before = before?;
            (word(before) == "way")
                .then(|| number(before.checked_sub(1)?))
                .flatten()
                .or_else(|| word(before).strip_suffix("way")?.parse().ok())
        })
    })
}

/// Reads the goal of the intent, else the one that a router recorded.
pub fn read(ctx: &Context<'_>) -> Goal {
    let (wanted, unwanted) = phrase::wanted_and_not(text(ctx));
    let words = phrase::words(&wanted);
    let mut goal = Goal {
        text: words.join(" "),
        unwanted: formats_of_the_result(phrase::words(&unwanted)),
        wish: wish(&words),
        block: one_block_format(&words),
        ..Goal::default()
    };
    goal.accuracy = ctx.intent.accuracy.or_else(|| accuracy(&goal));
    goal.preset = named_preset(ctx, &words);
    goal
}

/// The wishes that a goal can make, the one that decides first before others.
const WISHES: [Wish; 10] = [
    Wish::WeightsOnly,
    Wish::Mixed,
    Wish::Block,
    Wish::Dynamic,
    Wish::Bf16,
    Wish::Fp16,
    Wish::Int16,
    Wish::Smallest,
    Wish::Int8,
    Wish::BestAccuracy,
];

/// Words for what a model takes and for its sizes: a format or `dynamic` before them is not of the result.
const SIDES: [&str; 9] =
    ["input", "inputs", "shape", "shapes", "axes", "batch", "dims", "dim", "dimensions"];

/// What there is, not what is wanted, when it follows: "a FP16 model", "dynamic shapes".
fn is_described(word: &str) -> bool {
    SIDES.contains(&word) || matches!(word, "model" | "models" | "onnx" | "checkpoint")
}

/// Whether words make a wish.
fn makes(wish: Wish, words: &[String]) -> bool {
    let any = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str()));
    let says = |phrases: &[&str]| says(&words.join(" "), phrases);
    let wanted = |known: &[&str]| {
        words.iter().enumerate().any(|(i, word)| {
            let describes = words.get(i + 1).is_some_and(|next| is_described(next));
            known.contains(&word.as_str()) && !describes
        })
    };
    match wish {
        Wish::WeightsOnly => {
            any(&["int4", "4bit", "w4a16", "matmulnbits", "matmul_nbits"])
                || says(&["4 bit", "four bit", "weight only", "weights only"])
        }
        Wish::Mixed => {
            any(&["mixed", "automixprecision"])
                || says(&["hybrid precision", "hybrid mixed precision"])
        }
        Wish::Block => words.iter().any(|word| names_block_format(word)) || says(&BLOCK_FORMATS),
        Wish::Dynamic => wanted(&["dynamic", "dynamically"]),
        Wish::Bf16 => wanted(&["bf16", "bfloat16"]),
        Wish::Fp16 => wanted(&["fp16", "float16"]) || says(&["half precision"]),
        Wish::Int16 => any(&["int16", "a16w8", "16bit"]) || says(&["16 bit"]),
        Wish::Smallest => {
            any(&["smallest", "tiniest"])
                || says(&["as small as possible", "minimal size", "minimum size"])
        }
        Wish::Int8 => any(&["int8", "8bit", "fastest"]) || says(&["8 bit", "eight bit"]),
        Wish::BestAccuracy => says(&[
            "best accuracy",
            "highest accuracy",
            "maximum accuracy",
            "accuracy first",
            "most accurate",
        ]),
    }
}

/// Without the words that tell something of inputs, outputs or shapes: "no int8 inputs", "no dynamic axes".
fn formats_of_the_result(words: Vec<String>) -> Vec<String> {
    let is_other =
        |word: &str| SIDES.contains(&word) || matches!(word, "output" | "outputs" | "io");
    let tells = |at: usize| words.get(at + 1).is_some_and(|next| is_other(next));
    let kept = |(at, _): &(usize, &String)| !tells(*at);
    words.iter().enumerate().filter(kept).map(|(_, word)| word.clone()).collect()
}

fn wish(words: &[String]) -> Option<Wish> {
    WISHES.into_iter().find(|wish| makes(*wish, words))
}

fn says(text: &str, phrases: &[&str]) -> bool {
    let text = format!(" {text} ");
    phrases.iter().any(|phrase| text.contains(&format!(" {phrase} ")))
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

/// The one preset whose id stands in the text as a word, with the algorithm that is named beside it. `BF16` and
/// `FP16` are words of their own (what is wanted, what there is), so they only make a wish; and a block format
/// that is no id ("MXFP4 or BFP16") makes the choice open again.
fn named_preset(ctx: &Context<'_>, words: &[String]) -> Option<&'static Preset> {
    let presets = ctx.catalogue.presets();
    let mut named: Option<&Preset> = None;
    for word in words.iter().filter(|word| !["bf16", "fp16"].contains(&word.as_str())) {
        match presets.get(&word.to_uppercase()) {
            Some(preset) if named.is_none_or(|named| named.id == preset.id) => named = Some(preset),
            Some(_) => return None,
            None if names_block_format(word) => return None,
            None => {}
        }
    }
    let tuner = TUNERS.iter().find(|tuner| words.iter().any(|word| word == *tuner));
    let tuned = |preset: &Preset| presets.get(&format!("{}_{}", preset.id, tuner?.to_uppercase()));
    named.map(|preset| tuned(preset).unwrap_or(preset))
}

/// The block format, when it is the only one that is named.
fn one_block_format(words: &[String]) -> Option<String> {
    let mut named = words.iter().filter(|word| names_block_format(word));
    let first = named.next()?;
    named.all(|other| other == first).then(|| first.clone())
}

/// Whether one of the formats in a preset's id begins with a word.
fn has_part(preset: &Preset, word: &str) -> bool {
    preset.id.as_str().to_lowercase().split('_').any(|part| part.starts_with(word))
}

/// Whether a word is a block format: `bfp16`, `mx6`, `mxfp4`, `mxint8`.
pub fn names_block_format(word: &str) -> bool {
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
    use crate::catalogue::Catalogue;

    #[test]
    fn words_make_wishes_and_descriptions_do_not() {
        let check = |text: &str, expected: Option<Wish>| {
            let words = phrase::words(text);
            assert_eq!(wish(&words), expected, "`{text}`");
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

    #[test]
    fn ranks_are_read_in_the_ways_people_write_them() {
        let check = |text: &str, expected: Option<u64>| {
            assert_eq!(ranks(&phrase::words(text)), expected, "`{text}`");
        };
        check("tensor parallel 3", Some(3));
        check("fp8, tp 2", Some(2));
        check("TP=8", Some(8));
        check("tp2 on H100", Some(2));
        check("tensor_parallel=8", Some(8));
        check("--tensor-parallel-size 4", Some(4));
        check("tensor parallelism over two GPUs", Some(2));
        check("8-way tensor parallelism", Some(8));
        check("tensor parallel", None);
        check("tensor parallel, 8 bit", None);
        check("best throughput", None);
    }

    #[test]
    fn what_is_not_wanted_is_refused_by_name_format_and_algorithm() {
        let check = |unwanted: &str, preset: &str, expected: bool| {
            let unwanted_words = formats_of_the_result(phrase::words(unwanted));
            let goal = Goal { unwanted: unwanted_words, ..Goal::default() };
            let preset = Catalogue.presets().get(preset).unwrap();
            assert_eq!(goal.refuses(preset), expected, "`{unwanted}`: `{}`", preset.id);
        };
        check("do not use XINT8", "XINT8_ADAROUND", true);
        check("no xint8_adaround", "XINT8", false);
        check("no finetuning", "INT8_CNN_ACCURATE", true);
        check("no adaround", "XINT8_ADAQUANT", false);
        check("no int4", "MATMUL_NBITS", true);
        check("never mxfp4", "MXFP4E2M1", true);
        check("never mxfp4", "BFP16", false);
        check("no block formats", "BFP16", true);
        check("no int8 inputs", "A8W8", false);
        check("", "A8W8", false);
    }
}
