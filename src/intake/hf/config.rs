//! `config.json`: read as Python reads it, and asked for one fact under all the names it goes by.

use serde_json::{Map, Value};

use crate::intake::IntakeError;

/// Keys of the language model inside of a config of several models, outermost first.
const TEXT_KEYS: [&str; 8] = [
    "thinker_config",
    "text_config",
    "language_config",
    "llm_config",
    "language_model_config",
    "text_model_config",
    "llm_backbone_config",
    "decoder",
];
/// How deep a language model may be nested.
const NESTING: usize = 3;
/// Bytes of one text that is worth keeping.
const TEXT: usize = 256;

/// A config and the part of it that describes the language model.
#[derive(Debug)]
pub struct Config {
    /// The whole config.
    pub top: Map<String, Value>,
    /// The keys down to the language model; empty when it is not nested.
    pub text_path: Vec<&'static str>,
}

impl Config {
    /// The config in a JSON text.
    pub fn parse(bytes: &[u8]) -> Result<Self, Fault> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let value: Value = match serde_json::from_slice(bytes) {
            Ok(value) => value,
            Err(error) => without_constants(bytes)
                .and_then(|text| serde_json::from_slice(&text).ok())
                .ok_or(Fault::Json { line: error.line(), column: error.column() })?,
        };
        let Value::Object(top) = value else { return Err(Fault::NotATable) };
        let mut text_path = Vec::new();
        let mut at = &top;
        while text_path.len() < NESTING {
            let nested = TEXT_KEYS.iter().find_map(|key| Some((*key, at.get(*key)?.as_object()?)));
            let Some((key, inner)) = nested else { break };
            text_path.push(key);
            at = inner;
        }
        Ok(Self { top, text_path })
    }

    /// The part of the language model.
    pub fn text(&self) -> &Map<String, Value> {
        self.levels().last().unwrap_or(&self.top)
    }

    /// The whole config, then every level down to the language model.
    pub fn levels(&self) -> impl DoubleEndedIterator<Item = &Map<String, Value>> {
        let mut levels = vec![&self.top];
        for key in &self.text_path {
            levels.extend(levels.last().and_then(|level| level.get(*key)?.as_object()));
        }
        levels.into_iter()
    }
}

/// What is wrong with a config.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Not JSON, not even with the constants that Python adds.
    Json {
        /// Where.
        line: usize,
        /// Where.
        column: usize,
    },
    /// JSON that is no object.
    NotATable,
}

impl Fault {
    /// The error for a file.
    pub fn at(self, path: &std::path::Path) -> IntakeError {
        let path = path.to_owned();
        match self {
            Self::Json { line, column } => IntakeError::NotJson { path, line, column },
            Self::NotATable => IntakeError::NotAConfig { path },
        }
    }
}

/// The text with `NaN`, `Infinity` and `-Infinity`, which Python writes and reads, turned into `null`.
///
/// `None` when there are none.
fn without_constants(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    let mut found = false;
    let mut in_string = false;
    while let Some(&byte) = rest.first() {
        if in_string {
            let taken = if byte == b'\\' { rest.len().min(2) } else { 1 };
            in_string = byte != b'"';
            out.extend_from_slice(&rest[..taken]);
            rest = &rest[taken..];
            continue;
        }
        let constant = [&b"NaN"[..], b"Infinity", b"-Infinity"]
            .into_iter()
            .find(|constant| rest.starts_with(constant));
        if let Some(constant) = constant {
            found = true;
            out.extend_from_slice(b"null");
            rest = &rest[constant.len()..];
            continue;
        }
        in_string = byte == b'"';
        out.push(byte);
        rest = &rest[1..];
    }
    found.then_some(out)
}

/// The first of the keys that holds a whole number.
pub fn number(of: &Map<String, Value>, keys: &[&str]) -> Option<u64> {
    keys.iter().find_map(|key| whole(of.get(*key)?))
}

/// A whole number, also when it is written as a float.
pub fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let float = value.as_f64().filter(|float| float.fract() == 0.0)?;
        (0.0..9e15).contains(&float).then_some(float as u64)
    })
}

/// The first of the keys that holds a text, cut to a sane length.
pub fn text(of: &Map<String, Value>, keys: &[&str]) -> Option<String> {
    keys.iter().find_map(|key| of.get(*key)?.as_str()).map(short)
}

/// The first of the keys that holds yes or no.
pub fn flag(of: &Map<String, Value>, keys: &[&str]) -> Option<bool> {
    keys.iter().find_map(|key| of.get(*key)?.as_bool())
}

/// The list under a key.
pub fn list<'a>(of: &'a Map<String, Value>, key: &str) -> Option<&'a Vec<Value>> {
    of.get(key)?.as_array()
}

/// The object under a key.
pub fn table<'a>(of: &'a Map<String, Value>, key: &str) -> Option<&'a Map<String, Value>> {
    of.get(key)?.as_object()
}

/// The text, cut to a sane length.
pub fn short(text: &str) -> String {
    text.chars().take(TEXT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_of_python_are_read_and_texts_left_alone() {
        let config =
            Config::parse(br#"{"a": [NaN, -Infinity, Infinity], "b": "NaN \" Infinity"}"#).unwrap();
        assert_eq!(config.top["a"], serde_json::json!([null, null, null]));
        assert_eq!(config.top["b"], "NaN \" Infinity");
        let check =
            |text: &str, fault| assert_eq!(Config::parse(text.as_bytes()).err(), Some(fault));
        check("[1]", Fault::NotATable);
        check("{\"a\": 1, // no\n}", Fault::Json { line: 1, column: 10 });
        check("{\"a\": \"\\", Fault::Json { line: 1, column: 8 });
    }

    #[test]
    fn language_models_are_found_where_they_are_nested() {
        let check = |text: &str, path: &[&str]| {
            assert_eq!(Config::parse(text.as_bytes()).unwrap().text_path, path, "{text}");
        };
        check(r#"{"hidden_size": 4}"#, &[]);
        check(r#"{"text_config": null}"#, &[]);
        check(r#"{"vision_config": {}, "llm_config": {}}"#, &["llm_config"]);
        check(
            r#"{"thinker_config": {"text_config": {}, "audio_config": {}}}"#,
            &["thinker_config", "text_config"],
        );
    }
}
