//! Whether the groups of a scheme divide the dimensions of a model, for one device and for several.

use std::collections::BTreeMap;

use crate::{
    catalogue::schemes::{Scheme, UnevenGroup},
    facts::torch::LinearModule,
    rules::{Context, common::goal, sheet::Sheet, torch::lookup},
};

/// Last parts of the names of layers whose inputs tensor parallelism divides among its ranks.
const SPLIT_INPUTS: [&str; 10] = [
    "o_proj",
    "down_proj",
    "w2",
    "out_proj",
    "dense",
    "c_proj",
    "dense_4h_to_h",
    "fc2",
    "fc_out",
    "wo",
];

/// An input dimension of layers that get quantized.
#[derive(Debug, Clone)]
pub struct Dim {
    /// Its size.
    pub size: u64,
    /// Whether tensor parallelism divides it among ranks.
    pub split: bool,
    /// What has it.
    pub owner: String,
}

/// The input dimensions of what gets quantized: of the modules that `chosen` admits or, without modules, of
/// the config.
pub fn dims(
    ctx: &Context<'_>,
    sheet: &Sheet,
    chosen: impl Fn(usize, &LinearModule) -> bool,
) -> Vec<Dim> {
    let mut found: BTreeMap<(u64, bool), String> = BTreeMap::new();
    match ctx.modules {
        Some(modules) => {
            // Of a family that is not known they might be taken apart.
            let whole = sheet.torch.family.is_none() || sheet.torch.takes_experts_apart();
            for (at, module) in modules.linears.iter().enumerate() {
                if sheet.torch.is_excluded(at)
                    || !chosen(at, module)
                    || (module.stacked > 1 && !whole)
                {
                    continue;
                }
                let split = SPLIT_INPUTS.contains(&lookup::last(&module.name));
                found.entry((module.in_features, split)).or_insert_with(|| module.name.clone());
            }
        }
        None => {
            let facts = ctx.torch();
            let experts = facts.experts.as_ref();
            let heads = facts.num_attention_heads.zip(facts.head_dim);
            for (size, split, owner) in [
                (ctx.analysis.model.hidden_size, false, "hidden_size"),
                (facts.intermediate_size, true, "intermediate_size"),
                (experts.and_then(|e| e.intermediate_size), true, "moe_intermediate_size"),
                (
                    experts.and_then(|e| e.shared_intermediate_size),
                    true,
                    "the shared expert's width",
                ),
                (
                    heads.and_then(|(heads, width)| heads.checked_mul(width)),
                    true,
                    "the width of attention",
                ),
            ] {
                if let Some(size) = size.filter(|size| *size > 0) {
                    found.entry((size, split)).or_insert_with(|| owner.to_owned());
                }
            }
        }
    }
    found.into_iter().map(|((size, split), owner)| Dim { size, split, owner }).collect()
}

/// What is wrong with the groups of a scheme.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Uneven {
    /// Quark stops with an error.
    Quark(String),
    /// A rank of tensor parallelism would get a part of a group.
    Ranks(String),
    /// The last group is padded, and the engine has no place for that.
    Padded(String),
}

/// Whether the groups of a scheme divide the dimensions, and how they do not.
pub fn uneven(ctx: &Context<'_>, sheet: &Sheet, scheme: &Scheme, dims: &[Dim]) -> Option<Uneven> {
    let group = scheme.group_size().filter(|group| *group > 0)?;
    let ranks = goal::tensor_parallel(ctx).unwrap_or(1).max(1);
    let first = dims.iter().find(|dim| !dim.size.is_multiple_of(group));
    let per_rank = sheet.torch.engine.is_none_or(|engine| engine.group_per_rank != Some(false));
    if let Some(dim) = first {
        let why = format!(
            "`{}` is {} wide, which groups of {group} do not divide ({} is left over)",
            dim.owner,
            dim.size,
            dim.size % group
        );
        if scheme.uneven_group == UnevenGroup::Error {
            return Some(Uneven::Quark(format!(
                "{why}, and Quark stops with a ValueError after loading"
            )));
        }
        if sheet.torch.engine.is_some_and(|engine| engine.group_per_rank == Some(true)) {
            return Some(Uneven::Padded(format!(
                "{why}; Quark pads the last group, and the engine has no place for it"
            )));
        }
    }
    let split = dims.iter().find(|dim| {
        dim.split && ranks > 1 && per_rank && !dim.size.is_multiple_of(ranks.saturating_mul(group))
    })?;
    Some(Uneven::Ranks(format!(
        "`{}` is {} wide: of {ranks} tensor-parallel ranks each gets {}, which groups of {group} do not divide",
        split.owner,
        split.size,
        split.size / ranks
    )))
}
