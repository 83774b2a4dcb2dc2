//! Reads model files into facts, without Python and without a weight.
//!
//! One submodule for each format, with `sniff` (does this look like mine?) and `read`. Readers trust no
//! length that a file declares, have limits on depth, text, work and memory, and never panic: whatever
//! the bytes are, the answer is facts or an [`IntakeError`] that names the file, the place and a way out.
//!
//! This module judges no quantization: what a fact means for a plan is for the rules.

pub mod onnx;

mod formats;

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::intake::onnx::defect::Defect;

/// Why a model could not be read.
#[derive(Debug, Error)]
pub enum IntakeError {
    /// Nothing at that path.
    #[error("there is no file or folder `{}`", path.display())]
    NotFound {
        /// The path.
        path: PathBuf,
    },
    /// A folder without a model.
    #[error("there is no `.onnx` file in the folder `{}`", folder.display())]
    NoModel {
        /// The folder.
        folder: PathBuf,
    },
    /// A folder with several models.
    #[error("the folder `{}` holds {} models: {}", folder.display(), files.len(), list(files))]
    Ambiguous {
        /// The folder.
        folder: PathBuf,
        /// The names of the models, sorted.
        files: Vec<String>,
    },
    /// A device, a pipe or a socket.
    #[error("`{}` is not a regular file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// A file of no bytes.
    #[error("`{}` is empty", path.display())]
    Empty {
        /// The path.
        path: PathBuf,
    },
    /// Not an ONNX model at all.
    #[error("`{}` is no ONNX model, it looks like {looks_like}", path.display())]
    NotOnnx {
        /// The path.
        path: PathBuf,
        /// What it looks like, with its article.
        looks_like: &'static str,
    },
    /// An ONNX model with broken bytes.
    #[error("`{}` is not a well-formed ONNX model", path.display())]
    Malformed {
        /// The path.
        path: PathBuf,
        /// What is broken, and where.
        #[source]
        defect: Defect,
    },
    /// A model beyond the limits of the reader.
    #[error("`{}` is beyond the limits of the reader", path.display())]
    Limit {
        /// The path.
        path: PathBuf,
        /// Which limit, and where.
        #[source]
        defect: Defect,
    },
    /// The operating system refused.
    #[error("cannot read `{}`", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// Why.
        #[source]
        cause: io::Error,
    },
}

impl IntakeError {
    /// The stable name of the kind of error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFound { .. } | Self::NoModel { .. } => "MODEL_NOT_FOUND",
            Self::Ambiguous { .. } => "MODEL_AMBIGUOUS",
            Self::NotAFile { .. } | Self::Io { .. } => "MODEL_IO",
            Self::Empty { .. } => "MODEL_EMPTY",
            Self::NotOnnx { .. } => "MODEL_NOT_ONNX",
            Self::Malformed { .. } => "MODEL_MALFORMED",
            Self::Limit { .. } => "MODEL_LIMIT",
        }
    }

    /// One thing to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::NotFound { .. } => {
                "give the path of an `.onnx` file or of the folder that holds it".to_owned()
            }
            Self::NoModel { .. } => {
                "give the path of the `.onnx` file itself; a folder needs `model.onnx` or exactly one other \
                 `.onnx` file directly in it"
                    .to_owned()
            }
            Self::Ambiguous { files, .. } => {
                let first = files.first().map_or("", String::as_str);
                format!("give the path of one of them, for example `{}`", escape(first))
            }
            Self::NotAFile { .. } => "give the path of a regular `.onnx` file".to_owned(),
            Self::Empty { .. } => "export or download the model again".to_owned(),
            Self::NotOnnx { looks_like, .. } if *looks_like == formats::LFS_POINTER => {
                "fetch the real file with `git lfs pull`".to_owned()
            }
            Self::NotOnnx { .. } => "give the path of an `.onnx` file".to_owned(),
            Self::Malformed { .. } => {
                "the file is damaged or cut off: export or download it again".to_owned()
            }
            Self::Limit { .. } => {
                "check the file with `onnx.checker`; no real model is known to need more".to_owned()
            }
            Self::Io { .. } => "check that the file exists and that you may read it".to_owned(),
        }
    }

    fn io(path: &Path, cause: io::Error) -> Self {
        match cause.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                Self::NotFound { path: path.to_owned() }
            }
            _ => Self::Io { path: path.to_owned(), cause },
        }
    }
}

/// The model file that `path` means: itself, or the one `.onnx` file of a folder.
fn locate(path: &Path) -> Result<PathBuf, IntakeError> {
    let metadata = fs::metadata(path).map_err(|cause| IntakeError::io(path, cause))?;
    if metadata.is_file() {
        return Ok(path.to_owned());
    }
    if !metadata.is_dir() {
        // Opening a pipe would wait for a writer.
        return Err(IntakeError::NotAFile { path: path.to_owned() });
    }
    let usual = path.join("model.onnx");
    if usual.is_file() {
        return Ok(usual);
    }
    let mut models = Vec::new();
    for entry in fs::read_dir(path).map_err(|cause| IntakeError::io(path, cause))? {
        let file = entry.map_err(|cause| IntakeError::io(path, cause))?.path();
        let is_onnx = file.extension().is_some_and(|ext| ext.eq_ignore_ascii_case("onnx"));
        if is_onnx && file.is_file() {
            models.push(file);
        }
    }
    models.sort();
    match models.as_slice() {
        [] => Err(IntakeError::NoModel { folder: path.to_owned() }),
        [only] => Ok(only.clone()),
        _ => {
            let name = |file: &PathBuf| {
                file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
            };
            Err(IntakeError::Ambiguous {
                folder: path.to_owned(),
                files: models.iter().map(name).collect(),
            })
        }
    }
}

/// The first bytes of a file, at most `size`.
fn head(source: &mut impl Read, size: u64) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    source.take(size).read_to_end(&mut head)?;
    Ok(head)
}

/// Text from a file, made safe to show: short, on one line, without control characters.
fn escape(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut shown: String = text
        .chars()
        .take(LONGEST)
        .map(|c| if c.is_control() || is_invisible(c) { '\u{fffd}' } else { c })
        .map(|c| if c == '`' { '\'' } else { c })
        .collect();
    if text.chars().nth(LONGEST).is_some() {
        shown.push('…');
    }
    shown
}

/// Characters that change how the text around them is shown.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// A few names in backticks, and how many more there are.
fn list<T: AsRef<str>>(names: &[T]) -> String {
    const SHOWN: usize = 5;
    let shown: Vec<String> =
        names.iter().take(SHOWN).map(|name| format!("`{}`", escape(name.as_ref()))).collect();
    let more = names.len().saturating_sub(SHOWN);
    if more > 0 { format!("{} and {more} more", shown.join(", ")) } else { shown.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_from_files_are_shown_short_and_on_one_line() {
        assert_eq!(escape("a\nb`c\u{202e}"), "a\u{fffd}b'c\u{fffd}");
        assert_eq!(escape(&"x".repeat(100)).chars().count(), 61);
        assert_eq!(
            list(&["a", "b", "c", "d", "e", "f", "g"]),
            "`a`, `b`, `c`, `d`, `e` and 2 more"
        );
    }
}
