//! From what somebody types to the thing that is meant: a name, a question, or free words.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    catalogue::{Catalogue, topics::Topic},
    planner::explain::things::{Thing, all, named},
    rules::{errors, phrase},
    vocab::{Backend, fold, near_names},
};

/// What a text means.
#[derive(Debug)]
pub(super) enum Meant {
    /// One thing, and others that it may mean too.
    One(Thing, Vec<Thing>),
    /// Two things to compare, and others that were named.
    Two(Thing, Thing, Vec<Thing>),
    /// Nothing; names near it.
    Nothing(Vec<String>),
}

/// Words that say nothing about what is asked for.
const FILLERS: &str = "a about an and are can do does explain for from get give have how i in is it its me mean \
    means model my of on onnx or quantization quantize quantized quark say should tell that \
    the there this to use used what when which why will with work you your";

/// Op types that are also ordinary words.
const WORD_LIKE_OPS: &str =
    "And Or Not Where Size Range Max Min Sign Shape Mod Round Log Constant Less Greater";

/// Words that say that an ONNX model is meant.
const ONNX_WORDS: &str = "onnx npu ryzen preset presets qdq cnn mobilenet resnet yolo opset";

/// Words that say that a Hugging Face model is meant.
const TORCH_WORDS: &str = "torch pytorch hf hugging huggingface transformers safetensors checkpoint llm llms vllm \
    sglang gguf scheme schemes lm_head kv moe experts";

fn among(words: &str, word: &str) -> bool {
    words.split(' ').any(|known| known == word)
}

/// Finds what a text means; `half` is the half of Quark that the model at hand is planned by.
///
/// A name in its own spelling goes before the same name in another one, then what is for that half before
/// what is not, then the order of the kinds; what else has the name comes with it.
pub(super) fn meant(text: &str, half: Option<Backend>) -> Meant {
    let text = text.trim().trim_matches('`').trim();
    let words = phrase::words(text);
    let half = half.or_else(|| half_in(&words));
    let whole = ranked(text, half);
    if let Some(first) = whole.first() {
        let topics = topics(&words, &[], half);
        let foreign = |thing: &&Thing| half.is_some() && !serves(**thing, half);
        // `MXFP4` of an ONNX model is no scheme, but something can be said.
        return match topics.split_first() {
            Some((topic, _)) if foreign(&first) && serves(*topic, half) => {
                Meant::One(*topic, whole)
            }
            _ => {
                let new = |topic: &Thing| !whole.iter().any(|known| known.is(*topic));
                let also = whole[1..].iter().copied();
                let also = also.chain(topics.iter().copied().filter(new));
                Meant::One(*first, also.collect())
            }
        };
    }
    // `kind:name` is an address and no question, so another thing is no answer to it.
    if let Some((_, name)) = text.split_once(':').filter(|_| !text.contains(char::is_whitespace)) {
        return Meant::Nothing(near(name));
    }
    let readings = readings_in(text, half);
    let names: Vec<Thing> = readings.iter().map(|things| things[0]).collect();
    let asked = topics(&words, &names, half);
    if let Some((a, b)) = pair(&readings, asked.is_empty())
        && (of_kind(&names, a) == 2 || topics(&words, &[], half).is_empty())
    {
        let rest = names.iter().copied().filter(|thing| !thing.is(a) && !thing.is(b)).collect();
        return Meant::Two(a, b, rest);
    }
    if let Some((topic, others)) = asked.split_first() {
        return Meant::One(*topic, others.iter().copied().chain(names).collect());
    }
    if let Some(first) = readings.first() {
        let rest = first[1..].iter().copied().chain(names[1..].iter().copied());
        return Meant::One(first[0], rest.collect());
    }
    if let Some(recovery) = errors::recognise(Catalogue, text, None) {
        return Meant::One(Thing::Recovery(recovery), Vec::new());
    }
    let mut scored = by_words(&words, half).into_iter();
    match scored.next() {
        Some(best) => Meant::One(best, scored.take(4).collect()),
        None => Meant::Nothing(near(text)),
    }
}

/// Whether a thing is of use for a model of this half.
fn serves(thing: Thing, half: Option<Backend>) -> bool {
    half.is_none() || thing.backend().is_none_or(|own| Some(own) == half)
}

/// The half of Quark that words speak of.
fn half_in(words: &[String]) -> Option<Backend> {
    let any = |list: &str| words.iter().any(|word| among(list, word));
    match (any(ONNX_WORDS), any(TORCH_WORDS)) {
        (true, false) => Some(Backend::Onnx),
        (false, true) => Some(Backend::Torch),
        _ => None,
    }
}

