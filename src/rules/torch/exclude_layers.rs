//! # What it does
//!
//! Settles which modules stay in float. Three wishes are told apart: nothing said or `null` keeps the list of
//! the family's template, a list takes its place, `[]` quantizes everything. To the template's list it adds what
//! the model has and the template does not name: draft layers, routers, towers of other modalities, a head that
//! shares the embeddings. It reports what each pattern means.
//!
//! # Why
//!
//! In Quark a list replaces the template's: `["lm_head"]` alone quantizes the routers of a mixture of experts and
//! the vision tower, and nothing says so. A pattern that matches nothing is ignored. `*gate*` means `gate_proj`
//! too. A draft layer that is left in float but not named makes engines read it as packed.
//!
//! # Example
//!
//! `["lm_head"]` was asked for on a `qwen3_moe`: `*.gate` is kept beside it, because the routers would be
//! quantized.
//!
//! # Sources
//!
//! - 0.13, `quark/torch/quantization/config/template.py:917` (measured: `mlp.gate` gets quantized)
//! - amd/Quark#18, #24; vllm-project/vllm#49187, #26944, #45543, #48606; vllm-project/vllm-omni#2686
//! - warpfront/hipfire#171; NVIDIA/Model-Optimizer#1858, #1690; mlc-ai/mlc-llm#2109; kekzl/imp#1422

use serde_json::{Value, json};

use crate::{
    catalogue::globs::Glob,
    facts::torch::{LinearKind, LinearModule, Modules, Role},
    plan::Alternative,
    rules::{
        Context, Stage,
        sheet::{Asked, Check, Fallback, Sheet, list},
        torch::lookup,
    },
    vocab::{DecisionId, Origin, Severity},
};

/// The reason code.
pub const ID: &str = "exclude-layers";
/// When it runs.
pub const STAGE: Stage = Stage::Choose;

const ROW: &str = "exclude_layers";

/// Settles the row.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let template = sheet.torch.template_excludes(&sheet.release.id).to_vec();
    let asked: Option<Vec<String>> = ctx
        .requested(ROW)
        .and_then(Value::as_array)
        .map(|list| list.iter().filter_map(Value::as_str).map(str::to_owned).collect());
    let own = with_missing(ctx, template.clone());
    let standing = match asked {
        None => {
            keep(ctx, sheet, &template, &own);
            own.0
        }
        Some(asked) => replace(ctx, sheet, asked, &template, &own.0),
    };
    if let Some(modules) = ctx.modules {
        sheet.torch.excluded = lookup::any_of(modules, &standing);
        report(sheet, modules, &standing);
    } else {
        unseen(ctx, sheet, &standing);
    }
    torn(ctx, sheet, &standing);
    sheet.torch.excludes = standing;
}

/// What the config tells of and no pattern names, where the names of modules are not known.
fn unseen(ctx: &Context<'_>, sheet: &mut Sheet, standing: &[String]) {
    let facts = ctx.torch();
    let named = |words: &[&str]| {
        standing.iter().any(|pattern| words.iter().any(|word| pattern.contains(word)))
    };
    let mut found: Vec<(Severity, String)> = Vec::new();
    if !facts.towers.is_empty()
        && !named(&["vision", "visual", "image", "audio", "speech", "sam_model"])
    {
        let keys = list(facts.towers.iter().map(|tower| tower.key.as_str()), 3);
        found.push((Severity::High, format!("the towers of other modalities ({keys})")));
    }
    let moe = ctx.analysis.model.is_moe == Some(true);
    if moe && !named(&["gate", "router"]) {
        found.push((Severity::High, "the routers of its experts".to_owned()));
    }
    let after = ctx.analysis.model.num_hidden_layers.map(|n| format!("layers.{n}.*"));
    let last = standing
        .iter()
        .any(|pattern| after.as_ref().is_some_and(|after| pattern.ends_with(after.as_str())));
    if let Some(layers) = facts.mtp_layers.filter(|layers| *layers > 0)
        && !last
        && !named(&["mtp"])
    {
        let what = format!("its draft layers for multi-token prediction ({layers})");
        found.push((Severity::Medium, what));
    }
    for (severity, what) in found {
        sheet.by(ID).risk(
            severity,
            format!("no pattern names {what}; what they are called only the weights tell"),
            Some(
                "analyse the folder with its safetensors files, or name them in `exclude_layers`"
                    .to_owned(),
            ),
        );
    }
}

