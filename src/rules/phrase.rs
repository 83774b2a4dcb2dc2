//! Words of a text, and phrases that find them.
//!
//! A phrase is words in any order, all of which the text must have. `choos*` stands for every word that
//! begins so, `preset|method` for either. `quantise` is read as `quantize`, and some words
//! of other languages as the English ones.
//!
//! What follows a negation is not wanted, up to the end of its clause.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

/// What words of other languages that begin so are read as.
const READ_AS: [(&str, &str); 18] = [
    ("quantizier", "quantize"),
    ("quantifi", "quantize"),
    ("cuantiz", "quantize"),
    ("cuantific", "quantize"),
    ("quantizz", "quantize"),
    ("quantizar", "quantize"),
    ("квант", "quantize"),
    ("kwantyz", "quantize"),
    ("instalar", "install"),
    ("instalac", "install"),
    ("установ", "install"),
    ("fehler", "error"),
    ("erreur", "error"),
    ("ошибк", "error"),
    ("genauigkeit", "accuracy"),
    ("modell", "model"),
    ("modèle", "model"),
    ("модел", "model"),
];

/// The same for languages that do not keep words apart.
const READ_AS_INSIDE: [(&str, &str); 18] = [
    ("量化", "quantize"),
    ("量子化", "quantize"),
    ("양자화", "quantize"),
    ("安装", "install"),
    ("安裝", "install"),
    ("インストール", "install"),
    ("설치", "install"),
    ("模型", "model"),
    ("モデル", "model"),
    ("모델", "model"),
    ("精度", "accuracy"),
    ("下降", "drop"),
    ("校准", "calibration"),
    ("计划", "plan"),
    ("報錯", "error"),
    ("报错", "error"),
    ("エラー", "error"),
    ("오류", "error"),
];

/// Words that negate what follows; so does whatever ends in `n't`.
const NEGATIONS: [&str; 12] = [
    "not",
    "no",
    "without",
    "dont",
    "never",
    "avoid",
    "avoiding",
    "except",
    "excluding",
    "neither",
    "nor",
    "cannot",
];
/// The same in two words.
const NEGATIONS_OF_TWO: [(&str, &str); 4] =
    [("instead", "of"), ("rather", "than"), ("other", "than"), ("anything", "but")];
/// After these a negation does not say what is unwanted: "not only fp8", "no accuracy loss".
const NOT_NEGATED: [&str; 23] = [
    "accurate",
    "good",
    "enough",
    "only",
    "just",
    "merely",
    "necessarily",
    "less",
    "more",
    "worse",
    "matter",
    "later",
    "sure",
    "care",
    "mind",
    "know",
    "idea",
    "accuracy",
    "loss",
    "quality",
    "calibration",
    "data",
    "problem",
];
/// Words that say nothing of what is meant.
const FILLERS: [&str; 15] = [
    "a", "an", "the", "any", "much", "big", "my", "me", "it", "this", "be", "lose", "losing",
    "please", "to",
];
/// After what is unwanted they begin what is wanted: "instead of fp8 use int4".
const VERBS: [&str; 18] = [
    "use", "using", "take", "choose", "prefer", "want", "give", "keep", "make", "quantize", "run",
    "running", "deploy", "serve", "go", "get", "do", "need",
];
/// The same after `and`: "no int4 and the best accuracy".
const WANTED_AFTER_AND: [&str; 6] = ["best", "highest", "most", "smallest", "good", "then"];
/// Where it runs is not unwanted with what shall not run there: "no fp8 on MI300X".
const PLACES: [&str; 3] = ["on", "for", "at"];
/// Parts of a model, which are no place.
const PARTS: [&str; 8] =
    ["kv", "cache", "attention", "lm_head", "head", "experts", "weights", "activations"];

