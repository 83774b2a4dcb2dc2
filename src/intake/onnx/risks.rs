//! What may go wrong with a model later, as the intake skill words it.
//!
//! Names from the file appear escaped and short.

use std::collections::BTreeMap;

use crate::facts::{AnalysisRisk, NodeCounts, OnnxFacts, WeightFacts};
use crate::intake::onnx::external::Missing;
use crate::intake::{escape, list};
use crate::vocab::{Layout, Severity};

/// Protobuf refuses messages from here on.
const PROTOBUF_LIMIT: u64 = 1 << 31;
/// The lowest `ai.onnx` version for Q/DQ insertion.
const QDQ_OPSET: i64 = 13;
/// Constants below this are shapes and scalars.
const HEAVY_CONSTANTS: u64 = 1 << 20;
/// Ops with graphs inside.
const CONTROL_FLOW: [&str; 4] = ["If", "Loop", "Scan", "SequenceMap"];

/// What the risks are derived from.
pub struct Findings<'a> {
    /// The facts as they will be written.
    pub facts: &'a OnnxFacts,
    /// Op counts of everything.
    pub op_counts: &'a BTreeMap<String, u64>,
    /// External files that cannot be used.
    pub missing: &'a [Missing],
    /// Domains with several imports.
    pub repeated_domains: &'a [String],
}

/// The risks, gravest first, in a fixed order within one severity.
pub fn risks(findings: &Findings<'_>) -> Vec<AnalysisRisk> {
    let mut found = Vec::new();
    quantized(findings, &mut found);
    size(findings, &mut found);
    external(findings, &mut found);
    opsets(findings, &mut found);
    shapes(findings, &mut found);
    precision(findings, &mut found);
    structure(findings, &mut found);
    found.sort_by_key(|risk| std::cmp::Reverse(risk.severity));
    found
}

fn push(found: &mut Vec<AnalysisRisk>, severity: Severity, message: String, hint: &str) {
    found.push(AnalysisRisk { severity, message, recovery_hint: Some(hint.to_owned()) });
}

fn quantized(findings: &Findings<'_>, found: &mut Vec<AnalysisRisk>) {
    let facts = findings.facts;
    if facts.quantization_evidence.is_empty() {
        return;
    }
    let evidence: Vec<String> = facts
        .quantization_evidence
        .iter()
        .map(|(what, count)| format!("{count} × {}", escape(what)))
        .collect();
    let shown = evidence.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
    push(
        found,
        Severity::High,
        format!("Model is quantized already ({shown}). Do not re-quantize it."),
        "Plan from the float model, or run quark.onnx.tools.remove_qdq and repeat the intake.",
    );
}

fn size(findings: &Findings<'_>, found: &mut Vec<AnalysisRisk>) {
    let facts = findings.facts;
    let bytes = facts.file_size_bytes.unwrap_or(0);
    let weights = weights(facts);
    if bytes >= PROTOBUF_LIMIT {
        let also = if weights.constant_bytes >= HEAVY_CONSTANTS {
            format!(
                " {} of its weights are in Constant nodes, which saving as external data leaves in place.",
                size_text(weights.constant_bytes)
            )
        } else {
            String::new()
        };
        push(
            found,
            Severity::High,
            format!(
                "Model file is {} (> 2 GB) and keeps its weights inside: ProtoBuf serialization will fail.{also}",
                size_text(bytes)
            ),
            "Export the model again with external data (one .onnx and one .onnx_data file).",
        );
    } else if weights.constant_bytes >= HEAVY_CONSTANTS {
        push(
            found,
            Severity::Low,
            format!(
                "{} of weights are in Constant nodes, which saving as external data leaves in the .onnx file.",
                size_text(weights.constant_bytes)
            ),
            "Turn Constant nodes into initializers (for example with onnxsim) when the model nears 2 GB.",
        );
    }
}

fn external(findings: &Findings<'_>, found: &mut Vec<AnalysisRisk>) {
    let missing = findings.missing;
    const SHOWN: usize = 3;
    for one in missing.iter().take(SHOWN) {
        push(
            found,
            Severity::High,
            format!("External data file `{}` {}.", escape(&one.location), one.why),
            "Put the external data files where the model names them, in the folder of the model.",
        );
    }
    if missing.len() > SHOWN {
        let names: Vec<&str> =
            missing.iter().skip(SHOWN).map(|one| one.location.as_str()).collect();
        push(
            found,
            Severity::High,
            format!("{} more external data files cannot be used: {}.", names.len(), list(&names)),
            "Put the external data files where the model names them, in the folder of the model.",
        );
    }
}

