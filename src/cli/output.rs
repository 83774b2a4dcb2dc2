//! Printing.

use serde::Serialize;
use serde_json::json;

use crate::{
    catalogue::Catalogue,
    cli::{DONE, REFUSED, USAGE},
    facts::{Dim, ModelAnalysis, TensorFacts},
    plan::Handoff,
    planner::{Planner, error::Error, probe, write},
    render::{bytes, clean, terminal},
};

/// Prints values.
#[derive(Debug)]
pub struct Printer;

impl Printer {
    /// As JSON, on stdout.
    pub fn json(value: &impl Serialize) {
        say!("{}", serde_json::to_string_pretty(value).unwrap_or_default());
    }
}

/// Columns of the terminal, within reason.
pub fn width() -> u16 {
    let asked = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let found = asked.or_else(|| terminal_size().filter(|columns| *columns > 0));
    found.unwrap_or(100).clamp(60, 160)
}

fn terminal_size() -> Option<u16> {
    terminal_size::terminal_size().map(|(width, _)| width.0)
}

/// Prints an error with its code and hint; gives the exit code.
pub fn fail(error: &Error, json: bool) -> u8 {
    if json {
        Printer::json(&json!({
            "error": { "code": error.code(), "message": clean(&error.whole()), "hint": clean(&error.hint()) }
        }));
    } else {
        complain!("error[{}]: {}", error.code(), clean(&error.whole()));
        complain!("hint: {}", clean(&error.hint()));
    }
    match error {
        Error::Arguments { .. } => USAGE,
        _ => REFUSED,
    }
}

/// Writes a confirmed plan and says where it is; gives the exit code.
///
/// # Errors
///
/// When it is not confirmed, out of date, or the destination is not allowed or taken.
pub fn write(planner: &Planner, arguments: write::Arguments) -> Result<u8, Error> {
    let reply = planner.write(&arguments)?;
    say!("\nWritten to {}", reply.path);
    if let Some(analysis) = &reply.analysis_written_to {
        say!("The analysis that it refers to is in {analysis}");
    }
    say!("Next: `{}` carries it out.", reply.handoff.skill);
    Ok(DONE)
}

/// Prints where to go instead.
pub fn handoff(handoff: &Handoff) {
    say!("No plan: {}", clean(&handoff.reason));
    say!("Go to `{}` and bring back {}.", handoff.skill, clean(&handoff.bring_back));
    say!(
        "Then call `{}` with {}.",
        handoff.resume.tool,
        clean(&handoff.resume.arguments.to_string())
    );
}

/// Prints the facts of a model.
pub fn analysis(analysis: &ModelAnalysis) {
    let targets = &analysis.quantization_targets;
    let mut lines: Vec<[String; 2]> = Vec::new();
    let mut line = |what: &str, text: String| lines.push([what.to_owned(), text]);
    line("Model", analysis.model.model_path.clone());
    if let Some(facts) = &analysis.model.onnx_specific {
        let external = facts.weights.as_ref().map_or(0, |w| w.external_bytes);
        let size = facts.file_size_bytes.unwrap_or(0);
        line(
            "Size",
            if facts.uses_external_data == Some(true) {
                format!("{} and {} of external data", bytes(size), bytes(external))
            } else {
                bytes(size)
            },
        );
        let opsets: Vec<String> =
            facts.opsets.iter().map(|o| format!("{} {}", o.domain, o.version)).collect();
        let ir = facts.ir_version.map(|v| v.to_string()).unwrap_or_else(|| "unknown".to_owned());
        line("IR, opsets", format!("{ir}; {}", opsets.join(", ")));
        if !facts.custom_domains.is_empty() {
            let domains: Vec<String> =
                facts.custom_domains.iter().map(|(d, n)| format!("{d} {n}")).collect();
            line("Custom domains", domains.join(", "));
        }
        line("Architecture", facts.architecture_guess.map_or("unknown", |a| a.as_str()).to_owned());
        for (what, tensors) in [("Input", &facts.inputs), ("Output", &facts.outputs)] {
            for tensor in tensors {
                line(what, described(tensor));
            }
        }
        if let Some(nodes) = facts.nodes {
            line(
                "Nodes",
                format!(
                    "{} ({} in the top graph, {} without a name)",
                    nodes.all, nodes.top, nodes.unnamed
                ),
            );
        }
        if let Some(weights) = &facts.weights {
            let kinds: Vec<String> =
                weights.bytes.iter().map(|(d, n)| format!("{d} {}", bytes(*n))).collect();
            line("Weights", kinds.join(", "));
        }
        let quantized =
            facts.has_qdq_already == Some(true) || facts.has_quark_custom_ops == Some(true);
        line("Already quantized", if quantized { "yes" } else { "no" }.to_owned());
    }
    if let Some(facts) = &analysis.model.torch_specific {
        let number = |value: Option<u64>| value.map_or("unknown".to_owned(), |n| n.to_string());
        line("Family", analysis.model.model_type.clone());
        line("Architectures", facts.architectures.join(", "));
        line(
            "Layers, hidden size",
            format!(
                "{}; {}",
                number(analysis.model.num_hidden_layers),
                number(analysis.model.hidden_size)
            ),
        );
        line(
            "Heads, KV heads",
            format!("{}; {}", number(facts.num_attention_heads), number(facts.num_key_value_heads)),
        );
        if let Some(experts) = &facts.experts {
            line(
                "Experts",
                format!("{} of {} a token", number(experts.per_token), number(experts.routed)),
            );
        }
        line("Linear layers", number(targets.linear_layer_count));
        if let Some(size) = analysis.model.estimated_size_gb {
            line("Size", format!("{size:.1} GB"));
        }
        line("Type", facts.dtype.clone().unwrap_or_else(|| "unknown".to_owned()));
    }
    if let Some(onnx) = &targets.onnx_specific {
        let ops: Vec<String> = onnx
            .quantizable_op_counts
            .iter()
            .filter(|(_, count)| **count > 0)
            .map(|(op, count)| format!("{op} {count}"))
            .collect();
        line("Quantizable ops", ops.join(", "));
        line("Preset candidates", onnx.preset_candidates.join(", "));
    }
    put!(
        "{}",
        terminal::table(
            &["", &format!("analysis: {:?}", analysis.analysis_status).to_lowercase()],
            lines.into_iter(),
            width()
        )
    );
    for risk in &analysis.risks {
        let hint = risk.recovery_hint.as_deref().map(|h| format!("; {h}")).unwrap_or_default();
        say!("{}: {}{}", risk.severity.as_str(), clean(&risk.message), clean(&hint));
    }
}

