//! The JSON Schemas that are published, generated from the types, and the contracts of a plan.

pub mod contract;

use schemars::{Schema, generate::SchemaSettings};

use crate::{
    facts::{
        EnvContext, InstallResult, ModelAnalysis, SessionContext, torch_install::TorchInstallResult,
    },
    intent::Intent,
    plan::{Draft, Handoff, quant_plan::OnnxPlan, torch_plan::TorchPlan},
};

/// A published schema.
#[derive(Debug, Clone, Copy)]
pub struct Published {
    /// Name of the artefact; the file is `schemas/<name>.schema.json`.
    pub name: &'static str,
    /// One line about it.
    pub summary: &'static str,
    generate: fn() -> Schema,
}

/// Every published schema.
pub const ALL: &[Published] = &[
    Published {
        name: "model_analysis",
        summary: "Facts of a model, read without its weights",
        generate: schema::<ModelAnalysis>,
    },
    Published {
        name: "env_context",
        summary: "Facts of a machine",
        generate: schema::<EnvContext>,
    },
    Published {
        name: "onnx_install_result",
        summary: "Which ONNX Runtime is installed, and the custom ops",
        generate: schema::<InstallResult>,
    },
    Published {
        name: "pytorch_install_result",
        summary: "Which PyTorch is installed, and whether it sees a GPU",
        generate: schema::<TorchInstallResult>,
    },
    Published {
        name: "session_context",
        summary: "What a router has settled",
        generate: schema::<SessionContext>,
    },
    Published { name: "intent", summary: "What the user wants", generate: schema::<Intent> },
    Published {
        name: "draft",
        summary: "A plan before anybody agreed to it",
        generate: schema::<Draft>,
    },
    Published { name: "handoff", summary: "A route to another skill", generate: schema::<Handoff> },
    Published {
        name: "quant_plan_onnx",
        summary: "A confirmed plan for the ONNX flow",
        generate: schema::<OnnxPlan>,
    },
    Published {
        name: "quant_plan_torch",
        summary: "A confirmed plan for the Torch flow",
        generate: schema::<TorchPlan>,
    },
];

impl Published {
    /// The schema as text (draft 2020-12), with a line break at its end.
    pub fn text(&self) -> String {
        let mut text = serde_json::to_string_pretty(&(self.generate)()).unwrap_or_default();
        text.push('\n');
        text
    }
}

/// The schema with this name.
pub fn find(name: &str) -> Option<&'static Published> {
    ALL.iter().find(|published| published.name == name)
}

fn schema<T: schemars::JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>()
}
