//! # What it does
//!
//! Settles whether Python code of the model's repository may run: no where the model brings none or transformers
//! has the class itself, else only when you say yes.
//!
//! # Why
//!
//! Loading such a model runs whatever its repository holds. quark-cli does so unless it is told not to, and says
//! nothing.
//!
//! # Example
//!
//! The config of a Kimi K2 has an `auto_map` and transformers has no class for it: the plan asks.
//!
//! # Sources
//!
//! - 0.13, `quark/cli/torch_llm_ptq.py`, `--no_trust_remote_code`

use serde_json::{Value, json};

use crate::{
    plan::Choice,
    rules::{
        Context, Stage,
        sheet::{Check, Sheet, list},
    },
    vocab::{Origin, Severity},
};

/// The reason code.
pub const ID: &str = "remote-code";
/// When it runs.
pub const STAGE: Stage = Stage::Tune;

const ROW: &str = "trust_remote_code";

/// Settles the row, or asks.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let map = &ctx.torch().auto_map;
    let brings = !map.is_empty() || ctx.analysis.model.trust_remote_code == Some(true);
    let needs = sheet.torch.family.map_or(brings, |family| family.remote_code);
    let answer = ctx.answer(ROW);
    let requested = ctx.requested(ROW).and_then(Value::as_bool);
    let allowed = requested.or(answer.map(|answer| answer == "yes"));
    let code = if map.is_empty() {
        "code of its repository".to_owned()
    } else {
        format!("code of its repository ({})", list(map.values(), 2))
    };
    if !needs {
        let why = if brings {
            "transformers has the class itself, so the code that the repository brings is not needed"
        } else {
            "the model brings no code of its own, so none may run"
        };
        sheet.by(ID).settle_or(
            ctx,
            ROW,
            (json!(false), Origin::Analysis, why.to_owned()),
            |asked| {
                if *asked == json!(true) && brings {
                    Check::Risky(
                        Severity::Medium,
                        "it runs code of the repository that is not needed".to_owned(),
                    )
                } else {
                    Check::Fine
                }
            },
        );
        return;
    }
    let mut pen = sheet.by(ID);
    match allowed {
        Some(true) => {
            pen.decide(ROW, json!(true), Origin::User, "you trust the repository");
            pen.risk(
                Severity::Medium,
                format!("loading the model runs {code}"),
                Some("read that code, and pin the revision".to_owned()),
            );
        }
        Some(false) => {
            pen.decide(ROW, json!(false), Origin::User, "you do not trust the repository");
            pen.risk(
                Severity::High,
                "transformers has no class for the model, so without its code it will not load",
                None,
            );
        }
        None => {
            pen.leave_open(ROW, format!("loading the model runs {code}"));
            let choice = |value: &str, meaning: &str| Choice {
                value: value.to_owned(),
                meaning: meaning.to_owned(),
            };
            pen.ask(
                ROW,
                format!("Loading the model runs {code}. May it?"),
                vec![
                    choice("no", "it may not; the model will probably not load"),
                    choice("yes", "the repository is trusted"),
                ],
            );
        }
    }
}
