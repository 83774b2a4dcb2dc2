//! Files that a request for a Torch plan names by their paths: a template, and the config of an algorithm.
//!
//! They are no artefacts of other skills: their shapes are those that Quark itself reads.

/// The files that a request names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedFiles {
    /// The template of a model family that Quark has none for.
    pub template: Option<NamedFile<TemplateFile>>,
    /// The config of an algorithm.
    pub algorithm: Option<NamedFile<AlgorithmFile>>,
}

/// A file that a request names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedFile<T> {
    /// Its whole path.
    pub path: String,
    /// What is in it.
    pub content: Content<T>,
}

impl<T> NamedFile<T> {
    /// What is in it, when it could be read.
    pub fn read(&self) -> Option<&T> {
        match &self.content {
            Content::Read(content) => Some(content),
            Content::Missing | Content::Broken(_) => None,
        }
    }
}

/// What is in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content<T> {
    /// It was read.
    Read(T),
    /// It is not on this machine.
    Missing,
    /// Quark would refuse it, and why.
    Broken(String),
}

/// What a template file of quark-cli says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TemplateFile {
    /// The `model_type` that it is for.
    pub model_type: String,
    /// Layers whose outputs are the KV cache; `None` when it names none.
    pub kv_layers: Option<Vec<String>>,
    /// Layers whose outputs are the queries; `None` when it names none.
    pub q_layers: Option<Vec<String>>,
    /// Layers that it leaves alone.
    pub exclude_layers: Vec<String>,
    /// Algorithms that it brings a config for, as `--quant_algo` names them.
    pub algorithms: Vec<String>,
}

/// What the config file of an algorithm says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AlgorithmFile {
    /// The algorithm, as `--quant_algo` names it.
    pub name: String,
    /// Where the decoder layers are, for example `model.layers`.
    pub decoder_layers: Option<String>,
    /// Names of the linear modules that it works on, as they are called inside a decoder layer.
    pub layers: Vec<String>,
}
