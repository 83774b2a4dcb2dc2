//! Which skill is the smallest right one for a goal, an error text or a missing artefact.
//!
//! The two halves of Quark are never mixed: what belongs to the other half goes to the other router, and
//! no further. What is ambiguous gives two or three ways and a question.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod failures;
mod handoffs;

use std::collections::BTreeSet;

use serde_json::json;

use crate::{
    catalogue::{
        Catalogue,
        recoveries::Recovery,
        skills::{Role, Skill},
    },
    plan::Handoff,
    rules::{errors, phrase, routing::handoffs::resume},
    vocab::{Backend, SessionId, near_names},
};

/// What there is to go by.
#[derive(Debug, Clone, Copy, Default)]
pub struct Asked<'a> {
    /// What the user wants.
    pub goal: Option<&'a str>,
    /// An error text.
    pub error: Option<&'a str>,
    /// A missing artefact.
    pub missing: Option<&'a str>,
    /// The half of Quark, when known.
    pub backend: Option<Backend>,
    /// The planning session that it is about.
    pub session: Option<&'a SessionId>,
}

/// Where to go.
#[derive(Debug, Clone, PartialEq)]
pub struct Routes {
    /// One way, or two or three, the likeliest first; none when nothing is known of that name.
    pub ways: Vec<Handoff>,
    /// The error that was recognised.
    pub recovery: Option<&'static Recovery>,
    /// What to ask when it is not clear.
    pub ask: Option<String>,
}

/// Finds the way: an error says more than a missing artefact, and that more than a goal.
pub fn route(catalogue: Catalogue, asked: &Asked<'_>) -> Routes {
    let router = Router { catalogue, asked };
    let other = asked.backend.and_then(|backend| {
        let texts = [asked.error, asked.missing, asked.goal];
        let seen = match asked.error {
            Some(error) => errors::sure_backend_of(catalogue, error),
            None => texts.into_iter().flatten().find_map(|text| router.decided(text)),
        };
        seen.filter(|seen| *seen != backend)
    });
    if let Some(other) = other {
        return router.to_the_other_router(other);
    }
    match (asked.error, asked.missing, asked.goal) {
        (Some(error), _, _) => router.by_error(error),
        (None, Some(missing), _) => router.by_missing(missing),
        (None, None, goal) => router.by_goal(goal.unwrap_or_default()),
    }
}

/// Names of artefacts that skills write, near to a name.
pub fn near_artefacts(catalogue: Catalogue, name: &str) -> Vec<String> {
    let all = catalogue.skills().all().iter().flat_map(|skill| &skill.produces);
    near_names(name, all.map(|artefact| artefact.name.as_str()))
        .into_iter()
        .map(str::to_owned)
        .collect()
}

struct Router<'a> {
    catalogue: Catalogue,
    asked: &'a Asked<'a>,
}

