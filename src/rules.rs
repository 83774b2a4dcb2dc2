//! All judgement: from facts, intent and catalogue to decisions with reasons.
//!
//! A rule is one file under `rules/`: its module documentation is what users read (`explain`), its `ID`
//! is the reason code in a plan. Rules do no I/O, read no clock and cannot fail; the same inputs give the
//! same draft, byte for byte. They run in the order of [`RULES`]: gates, then choices, then tuning, then
//! assessment.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod common;
pub mod errors;
pub mod onnx;
pub mod phrase;
pub mod request;
pub mod review;
pub mod routing;
pub mod rows;
pub mod sheet;
pub mod torch;

use serde_json::Value;

use crate::{
    catalogue::{self, Catalogue, releases::Release},
    facts::{
        EnvContext, InstallResult, ModelAnalysis, OnnxFacts, OnnxTargets, SessionContext,
        graph::Graph,
        named_files::NamedFiles,
        torch::{Modules, TorchFacts},
        torch_install::TorchInstallResult,
    },
    intent::Intent,
    plan::{Draft, Handoff},
    rules::{request::Defect, sheet::Sheet},
    vocab::{Backend, DecisionId, QuestionId, RuleId},
};

/// What is known and wanted; everything a rule may look at.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The model.
    pub analysis: &'a ModelAnalysis,
    /// Its nodes, when the model could be read and not only an analysis of it.
    pub graph: Option<&'a Graph>,
    /// Its linear modules, when they are known.
    pub modules: Option<&'a Modules>,
    /// The files that the request names, when they were looked at.
    pub files: Option<&'a NamedFiles>,
    /// The machine.
    pub environment: Option<&'a EnvContext>,
    /// ONNX Runtime and the custom ops.
    pub install: Option<&'a InstallResult>,
    /// PyTorch.
    pub torch_install: Option<&'a TorchInstallResult>,
    /// What a router settled.
    pub session_context: Option<&'a SessionContext>,
    /// What the user wants.
    pub intent: &'a Intent,
    /// What Quark offers.
    pub catalogue: Catalogue,
}

impl<'a> Context<'a> {
    /// The half of Quark that plans this model: ONNX files by the one, everything else by the other.
    pub fn backend(&self) -> Backend {
        if self.analysis.model.model_type == "onnx" { Backend::Onnx } else { Backend::Torch }
    }

    /// The value that the user asked for in a row.
    pub fn requested(&self, row: &str) -> Option<&'a Value> {
        self.intent.values.get(&DecisionId::new(row))
    }

    /// The answer to a question.
    pub fn answer(&self, question: &str) -> Option<&'a str> {
        self.intent.answers.get(&QuestionId::new(question)).map(String::as_str)
    }

    /// Whether the user keeps the value of a row against advice.
    pub fn insists(&self, row: &str) -> bool {
        self.intent.insist.contains(&DecisionId::new(row))
    }

    /// Facts of the ONNX graph; empty ones when the analysis has none.
    pub fn onnx(&self) -> &'a OnnxFacts {
        static NONE: std::sync::LazyLock<OnnxFacts> = std::sync::LazyLock::new(OnnxFacts::default);
        self.analysis.model.onnx_specific.as_ref().unwrap_or(&NONE)
    }

    /// Facts of the Hugging Face model; empty ones when the analysis has none.
    pub fn torch(&self) -> &'a TorchFacts {
        static NONE: std::sync::LazyLock<TorchFacts> =
            std::sync::LazyLock::new(TorchFacts::default);
        self.analysis.model.torch_specific.as_ref().unwrap_or(&NONE)
    }

    /// Operator counts; empty ones when the analysis has none.
    pub fn targets(&self) -> &'a OnnxTargets {
        static NONE: std::sync::LazyLock<OnnxTargets> =
            std::sync::LazyLock::new(OnnxTargets::default);
        self.analysis.quantization_targets.onnx_specific.as_ref().unwrap_or(&NONE)
    }

    /// Number of nodes of an op type, of everything.
    pub fn count(&self, op_type: &str) -> u64 {
        self.targets().op_counts.get(op_type).copied().unwrap_or(0)
    }

    /// Version of the `ai.onnx` opset.
    pub fn opset(&self) -> Option<i64> {
        self.onnx()
            .opsets
            .iter()
            .filter(|o| o.domain == "ai.onnx" || o.domain.is_empty())
            .map(|o| o.version)
            .max()
    }
}

/// When a rule runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// What must not be.
    Gate,
    /// Target, preset.
    Choose,
    /// Calibration, algorithms, exclusions, options.
    Tune,
    /// Risks, coverage, size.
    Assess,
}

impl Stage {
    /// A word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gate => "gate",
            Self::Choose => "choose",
            Self::Tune => "tune",
            Self::Assess => "assess",
        }
    }
}

/// A registered rule.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// The reason code.
    pub id: &'static str,
    /// When it runs.
    pub stage: Stage,
    /// Plans of which half of Quark it is for; `None` for both.
    pub backend: Option<Backend>,
    /// What it does.
    pub apply: fn(&Context<'_>, &mut Sheet),
    /// Path of its file under `src/rules/`.
    pub file: &'static str,
    source: &'static str,
}

impl Rule {
    /// The id as a value.
    pub fn rule_id(&self) -> RuleId {
        RuleId::new(self.id)
    }

