//! From what somebody types to the thing that is meant: a name, a question, or free words.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    catalogue::Catalogue,
    planner::explain::things::{Thing, all, named},
    rules::{errors, phrase},
    vocab::near_names,
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

fn among(words: &str, word: &str) -> bool {
    words.split(' ').any(|known| known == word)
}

/// Finds what a text means.
pub(super) fn meant(text: &str) -> Meant {
    let text = text.trim().trim_matches('`').trim();
    let mut whole = named(text).into_iter();
    if let Some(first) = whole.next() {
        return Meant::One(first, whole.collect());
    }
    let names = names_in(text);
    let words = phrase::words(text);
    if let Some((a, b)) = pair(&names)
        && (of_kind(&names, a) == 2 || topic(&words, &[]).is_none())
    {
        let rest = names.iter().copied().filter(|thing| !thing.is(a) && !thing.is(b)).collect();
        return Meant::Two(a, b, rest);
    }
    if let Some(topic) = topic(&words, &names) {
        return Meant::One(topic, names);
    }
    if let Some((first, rest)) = names.split_first() {
        return Meant::One(*first, rest.to_vec());
    }
    if let Some(recovery) = errors::recognise(Catalogue, text, None) {
        return Meant::One(Thing::Recovery(recovery), Vec::new());
    }
    let mut scored = by_words(&words).into_iter();
    match scored.next() {
        Some(best) => Meant::One(best, scored.take(4).collect()),
        None => Meant::Nothing(near(text)),
    }
}

/// The first two things of one kind.
fn pair(names: &[Thing]) -> Option<(Thing, Thing)> {
    names.iter().enumerate().find_map(|(at, a)| {
        let b = names[at + 1..].iter().find(|b| b.kind() == a.kind())?;
        Some((*a, *b))
    })
}

fn of_kind(names: &[Thing], one: Thing) -> usize {
    names.iter().filter(|thing| thing.kind() == one.kind()).count()
}

/// The topic that is asked about, unless a name in the text says more.
fn topic(words: &[String], names: &[Thing]) -> Option<Thing> {
    let mut best: Option<(Thing, Vec<&str>)> = None;
    for topic in Catalogue.topics().all() {
        if let Some((found, _)) = phrase::best(&topic.asked, words)
            && best.as_ref().is_none_or(|(_, known)| found.len() > known.len())
        {
            best = Some((Thing::Topic(topic), found));
        }
    }
    let (topic, found) = best?;
    let Thing::Topic(entry) = topic else { return None };
    let precise = names.iter().find(|thing| {
        !matches!(
            thing,
            Thing::Target(_) | Thing::Decision(_) | Thing::Release(_) | Thing::Device(_)
        )
    });
    let says_more = precise.is_some_and(|thing| {
        let name = phrase::words(thing.id());
        let mut findings = entry.asked.iter().filter_map(|asked| phrase::found(asked, words));
        let inside = findings.any(|found| name.iter().any(|word| found.contains(&word.as_str())));
        found.len() < 3 && !inside
    });
    let too_little = found.len() < 2 && !names.is_empty();
    (!says_more && !too_little).then_some(topic)
}

/// Names that stand in a text, in its order; the longest reading of neighbouring words counts.
fn names_in(text: &str) -> Vec<Thing> {
    let tokens: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || "/,;:()[]\"'`?!|&".contains(c))
        .map(|token| token.trim_end_matches('.'))
        .filter(|token| !token.is_empty())
        .collect();
    let mut names: Vec<Thing> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let longest = (1..=3.min(tokens.len() - at)).rev().find_map(|length| {
            let reading = tokens[at..at + length].join(" ");
            named(&reading)
                .into_iter()
                .find(|thing| certain(*thing, &reading))
                .map(|thing| (thing, length))
        });
        match longest {
            Some((thing, length)) => {
                if !names.iter().any(|known| known.is(thing)) {
                    names.push(thing);
                }
                at += length;
            }
            None => at += 1,
        }
    }
    names
}

/// Whether a word inside a sentence surely is this name and not an ordinary word.
fn certain(thing: Thing, reading: &str) -> bool {
    let exact = thing.id() == reading;
    match thing {
        Thing::Topic(_) => false,
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
fn by_words(words: &[String]) -> Vec<Thing> {
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