/// Prints the facts of a machine.
pub fn machine(reply: &probe::Reply) {
    let (environment, hardware) = (&reply.env_context.environment, &reply.env_context.hardware);
    let known = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
    let mut lines: Vec<[String; 2]> = Vec::new();
    let mut line = |what: &str, text: String| lines.push([what.to_owned(), text]);
    line("System", known(&environment.os));
    line("Python", known(&environment.python));
    line("Accelerator", known(&hardware.accelerator));
    if let Some(cpu) = &hardware.cpu {
        line("CPU", known(&cpu.model));
    }
    for gpu in &hardware.gpus {
        line("GPU", format!("{} ({})", known(&gpu.name), known(&gpu.arch)));
    }
    if let Some(npu) = &hardware.npu {
        line("NPU", format!("{} ({})", known(&npu.name), known(&npu.generation)));
    }
    for (name, package) in &environment.packages {
        line(name, known(&package.version));
    }
    put!("{}", terminal::table(&["", "this machine"], lines.into_iter(), width()));
    for mismatch in &reply.mismatches {
        say!(
            "{}: {} is there, amd-quark {} needs {}; `{}` repairs it",
            mismatch.package,
            mismatch.found.as_deref().unwrap_or("none"),
            mismatch.release,
            mismatch.needed,
            mismatch.skill
        );
    }
    for note in &reply.notes {
        say!("note: {}", clean(&note.message));
    }
    if let Some(path) = &reply.written_to {
        say!("\nwritten to {path}");
    }
}

fn described(tensor: &TensorFacts) -> String {
    let shape = match &tensor.shape {
        None => "of unknown rank".to_owned(),
        Some(dims) if dims.is_empty() => "scalar".to_owned(),
        Some(dims) => dims
            .iter()
            .map(|dim| match dim {
                Dim::Size(size) => size.to_string(),
                Dim::Symbol(name) => name.clone(),
                Dim::Unknown => "?".to_owned(),
            })
            .collect::<Vec<_>>()
            .join(" x "),
    };
    format!("{}: {} {shape}", tensor.name, tensor.dtype)
}

/// Prints the names that can be explained.
pub fn names() {
    let catalogue = Catalogue;
    let kinds: [(&str, Vec<&str>); 11] = [
        ("targets", catalogue.targets().ids().collect()),
        ("presets", catalogue.presets().ids().collect()),
        ("calibration methods", catalogue.methods().ids().collect()),
        ("ONNX algorithms", catalogue.algorithms().ids().collect()),
        ("schemes", catalogue.schemes().ids().collect()),
        ("Torch algorithms", catalogue.torch_algorithms().ids().collect()),
        ("model families", catalogue.families().ids().collect()),
        ("entry points", catalogue.entry_points().ids().collect()),
        ("serving engines", catalogue.engines().ids().collect()),
        ("devices", catalogue.devices().ids().collect()),
        ("releases of amd-quark", catalogue.releases().ids().collect()),
    ];
    let rows = kinds.into_iter().map(|(kind, ids)| [kind.to_owned(), ids.join(", ")]);
    put!("{}", terminal::table(&["Kind", "Names"], rows, width()));
    say!(
        "Extra options, op types, rules and decisions can be explained too, and free words are understood. \
         Where a name means several things, `scheme:mxfp4` says which."
    );
}
