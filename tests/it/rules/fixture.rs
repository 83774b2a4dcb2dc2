//! Reads the directories under `tests/scenarios/`.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use quantplan::{
    catalogue::Catalogue,
    facts::{
        EnvContext, InstallResult, ModelAnalysis, SessionContext,
        graph::{Attribute, Graph, NodeText, Tensor},
        named_files::{NamedFile, NamedFiles},
        torch::Modules,
        torch_install::TorchInstallResult,
    },
    intake::{hf, safetensors::Limits},
    intent::Intent,
    rules::{self, Context, Outcome, request::Defect},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use crate::torch_fixtures;

/// A request in a directory.
#[derive(Debug)]
pub struct Case {
    /// The directory.
    pub folder: PathBuf,
    analysis: ModelAnalysis,
    intent: Intent,
    environment: Option<EnvContext>,
    install: Option<InstallResult>,
    torch_install: Option<TorchInstallResult>,
    session_context: Option<SessionContext>,
    graph: Option<Graph>,
    modules: Option<Modules>,
    files: NamedFiles,
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios")
}

pub fn folders() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = fs::read_dir(root())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.starts_with("onnx_") || name.starts_with("torch_")
        })
        .collect();
    folders.sort();
    folders
}

/// One case for each different model, for random intents.
pub fn models() -> &'static [Case] {
    static MODELS: LazyLock<Vec<Case>> = LazyLock::new(|| {
        let mut seen = Vec::new();
        let fresh = |case: &Case| {
            let key = format!("{:?}", case.analysis);
            let new = !seen.contains(&key);
            seen.push(key);
            new
        };
        // Mixtures of hundreds of experts have modules by the ten thousand: too slow for random requests.
        let small = |case: &Case| case.modules.as_ref().is_none_or(|all| all.linears.len() < 2000);
        Case::all().into_iter().map(|(_, case)| case).filter(small).filter(fresh).collect()
    });
    &MODELS
}

impl Case {
    pub fn all() -> Vec<(String, Self)> {
        let name = |folder: &Path| folder.file_name().unwrap().to_str().unwrap().to_owned();
        folders().into_iter().map(|folder| (name(&folder), Self::read(folder))).collect()
    }

    fn read(folder: PathBuf) -> Self {
        let (analysis, modules) = match may::<Value>(&folder, "config.json") {
            Some(config) => from_config(&folder, &config),
            None => (must(&folder, "analysis.json"), None),
        };
        Self {
            analysis,
            modules,
            intent: must(&folder, "intent.json"),
            environment: may(&folder, "environment.json"),
            install: may(&folder, "install.json"),
            torch_install: may(&folder, "torch_install.json"),
            session_context: may(&folder, "session_context.json"),
            graph: may::<GraphFile>(&folder, "graph.json").map(GraphFile::graph),
            files: named_files(&folder),
            folder,
        }
    }

    pub fn context(&self) -> Context<'_> {
        Context {
            analysis: &self.analysis,
            graph: self.graph.as_ref(),
            modules: self.modules.as_ref(),
            files: Some(&self.files),
            environment: self.environment.as_ref(),
            install: self.install.as_ref(),
            torch_install: self.torch_install.as_ref(),
            session_context: self.session_context.as_ref(),
            intent: &self.intent,
            catalogue: Catalogue,
        }
    }

    pub fn plan(&self) -> Result<Outcome, Vec<Defect>> {
        rules::plan(&self.context())
    }
}

/// The template and the config of an algorithm beside the request.
fn named_files(folder: &Path) -> NamedFiles {
    // Paths of the machine that runs the tests are no part of a scenario.
    fn shown<T>(file: NamedFile<T>) -> NamedFile<T> {
        let name = Path::new(&file.path).file_name().unwrap().to_string_lossy().into_owned();
        NamedFile { path: name, ..file }
    }
    let at = |name: &str| Some(folder.join(name)).filter(|path| path.exists());
    NamedFiles {
        template: at("template.json").map(|path| shown(hf::named_files::template(&path))),
        algorithm: at("algorithm.json").map(|path| shown(hf::named_files::algorithm(&path))),
    }
}

/// A Hugging Face model by its config and, when there are some, the names, types and shapes of its tensors.
fn from_config(folder: &Path, config: &Value) -> (ModelAnalysis, Option<Modules>) {
    let tensors: Vec<(String, String, Vec<u64>)> = may(folder, "tensors.json").unwrap_or_default();
    let tensors: Vec<torch_fixtures::Tensor> = tensors
        .iter()
        .map(|(name, dtype, shape)| {
            let dtype = ["BF16", "F32", "U8", "I32", "F8_E4M3"]
                .into_iter()
                .find(|known| known == dtype)
                .unwrap();
            torch_fixtures::tensor(name, dtype, shape)
        })
        .collect();
    let model = torch_fixtures::folder(config, &tensors);
    let path = if tensors.is_empty() {
        model.path().join("config.json")
    } else {
        model.path().to_path_buf()
    };
    let mut read = hf::read(&path, &Limits::default()).unwrap();
    "models/model".clone_into(&mut read.analysis.model.model_path);
    (read.analysis, read.modules)
}

fn may<T: DeserializeOwned>(folder: &Path, file: &str) -> Option<T> {
    let text = fs::read_to_string(folder.join(file)).ok()?;
    Some(
        serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("{}/{file}: {error}", folder.display())),
    )
}

fn must<T: DeserializeOwned>(folder: &Path, file: &str) -> T {
    may(folder, file).unwrap_or_else(|| panic!("{} has no {file}", folder.display()))
}

/// A small graph; tensors are `[name, dims]`, all float32.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GraphFile {
    nodes: Vec<NodeFile>,
    tensors: Vec<(String, Vec<u64>)>,
}

/// A node: name, op type, inputs, outputs, attributes.
#[derive(Debug, Deserialize)]
struct NodeFile(String, String, Vec<String>, Vec<String>, BTreeMap<String, AttributeFile>);

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum AttributeFile {
    Int(i64),
    Ints(Vec<i64>),
    Text(String),
}

impl GraphFile {
    fn graph(self) -> Graph {
        let node = |NodeFile(name, op_type, inputs, outputs, attributes)| NodeText {
            name,
            op_type,
            domain: String::new(),
            inputs,
            outputs,
            attributes: attributes
                .into_iter()
                .map(|(key, value)| {
                    let value = match value {
                        AttributeFile::Int(value) => Attribute::Int(value),
                        AttributeFile::Ints(value) => Attribute::Ints(value),
                        AttributeFile::Text(value) => Attribute::Text(value),
                    };
                    (key, value)
                })
                .collect(),
            top: true,
        };
        let tensor = |(name, dims): (String, Vec<u64>)| Tensor {
            name,
            dtype: "float32".to_owned(),
            bytes: 4 * dims.iter().product::<u64>(),
            dims,
        };
        Graph::new(self.nodes.into_iter().map(node), self.tensors.into_iter().map(tensor).collect())
    }
}
