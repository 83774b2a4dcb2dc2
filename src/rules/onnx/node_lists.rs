//! # What it does
//!
//! Takes your lists of nodes and subgraphs, reports what each entry means in this graph, and refuses entries that
//! the library would silently lose.
//!
//! # Why
//!
//! A node followed by BatchNormalization is renamed when the two are folded, so its old name means nothing by the
//! time the list is read: it is quantized all the same, or, in `nodes_to_quantize`, nothing is. NHWC conversion
//! and the rewriting of Gemm into MatMul and Add change names too.
//!
//! # Example
//!
//! `/conv1/Conv` is followed by BatchNormalization and is not excluded by that name; fold first, analyse the
//! folded model, and use the name it has there.
//!
//! # Sources
//!
//! - 0.13, run on a small CNN: excluding `conv1` before folding left all Q/DQ in place (measured)
//! - 0.13, `quark/onnx/quant_utils.py:2730`: subgraphs must be tuples
//! - microsoft/onnxruntime#19503, #12556

use serde_json::{Value, json};

use crate::{
    facts::graph::Node,
    plan::Match,
    rules::{
        Context, Stage,
        onnx::lookup::{Entry, Lookup},
        sheet::{Asked, Check, Fallback, Sheet, list},
    },
    vocab::{DecisionId, Origin, Severity},
};

/// The reason code.
pub const ID: &str = "node-lists";
/// When it runs.
pub const STAGE: Stage = Stage::Tune;

const LISTS: [(&str, &str); 2] = [
    (
        "onnx_specific.nodes_to_quantize",
        "nothing was asked for, so every node that the preset quantizes",
    ),
    ("onnx_specific.nodes_to_exclude", "nothing was asked for, so no node is left out"),
];
const SUBGRAPHS: &str = "onnx_specific.subgraphs_to_exclude";

/// Settles the three rows.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let asked_rows = LISTS.iter().map(|(row, _)| *row).chain([SUBGRAPHS]);
    let any = asked_rows
        .filter_map(|row| ctx.requested(row))
        .any(|value| value.as_array().is_some_and(|list| !list.is_empty()));
    let lookup = ctx.graph.filter(|_| any).map(Lookup::new);
    for (row, nothing) in LISTS {
        let Some(value) = ctx.requested(row).filter(|value| !value.is_null()) else {
            sheet.by(ID).decide(row, Value::Null, Origin::Default, nothing);
            continue;
        };
        let entries: Vec<&str> =
            value.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let folded = match &lookup {
            Some(lookup) => report(sheet, lookup, row, &entries, folds(ctx, sheet)),
            None => Vec::new(),
        };
        settle(ctx, sheet, row, value, &entries, folded, nothing);
    }
    subgraphs(ctx, sheet, lookup.as_ref());
    if any {
        warn(ctx, sheet);
    }
}

/// Whether BatchNormalization will be folded.
fn folds(ctx: &Context<'_>, sheet: &Sheet) -> bool {
    let off = |key: &str| sheet.option_given(ctx, key) == Some(&json!(false));
    !off("FoldBatchNorm") && !off("OptimizeModel") && !sheet.option_is_on(ctx, "SkipPreprocess")
}

/// Writes what each entry means; returns the entries that mean folded nodes only.
fn report<'e>(
    sheet: &mut Sheet,
    lookup: &Lookup<'_>,
    row: &'static str,
    entries: &[&'e str],
    folds: bool,
) -> Vec<&'e str> {
    let mut lost = Vec::new();
    for entry in entries {
        let nodes = Entry::read(entry).nodes(lookup.graph);
        sheet.expected.matches.push(Match {
            decision: DecisionId::new(row),
            pattern: (*entry).to_owned(),
            nodes: nodes.len() as u64,
            examples: nodes.iter().take(3).map(|node| node.name().to_owned()).collect(),
            bytes: None,
        });
        let folded = |node: &Node<'_>| lookup.is_folded(*node);
        if folds && !nodes.is_empty() && nodes.iter().all(folded) {
            lost.push(*entry);
        }
    }
    lost
}