impl Router<'_> {
    fn skills(&self) -> &'static [Skill] {
        self.catalogue.skills().all()
    }

    fn with_role(&self, role: Role, backend: Backend) -> Option<&'static Skill> {
        self.skills()
            .iter()
            .find(|skill| skill.role == role && skill.backend.is_none_or(|b| b == backend))
    }

    /// The half of Quark that the words of a text decide for; `None` when they decide for none or for both.
    fn decided(&self, text: &str) -> Option<Backend> {
        let spoken = self.spoken_for(text, |skill| &skill.signals);
        if names_a_hub_model(text) { (!self.mixes(text)).then_some(Backend::Torch) } else { spoken }
    }

    /// The half of Quark that a goal is about, by words that decide, then by words that only hint.
    fn backend_of(&self, text: &str) -> Option<Backend> {
        self.decided(text).or_else(|| {
            let undecided = !self.mixes(text);
            undecided.then(|| self.spoken_for(text, |skill| &skill.hints)).flatten()
        })
    }

    /// Whether words decide for both halves.
    fn mixes(&self, text: &str) -> bool {
        let words = phrase::words(text);
        let has = |backend| {
            self.with_role(Role::Router, backend)
                .is_some_and(|router| phrase::best(&router.signals, &words).is_some())
        };
        has(Backend::Onnx) && (has(Backend::Torch) || names_a_hub_model(text))
    }

    fn spoken_for(&self, text: &str, list: fn(&Skill) -> &Vec<String>) -> Option<Backend> {
        let words = phrase::words(text);
        let mut spoken = self
            .skills()
            .iter()
            .filter(|skill| phrase::best(list(skill), &words).is_some())
            .filter_map(|skill| skill.backend);
        spoken.next().filter(|_| spoken.next().is_none())
    }

    fn to_the_other_router(&self, other: Backend) -> Routes {
        let reason = match other {
            Backend::Torch => {
                "this belongs to Quark-Torch (a Hugging Face or PyTorch model), and the two halves of Quark \
                 are never mixed: nothing of it goes through the ONNX flow"
            }
            Backend::Onnx => {
                "this belongs to Quark-ONNX (an `.onnx` model or ONNX Runtime), and the two halves of Quark \
                 are never mixed: nothing of it goes through the Torch flow"
            }
        };
        let ways = self
            .with_role(Role::Router, other)
            .map(|router| self.handoff(router, reason.to_owned(), "route-other-backend", other));
        Routes { ways: ways.into_iter().collect(), recovery: None, ask: None }
    }

    fn by_missing(&self, name: &str) -> Routes {
        let stem = |text: &str| {
            let file = text.trim().rsplit(['/', '\\']).next().unwrap_or_default().to_lowercase();
            let cut = file.split('.').next().unwrap_or_default().replace(['-', ' '], "_");
            cut.trim_end_matches("_ref").to_owned()
        };
        let wanted = stem(name);
        let wanted = match wanted.as_str() {
            "environment" | "env" | "machine" => "env_context",
            "analysis" => "model_analysis",
            "plan" => "quant_plan",
            "workspace" => "workspace_context",
            "manifest" => "run_manifest",
            "report" => "validation_report",
            other => other,
        };
        let backend = self.asked.backend.or_else(|| {
            let texts = [Some(name), self.asked.goal];
            texts.into_iter().flatten().find_map(|text| self.backend_of(text))
        });
        let producers: Vec<&'static Skill> = self
            .skills()
            .iter()
            .filter(|skill| skill.produces.iter().any(|a| stem(&a.name) == wanted))
            .filter(|skill| {
                skill.backend.is_none() || backend.is_none_or(|b| skill.backend == Some(b))
            })
            .collect();
        if !producers.is_empty() {
            let mut ways = producers;
            // Several write reports; what a failure left behind is the rarer case.
            ways.sort_by_key(|skill| skill.role == Role::Debug);
            ways.truncate(3);
            let ask = (ways.len() > 1).then(|| which_half(backend).to_owned());
            let reason = |skill: &Skill| {
                format!("`{wanted}` is missing, and `{}` is the skill that writes it", skill.id)
            };
            return self.routes(&ways, reason, "route-missing-artefact", backend, ask);
        }
        let words = phrase::words(name);
        let is_file = name.contains(['/', '\\'])
            || words.last().is_some_and(|last| {
                matches!(last.as_str(), "onnx" | "onnx_data" | "data" | "safetensors" | "bin")
            }) && name.contains('.');
        if is_file {
            let half = backend.unwrap_or(Backend::Onnx);
            let ways: Vec<_> = self.with_role(Role::Workspace, half).into_iter().collect();
            let reason = |_: &Skill| {
                "a file that is missing is looked for before anything depends on it".to_owned()
            };
            return self.routes(&ways, reason, "route-missing-file", backend, None);
        }
        if words.iter().any(|word| word.starts_with("calibrat") || word == "dataset") {
            return Routes {
                ways: Vec::new(),
                recovery: None,
                ask: Some(
                    "No skill makes calibration data: can the user give a few dozen samples of what the model \
                     will see? Without them only a dynamic preset, or random data as a known risk, can be planned"
                        .to_owned(),
                ),
            };
        }
        // A package or a tool: the same as wanting to install it.
        let wish = format!("install {name}");
        let ranked = self.ranked(&wish, backend);
        if ranked.first().is_some_and(|(skill, found)| {
            found.len() > 1 && matches!(skill.role, Role::Install | Role::QuarkInstall)
        }) {
            return self.by_goal(&wish);
        }
        if words.iter().any(|word| matches!(word.as_str(), "custom_ops" | "custom" | "provider")) {
            let ways: Vec<_> = self.with_role(Role::Install, Backend::Onnx).into_iter().collect();
            let reason = |_: &Skill| "it belongs to the installation of ONNX Runtime".to_owned();
            return self.routes(&ways, reason, "route-missing-artefact", Some(Backend::Onnx), None);
        }
        Routes { ways: Vec::new(), recovery: None, ask: None }
    }

    fn by_goal(&self, goal: &str) -> Routes {
        let backend = self.asked.backend.or_else(|| self.backend_of(goal));
        if self.asked.backend.is_none() && self.mixes(goal) {
            let ways: Vec<_> = [Backend::Onnx, Backend::Torch]
                .into_iter()
                .filter_map(|half| self.with_role(Role::Router, half))
                .collect();
            let reason = |_: &Skill| "the goal speaks of both halves of Quark".to_owned();
            let ask = Some(which_half(None).to_owned());
            return self.routes(&ways, reason, "route-both-backends", None, ask);
        }
        let ranked = self.ranked(goal, backend);
        let Some((_, best)) = ranked.first() else { return self.unclear(backend) };
        let best = best.len();
        let mut ways: Vec<&'static Skill> = ranked
            .iter()
            .take_while(|(_, found)| found.len() == best)
            .map(|(skill, _)| *skill)
            .take(3)
            .collect();
        if backend.is_none() {
            // The torch router takes goals that name no half.
            ways.sort_by_key(|way| way.backend == Some(Backend::Onnx));
        }
        let ask = (ways.len() > 1).then(|| {
            let halves: BTreeSet<Backend> = ways.iter().filter_map(|way| way.backend).collect();
            let same_role = ways.iter().all(|way| way.role == ways[0].role);
            if halves.len() > 1 && same_role { which_half(None).to_owned() } else { options(&ways) }
        });
        let reason = |skill: &Skill| {
            let found = ranked.iter().find(|(ranked, _)| ranked.id == skill.id);
            let said = found.map(|(_, words)| words.join(" … ")).unwrap_or_default();
            format!("the goal says \"{said}\", and `{}` is for that: {}", skill.id, skill.summary)
        };
        let mut routes = self.routes(&ways, reason, "route-goal", backend, ask);
        if ways[0].role == Role::Debug {
            routes.recovery = errors::recognise(self.catalogue, goal, backend);
        }
        if ways[0].role == Role::Plan && self.asked.session.is_none() && is_question(goal) {
            routes.ways[0].resume = resume("explain", json!({ "id": goal }));
        }
        routes
    }

    /// Skills by how much of the goal they know, best first.
    fn ranked(&self, goal: &str, backend: Option<Backend>) -> Vec<(&'static Skill, Vec<String>)> {
        let words = phrase::words(goal);
        let mut ranked: Vec<(&'static Skill, Vec<String>, usize)> = self
            .skills()
            .iter()
            .filter(|skill| {
                skill.backend.is_none() || backend.is_none_or(|b| skill.backend == Some(b))
            })
            .filter_map(|skill| {
                let (found, count) = phrase::best(&skill.goals, &words)?;
                Some((skill, found.into_iter().map(str::to_owned).collect(), count))
            })
            .collect();
        ranked.sort_by_key(|(_, found, count)| std::cmp::Reverse((found.len(), *count)));
        let Some(best) = ranked.first().map(|(_, found, count)| (found.len(), *count)) else {
            return Vec::new();
        };
        // Equally long findings are told apart by their number, within one half of Quark.
        let half = ranked[0].0.backend;
        ranked.retain(|(skill, found, count)| {
            found.len() < best.0 || *count == best.1 || skill.backend != half
        });
        ranked.into_iter().map(|(skill, found, _)| (skill, found)).collect()
    }

    /// Nothing in the goal says what is wanted.
    fn unclear(&self, backend: Option<Backend>) -> Routes {
        let half = backend.unwrap_or(Backend::Torch);
        let roles = [Role::Intake, Role::Workflow, Role::QuarkInstall];
        let ways: Vec<_> = match backend {
            Some(half) => roles.into_iter().filter_map(|role| self.with_role(role, half)).collect(),
            None => [Backend::Torch, Backend::Onnx]
                .into_iter()
                .filter_map(|half| self.with_role(Role::Router, half))
                .collect(),
        };
        let reason = |_: &Skill| "the goal does not say which step is wanted".to_owned();
        let ask = match backend {
            Some(Backend::Onnx) => {
                "Do you want to: (a) inspect the graph's opset and op types, (b) plan and run a full PTQ, \
                 (c) install ONNX Runtime or Quark first, or (d) validate an already quantized output?"
            }
            Some(Backend::Torch) => {
                "Do you want to: (a) inspect your model's architecture, (b) quantize it, or (c) set up Quark first?"
            }
            None => {
                "Is the model an `.onnx` file or a Hugging Face model, and do you want to inspect it, plan and \
                 quantize it, set up Quark, or check a result?"
            }
        };
        self.routes(&ways, reason, "route-unclear", Some(half), Some(ask.to_owned()))
    }
}

