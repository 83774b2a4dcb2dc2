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
        Attribute, EnvContext, Graph, InstallResult, ModelAnalysis, Node, SessionContext, Tensor,
    },
    intent::Intent,
    rules::{self, Context, Outcome, request::Defect},
};
use serde::{Deserialize, de::DeserializeOwned};

/// A request in a directory.
#[derive(Debug)]
pub struct Case {
    /// The directory.
    pub folder: PathBuf,
    analysis: ModelAnalysis,
    intent: Intent,
    environment: Option<EnvContext>,
    install: Option<InstallResult>,
    session_context: Option<SessionContext>,
    graph: Option<Graph>,
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios")
}

pub fn folders() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = fs::read_dir(root())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("onnx_"))
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
        Case::all().into_iter().map(|(_, case)| case).filter(fresh).collect()
    });
    &MODELS
}

impl Case {
    pub fn all() -> Vec<(String, Self)> {
        let name = |folder: &Path| folder.file_name().unwrap().to_str().unwrap().to_owned();
        folders().into_iter().map(|folder| (name(&folder), Self::read(folder))).collect()
    }

    fn read(folder: PathBuf) -> Self {
        Self {
            analysis: must(&folder, "analysis.json"),
            intent: must(&folder, "intent.json"),
            environment: may(&folder, "environment.json"),
            install: may(&folder, "install.json"),
            session_context: may(&folder, "session_context.json"),
            graph: may::<GraphFile>(&folder, "graph.json").map(GraphFile::graph),
            folder,
        }
    }

    pub fn context(&self) -> Context<'_> {
        Context {
            analysis: &self.analysis,
            graph: self.graph.as_ref(),
            environment: self.environment.as_ref(),
            install: self.install.as_ref(),
            session_context: self.session_context.as_ref(),
            intent: &self.intent,
            catalogue: Catalogue,
        }
    }

    pub fn plan(&self) -> Result<Outcome, Vec<Defect>> {
        rules::plan(&self.context())
    }
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
        let node = |NodeFile(name, op_type, inputs, outputs, attributes)| Node {
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
        Graph {
            nodes: self.nodes.into_iter().map(node).collect(),
            tensors: self.tensors.into_iter().map(tensor).collect(),
        }
    }
}
