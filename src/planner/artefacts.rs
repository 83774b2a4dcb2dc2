//! Reading the artefacts of other skills: from a path, or handed over inline.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::{
    plan::{Input, digest::Digest},
    planner::{Planner, error::Error},
};

/// The largest artefact that is read, in bytes.
const LARGEST: u64 = 64 * 1024 * 1024;

/// An artefact with where it came from.
#[derive(Debug, Clone)]
pub struct Artefact<T> {
    /// What it says.
    pub value: T,
    /// Where it was read.
    pub path: Option<PathBuf>,
    /// Its entry in the inputs of a draft.
    pub input: Input,
}

impl Planner {
    /// Reads an artefact that may be given by path or inline, but not both.
    ///
    /// # Errors
    ///
    /// When both are given, the file cannot be read, or a field is missing or wrong.
    pub fn artefact<T: DeserializeOwned>(
        &self,
        role: &'static str,
        path: Option<&Path>,
        inline: Option<&Map<String, Value>>,
    ) -> Result<Option<Artefact<T>>, Error> {
        match (path, inline) {
            (None, None) => Ok(None),
            (Some(_), Some(_)) => Err(Error::Arguments {
                message: format!("`{role}` is given twice, by path and inline"),
                hint: format!("give `{role}` or `{role}_path`, not both"),
            }),
            (Some(path), None) => self.artefact_at(role, path).map(Some),
            (None, Some(object)) => {
                let value = Value::Object(object.clone());
                let digest = Digest::of_json(&value);
                let value = typed(role, None, &value.to_string())?;
                let input = Input { role: role.to_owned(), path: None, digest: digest.to_string() };
                Ok(Some(Artefact { value, path: None, input }))
            }
        }
    }

    /// Reads an artefact from a file.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or a field is missing or wrong.
    pub fn artefact_at<T: DeserializeOwned>(
        &self,
        role: &'static str,
        path: &Path,
    ) -> Result<Artefact<T>, Error> {
        let whole = self.whole(path);
        let shown = path.display().to_string();
        let bytes = read_limited(&whole).map_err(|source| Error::ArtefactMissing {
            role,
            path: shown.clone(),
            source,
        })?;
        let digest = Digest::of_bytes(&bytes);
        let text = std::str::from_utf8(&bytes).map_err(|_| Error::ArtefactInvalid {
            role,
            place: Some(shown.clone()),
            detail: "it is not UTF-8 text".to_owned(),
        })?;
        let value = typed(role, Some(shown), text.trim_start_matches('\u{feff}'))?;
        let input = Input {
            role: role.to_owned(),
            path: Some(whole.display().to_string()),
            digest: digest.to_string(),
        };
        Ok(Artefact { value, path: Some(whole), input })
    }
}

/// The digest of a file as it is now; `None` when it cannot be read.
pub fn digest_of_file(path: &Path) -> Option<Digest> {
    read_limited(path).ok().map(|bytes| Digest::of_bytes(&bytes))
}

fn read_limited(path: &Path) -> std::io::Result<Vec<u8>> {
    let found = fs::metadata(path)?;
    if !found.is_file() {
        return Err(std::io::Error::other("it is not a regular file"));
    }
    if found.len() > LARGEST {
        return Err(std::io::Error::other("it is larger than 64 MiB"));
    }
    fs::read(path)
}

fn typed<T: DeserializeOwned>(
    role: &'static str,
    place: Option<String>,
    text: &str,
) -> Result<T, Error> {
    let invalid = |detail| Error::ArtefactInvalid { role, place: place.clone(), detail };
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let field = error.path().to_string();
        let inner = error.inner();
        invalid(if field == "." { inner.to_string() } else { format!("`{field}`: {inner}") })
    })?;
    // Text behind the value would be lost.
    reader.end().map_err(|error| invalid(error.to_string()))?;
    Ok(value)
}
