//! Words of a text, and phrases that find them.
//!
//! A phrase is words in any order, all of which the text must have. `choos*` stands for every word that
//! begins so, `preset|method` for either. `quantise` is read as `quantize`, and some words
//! of other languages as the English ones.

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
}
