//! `analyze_model`: the facts of a model, on the screen and, when asked for, in a file.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    emit::{Overwrite, destination::Destination},
    facts::ModelAnalysis,
    intake::{self, AnyModel, IntakeError, hf},
    planner::{Planner, error::Error},
};

/// Arguments of `analyze_model`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// Path of an `.onnx` file or a folder that holds one, or of a Hugging Face folder or its `config.json`.
    pub path: PathBuf,
    /// Where to write `model_analysis.json`; leave it out to write nothing.
    #[serde(default)]
    pub output_path: Option<PathBuf>,
    /// Whether an earlier analysis at `output_path` may be replaced.
    #[serde(default)]
    pub overwrite: bool,
}

/// The answer of `analyze_model`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Reply {
    /// The facts, in the shape of `model_analysis.json`; its schema is `quantplan://schemas/model_analysis`.
    #[schemars(with = "Map<String, Value>")]
    pub model_analysis: ModelAnalysis,
    /// Where they were written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written_to: Option<String>,
    /// What to do next.
    pub next: String,
}

impl Planner {
    /// Reads the facts of a model without its weights.
    ///
    /// # Errors
    ///
    /// When the model cannot be read, or the output cannot be written.
    pub fn analyze(&self, arguments: &Arguments) -> Result<Reply, Error> {
        let model = self.read_model(&arguments.path)?;
        let mut next =
            format!("call `propose_plan` with model_path `{}`", arguments.path.display());
        let mut written_to = None;
        if let Some(output) = &arguments.output_path {
            let roots = self.roots([self.whole(&arguments.path)]);
            let destination = Destination::resolve(output, &self.options().current_dir, &roots)?;
            destination.write(
                analysis_text(model.analysis()).as_bytes(),
                overwrite(arguments.overwrite),
            )?;
            let path = destination.path().display().to_string();
            next = format!("call `propose_plan` with analysis_path `{path}`");
            written_to = Some(path);
        }
        Ok(Reply { model_analysis: model.analysis().clone(), written_to, next })
    }

    /// Reads a model; its path in the analysis is whole.
    pub(super) fn read_model(&self, path: &Path) -> Result<AnyModel, Error> {
        let whole = self.whole(path);
        // Made whole, the id of a model on the Hub is no id any more.
        if let (false, Some(id)) = (whole.exists(), hf::hub_id(path)) {
            return Err(IntakeError::HubId { id: id.to_owned() }.into());
        }
        Ok(intake::read(&whole)?)
    }

    /// The folders that may be written to, for a session that began with these files.
    pub(super) fn roots(&self, files: impl IntoIterator<Item = PathBuf>) -> Vec<PathBuf> {
        let options = self.options();
        if !options.workspaces.is_empty() {
            return options.workspaces.iter().map(|folder| self.whole(folder)).collect();
        }
        let folders = files.into_iter().filter_map(|file| {
            if file.is_dir() { Some(file) } else { file.parent().map(Path::to_path_buf) }
        });
        std::iter::once(options.current_dir.clone()).chain(folders).collect()
    }
}

/// `model_analysis.json` as text.
pub(super) fn analysis_text(analysis: &ModelAnalysis) -> String {
    let mut text = serde_json::to_string_pretty(analysis).unwrap_or_default();
    text.push('\n');
    text
}

/// What the flag of a request means.
pub(super) fn overwrite(asked: bool) -> Overwrite {
    if asked { Overwrite::Yes } else { Overwrite::No }
}
