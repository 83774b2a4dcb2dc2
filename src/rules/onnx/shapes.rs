//! Shapes of inputs: which are fixed, and how the user fixes them.

use std::collections::BTreeMap;

use crate::{
    facts::{Dim, TensorFacts},
    rules::Context,
};

/// The inputs whose shape is known to have a dimension that is not fixed.
pub fn dynamic<'a>(ctx: &Context<'a>) -> Vec<&'a TensorFacts> {
    ctx.onnx().inputs.iter().filter(|input| is_dynamic(input)).collect()
}

/// Whether any dimension but the first, which a reader can keep at one size, is not fixed.
pub fn vary_beyond_batch(ctx: &Context<'_>) -> bool {
    dynamic(ctx).iter().any(|input| match &input.shape {
        Some(shape) => shape.iter().skip(1).any(|dim| dim.fixed().is_none()),
        None => true,
    })
}

/// Whether the model is said to have dynamic dimensions, or shows some.
pub fn are_dynamic(ctx: &Context<'_>) -> bool {
    ctx.onnx().has_dynamic_dims == Some(true) || !dynamic(ctx).is_empty()
}

fn is_dynamic(input: &TensorFacts) -> bool {
    input.shape.as_ref().is_none_or(|shape| shape.iter().any(|dim| dim.fixed().is_none()))
}

/// The shapes in an answer such as `images=1x3x640x640; mask=1x640`.
///
/// # Errors
///
/// Everything that is wrong with it, against the inputs of the model.
pub fn parse(ctx: &Context<'_>, answer: &str) -> Result<BTreeMap<String, Vec<u64>>, Vec<String>> {
    let mut shapes = BTreeMap::new();
    let mut wrong = Vec::new();
    let inputs = &ctx.onnx().inputs;
    for part in answer.split(';').map(str::trim).filter(|part| !part.is_empty()) {
        let Some((name, dims)) = part.rsplit_once('=') else {
            wrong.push(format!("`{part}` is not of the form `input=1x3x640x640`"));
            continue;
        };
        let name = name.trim();
        let dims: Option<Vec<u64>> = dims
            .trim()
            .trim_matches(['[', ']'])
            .split(['x', 'X', ',', '×'])
            .map(|dim| dim.trim().parse().ok().filter(|n| *n > 0))
            .collect();
        let Some(dims) = dims else {
            wrong.push(format!(
                "the shape of `{name}` must be positive sizes, such as `1x3x640x640`"
            ));
            continue;
        };
        match inputs.iter().find(|input| input.name == name) {
            None => {
                let known = inputs.iter().map(|input| input.name.as_str());
                wrong.push(format!(
                    "the model has no input `{name}`, only {}",
                    crate::rules::sheet::list(known, 6)
                ));
            }
            Some(input) => match contradiction(input, &dims) {
                Some(why) => wrong.push(why),
                None => {
                    shapes.insert(name.to_owned(), dims);
                }
            },
        }
    }
    for input in dynamic(ctx) {
        if wrong.is_empty() && !shapes.contains_key(&input.name) {
            wrong.push(format!("`{}` needs a shape too, now it is {}", input.name, show(input)));
        }
    }
    if wrong.is_empty() { Ok(shapes) } else { Err(wrong) }
}

fn contradiction(input: &TensorFacts, dims: &[u64]) -> Option<String> {
    let declared = input.shape.as_ref()?;
    if declared.len() != dims.len() {
        return Some(format!(
            "`{}` has {} dimensions ({}), not {}",
            input.name,
            declared.len(),
            show(input),
            dims.len()
        ));
    }
    let differs =
        declared.iter().zip(dims).any(|(dim, size)| dim.fixed().is_some_and(|n| n != *size));
    differs.then(|| {
        format!("`{}` is declared as {}, so {} contradicts it", input.name, show(input), join(dims))
    })
}

/// A declared shape as text, such as `batchx3x?x?`.
pub fn show(input: &TensorFacts) -> String {
    dims(input).map_or("of unknown rank".to_owned(), |dims| dims.join("x"))
}

/// The dimensions of a declared shape as texts: sizes, symbols, `?`.
pub fn dims(input: &TensorFacts) -> Option<Vec<String>> {
    let text = |dim: &Dim| match dim {
        Dim::Size(n) if *n > 0 => n.to_string(),
        Dim::Symbol(name) => name.clone(),
        Dim::Size(_) | Dim::Unknown => "?".to_owned(),
    };
    input.shape.as_ref().map(|shape| shape.iter().map(text).collect())
}

/// Sizes as text, such as `1x3x640x640`.
pub fn join(dims: &[u64]) -> String {
    dims.iter().map(u64::to_string).collect::<Vec<_>>().join("x")
}

/// An example answer for the inputs that are not fixed: their fixed sizes, 1 for the batch, `?` elsewhere.
pub fn example(ctx: &Context<'_>) -> String {
    let one = |input: &&TensorFacts| {
        let shape = input.shape.as_deref().unwrap_or_default();
        let dims: Vec<String> = shape
            .iter()
            .enumerate()
            .map(|(i, dim)| match dim.fixed() {
                Some(n) => n.to_string(),
                None if i == 0 => "1".to_owned(),
                None => "?".to_owned(),
            })
            .collect();
        format!("{}={}", input.name, dims.join("x"))
    };
    dynamic(ctx).iter().map(one).collect::<Vec<_>>().join("; ")
}
