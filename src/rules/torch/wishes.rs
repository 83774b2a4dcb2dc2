//! The goal in the user's words, for a Torch plan: schemes, algorithms, devices and engines that it names, and
//! what it asks for without naming one.
//!
//! Pure word matching, on purpose: what it does not know it leaves to the other facts.

use crate::{
    catalogue::{
        Entry, Kind,
        devices::{Device, DeviceKind},
        engines::Engine,
        schemes::Scheme,
        torch_algorithms::TorchAlgorithm,
    },
    rules::{Context, common::goal, phrase},
};

/// What a goal asks of the number format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// A GGUF file for llama.cpp.
    Gguf,
    /// A CPU will run it.
    Cpu,
    /// Four-bit weights.
    FourBit,
    /// The smallest file.
    Smallest,
    /// The best accuracy.
    BestAccuracy,
    /// To try what is not usual.
    Experiment,
}

impl Wish {
    /// The wish in the words of a reason.
    pub fn words(self) -> &'static str {
        match self {
            Self::Gguf => "a GGUF file",
            Self::Cpu => "a CPU",
            Self::FourBit => "four-bit weights",
            Self::Smallest => "the smallest model",
            Self::BestAccuracy => "the best accuracy",
            Self::Experiment => "an experiment",
        }
    }
}

/// A goal, understood.
#[derive(Debug, Clone, Default)]
pub struct Wishes {
    /// What it asks of the number format.
    pub wish: Option<Wish>,
    /// Schemes that it names, in the order of the catalogue.
    pub schemes: Vec<&'static Scheme>,
    /// Algorithms that it names.
    pub algorithms: Vec<&'static TorchAlgorithm>,
    /// GPUs that it names, each with the name.
    pub devices: Vec<(&'static Device, String)>,
    /// The engine that it names.
    pub engine: Option<&'static Engine>,
    /// Whether a CPU is to run the result.
    pub cpu: bool,
    /// Whether it asks for a quantized KV cache.
    pub kv_cache: bool,
    /// Tokens of context that it states.
    pub context: Option<u64>,
}

/// Reads the goal of the intent, else the one that a router recorded.
pub fn read(ctx: &Context<'_>) -> Wishes {
    let text = goal::text(ctx);
    let words = phrase::words(text);
    let joined = format!(" {} ", words.join(" "));
    let says = |phrase: &str| joined.contains(&format!(" {phrase} "));
    let any = |phrases: &[&str]| phrases.iter().any(|phrase| says(phrase));
    let catalogue = ctx.catalogue;
    let devices = catalogue.devices().all().iter().filter(|device| device.kind == DeviceKind::Gpu);
    let mut wishes = Wishes {
        schemes: named(catalogue.schemes(), &|name| {
            says(name) && !any(&[&format!("{name} checkpoint"), &format!("{name} kv")])
        }),
        algorithms: named(catalogue.torch_algorithms(), &says),
        devices: devices
            .filter_map(|device| {
                let names =
                    std::iter::once(device.id()).chain(device.aliases.iter().map(String::as_str));
                // The longest name says most: `MI355X` rather than `CDNA 4`.
                let name =
                    names.filter(|name| says(&folded(name))).max_by_key(|name| name.len())?;
                Some((device, name.to_owned()))
            })
            .collect(),
        engine: named(catalogue.engines(), &says).into_iter().find(|engine| engine.id != *"quark"),
        cpu: says("cpu"),
        kv_cache: any(&["kv cache", "kv", "long context"]),
        context: context(&words),
        wish: None,
    };
    let fourbit = any(&["int4", "4 bit", "4bit", "four bit", "w4a16", "uint4", "weight only"]);
    wishes.wish = if any(&["gguf", "llama cpp"]) {
        Some(Wish::Gguf)
    } else if wishes.cpu {
        Some(Wish::Cpu)
    } else if any(&[
        "smallest",
        "tiniest",
        "as small as possible",
        "minimum size",
        "smallest model",
    ]) {
        Some(Wish::Smallest)
    } else if fourbit {
        Some(Wish::FourBit)
    } else if any(&[
        "best accuracy",
        "highest accuracy",
        "maximum accuracy",
        "accuracy first",
        "most accurate",
        "best quality",
    ]) {
        Some(Wish::BestAccuracy)
    } else if any(&["experiment", "experimental", "research", "compression research"]) {
        Some(Wish::Experiment)
    } else {
        None
    };
    wishes
}

fn folded(name: &str) -> String {
    phrase::words(name).join(" ")
}

/// The entries whose id, or an alias of it, the text names.
fn named<T: Entry>(kind: &'static Kind<T>, says: &dyn Fn(&str) -> bool) -> Vec<&'static T> {
    kind.all()
        .iter()
        .filter(|entry| {
            let names =
                std::iter::once(entry.id()).chain(entry.aliases().iter().map(String::as_str));
            names.map(folded).any(|name| says(&name))
        })
        .collect()
}

/// A number of tokens before the word context or tokens: `32k context`, `8192 tokens of context`.
fn context(words: &[String]) -> Option<u64> {
    let at = words.iter().position(|word| word == "context" || word == "tokens")?;
    let number = |word: &String| {
        let (digits, unit) = match word.strip_suffix('k') {
            Some(digits) => (digits, 1024),
            None => (word.as_str(), 1),
        };
        digits.parse::<u64>().ok()?.checked_mul(unit).filter(|tokens| *tokens >= 16)
    };
    words[..at].iter().rev().take(2).find_map(number).or_else(|| {
        // `context of 32k`
        words[at..].iter().skip(1).take(2).find_map(number)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stated_context_is_read_in_any_order() {
        let check = |text: &str, expected: Option<u64>| {
            assert_eq!(context(&phrase::words(text)), expected, "`{text}`");
        };
        check("fp8 with 32k context", Some(32_768));
        check("a context of 8192 tokens", Some(8192));
        check("8192 tokens", Some(8192));
        check("long context", None);
        check("best accuracy", None);
    }
}