fn which_half(backend: Option<Backend>) -> &'static str {
    match backend {
        None => {
            "Is the model an `.onnx` file (the ONNX flow) or a Hugging Face model (the Torch flow)?"
        }
        Some(_) => "Which of these skills did or should write it?",
    }
}

fn options(ways: &[&Skill]) -> String {
    let ways =
        ('a'..).zip(ways).map(|(letter, way)| format!("({letter}) `{}`: {}", way.id, way.summary));
    format!("Which of these is meant? {}", ways.collect::<Vec<_>>().join("; "))
}

fn is_question(goal: &str) -> bool {
    let words = phrase::words(goal);
    goal.contains('?')
        || ["what", "which", "should", "vs", "versus", "or", "when", "why", "how", "alpha"]
            .iter()
            .any(|word| words.iter().any(|w| w == word))
}

/// Whether a text names a model on the Hub, as `org/model-1b`.
///
/// `XINT8/BFP16` and `./models/net-1.onnx` do not look like one.
pub fn names_a_hub_model(text: &str) -> bool {
    const FOLDERS: [&str; 9] =
        ["models", "model", "output", "out", "data", "artifacts", "src", "tmp", "home"];
    let trim = |word: &str| {
        word.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '/' | '.' | '~'))
            .to_owned()
    };
    text.split_whitespace().map(trim).any(|word| {
        let mut parts = word.split('/');
        let (Some(org), Some(model), None) = (parts.next(), parts.next(), parts.next()) else {
            return false;
        };
        let plain = |part: &str| {
            part.chars().next().is_some_and(char::is_alphanumeric)
                && part.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.'))
        };
        let is_file = model.rsplit('.').next().is_some_and(|ending| {
            matches!(ending, "onnx" | "py" | "json" | "yaml" | "md" | "txt" | "onnx_data" | "so")
        });
        plain(org)
            && plain(model)
            && !is_file
            && !FOLDERS.contains(&org)
            && model.contains('-')
            && model.contains(|c: char| c.is_ascii_digit())
    })
}