    /// Its documentation: Markdown with the headings "What it does", "Why", "Example" and "Sources".
    pub fn documentation(&self) -> String {
        let mut text = String::new();
        for line in self.source.lines().take_while(|line| line.starts_with("//!")) {
            let line = line.trim_start_matches("//!");
            text.push_str(line.strip_prefix(' ').unwrap_or(line));
            text.push('\n');
        }
        text
    }
}

/// Registers `rules/<folder>/<name>.rs`; the folder says whose plans it is for.
macro_rules! rule {
    (@backend onnx) => {
        Some(Backend::Onnx)
    };
    (@backend torch) => {
        Some(Backend::Torch)
    };
    (@backend common) => {
        None
    };
    ($folder:ident, $name:ident) => {
        Rule {
            id: $folder::$name::ID,
            stage: $folder::$name::STAGE,
            backend: rule!(@backend $folder),
            apply: $folder::$name::apply,
            file: concat!(stringify!($folder), "/", stringify!($name), ".rs"),
            source: include_str!(concat!(
                "rules/",
                stringify!($folder),
                "/",
                stringify!($name),
                ".rs"
            )),
        }
    };
}

/// Every rule, in the order in which they run.
pub const RULES: &[Rule] = &[
    rule!(common, quark_release),
    rule!(onnx, analysis_usable),
    rule!(onnx, already_quantized),
    rule!(torch, model_facts),
    rule!(torch, quantized_source),
    rule!(onnx, external_data_missing),
    rule!(onnx, architecture),
    rule!(onnx, backend),
    rule!(onnx, deployment_target),
    rule!(onnx, npu_device),
    rule!(onnx, preset),
    rule!(torch, model_family),
    rule!(torch, hardware),
    rule!(torch, exclude_layers),
    rule!(torch, global_scheme),
    rule!(torch, layer_quant_config),
    rule!(torch, device_strategy),
    rule!(torch, algorithm),
    rule!(torch, kv_cache),
    rule!(torch, attention_scheme),
    rule!(onnx, custom_ops),
    rule!(onnx, input_shapes),
    rule!(onnx, npu_batch),
    rule!(onnx, npu_layout),
    rule!(onnx, bf16_cast),
    rule!(onnx, half_precision_model),
    rule!(onnx, algorithms),
    rule!(onnx, calibration_method),
    rule!(onnx, calibration_data),
    rule!(onnx, calibration_memory),
    rule!(onnx, fast_finetune),
    rule!(onnx, npu_flags),
    rule!(onnx, op_types),
    rule!(onnx, node_lists),
    rule!(onnx, external_data_format),
    rule!(onnx, execution_providers),
    rule!(onnx, custom_domains),
    rule!(onnx, extra_options),
    rule!(torch, calibration),
    rule!(torch, export_format),
    rule!(torch, remote_code),
    rule!(common, evaluation_intent),
    rule!(torch, entry_point),
    rule!(onnx, analysis_risks),
    rule!(torch, intake_risks),
    rule!(onnx, opset_floor),
    rule!(onnx, cpu_saturation),
    rule!(onnx, runtime_interface),
    rule!(onnx, package_ranges),
    rule!(onnx, detector_head),
    rule!(onnx, npu_coverage),
    rule!(onnx, expected_result),
    rule!(torch, experts),
    rule!(torch, excluded_anyway),
    rule!(torch, tensor_parallel),
    rule!(torch, tool_versions),
    rule!(torch, torch_build),
    rule!(torch, result_size),
];

/// What the rules made of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// A draft, confirmable or not.
    Draft(Box<Draft>),
    /// The model must not be planned, or not yet.
    Handoff(Box<Handoff>),
}

/// Runs every rule.
///
/// # Errors
///
/// Every defect of the request at once: unknown names, values of the wrong type or out of range, entries
/// that match no node.
pub fn plan(ctx: &Context<'_>) -> Result<Outcome, Vec<Defect>> {
    let intent = request::checked(ctx)?;
    let ctx = Context { intent: &intent, ..*ctx };
    let mut sheet = Sheet::new(ctx.catalogue.newest_release());
    let backend = ctx.backend();
    let for_it = |rule: &&Rule| rule.backend.is_none_or(|only| only == backend);
    for rule in RULES.iter().filter(for_it) {
        (rule.apply)(&ctx, &mut sheet);
        if let Some(handoff) = sheet.stopped() {
            return Ok(Outcome::Handoff(Box::new(handoff)));
        }
    }
    Ok(Outcome::Draft(Box::new(sheet.into_draft(&ctx))))
}

/// The rule with this id.
pub fn find(id: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.id == id)
}

/// The release that a request is planned for, by its name.
fn release_named(catalogue: Catalogue, name: &str) -> Option<&'static Release> {
    let name = name.trim().trim_start_matches('v');
    let releases = catalogue.releases();
    releases.find(name).or_else(|| {
        // `0.13.0` and `0.13+cpu` are builds of `0.13`.
        let mut all = releases.all().iter().rev();
        all.find(|release| {
            let known = catalogue::Entry::id(*release);
            name.strip_prefix(known)
                .is_some_and(|rest| rest.starts_with(['.', '+']) && !rest.starts_with(".dev"))
        })
    })
}
