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
    rules::{Context, common::goal, phrase, sheet::list},
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

    /// Whether a scheme is that; any is where no number format is asked for.
    pub fn is_met_by(self, scheme: &Scheme) -> bool {
        match self {
            Self::Gguf => scheme.gguf.is_some(),
            Self::FourBit => scheme.bits < 5.0,
            Self::Cpu | Self::Smallest | Self::BestAccuracy | Self::Experiment => true,
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
    /// Number formats that it names and no scheme has.
    pub unknown: Vec<String>,
    /// Algorithms that it does not want.
    pub unwanted_algorithms: Vec<&'static TorchAlgorithm>,
    /// The words of what it does not want.
    unwanted: Vec<String>,
    /// GPUs that it names, each with the name and how many of them.
    pub devices: Vec<(&'static Device, String, Option<u64>)>,
    /// The engine that it names.
    pub engine: Option<&'static Engine>,
    /// Whether a CPU is to run the result.
    pub cpu: bool,
    /// Whether it asks for a quantized KV cache.
    pub kv_cache: bool,
    /// Tokens of context that it states.
    pub context: Option<u64>,
}

impl Wishes {
    /// Whether it says that a scheme is not wanted: by name, or by one of its number formats.
    pub fn refuses(&self, scheme: &Scheme) -> bool {
        if self.unwanted.is_empty() || self.schemes.iter().any(|named| named.id == scheme.id) {
            return false;
        }
        let joined = self.unwanted.join(" ");
        let says = |phrases: &[&str]| phrases.iter().any(|phrase| says(&joined, phrase));
        let activation = scheme.activation.as_ref();
        let dtypes = [Some(&scheme.weight), activation].into_iter().flatten();
        let dtypes: Vec<&str> = dtypes.map(|tensor| tensor.dtype.as_str()).collect();
        let by_format = |word: &String| {
            let has = |dtype: &&str| {
                dtype.starts_with(word) || dtype.trim_start_matches('u').starts_with(word)
            };
            is_format(word)
                && (scheme.id.as_str().split('_').any(|part| part == word)
                    || dtypes.iter().any(has))
        };
        let four_bit = scheme.bits < 5.0;
        let mut names =
            std::iter::once(scheme.id.as_str()).chain(scheme.aliases.iter().map(String::as_str));
        names.any(|name| says(&[&folded(name)]))
            || self.unwanted.iter().any(by_format)
            || (four_bit && says(&["4 bit", "4bit", "four bit"]))
            || (scheme.bits == 8.0 && says(&["8 bit", "8bit", "eight bit"]))
            || (activation.is_none() && says(&["weight only", "weights only"]))
            || (activation.is_none() && four_bit && says(&["w4a16"]))
    }

    /// What it does not want of the number formats, as they are named; `None` when nothing.
    pub fn refused(&self) -> Option<String> {
        let joined = self.unwanted.join(" ");
        let formats = self.unwanted.iter().filter(|word| is_format(word)).cloned();
        let phrases = ["4 bit", "four bit", "8 bit", "eight bit", "weight only", "weights only"];
        let phrases = phrases.iter().filter(|phrase| says(&joined, phrase));
        let all: Vec<String> = formats.chain(phrases.map(|phrase| (*phrase).to_owned())).collect();
        (!all.is_empty()).then(|| list(&all, 4))
    }
}

/// Whether a word is a number format, such as `fp8` or `mxfp6_e3m2`.
fn is_format(word: &str) -> bool {
    ["fp", "int", "uint", "mx", "nvfp", "amdfp", "bfp", "w4", "w8", "4bit", "8bit", "ptpc"]
        .iter()
        .any(|start| word.starts_with(start))
        && word.contains(|c: char| c.is_ascii_digit())
}

/// Without the formats that are not wanted for the KV cache only: "no fp8 kv cache".
fn without_cache_formats(words: Vec<String>) -> Vec<String> {
    const REACH: usize = 3;
    let of_cache = |at: usize| {
        let behind = words.iter().skip(at + 1).take(REACH);
        behind.take_while(|word| !is_format(word)).any(|word| word == "kv")
    };
    let kept = |(at, word): &(usize, &String)| !(is_format(word) && of_cache(*at));
    words.iter().enumerate().filter(kept).map(|(_, word)| word.clone()).collect()
}

fn says(joined: &str, phrase: &str) -> bool {
    format!(" {joined} ").contains(&format!(" {phrase} "))
}

/// Reads the goal of the intent, else the one that a router recorded.
pub fn read(ctx: &Context<'_>) -> Wishes {
    let (wanted, unwanted) = phrase::wanted_and_not(goal::text(ctx));
    let words = apart(phrase::words(&wanted));
    let unwanted = without_cache_formats(phrase::words(&unwanted));
    let joined = words.join(" ");
    let says = |phrase: &str| self::says(&joined, phrase);
    let any = |phrases: &[&str]| phrases.iter().any(|phrase| says(phrase));
    let catalogue = ctx.catalogue;
    let devices = catalogue.devices().all().iter().filter(|device| device.kind == DeviceKind::Gpu);
    let (schemes, unknown) = schemes(ctx, &words, &|name| {
        says(name) && !any(&[&format!("{name} checkpoint"), &format!("{name} kv")])
    });
    let mut wishes = Wishes {
        schemes,
        unknown,
        algorithms: named(catalogue.torch_algorithms(), &says),
        unwanted_algorithms: named(catalogue.torch_algorithms(), &|name| {
            self::says(&unwanted.join(" "), name)
        }),
        unwanted,
        devices: devices
            .filter_map(|device| {
                let names =
                    std::iter::once(device.id()).chain(device.aliases.iter().map(String::as_str));
                let found = names.filter_map(|name| Some((name, count(&words, &folded(name))?)));
                // The longest name says most: `MI355X` rather than `CDNA 4`.
                let (name, count) = found.max_by_key(|(name, _)| name.len())?;
                Some((device, name.to_owned(), count))
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

/// The schemes that are named, a block format as all of its kinds, and the block formats that no scheme has.
fn schemes(
    ctx: &Context<'_>,
    words: &[String],
    says: &dyn Fn(&str) -> bool,
) -> (Vec<&'static Scheme>, Vec<String>) {
    let all = ctx.catalogue.schemes();
    let mut found = named(all, says);
    let mut unknown = Vec::new();
    for word in words.iter().filter(|word| goal::names_block_format(word)) {
        let mut kinds = all
            .all()
            .iter()
            .filter(|one| {
                one.id
                    .as_str()
                    .strip_prefix(word.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
            })
            .peekable();
        if kinds.peek().is_none() {
            unknown.push(word.clone());
        } else if all.find(word).is_none() {
            found.extend(kinds.filter(|_| says(word)));
        }
    }
    (found, unknown)
}

/// Numbers apart from what they count: `8xmi300x`, `8x`.
fn apart(words: Vec<String>) -> Vec<String> {
    let split = |word: String| -> Vec<String> {
        let digits = word.trim_start_matches(|c: char| c.is_ascii_digit());
        let number = &word[..word.len() - digits.len()];
        match digits.strip_prefix('x') {
            Some(rest)
                if !number.is_empty()
                    && (rest.is_empty() || rest.starts_with(char::is_alphabetic)) =>
            {
                [number, rest]
                    .into_iter()
                    .filter(|part| !part.is_empty())
                    .map(str::to_owned)
                    .collect()
            }
            _ => vec![word],
        }
    };
    words.into_iter().flat_map(split).collect()
}

/// How many of a device are named, `None` inside when that is not said: `two H100`, `8 x MI300X`, `H100 x2`.
fn count(words: &[String], name: &str) -> Option<Option<u64>> {
    const MOST: u64 = 1024;
    let name: Vec<&str> = name.split(' ').collect();
    let last = name.len().checked_sub(1)?;
    let is = |at: usize, (i, part): (usize, &&str)| {
        let word = words.get(at + i).map_or("", String::as_str);
        word == *part || (i == last && word.strip_suffix('s') == Some(part))
    };
    let at = (0..words.len()).find(|at| name.iter().enumerate().all(|part| is(*at, part)))?;
    let number = |word: &String| phrase::number(word).filter(|n| (1..=MOST).contains(n));
    let passed =
        |word: &&String| ["x", "amd", "nvidia", "instinct", "geforce"].contains(&word.as_str());
    let mut before = words[..at].iter().rev().skip_while(passed);
    let stated = before.next().and_then(number);
    // `0.13 MI300X` is a release.
    let release = before.next().is_some_and(|word| word.parse::<u64>().is_ok());
    let behind = &words[at + name.len()..];
    let times = || match behind.first()?.as_str() {
        "x" => behind.get(1).and_then(number),
        word => word.strip_prefix('x')?.parse().ok().filter(|n| (1..=MOST).contains(n)),
    };
    Some(stated.filter(|_| !release).or_else(times))
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

    #[test]
    fn devices_are_counted_in_the_ways_people_write_it() {
        let check = |text: &str, expected: Option<Option<u64>>| {
            assert_eq!(count(&apart(phrase::words(text)), "mi300x"), expected, "`{text}`");
        };
        check("fp8 on MI300X", Some(None));
        check("8xMI300X", Some(Some(8)));
        check("8x MI300X", Some(Some(8)));
        check("8 × MI300X", Some(Some(8)));
        check("two AMD Instinct MI300X", Some(Some(2)));
        check("eight MI300Xs", Some(Some(8)));
        check("MI300X x4", Some(Some(4)));
        check("MI300X x 4", Some(Some(4)));
        check("amd-quark 0.13 MI300X", Some(None));
        check("H100", None);
    }

    #[test]
    fn a_format_that_the_cache_shall_not_have_may_stand_elsewhere() {
        let check = |text: &str, expected: &str| {
            let kept = without_cache_formats(phrase::words(text)).join(" ");
            assert_eq!(kept, expected, "`{text}`");
        };
        check("no fp8 kv cache", "no kv cache");
        check("do not use fp8 for the kv cache", "do not use for the kv cache");
        check("no int4 or fp8 kv cache", "no int4 or kv cache");
        check("no fp8", "no fp8");
    }
}
