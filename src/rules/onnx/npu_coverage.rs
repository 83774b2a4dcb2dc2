//! # What it does
//!
//! Counts which nodes the NPU runs at the preset's precision, by the op table of Ryzen AI, and names the op types
//! that fall to the CPU, before anybody confirms.
//!
//! # Why
//!
//! Every op that is not in the table cuts the graph; below about four fifths the CPU alone may be faster. The table
//! is necessary and not sufficient: only the compiler's report shows what really runs there.
//!
//! # Example
//!
//! XINT8 has no Sigmoid in its column, so 58 of 301 nodes fall to the CPU, and the plan says so.
//!
//! # Sources
//!
//! - amd/ryzen-ai-documentation b2b2b0e2, `docs/ops_support.rst` (Ryzen AI 1.8)
//! - amd/RyzenAI-SW#310, #212, #374, #318, #264, #127

use std::collections::BTreeMap;

use crate::{
    facts::graph::{Attribute, Node},
    rules::{
        Context, Stage,
        sheet::{Sheet, list},
    },
    vocab::Severity,
};

/// The reason code.
pub const ID: &str = "npu-coverage";
/// When it runs.
pub const STAGE: Stage = Stage::Assess;

/// Below this share of nodes the CPU may win.
const ENOUGH: u64 = 80;

/// Counts.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let computing = ctx.targets().op_counts.iter().filter(|(op, _)| *op != "Constant");
    let total: u64 = computing.clone().map(|(_, count)| count).sum();
    sheet.expected.compute_nodes = Some(total);
    let (Some(target), Some(preset)) =
        (sheet.target.filter(|target| target.npu), sheet.preset.clone())
    else {
        return;
    };
    sheet.by(ID).risk(
        Severity::Low,
        "the op table is necessary, not sufficient: what runs on the NPU is known only after a compile check",
        Some("compile the result and read the report of the Vitis AI execution provider".to_owned()),
    );
    let precision = preset.npu_precision.as_deref();
    let Some(precision) = precision.filter(|name| {
        ctx.catalogue
            .npu_ops()
            .all()
            .iter()
            .any(|op| op.precisions.iter().any(|known| known == name))
    }) else {
        sheet.by(ID).risk(
            Severity::Low,
            format!(
                "Ryzen AI has no op table for `{}`, so its share on the NPU is not estimated",
                preset.id
            ),
            None,
        );
        return;
    };
    let runs = |op: &str| {
        ctx.catalogue
            .npu_ops()
            .get(op)
            .is_some_and(|entry| entry.precisions.iter().any(|known| known == precision))
    };
    let cpu: BTreeMap<String, u64> = computing
        .filter(|(op, count)| **count > 0 && !runs(op))
        .map(|(op, count)| (op.clone(), *count))
        .collect();
    let left: u64 = cpu.values().sum();
    let on_npu = total.saturating_sub(left);
    sheet.expected.npu_nodes = Some(on_npu);
    sheet.expected.cpu_ops = cpu.clone();
    let off = (left * 100 + total / 2).checked_div(total).unwrap_or(0);
    if left > 0 {
        let mut counts: Vec<(&String, &u64)> = cpu.iter().collect();
        counts.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
        let shown: Vec<String> =
            counts.iter().take(6).map(|(op, count)| format!("{count} {op}")).collect();
        let slower =
            if off > 100 - ENOUGH { "; below 80 % the CPU alone may be faster" } else { "" };
        let hint = better(ctx, sheet, &cpu, precision);
        sheet.by(ID).risk(
            Severity::Medium,
            format!("{left} of {total} nodes ({} %) fall to the CPU, since the {precision} table of `{}` lacks them: {}{slower}", off, target.id, shown.join(", ")),
            Some(hint),
        );
    }
    gelu(ctx, sheet, precision);
    if precision == "XINT8" {
        shapes(ctx, sheet);
    }
}