fn settle(
    ctx: &Context<'_>,
    sheet: &mut Sheet,
    row: &'static str,
    value: &Value,
    entries: &[&str],
    lost: Vec<&str>,
    nothing: &str,
) {
    let check = if lost.is_empty() {
        Check::Fine
    } else {
        let effect = if row.ends_with("quantize") {
            "nothing of it would be quantized"
        } else {
            "it would be quantized all the same"
        };
        Check::Unwise(format!(
            "{} is followed by BatchNormalization, is renamed when the two are folded, and then means no node, so {effect}",
            list(&lost, 3)
        ))
    };
    let refused = !lost.is_empty() && !ctx.insists(row);
    let kept: Vec<&&str> = entries.iter().filter(|entry| !lost.contains(entry)).collect();
    let fallback = if kept.is_empty() {
        Fallback::Value(Value::Null, Origin::Rule, nothing.to_owned())
    } else {
        Fallback::Value(json!(kept), Origin::User, "these entries keep their meaning".to_owned())
    };
    sheet.by(ID).settle(ctx, row, &Asked::by_user(value), check, fallback);
    if refused {
        sheet.by(ID).risk(
            Severity::High,
            format!("{} cannot be told apart by that name in `{row}`: folding BatchNormalization renames it", list(&lost, 3)),
            Some("fold first (onnxsim, or Quark with FoldBatchNorm), analyse that model and use its names; or set `FoldBatchNorm` to false".to_owned()),
        );
    }
}

fn subgraphs(ctx: &Context<'_>, sheet: &mut Sheet, lookup: Option<&Lookup<'_>>) {
    let asked = ctx
        .requested(SUBGRAPHS)
        .filter(|value| value.as_array().is_some_and(|pairs| !pairs.is_empty()));
    let Some(value) = asked else {
        sheet.by(ID).decide(
            SUBGRAPHS,
            json!([]),
            Origin::Default,
            "nothing was asked for, so no subgraph is left out",
        );
        return;
    };
    let ends: Vec<&str> = value
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_array)
        .flatten()
        .filter_map(Value::as_array)
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let lost = match lookup {
        Some(lookup) => report(sheet, lookup, SUBGRAPHS, &ends, folds(ctx, sheet)),
        None => Vec::new(),
    };
    settle(ctx, sheet, SUBGRAPHS, value, &[], lost, "no subgraph is left out");
    if let Some(decision) = sheet.decision_mut(SUBGRAPHS) {
        if decision.value.is_null() {
            // Of several subgraphs it is not known which are harmless, so none is kept.
            decision.value = json!([]);
        }
        decision.reason.push_str("; JSON has no tuples, so make each pair a tuple before it goes to Quark, which ignores or refuses lists");
    }
}

/// What else can change names, and what could not be checked.
fn warn(ctx: &Context<'_>, sheet: &mut Sheet) {
    let mut why = Vec::new();
    if sheet.option_is_on(ctx, "ConvertNCHWToNHWC") {
        why.push("the conversion to NHWC");
    }
    let gemm = |row: &str| {
        let names = sheet.expected.matches.iter().filter(|found| found.decision.as_str() == row);
        names.flat_map(|found| &found.examples).any(|name| {
            ctx.graph.is_some_and(|graph| {
                graph.nodes().any(|node| node.name() == name && node.op_type() == "Gemm")
            })
        })
    };
    if LISTS.iter().any(|(row, _)| gemm(row)) {
        why.push("the rewriting of Gemm into MatMul and Add");
    }
    let mut pen = sheet.by(ID);
    if !why.is_empty() {
        pen.risk(
            Severity::Medium,
            format!(
                "names are resolved after pre-processing, and {} can change them",
                why.join(" and ")
            ),
            Some("compare the excluded nodes with the quantized model".to_owned()),
        );
    }
    if ctx.graph.is_none() {
        pen.risk(
            Severity::Medium,
            "the graph could not be read, so nobody has checked that the listed nodes exist; Quark ignores unknown names silently",
            Some("propose with `model_path`, so that the graph is read".to_owned()),
        );
    }
}
