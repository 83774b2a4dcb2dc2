//! SHA-256 over the canonical JSON of what the user is shown and what it was derived from.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// A SHA-256, written as `sha256:<64 hex digits>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Digest(Box<str>);

impl Digest {
    /// The digest of some bytes.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        let hash = Sha256::digest(bytes);
        let mut text = String::with_capacity(71);
        text.push_str("sha256:");
        for byte in hash {
            text.push_str(&format!("{byte:02x}"));
        }
        Self(text.into())
    }

    /// The digest of the canonical JSON of a value: keys sorted, no white space.
    pub fn of_json(value: &impl Serialize) -> Self {
        // `serde_json::Value` keeps objects in a `BTreeMap`, so keys come out sorted.
        let value = serde_json::to_value(value).unwrap_or_default();
        Self::of_bytes(value.to_string().as_bytes())
    }

    /// The whole text, with its `sha256:`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first twelve hex digits, for people.
    pub fn short(&self) -> &str {
        self.0.strip_prefix("sha256:").and_then(|hex| hex.get(..12)).unwrap_or(&self.0)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for Digest {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn key_order_does_not_reach_the_digest() {
        let a = serde_json::from_str::<serde_json::Value>(r#"{"b":1,"a":[2,{"d":3,"c":4}]}"#);
        let b = json!({"a": [2, {"c": 4, "d": 3}], "b": 1});
        assert_eq!(Digest::of_json(&a.unwrap()), Digest::of_json(&b));
        assert_ne!(Digest::of_json(&b), Digest::of_json(&json!({"a": []})));
    }
}