/// A word of a text with what stands behind it.
struct Token<'a> {
    word: String,
    text: &'a str,
    ends_clause: bool,
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    let in_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '\'' | '\u{2019}');
    let mut starts: Vec<usize> = Vec::new();
    let mut inside = false;
    for (at, c) in text.char_indices() {
        if in_word(c) && !inside {
            starts.push(at);
        }
        inside = in_word(c);
    }
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts
        .iter()
        .zip(ends)
        .filter_map(|(start, end)| {
            let text = text.get(*start..end)?;
            let word = text.split(|c| !in_word(c)).next().unwrap_or_default();
            let behind = text.get(word.len()..).unwrap_or_default();
            let word = word.to_lowercase().replace('\u{2019}', "'");
            Some(Token { word, text, ends_clause: ends_clause(behind) })
        })
        .collect()
}

/// Whether what stands between two words ends a clause; the full stop of `0.13` does not.
fn ends_clause(between: &str) -> bool {
    between.contains([',', ';', ':', '!', '?', '(', ')', '\n', '–', '—', '，', '；', '。', '、'])
        || between.contains(" - ")
        || between.split_once('.').is_some_and(|(_, rest)| rest.starts_with(char::is_whitespace))
}

/// A whole number in digits, or up to sixteen in words.
pub fn number(word: &str) -> Option<u64> {
    let words = [
        "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
        "twelve", "thirteen", "fourteen", "fifteen", "sixteen",
    ];
    let in_words = || (1_u64..).zip(words).find(|(_, known)| *known == word).map(|(n, _)| n);
    word.parse().ok().or_else(in_words)
}

/// What a text asks for, and what it says is not wanted.
pub fn wanted_and_not(text: &str) -> (String, String) {
    let tokens = tokens(text);
    let word = |at: usize| tokens.get(at).map_or("", |token| token.word.as_str());
    let telling = |from: usize| {
        (from..tokens.len()).map(word).find(|word| !FILLERS.contains(word)).unwrap_or_default()
    };
    let (mut wanted, mut unwanted) = (String::new(), String::new());
    let mut negated = false;
    // Whether the negation has named something already.
    let mut named = false;
    for (at, token) in tokens.iter().enumerate() {
        let this = token.word.as_str();
        if negates(this, word(at + 1)) && !NOT_NEGATED.contains(&telling(at + 1)) {
            (negated, named) = (true, false);
        } else if negated {
            let place = PLACES.contains(&this) && !PARTS.contains(&telling(at + 1));
            let next = telling(at + 1);
            let turns =
                this == "and" && (VERBS.contains(&next) || WANTED_AFTER_AND.contains(&next));
            let opposes = this == "but" && word(at.saturating_sub(1)) != "anything";
            negated = !(opposes || turns || named && (place || VERBS.contains(&this)));
            let says_nothing = FILLERS.contains(&this)
                || VERBS.contains(&this)
                || PLACES.contains(&this)
                || ["of", "than", "but", "with"].contains(&this);
            named |= !says_nothing;
        }
        if negated { &mut unwanted } else { &mut wanted }.push_str(token.text);
        if token.ends_clause {
            negated = false;
        }
    }
    (wanted, unwanted)
}

fn negates(word: &str, next: &str) -> bool {
    NEGATIONS.contains(&word) || word.ends_with("n't") || NEGATIONS_OF_TWO.contains(&(word, next))
}

/// The words of a text, in lower case: letters, digits and `_` make a word, and `Q/DQ` is one.
///
/// Letters of scripts without spaces end a word of another script.
pub fn words(text: &str) -> Vec<String> {
    let mut text = text.to_lowercase().replace("q/dq", "qdq").replace("quantis", "quantiz");
    for (inside, word) in READ_AS_INSIDE {
        text = text.replace(inside, &format!(" {word} "));
    }
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
        .flat_map(|part| part.split(is_unspaced))
        .filter(|word| !word.is_empty())
        .map(|word| {
            let foreign = READ_AS.iter().find(|(start, _)| word.starts_with(start));
            foreign.map_or(word, |(_, read)| read).to_owned()
        })
        .collect()
}

