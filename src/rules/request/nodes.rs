//! Checks lists of op types, nodes and subgraphs against the graph: what matches nothing is refused, since
//! the library would silently do nothing, or write the float model.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    facts::graph::Graph,
    rules::{Context, onnx::lookup::Entry, request::Defect, sheet::list},
    vocab::near_names,
};

/// Defects of a list of op types.
pub fn op_types(ctx: &Context<'_>, row: &str, names: &[&str]) -> Vec<Defect> {
    let counts = &ctx.targets().op_counts;
    if counts.is_empty() {
        return Vec::new();
    }
    let absent = names.iter().filter(|name| !counts.contains_key(**name));
    absent
        .map(|name| {
            let near = near_names(name, counts.keys().map(String::as_str));
            let hint = if near.is_empty() {
                let mut known: Vec<(&String, &u64)> = counts.iter().collect();
                known.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
                format!("the graph has {}", list(known.iter().map(|(name, _)| name.as_str()), 8))
            } else {
                format!("did you mean {}?", list(near, 3))
            };
            Defect::new(format!(
                "`{row}`: the graph has no `{name}`; when none of the op types is there, the library writes the float model"
            ))
            .hint(hint)
        })
        .collect()
}

/// Defects of a list of node names and patterns.
pub fn entries(ctx: &Context<'_>, row: &str, names: &[&str]) -> Vec<Defect> {
    let Some(graph) = ctx.graph else { return Vec::new() };
    names.iter().filter_map(|name| defect(graph, row, name)).collect()
}

fn defect(graph: &Graph, row: &str, name: &str) -> Option<Defect> {
    if name.is_empty() {
        return Some(Defect::new(format!("`{row}` has an empty name, which means no node")).hint(
            "give the nodes names first, for example with onnxsim, and analyse the model again",
        ));
    }
    let entry = Entry::read(name);
    if matches!(entry, Entry::Broken) {
        return Some(Defect::new(format!("`{row}`: `{name}` is not a valid regular expression")));
    }
    if graph.nodes().any(|node| entry.means(node)) {
        return None;
    }
    let names = graph.nodes().map(|node| node.name()).filter(|name| !name.is_empty());
    let near = near_names(name, names.clone());
    let unnamed = graph.nodes().filter(|node| node.name().is_empty()).count();
    let looks_like_pattern = matches!(entry, Entry::Name(_)) && name.contains(['*', '^', '$']);
    let hint = if looks_like_pattern {
        "a pattern must start with `^` and contain `.*`, else it is taken as a name".to_owned()
    } else if !near.is_empty() {
        format!("did you mean {}?", list(near, 3))
    } else if unnamed == graph.nodes().len() {
        "no node of this graph has a name: give them names, for example with onnxsim, and analyse the model again".to_owned()
    } else {
        format!("names look like {}", list(names.take(3), 3))
    };
    Some(
        Defect::new(format!(
            "`{row}`: `{name}` matches no node, so it would silently have no effect"
        ))
        .hint(hint),
    )
}

/// A list of subgraphs with its ends checked: each a pair of lists of names, or an object with `start` and
/// `end`; `None` when it is something else.
pub fn subgraphs(ctx: &Context<'_>, row: &str, value: &Value) -> (Option<Value>, Vec<Defect>) {
    if value.is_null() {
        return (Some(json!([])), Vec::new());
    }
    let form = || {
        Defect::new(format!("`{row}` takes a list of pairs of lists of node names"))
            .hint("write it like [[[\"start node\"], [\"end node\"]]]")
    };
    let Some(pairs) = value.as_array() else { return (None, vec![form()]) };
    let mut defects = Vec::new();
    let mut read = Vec::new();
    let known: Option<BTreeSet<&str>> =
        ctx.graph.map(|graph| graph.nodes().map(|node| node.name()).collect());
    for pair in pairs {
        let ends = match pair.as_array().map(Vec::as_slice) {
            Some([start, end]) => names(start).zip(names(end)),
            _ => None,
        };
        let Some((start, end)) = ends.filter(|(start, end)| !start.is_empty() && !end.is_empty())
        else {
            defects.push(form());
            continue;
        };
        if let Some(known) = &known {
            for name in
                start.iter().chain(&end).filter(|name| name.is_empty() || !known.contains(**name))
            {
                let near = near_names(name, known.iter().copied().filter(|name| !name.is_empty()));
                let mut defect = Defect::new(format!("`{row}`: `{name}` is no node of the graph"));
                defect.hint =
                    (!near.is_empty()).then(|| format!("did you mean {}?", list(near, 3)));
                defects.push(defect);
            }
        }
        read.push(json!([start, end]));
    }
    (Some(Value::Array(read)), defects)
}

fn names(value: &Value) -> Option<Vec<&str>> {
    value.as_array()?.iter().map(Value::as_str).collect()
}
