//! Checks the files beside a model that hold its tensors, without opening them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// A file that a model names and that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The name in the model.
    pub location: String,
    /// Why, to be read after the name.
    pub why: String,
}

/// Those of `files` that are not there, too short, or outside of `folder`.
///
/// Each comes with the length that it must have at least.
pub fn missing(folder: &Path, files: &BTreeMap<String, u64>) -> Vec<Missing> {
    let root =
        fs::canonicalize(if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
    files
        .iter()
        .filter_map(|(location, length)| {
            let why = match &root {
                Ok(root) => defect(root, location, *length)?,
                Err(_) => "is in a folder that cannot be read".to_owned(),
            };
            Some(Missing { location: location.clone(), why })
        })
        .collect()
}

fn defect(root: &Path, location: &str, length: u64) -> Option<String> {
    let Some(relative) = inside(location) else {
        return Some("leaves the folder of the model".to_owned());
    };
    let Ok(file) = fs::canonicalize(root.join(relative)) else {
        return Some("is not there".to_owned());
    };
    if !file.starts_with(root) {
        return Some("is a link out of the folder of the model".to_owned());
    }
    match fs::metadata(&file) {
        Ok(metadata) if !metadata.is_file() => Some("is not a regular file".to_owned()),
        Ok(metadata) if metadata.len() < length => {
            Some(format!("has {} bytes, the model says at least {length}", metadata.len()))
        }
        Ok(_) => None,
        Err(_) => Some("cannot be read".to_owned()),
    }
}

/// The path that a location means, when it stays inside the model's folder on every system.
fn inside(location: &str) -> Option<PathBuf> {
    // Windows takes these as a separator and a drive. Other colons occur in tensors' names, and so in files'.
    let foreign = location.contains('\\') || location.chars().nth(1) == Some(':');
    let path = Path::new(location);
    let stays = !location.is_empty()
        && !foreign
        && !location.contains('\0')
        && path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    stays.then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_that_leave_the_folder_are_refused() {
        for good in ["model.onnx_data", "weights/part0.bin", "./a.bin", "onnx::MatMul_165"] {
            assert!(inside(good).is_some(), "{good}");
        }
        for bad in ["", "/etc/passwd", "../secret", "a/../../b", "..\\b", "C:\\b", "a\0b"] {
            assert!(inside(bad).is_none(), "{bad}");
        }
    }
}