/// The list of the template, or what stands in for one.
fn keep(
    ctx: &Context<'_>,
    sheet: &mut Sheet,
    template: &[String],
    own: &(Vec<String>, Vec<Added>),
) {
    let (standing, added) = own;
    let asked = ctx.intent.values.contains_key(&DecisionId::new(ROW));
    let said = if asked { "you keep the template's list" } else { "nothing else was asked for" };
    let template_name = sheet.torch.template_name();
    let mut reason = match &template_name {
        Some(name) => format!("{said}, so what {name} leaves alone"),
        None => {
            "there is no template, so what structure tells: the head, routers and towers".to_owned()
        }
    };
    for one in added {
        reason.push_str(&format!("; and `{}`, because {}", one.pattern, one.why));
    }
    let origin = match (&template_name, added.is_empty()) {
        _ if asked => Origin::User,
        (Some(_), true) => Origin::Default,
        _ => Origin::Analysis,
    };
    let mut pen = sheet.by(ID);
    let decision = pen.decide(ROW, json!(standing), origin, reason);
    if !added.is_empty() && template_name.is_some() {
        decision.alternatives.push(Alternative {
            value: json!(template),
            why_not: "the template's own list, without what the model has beside it".to_owned(),
        });
    }
    let draft = added.iter().find(|one| one.role == Role::Draft);
    if let Some(draft) = draft.filter(|_| template_name.is_some()) {
        pen.risk(
            Severity::Low,
            format!("`{}` is not in Quark's template: engines read a layer as packed unless the checkpoint's exclude list names it", draft.pattern),
            None,
        );
    }
}

/// A list that takes the template's place.
fn replace(
    ctx: &Context<'_>,
    sheet: &mut Sheet,
    asked: Vec<String>,
    template: &[String],
    own: &[String],
) -> Vec<String> {
    let bare = unprotected(ctx, &asked, template);
    let mut union = asked.clone();
    union.extend(own.iter().filter(|pattern| !asked.contains(pattern)).cloned());
    let check = match &bare {
        Some(why) => Check::Unwise(format!(
            "a list replaces the template's, and {why}"
        )),
        None if asked.is_empty() => Check::Risky(
            Severity::Medium,
            "`[]` quantizes everything, the output head too; to keep the template's list say `null`".to_owned(),
        ),
        None => Check::Fine,
    };
    let value = json!(asked);
    let fallback = Fallback::Value(
        json!(union),
        Origin::Rule,
        "your patterns, and those of the template that protect what must stay in float".to_owned(),
    );
    sheet.by(ID).settle(ctx, ROW, &Asked::by_user(&value), check, fallback);
    let stands = if bare.is_some() && !ctx.insists(ROW) { union } else { asked };
    let dropped: Vec<&String> =
        template.iter().filter(|pattern| !stands.contains(pattern)).collect();
    if !dropped.is_empty() {
        let text = format!("the template would also leave alone {}", list(&dropped, 6));
        let mut pen = sheet.by(ID);
        pen.risk(
            Severity::Low,
            text,
            Some(format!("withdraw `{ROW}` to keep the template's list")),
        );
        if let Some(decision) = sheet.decision_mut(ROW) {
            decision.alternatives.push(Alternative {
                value: json!(template),
                why_not: "the template's own list; say `null` to keep it".to_owned(),
            });
        }
    }
    stands
}

/// What a list would quantize that must not be; `None` when nothing is known against it.
fn unprotected(ctx: &Context<'_>, asked: &[String], template: &[String]) -> Option<String> {
    let Some(modules) = ctx.modules else {
        let dropped: Vec<&String> = template
            .iter()
            .filter(|pattern| !asked.contains(pattern) && !pattern.ends_with("lm_head"))
            .collect();
        let tied = ctx.torch().tie_word_embeddings == Some(true)
            && !asked.iter().any(|pattern| Glob::new(pattern).matches("lm_head"));
        let risky = ctx.analysis.model.is_moe == Some(true) || !ctx.torch().towers.is_empty();
        return match (dropped.is_empty(), tied) {
            (false, _) if risky => Some(format!(
                "without {}, routers or towers of this model would be quantized",
                list(&dropped, 5)
            )),
            (_, true) => Some(
                "the head shares the weight of the embeddings, which would be quantized with it"
                    .to_owned(),
            ),
            _ => None,
        };
    };
    let taken = lookup::any_of(modules, asked);
    let mut found: Vec<String> = Vec::new();
    for (at, module) in modules.linears.iter().enumerate() {
        let what = match module.role {
            Role::Router => "routers",
            Role::Vision => "the vision tower",
            Role::Audio => "the audio tower",
            Role::Projector => "the projector",
            Role::Draft => "draft layers",
            Role::Head if module.kind == LinearKind::Tied => "a head that shares the embeddings",
            _ => continue,
        };
        // What the template itself quantizes is Quark's choice, and not the list's doing.
        if !taken[at] && !found.iter().any(|known| known == what) {
            found.push(what.to_owned());
        }
    }
    (!found.is_empty()).then(|| format!("{} would be quantized", found.join(", ")))
}

/// A pattern that the facts of the model add.
struct Added {
    pattern: String,
    why: String,
    role: Role,
}