/// What has a name, the most fitting first.
fn ranked(name: &str, half: Option<Backend>) -> Vec<Thing> {
    let mut things = named(name);
    let plain = name.rsplit(':').next().unwrap_or(name).trim();
    things.sort_by_key(|thing| (thing.id() != plain, !serves(*thing, half)));
    things
}

/// The first two things of one kind; with `deep` also by what else their names mean.
fn pair(readings: &[Vec<Thing>], deep: bool) -> Option<(Thing, Thing)> {
    let depth = if deep { usize::MAX } else { 1 };
    readings.iter().enumerate().find_map(|(at, first)| {
        first.iter().take(depth).find_map(|a| {
            let mut rest = readings[at + 1..].iter().flat_map(|things| things.iter().take(depth));
            rest.find(|b| b.kind() == a.kind()).map(|b| (*a, *b))
        })
    })
}

fn of_kind(names: &[Thing], one: Thing) -> usize {
    names.iter().filter(|thing| thing.kind() == one.kind()).count()
}

/// The topics that are asked about, unless a name in the text says more: the best of each half of Quark,
/// the better first.
fn topics(words: &[String], names: &[Thing], half: Option<Backend>) -> Vec<Thing> {
    let mut best: Vec<(Thing, Vec<&str>)> = Vec::new();
    for topic in Catalogue.topics().all() {
        let thing = Thing::Topic(topic);
        let Some((found, _)) = phrase::best(&topic.asked, words) else { continue };
        if !serves(thing, half) || says_more(topic, &found, words, names) {
            continue;
        }
        match best.iter_mut().find(|(known, _)| known.backend() == topic.backend) {
            Some(known) if known.1.len() < found.len() => *known = (thing, found),
            Some(_) => {}
            None => best.push((thing, found)),
        }
    }
    best.sort_by_key(|(_, found)| std::cmp::Reverse(found.len()));
    best.into_iter().map(|(thing, _)| thing).collect()
}

/// Whether the names in a text say more about what is asked than what a topic found in it.
fn says_more(topic: &Topic, found: &[&str], words: &[String], names: &[Thing]) -> bool {
    let precise = names.iter().find(|thing| {
        !matches!(
            thing,
            Thing::Target(_)
                | Thing::Decision(_)
                | Thing::Release(_)
                | Thing::Device(_)
                | Thing::Family(_)
                | Thing::Engine(_)
        )
    });
    let more = precise.is_some_and(|thing| {
        let name = phrase::words(thing.id());
        let mut findings = topic.asked.iter().filter_map(|asked| phrase::found(asked, words));
        let inside = findings.any(|found| name.iter().any(|word| found.contains(&word.as_str())));
        found.len() < 3 && !inside
    });
    more || found.len() < 2 && !names.is_empty()
}

/// What names in a text mean, in its order; the longest reading of neighbouring words counts.
fn readings_in(text: &str, half: Option<Backend>) -> Vec<Vec<Thing>> {
    let tokens: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || "/,;()[]\"'`?!|&".contains(c))
        .map(|token| token.trim_end_matches(['.', ':']))
        .filter(|token| !token.is_empty())
        .collect();
    let mut readings: Vec<Vec<Thing>> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let longest = (1..=3.min(tokens.len() - at)).rev().find_map(|length| {
            let reading = tokens[at..at + length].join(" ");
            let mut things = ranked(&reading, half);
            // `INT8` in a question about an ONNX model is a format, and no scheme of the other half.
            let own = |thing: &Thing| serves(*thing, half) || thing.id() == reading;
            things
                .retain(|thing| certain(*thing, &reading) && (own(thing) || reading.contains(':')));
            (!things.is_empty()).then_some((things, length))
        });
        match longest {
            Some((things, length)) => {
                if !readings.iter().any(|known| known[0].is(things[0])) {
                    readings.push(things);
                }
                at += length;
            }
            None => at += 1,
        }
    }
    readings
}

/// Whether a word inside a sentence surely is this name and not an ordinary word.
fn certain(thing: Thing, reading: &str) -> bool {
    let exact = thing.id() == reading;
    match thing {
        Thing::Topic(_) => false,
        // `smooth` is an ordinary word, and `quark` the library.
        Thing::TorchAlgorithm(_) => fold(thing.id()) == fold(reading) || reading.contains(' '),
        Thing::Engine(_) | Thing::Prequantized(_) => exact && reading != "quark",
        Thing::Op(_) => exact && !among(WORD_LIKE_OPS, reading),
        Thing::Decision(_) => exact && reading.contains(['.', '_']),
        Thing::Option(_) => {
            exact || reading.contains('_') || thing.id().chars().skip(1).any(char::is_uppercase)
        }
        Thing::Release(_) => exact,
        // Short aliases such as `SQ` are words in other cases.
        _ => {
            exact || reading.len() > 3 || reading.chars().any(|c| c.is_ascii_digit()) || {
                let upper = reading.chars().all(char::is_uppercase);
                upper && thing.entry().is_some()
            }
        }
    }
}