/// What would put more on the NPU.
fn better(
    ctx: &Context<'_>,
    sheet: &Sheet,
    cpu: &BTreeMap<String, u64>,
    precision: &str,
) -> String {
    let covered = |column: &str| {
        let all = cpu.iter().filter(|(op, _)| {
            ctx.catalogue
                .npu_ops()
                .get(op)
                .is_some_and(|entry| entry.precisions.iter().any(|known| known == column))
        });
        all.map(|(_, count)| count).sum::<u64>()
    };
    let best = ["A8W8", "A16W8", "BF16"]
        .into_iter()
        .filter(|column| *column != precision)
        .max_by_key(|column| covered(column));
    let allowed = |column: &str| {
        sheet.target.is_some_and(|target| {
            target
                .profiles
                .iter()
                .any(|profile| profile.presets.iter().any(|preset| *preset == *column))
        })
    };
    match best.filter(|column| covered(column) > 0 && allowed(column)) {
        Some(column) => format!(
            "`{column}` has {} of them in its column (STX, KRK and Ryzen AI 1.6 or newer), or replace those operators before the export",
            covered(column)
        ),
        None => {
            "replace those operators before the export, for example another activation".to_owned()
        }
    }
}

/// GELU that is written out.
fn gelu(ctx: &Context<'_>, sheet: &mut Sheet, precision: &str) {
    let (erf, exp, tanh) = (ctx.count("Erf"), ctx.count("Exp"), ctx.count("Tanh"));
    if precision == "BF16" || (erf == 0 && (exp == 0 || tanh > 0)) {
        return;
    }
    let what = if erf > 0 { format!("{erf} Erf") } else { format!("{exp} Exp") };
    sheet.by(ID).risk(
        Severity::Medium,
        format!("the graph has {what}, as in a GELU that is written out, and such nodes have been seen to stay on the CPU after INT8 quantization"),
        Some("use bfloat16, or export with a Gelu op (opset 20)".to_owned()),
    );
}

/// Forms of Resize and MaxPool that the table does not tell and that are known to cut the graph.
fn shapes(ctx: &Context<'_>, sheet: &mut Sheet) {
    let Some(graph) = ctx.graph else { return };
    let named = |test: &dyn Fn(Node<'_>) -> bool| {
        let found = graph.nodes().filter(|node| test(*node));
        found
            .map(|node| if node.name().is_empty() { node.op_type() } else { node.name() })
            .collect::<Vec<_>>()
    };
    let linear = named(&|node| {
        node.op_type() == "Resize" && matches!(text(node, "mode"), "linear" | "cubic")
    });
    let mut pen = sheet.by(ID);
    if !linear.is_empty() {
        pen.risk(
            Severity::Medium,
            format!(
                "{} Resize are linear or cubic ({}), which go to the CPU at XINT8",
                linear.len(),
                list(&linear, 3)
            ),
            Some(
                "a change to nearest makes another model: analyse it again, its digest differs"
                    .to_owned(),
            ),
        );
    }
    let odd = named(&|node| {
        node.op_type() == "MaxPool"
            && (matches!(node.attribute("ceil_mode"), Some(Attribute::Int(1)))
                || text(node, "auto_pad").starts_with("SAME")
                || matches!(node.attribute("pads"), Some(Attribute::Ints(pads)) if asymmetric(pads)))
    });
    if !odd.is_empty() {
        pen.risk(
            Severity::Medium,
            format!("{} MaxPool round up or pad unevenly ({}), and the compiler has been seen to compute another output size there", odd.len(), list(&odd, 3)),
            Some("export an explicit Pad instead, or leave these nodes in float".to_owned()),
        );
    }
}

/// A short string attribute; empty when there is none.
fn text<'g>(node: Node<'g>, key: &str) -> &'g str {
    match node.attribute(key) {
        Some(Attribute::Text(text)) => text,
        _ => "",
    }
}

fn asymmetric(pads: &[i64]) -> bool {
    let (begin, end) = pads.split_at(pads.len() / 2);
    begin != end
}