/// Letters of Chinese, Japanese and Korean.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}')
}

/// The words of a text that a phrase finds, a word of its own for each, in the phrase's order; `None` when
/// one is missing.
pub fn found<'a>(phrase: &str, words: &'a [String]) -> Option<Vec<&'a str>> {
    let mut taken = vec![false; words.len()];
    phrase
        .split_whitespace()
        .map(|part| {
            let fit = |word: &str| part.split('|').any(|pattern| fits(pattern, word));
            let at = (0..words.len()).find(|at| !taken[*at] && fit(&words[*at]))?;
            taken[at] = true;
            Some(words[at].as_str())
        })
        .collect()
}

/// The longest finding of several phrases, with the number of phrases that find something.
pub fn best<'a>(phrases: &[String], words: &'a [String]) -> Option<(Vec<&'a str>, usize)> {
    let findings: Vec<Vec<&str>> = phrases.iter().filter_map(|p| found(p, words)).collect();
    let count = findings.len();
    // The first of the longest: the data's order decides.
    let longest = findings.into_iter().rev().max_by_key(Vec::len)?;
    Some((longest, count))
}

fn fits(pattern: &str, word: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => word.starts_with(beginning),
        None => word == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phrase_needs_all_its_words_in_any_order() {
        let check = |phrase: &str, text: &str, expected: Option<&[&str]>| {
            assert_eq!(found(phrase, &words(text)).as_deref(), expected, "`{phrase}` in `{text}`");
        };
        check("choos* preset|method", "a Preset to choose", Some(&["choose", "preset"]));
        check("choos* preset|method", "choose one", None);
        check("fp8|int4 or fp8|int4", "FP8 or better", None);
        check("qdq", "the Q/DQ nodes", Some(&["qdq"]));
        check("quantize onnx", "Quantise ./m/yolov8n.onnx", Some(&["quantize", "onnx"]));
        check("quantize", "the quantized model", None);
        check("npu_cnn", "enable npu_cnn!", Some(&["npu_cnn"]));
        check("quantize mxfp4", "把Qwen2.5量化成MXFP4", Some(&["quantize", "mxfp4"]));
        check("quantize onnx", "Ein onnx-Modell quantisieren", Some(&["quantize", "onnx"]));
        check("quantize", "la cuantización", Some(&["quantize"]));
    }

    #[test]
    fn what_a_negation_governs_is_not_wanted() {
        let check = |text: &str, wanted: &str, unwanted: &str| {
            let (yes, no) = wanted_and_not(text);
            assert_eq!(
                (words(&yes).join(" ").as_str(), words(&no).join(" ").as_str()),
                (wanted, unwanted),
                "`{text}`"
            );
        };
        check("don't use fp8; int8", "int8", "don t use fp8");
        check("Don\u{2019}t use fp8. Int8", "int8", "don t use fp8");
        check("no int4, best accuracy", "best accuracy", "no int4");
        check("no int4 or fp8 on MI300X", "on mi300x", "no int4 or fp8");
        check("do not run on the cpu", "do", "not run on the cpu");
        check("A8W8 instead of XINT8", "a8w8", "instead of xint8");
        check("instead of XINT8 use A8W8", "use a8w8", "instead of xint8");
        check("int8 rather than int4 but fast", "int8 but fast", "rather than int4");
        check("no int4 and the best accuracy", "and the best accuracy", "no int4");
        check("anything but fp8", "", "anything but fp8");
        check("no fp8 for the kv cache", "", "no fp8 for the kv cache");
        check("not only fp8", "not only fp8", "");
        check("fp8 without any accuracy loss", "fp8 without any accuracy loss", "");
        check("int8, no calibration data", "int8 no calibration data", "");
        check("no amd-quark 0.13 please", "", "no amd quark 0 13 please");
    }
}
