//! Reads model files into facts, without Python and without a weight.
//!
//! One submodule for each format, with `sniff` (does this look like mine?) and `read`. Readers trust no
//! length that a file declares, have limits on depth, text, work and memory, and never panic: whatever
//! the bytes are, the answer is facts or an [`IntakeError`] that names the file, the place and a way out.
//!
//! This module judges no quantization: what a fact means for a plan is for the rules.

pub mod hf;
pub mod onnx;
pub mod safetensors;

mod formats;

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::facts::ModelAnalysis;
use crate::intake::hf::TorchModel;
use crate::intake::onnx::defect::Defect;

/// A model of either kind.
#[derive(Debug, Clone)]
pub enum AnyModel {
    /// An ONNX model.
    Onnx(onnx::Model),
    /// A Hugging Face model.
    Torch(TorchModel),
}

impl AnyModel {
    /// What is written to `model_analysis.json`.
    pub fn analysis(&self) -> &ModelAnalysis {
        match self {
            Self::Onnx(model) => &model.analysis,
            Self::Torch(model) => &model.analysis,
        }
    }
}

/// Reads the model at `path`, whichever kind it is, within the usual limits.
///
/// A folder is ONNX when it holds an `.onnx` file and no weights of PyTorch; with both it is ambiguous.
pub fn read(path: &Path) -> Result<AnyModel, IntakeError> {
    if is_torch(path)? {
        hf::read(path, &safetensors::Limits::default()).map(AnyModel::Torch)
    } else {
        onnx::read(path, &onnx::wire::Limits::default()).map(AnyModel::Onnx)
    }
}

/// Whether `path` is for the Hugging Face reader, by names and first bytes.
fn is_torch(path: &Path) -> Result<bool, IntakeError> {
    let Ok(metadata) = fs::metadata(path) else { return Ok(hf::hub_id(path).is_some()) };
    if metadata.is_dir() {
        let names = names(path)?;
        let with =
            |ends: &[&str]| names.iter().find(|name| ends.iter().any(|end| name.ends_with(end)));
        let weights = with(&[".safetensors", ".safetensors.index.json", ".gguf"])
            .or_else(|| names.iter().find(|name| name.starts_with("pytorch_model")));
        return match (with(&[".onnx"]), weights) {
            (Some(onnx), Some(torch)) => Err(IntakeError::TwoKinds {
                folder: path.to_owned(),
                onnx: onnx.clone(),
                torch: torch.clone(),
            }),
            (Some(_), None) => Ok(false),
            (None, _) => Ok(true),
        };
    }
    if !metadata.is_file() {
        return Ok(false);
    }
    let extension =
        path.extension().and_then(|ext| ext.to_str()).unwrap_or("").to_ascii_lowercase();
    match extension.as_str() {
        "safetensors" | "gguf" | "json" => Ok(true),
        "onnx" => Ok(false),
        _ => {
            let file = File::open(path).map_err(|cause| IntakeError::io(path, cause));
            let head = head(&mut file?, 64).map_err(|cause| IntakeError::io(path, cause))?;
            Ok(matches!(formats::looks_like(&head), Some(formats::JSON)))
        }
    }
}

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
    /// A folder without any model.
    #[error("there is no model in the folder `{}`", folder.display())]
    NothingKnown {
        /// The folder.
        folder: PathBuf,
    },
    /// A folder with models of two kinds.
    #[error(
        "the folder `{}` holds an ONNX model (`{}`) and a PyTorch one (`{}`)",
        folder.display(),
        escape(onnx),
        escape(torch)
    )]
    TwoKinds {
        /// The folder.
        folder: PathBuf,
        /// The first ONNX file.
        onnx: String,
        /// The first file with weights of PyTorch.
        torch: String,
    },
    /// The name of a model on the Hub, which is not here.
    #[error("there is no file or folder `{id}`; it looks like a model on the Hugging Face Hub")]
    HubId {
        /// The name.
        id: String,
    },
    /// A config that is not JSON.
    #[error("`{}` is not JSON at line {line}, column {column}", path.display())]
    NotJson {
        /// The path.
        path: PathBuf,
        /// Where.
        line: usize,
        /// Where.
        column: usize,
    },
    /// JSON that is no config.
    #[error("`{}` is no config of a model: it is JSON, but no object", path.display())]
    NotAConfig {
        /// The path.
        path: PathBuf,
    },
    /// A config too long to be one.
    #[error("`{}` has more than {limit} bytes, too many for a config", path.display())]
    TooLarge {
        /// The path.
        path: PathBuf,
        /// The limit.
        limit: u64,
    },
    /// A file of weights, given alone, that cannot be used.
    #[error("the weights of `{}` cannot be read", path.display())]
    Weights {
        /// The path.
        path: PathBuf,
        /// What is wrong.
        #[source]
        problem: safetensors::problem::Problem,
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
            Self::NotFound { .. } | Self::NoModel { .. } | Self::NothingKnown { .. } => {
                "MODEL_NOT_FOUND"
            }
            Self::HubId { .. } => "MODEL_NOT_LOCAL",
            Self::Ambiguous { .. } | Self::TwoKinds { .. } => "MODEL_AMBIGUOUS",
            Self::NotAFile { .. } | Self::Io { .. } => "MODEL_IO",
            Self::Empty { .. } => "MODEL_EMPTY",
            Self::NotOnnx { .. } => "MODEL_NOT_ONNX",
            Self::NotJson { .. } | Self::NotAConfig { .. } => "MODEL_NOT_CONFIG",
            Self::Malformed { .. } => "MODEL_MALFORMED",
            Self::Weights { problem, .. } if problem.is_limit() => "MODEL_LIMIT",
            Self::Weights { .. } => "MODEL_MALFORMED",
            Self::Limit { .. } | Self::TooLarge { .. } => "MODEL_LIMIT",
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
            Self::NothingKnown { .. } => {
                "give a folder with a `config.json`, or the path of an `.onnx` file".to_owned()
            }
            Self::TwoKinds { onnx, .. } => format!(
                "give the path of `{}` or of `config.json` to say which one is meant",
                escape(onnx)
            ),
            Self::HubId { id } => format!(
                "download it (`hf download {id} --local-dir DIR`, the config and the safetensors headers are \
                 enough) and give that folder, or let quark-torch-model-intake analyze the id"
            ),
            Self::NotJson { .. } | Self::NotAConfig { .. } | Self::TooLarge { .. } => {
                "give the `config.json` of a Hugging Face model, or its folder".to_owned()
            }
            Self::Malformed { .. } | Self::Weights { .. } => {
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

/// The sorted names of the files in a folder; what is no text is left out.
fn names(folder: &Path) -> Result<Vec<String>, IntakeError> {
    /// More is no folder of a model.
    const MOST: usize = 100_000;
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(|cause| IntakeError::io(folder, cause))?.take(MOST) {
        let entry = entry.map_err(|cause| IntakeError::io(folder, cause))?;
        names.extend(entry.file_name().into_string());
    }
    names.sort();
    Ok(names)
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