/// The template's list, and patterns for what it leaves out.
fn with_missing(ctx: &Context<'_>, template: Vec<String>) -> (Vec<String>, Vec<Added>) {
    let mut standing = template;
    let mut added: Vec<Added> = Vec::new();
    let Some(modules) = ctx.modules else {
        if standing.is_empty() {
            standing.push("*lm_head".to_owned());
        }
        return (standing, added);
    };
    let bare = standing.is_empty();
    for (at, taken) in lookup::any_of(modules, &standing).into_iter().enumerate() {
        let module = &modules.linears[at];
        if taken || added.iter().any(|one| Glob::new(&one.pattern).matches(&module.name)) {
            continue;
        }
        let (pattern, why) = match module.role {
            Role::Router => (format!("*{}", lookup::kind(&module.name)), "it chooses the experts"),
            Role::Draft => {
                (draft_pattern(&module.name), "it is for multi-token prediction and stays in float")
            }
            Role::Vision => (
                segment(&module.name, &["vision", "visual", "image", "vit", "sam_model", "vpm"]),
                "engines read towers in 16 bits",
            ),
            Role::Audio => {
                (segment(&module.name, &["audio", "speech"]), "engines read towers in 16 bits")
            }
            Role::Projector => (
                segment(
                    &module.name,
                    &["projector", "merger", "connector", "patch_merge", "embed_", "projection"],
                ),
                "it joins another modality in",
            ),
            Role::Head if module.kind == LinearKind::Tied => {
                (module.name.clone(), "it shares the weight of the embeddings")
            }
            Role::Head if bare => (module.name.clone(), "the head usually stays in float"),
            Role::SharedExpert if module.out_features == 1 => {
                (format!("*{}", lookup::last(&module.name)), "it is a gate with one output")
            }
            _ => continue,
        };
        added.push(Added { pattern, why: why.to_owned(), role: module.role });
    }
    added.extend(draft_by_config(modules, &standing));
    standing.extend(added.iter().map(|one| one.pattern.clone()));
    (standing, added)
}

/// Draft layers that only the config tells of, where it is known what they are called.
fn draft_by_config(modules: &Modules, standing: &[String]) -> Option<Added> {
    let pattern = modules.draft.clone()?;
    let name = pattern.replace('*', "mlp.down_proj");
    let named = standing.iter().any(|pattern| {
        pattern.contains("mtp") || Glob::new(pattern).matches(&name) && !pattern.starts_with("*mlp")
    });
    (!named).then(|| Added {
        pattern,
        why: "the config has a layer for multi-token prediction, which stays in float".to_owned(),
        role: Role::Draft,
    })
}

/// `*segment*` for the part of a name that tells a tower.
fn segment(name: &str, marks: &[&str]) -> String {
    let part = name.split('.').find(|part| marks.iter().any(|mark| part.contains(mark)));
    format!("*{}*", part.unwrap_or_else(|| name.split('.').next().unwrap_or(name)))
}

/// The layer of a draft module with everything in it.
fn draft_pattern(name: &str) -> String {
    let parts: Vec<&str> = name.split('.').collect();
    if let Some(at) = parts.iter().position(|part| part.contains("mtp") || part.contains("nextn")) {
        return format!("{}.*", parts[..=at].join("."));
    }
    let at = parts.iter().position(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
    match at {
        Some(at) => format!("{}.*", parts[..=at].join(".")),
        None => name.to_owned(),
    }
}

/// What each pattern means in this model.
fn report(sheet: &mut Sheet, modules: &Modules, patterns: &[String]) {
    for pattern in patterns {
        let found: Vec<&LinearModule> = lookup::matching(modules, pattern).collect();
        both_gates(sheet, modules, pattern, &found);
        sheet.expected.matches.push(lookup::matched(ROW, pattern, &found));
    }
}

/// A pattern that means routers and gate projections alike.
fn both_gates(sheet: &mut Sheet, modules: &Modules, pattern: &str, found: &[&LinearModule]) {
    let routers = found.iter().any(|module| module.role == Role::Router);
    let projections =
        found.iter().filter(|module| lookup::last(&module.name) == "gate_proj").count();
    // A pattern of whole layers means both and is meant so.
    let only_gates = projections * 3 > found.len() && found.len() < modules.linears.len();
    if routers && projections > 0 && only_gates {
        sheet.by(ID).risk(
            Severity::Medium,
            format!("`{pattern}` means routers and {projections} modules `gate_proj` too, which stay in float with it"),
            Some("write the router's whole ending, for example `*.gate` or `*mlp.gate`".to_owned()),
        );
    }
}

/// Fused layers of which only some are left alone.
fn torn(ctx: &Context<'_>, sheet: &mut Sheet, standing: &[String]) {
    let Some(engine) = sheet.torch.engine else { return };
    let torn = match ctx.modules {
        Some(modules) => lookup::torn(modules, engine, |at, _| sheet.torch.is_excluded(at)),
        None => lookup::torn_by_name(engine, |name| {
            standing.iter().any(|pattern| Glob::new(pattern).matches(name))
        }),
    };
    if !torn.is_empty() {
        let text = format!(
            "{} fuses layers of which the list leaves only some in float ({}), and refuses to load that",
            engine.id,
            list(&torn, 4)
        );
        sheet.by(ID).risk(
            Severity::High,
            text,
            Some("exclude q/k/v, and gate and up, together or not at all".to_owned()),
        );
    }
}
