//! Which files a path means: the config, the weights, and what says that it is no plain model.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::intake::hf::parent;
use crate::intake::safetensors::shards::{self, Plan};
use crate::intake::{IntakeError, names};

/// Files of tokenizers.
const TOKENIZERS: [&str; 8] = [
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "vocab.json",
    "vocab.txt",
    "spiece.model",
    "sentencepiece.bpe.model",
    "tiktoken.model",
];

/// What the path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A folder, or the `config.json` in it.
    Folder,
    /// A config with another name, alone.
    Config,
    /// A file of weights.
    Weights,
}

/// The files that a path means.
#[derive(Debug)]
pub struct Folder {
    /// What the path is.
    pub source: Source,
    /// The folder.
    pub path: PathBuf,
    /// The names in it, sorted.
    names: Vec<String>,
    /// The config.
    pub config: Option<PathBuf>,
    /// The safetensors files.
    pub safetensors: Option<Plan>,
    /// GGUF files.
    pub gguf: Vec<String>,
    /// Pickled weights.
    pub pickled: Vec<String>,
}

impl Folder {
    /// The files that `path` means.
    pub fn of(path: &Path) -> Result<Self, IntakeError> {
        let metadata = fs::metadata(path).map_err(|cause| IntakeError::io(path, cause))?;
        let name =
            path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if metadata.is_dir() {
            return Self::whole(path.to_owned());
        }
        if !metadata.is_file() {
            return Err(IntakeError::NotAFile { path: path.to_owned() });
        }
        if name == "config.json" || name.ends_with(shards::INDEX) {
            return Self::whole(parent(path));
        }
        let mut folder = Self {
            source: Source::Config,
            path: parent(path),
            names: Vec::new(),
            config: None,
            safetensors: None,
            gguf: Vec::new(),
            pickled: Vec::new(),
        };
        let config = folder.path.join("config.json");
        if name.ends_with(".safetensors") {
            folder.source = Source::Weights;
            folder.config = config.is_file().then_some(config);
            folder.safetensors = Some(Plan { files: vec![name], ..Plan::default() });
        } else if is_gguf(&name) {
            folder.source = Source::Weights;
            folder.gguf = vec![name];
        } else {
            folder.config = Some(path.to_owned());
        }
        Ok(folder)
    }

    fn whole(path: PathBuf) -> Result<Self, IntakeError> {
        let names = names(&path)?;
        let plan = shards::plan(&names);
        let with = |is: fn(&str) -> bool| names.iter().filter(|name| is(name)).cloned().collect();
        let folder = Self {
            source: Source::Folder,
            config: names
                .iter()
                .any(|name| name == "config.json")
                .then(|| path.join("config.json")),
            safetensors: Some(plan).filter(|plan| plan.index.is_some() || !plan.files.is_empty()),
            gguf: with(is_gguf),
            pickled: with(is_pickled),
            path,
            names,
        };
        let nothing = folder.config.is_none()
            && folder.safetensors.is_none()
            && folder.gguf.is_empty()
            && folder.pickled.is_empty()
            && folder.special().is_none();
        if nothing { Err(IntakeError::NothingKnown { folder: folder.path }) } else { Ok(folder) }
    }

    /// Whether the folder has a file of that name.
    pub fn has(&self, name: &str) -> bool {
        self.names.binary_search_by(|one| one.as_str().cmp(name)).is_ok()
    }

    /// Whether the folder has files of a tokenizer.
    pub fn has_tokenizer(&self) -> bool {
        TOKENIZERS.iter().any(|name| self.has(name))
            || self.names.iter().any(|name| name.ends_with(".tiktoken"))
    }

    /// What says that the folder is no plain model.
    pub fn special(&self) -> Option<Special> {
        if self.has("model_index.json") {
            Some(Special::Diffusers)
        } else if self.has("adapter_config.json") {
            Some(Special::Adapter)
        } else {
            None
        }
    }
}

/// A folder that is no plain model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Special {
    /// A pipeline of several models.
    Diffusers,
    /// The difference to another model.
    Adapter,
}

fn is_gguf(name: &str) -> bool {
    name.ends_with(".gguf")
}

/// Whether a name is that of pickled weights; training state lies beside them under similar names.
fn is_pickled(name: &str) -> bool {
    let is_weights = ["pytorch_model", "model", "consolidated", "adapter_model"]
        .iter()
        .any(|start| name.starts_with(start));
    is_weights && [".bin", ".pt", ".pth"].iter().any(|end| name.ends_with(end))
}

/// The bytes of a small file.
pub fn small(path: &Path, limit: u64) -> Result<Vec<u8>, IntakeError> {
    let io = |cause| IntakeError::io(path, cause);
    let metadata = fs::metadata(path).map_err(io)?;
    if !metadata.is_file() {
        return Err(IntakeError::NotAFile { path: path.to_owned() });
    }
    let mut bytes = Vec::new();
    File::open(path).map_err(io)?.take(limit + 1).read_to_end(&mut bytes).map_err(io)?;
    if bytes.is_empty() {
        return Err(IntakeError::Empty { path: path.to_owned() });
    }
    if bytes.len() as u64 > limit {
        return Err(IntakeError::TooLarge { path: path.to_owned(), limit });
    }
    Ok(bytes)
}