/// Things whose words a text shares, best first; a rare word counts more, one of the name most.
fn by_words(words: &[String], half: Option<Backend>) -> Vec<Thing> {
    let asked: BTreeSet<&str> = words
        .iter()
        .map(String::as_str)
        .filter(|word| word.len() > 1 && !among(FILLERS, word))
        .map(stem)
        .collect();
    if asked.is_empty() {
        return Vec::new();
    }
    let documents: Vec<(Thing, BTreeSet<String>, BTreeSet<String>)> = all()
        .into_iter()
        .filter(|thing| !among(WORD_LIKE_OPS, thing.id()) && serves(*thing, half))
        .map(|thing| {
            let aliases = thing.entry().map(|entry| entry.aliases().join(" ")).unwrap_or_default();
            let name = stems(&format!("{} {aliases}", spaced(thing.id())));
            let mut body = stems(&thing.summary());
            body.extend(stems(thing.use_when().unwrap_or_default()));
            if let Thing::Rule(rule) = thing {
                body.extend(stems(&rule.documentation()));
            }
            if let Thing::Topic(topic) = thing {
                body.extend(topic.asked.iter().flat_map(|phrase| stems(phrase)));
            }
            (thing, name, body)
        })
        .collect();
    let mut spread: BTreeMap<&str, u32> = BTreeMap::new();
    for word in &asked {
        let count =
            documents.iter().filter(|(_, name, body)| name.contains(*word) || body.contains(*word));
        spread.insert(word, u32::try_from(count.count()).unwrap_or(u32::MAX));
    }
    let total = f64::from(u32::try_from(documents.len()).unwrap_or(u32::MAX));
    let mut scored: Vec<(f64, usize, Thing)> = documents
        .iter()
        .map(|(thing, name, body)| {
            let mut hits = 0;
            let mut score = 0.0;
            for word in &asked {
                let weight = (1.0 + total / f64::from(spread[word].max(1))).ln();
                if name.contains(*word) {
                    hits += 1;
                    score += 3.0 * weight;
                } else if body.contains(*word) {
                    hits += 1;
                    score += weight;
                }
            }
            // A long name of which little was asked for is another thing.
            (score / (1.0 + 0.1 * f64::from(u32::try_from(name.len()).unwrap_or(0))), hits, *thing)
        })
        .filter(|(_, hits, _)| *hits > 1 || *hits * 2 >= asked.len() && *hits > 0)
        .collect();
    scored.sort_by(|a, b| b.1.cmp(&a.1).then(b.0.total_cmp(&a.0)));
    scored.into_iter().map(|(_, _, thing)| thing).take(5).collect()
}

fn stems(text: &str) -> BTreeSet<String> {
    phrase::words(text).iter().map(|word| stem(word).to_owned()).collect()
}

/// A word without a plural or a participle.
fn stem(word: &str) -> &str {
    let long = word.len() > 4;
    ["ing", "es", "ed", "s"]
        .iter()
        .find_map(|ending| word.strip_suffix(ending).filter(|rest| long && rest.len() > 2))
        .unwrap_or(word)
}

/// `SmoothAlpha` as `Smooth Alpha`, `npu_cnn` as `npu cnn`, next to the name itself.
fn spaced(id: &str) -> String {
    let mut out = id.to_owned();
    out.push(' ');
    let mut previous = ' ';
    for c in id.chars() {
        if c.is_uppercase() && previous.is_lowercase() {
            out.push(' ');
        }
        out.push(if matches!(c, '_' | '.' | '-') { ' ' } else { c });
        previous = c;
    }
    out
}

/// Names near to a text, or to a word of it.
fn near(text: &str) -> Vec<String> {
    let all = all();
    let names: Vec<&str> = all
        .iter()
        .filter(|thing| !matches!(thing, Thing::Topic(_)))
        .flat_map(|thing| {
            let aliases = thing.entry().map_or(&[][..], |entry| entry.aliases());
            std::iter::once(thing.id()).chain(aliases.iter().map(String::as_str))
        })
        // `Or` is near to everything that contains it.
        .filter(|name| name.len() > 2)
        .collect();
    let readings = std::iter::once(text)
        .chain(text.split_whitespace().filter(|word| !among(FILLERS, &word.to_lowercase())));
    readings
        .map(|reading| near_names(reading, names.iter().copied()))
        .find(|near| !near.is_empty())
        .unwrap_or_default()
        .into_iter()
        .map(str::to_owned)
        .collect()
}
