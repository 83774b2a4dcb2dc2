//! Look-ups of linear modules: which a pattern means, what they are called, which an engine fuses.

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

use crate::{
    catalogue::{engines::Engine, globs::Glob},
    facts::torch::{LinearModule, Modules},
    plan::Match,
    rules::sheet::Sheet,
    vocab::DecisionId,
};

/// Whether a pattern means a module: by its name in the checkpoint or, for stacked experts, by the name of
/// one of the layers that Quark makes of them.
pub fn takes(glob: &Glob, module: &LinearModule) -> bool {
    if glob.matches(&module.name) {
        return true;
    }
    module.stacked > 1 && apart(&module.name).iter().any(|name| glob.matches(name))
}

/// Names of the first expert's layers behind a stacked tensor.
fn apart(name: &str) -> Vec<String> {
    let Some((block, last)) = name.rsplit_once('.') else { return Vec::new() };
    let parts: &[&str] = match last {
        "gate_up_proj" => &["gate_proj", "up_proj"],
        "experts" => &["gate_proj", "up_proj", "down_proj"],
        other => &[other],
    };
    let block = if last == "experts" { name } else { block };
    parts.iter().map(|part| format!("{block}.0.{part}")).collect()
}

/// The modules that a pattern means.
pub fn matching<'m>(modules: &'m Modules, pattern: &str) -> impl Iterator<Item = &'m LinearModule> {
    let glob = Glob::new(pattern);
    modules.linears.iter().filter(move |module| takes(&glob, module))
}

/// Whether none of the patterns means a module; not known without modules.
pub fn none_match(modules: Option<&Modules>, patterns: &[String]) -> bool {
    modules.is_some_and(|modules| !any_of(modules, patterns).contains(&true))
}

/// Whether a pattern means modules, and every one of them is left in float.
pub fn all_excluded(modules: &Modules, sheet: &Sheet, pattern: &str) -> bool {
    let glob = Glob::new(pattern);
    let own = modules.linears.iter().enumerate().filter(|(_, module)| takes(&glob, module));
    let mut own = own.map(|(at, _)| sheet.torch.is_excluded(at)).peekable();
    own.peek().is_some() && own.all(|excluded| excluded)
}

/// The entry of the match report for a pattern of a row, with the modules that it means.
pub fn matched(row: &str, pattern: &str, found: &[&LinearModule]) -> Match {
    Match {
        decision: DecisionId::new(row),
        pattern: pattern.to_owned(),
        nodes: found.len() as u64,
        examples: found.iter().take(3).map(|module| module.name.clone()).collect(),
        bytes: Some(found.iter().map(|module| module.bytes).sum()),
    }
}

/// For each module whether one of the patterns means it.
pub fn any_of(modules: &Modules, patterns: &[String]) -> Vec<bool> {
    let globs: Vec<Glob> = patterns.iter().map(|pattern| Glob::new(pattern)).collect();
    modules.linears.iter().map(|module| globs.iter().any(|glob| takes(glob, module))).collect()
}

/// The last two parts of the names of modules, numbers left out, each once.
pub fn kinds(modules: &Modules) -> BTreeSet<String> {
    modules.linears.iter().map(|module| kind(&module.name)).collect()
}

/// The last two parts of a name, numbers left out.
pub fn kind(name: &str) -> String {
    let parts: Vec<&str> =
        name.split('.').filter(|part| !part.bytes().all(|byte| byte.is_ascii_digit())).collect();
    parts[parts.len().saturating_sub(2)..].join(".")
}

/// The last part of a name.
pub fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// Groups of layers that an engine fuses and whose members `fate` tells apart, as `block.layer`; each kind
/// of block once.
pub fn torn<'f, F: PartialEq>(
    modules: &Modules,
    engine: &Engine,
    fate: impl Fn(usize, &LinearModule) -> F + 'f,
) -> Vec<String> {
    let mut groups: BTreeMap<(&str, &str), (F, bool)> = BTreeMap::new();
    for (at, module) in modules.linears.iter().enumerate() {
        let Some((block, layer)) = module.name.rsplit_once('.') else { continue };
        let fused = engine.fused.iter().find(|fused| fused.layers.iter().any(|own| own == layer));
        let Some(fused) = fused else { continue };
        let own = fate(at, module);
        match groups.entry((block, fused.into.as_str())) {
            Entry::Vacant(empty) => {
                empty.insert((own, false));
            }
            Entry::Occupied(mut known) => {
                if known.get().0 != own {
                    known.get_mut().1 = true;
                }
            }
        }
    }
    let torn: BTreeSet<String> = groups
        .into_iter()
        .filter(|(_, (_, torn))| *torn)
        .map(|((block, into), _)| format!("{}.{into}", last(block)))
        .collect();
    torn.into_iter().collect()
}

/// The same by the names that such layers usually have, where the modules are not known.
pub fn torn_by_name<F: PartialEq>(engine: &Engine, fate: impl Fn(&str) -> F) -> Vec<String> {
    let blocks = ["self_attn", "mlp"].into_iter();
    let named = blocks.flat_map(|block| engine.fused.iter().map(move |fused| (block, fused)));
    let torn = named.filter(|(block, fused)| {
        let mut fates =
            fused.layers.iter().map(|layer| fate(&format!("model.layers.0.{block}.{layer}")));
        fates.next().is_some_and(|first| fates.any(|other| other != first))
    });
    let torn: BTreeSet<String> = torn.map(|(_, fused)| fused.into.clone()).collect();
    torn.into_iter().collect()
}