fn opsets(findings: &Findings<'_>, found: &mut Vec<AnalysisRisk>) {
    let facts = findings.facts;
    let onnx = facts.opsets.iter().find(|opset| opset.domain == "ai.onnx");
    if let Some(opset) = onnx.filter(|opset| opset.version < QDQ_OPSET) {
        push(
            found,
            Severity::Medium,
            format!("Opset is {} (< {QDQ_OPSET}): QDQ insertion may fail.", opset.version),
            "Run onnx.version_converter.convert_version(model, 13), or 19 and above for INT4/FP8.",
        );
    }
    if !findings.repeated_domains.is_empty() {
        push(
            found,
            Severity::Low,
            format!(
                "Operator sets are imported several times: {}. The highest version counts.",
                list(findings.repeated_domains)
            ),
            "Export the model with one import for each domain.",
        );
    }
    if !facts.custom_domains.is_empty() {
        let domains: Vec<&str> = facts.custom_domains.keys().map(String::as_str).collect();
        push(
            found,
            Severity::Medium,
            format!("Custom-domain ops are present: {}.", list(&domains)),
            "Provide their custom-op library, and check op_types_to_quantize; for com.microsoft, prefer the \
             export before ONNX Runtime optimized it.",
        );
    }
}

fn shapes(findings: &Findings<'_>, found: &mut Vec<AnalysisRisk>) {
    let facts = findings.facts;
    if facts.has_dynamic_dims == Some(true) {
        let dynamic: Vec<&str> = facts
            .inputs
            .iter()
            .filter(|input| crate::intake::onnx::is_dynamic(input))
            .map(|input| input.name.as_str())
            .collect();
        push(
            found,
            Severity::Medium,
            format!(
                "Inputs have dynamic dims: {}. NPU targets and many post-processing steps need fixed shapes.",
                list(&dynamic)
            ),
            "Run quark.onnx.tools.fix_shapes before quantization.",
        );
    }
    if facts.input_layout_guess == Some(Layout::Nchw) {
        push(
            found,
            Severity::Low,
            "Inputs are NCHW. AMD NPU CNN target expects NHWC.".to_owned(),
            "A plan for npu_cnn sets ConvertNCHWToNHWC; do not convert the model as well.",
        );
    }
}

fn precision(findings: &Findings<'_>, found: &mut Vec<AnalysisRisk>) {
    let bytes = &weights(findings.facts).bytes;
    let of = |dtype: &str| bytes.get(dtype).copied().unwrap_or(0);
    // A few scalars stay in float32 when a model is converted.
    let half = of("float16").max(of("bfloat16"));
    if half > 0 && half >= of("float32").saturating_mul(10) {
        let name = if of("float16") >= of("bfloat16") { "FP16" } else { "BF16" };
        push(
            found,
            Severity::Medium,
            format!("Model is {name}-only; some calibrators expect FP32."),
            "Run quark.onnx.tools.convert_fp16_to_fp32 first.",
        );
    }
}

fn structure(findings: &Findings<'_>, found: &mut Vec<AnalysisRisk>) {
    let NodeCounts { top, all, unnamed, functions } = findings.facts.nodes.unwrap_or_default();
    let control: Vec<&str> =
        CONTROL_FLOW.into_iter().filter(|op| findings.op_counts.contains_key(*op)).collect();
    if !control.is_empty() {
        push(
            found,
            Severity::Medium,
            format!(
                "Control flow ({}): {} of {all} nodes are in subgraphs, which calibration does not see and \
                 NPU targets do not run.",
                list(&control),
                all.saturating_sub(top)
            ),
            "Export the model without control flow, for example one branch with fixed inputs.",
        );
    }
    if functions > 0 {
        push(
            found,
            Severity::Medium,
            format!("Model defines {functions} functions; quantizers do not look inside."),
            "Inline them with onnx.inliner.inline_local_functions before quantization.",
        );
    }
    if unnamed > 0 {
        push(
            found,
            Severity::Low,
            format!("{unnamed} of {all} nodes have no name, so they cannot be excluded by name."),
            "Give every node a name, for example with onnxsim, when nodes have to be excluded.",
        );
    }
    if all == 0 {
        push(
            found,
            Severity::High,
            "Graph has no nodes: there is nothing to quantize.".to_owned(),
            "Check that the export wrote the model.",
        );
    }
}

fn weights(facts: &OnnxFacts) -> WeightFacts {
    facts.weights.clone().unwrap_or_default()
}

fn size_text(bytes: u64) -> String {
    if bytes >= 1_000_000_000 {
        format!("{:.2} GB", bytes as f64 / 1e9)
    } else {
        format!("{:.1} MB", bytes as f64 / 1e6)
    }
}
