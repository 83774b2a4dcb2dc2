//! `quantplan plan`: table, changes, a yes, the file.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    cli::{
        DONE, REFUSED,
        arguments::{Plan, pair},
        ask::{self, CLIENT, read_line, show},
        is_interactive,
        output::{self, Printer, fail},
        planner,
    },
    intent::{CalibrationData, Intent},
    planner::{
        Planner, confirm,
        confirm::Inquiry,
        error::Error,
        explain,
        propose::{self, RevisionArguments, is_question, is_row, value_from_text},
        write,
    },
    render::clean,
    session::{
        Session,
        event::{Answer, Reply},
    },
    vocab::{Channel, DecisionId, QuestionId, SessionId},
};

/// Runs the command; gives the exit code.
pub fn run(arguments: &Plan) -> u8 {
    let done = planner(&arguments.place).and_then(|planner| planned(&planner, arguments));
    done.unwrap_or_else(|error| fail(&error, arguments.json))
}

fn planned(planner: &Planner, arguments: &Plan) -> Result<u8, Error> {
    let is_analysis = arguments.path.extension().is_some_and(|e| e.eq_ignore_ascii_case("json"));
    let path = Some(arguments.path.clone());
    let reply = planner.propose(&propose::Arguments {
        model_path: path.clone().filter(|_| !is_analysis),
        analysis_path: path.filter(|_| is_analysis),
        environment_path: arguments.environment.clone(),
        onnx_install_result_path: arguments.install_result.clone(),
        pytorch_install_result_path: arguments.torch_install_result.clone(),
        session_context_path: arguments.session_context.clone(),
        intent: intent(arguments),
        ..propose::Arguments::default()
    })?;
    let Some(id) = reply.session_id.clone() else {
        if arguments.json {
            Printer::json(&reply);
        } else if let Some(handoff) = &reply.handoff {
            output::handoff(handoff);
        }
        return Ok(REFUSED);
    };
    if arguments.yes {
        return unattended(planner, arguments, &id);
    }
    if arguments.json {
        Printer::json(&reply);
        return Ok(REFUSED);
    }
    if !is_interactive() {
        let session = planner.present(&id)?;
        show(&session);
        complain!("\nNobody can be asked here: input or output is not a terminal.");
        let open = session.draft().questions.iter().filter(|question| question.blocking);
        let open: Vec<String> =
            open.map(|question| format!("--answer {}=…", question.id)).collect();
        if open.is_empty() {
            complain!("hint: run `quantplan confirm {id}` in a terminal, or pass `--yes` in CI");
        } else {
            complain!(
                "hint: run it again with {}, or `quantplan confirm {id}` in a terminal",
                open.join(" ")
            );
        }
        return Ok(REFUSED);
    }
    talk(planner, &id, Talk::Plan(arguments))
}

/// What a conversation is for.
#[derive(Debug, Clone, Copy)]
enum Talk<'a> {
    /// A yes, and the plan where these arguments want it.
    Plan(&'a Plan),
    /// Answers to the questions without which nothing can be confirmed.
    Answers,
}

/// Asks what must be answered before a session can be confirmed; gives the exit code.
///
/// # Errors
///
/// When there is no such session.
pub fn answers(planner: &Planner, id: &SessionId) -> Result<u8, Error> {
    talk(planner, id, Talk::Answers)
}

fn intent(arguments: &Plan) -> Intent {
    let data = CalibrationData {
        available: arguments
            .samples
            .map(|samples| samples > 0)
            .or(arguments.calibration_data.as_ref().map(|_| true)),
        samples: arguments.samples.filter(|samples| *samples > 0),
        path: arguments.calibration_data.clone(),
        ..CalibrationData::default()
    };
    Intent {
        goal: arguments.goal.clone(),
        deployment_target: arguments.target.clone(),
        hardware: arguments.hardware.clone(),
        serving_engine: arguments.engine.clone(),
        tensor_parallel: arguments.tensor_parallel,
        ryzen_ai_version: arguments.ryzen_ai.clone(),
        quark_version: arguments.quark.clone(),
        calibration_data: Some(data).filter(|data| *data != CalibrationData::default()),
        values: arguments
            .set
            .iter()
            .map(|(name, text)| (DecisionId::new(name), value_from_text(name, text)))
            .collect(),
        answers: arguments
            .answer
            .iter()
            .map(|(name, text)| (QuestionId::new(name), text.clone()))
            .collect(),
        insist: arguments.insist.iter().map(DecisionId::new).collect(),
        ..Intent::default()
    }
}

/// `--yes`: confirms without asking, and says so in the plan.
fn unattended(planner: &Planner, arguments: &Plan, id: &SessionId) -> Result<u8, Error> {
    let session = planner.present(id)?;
    if !arguments.json {
        show(&session);
    }
    planner.answer(
        id,
        Answer {
            nonce: None,
            channel: Channel::Flag,
            digest: session.digest(),
            reply: Reply::Yes,
            client: Some(CLIENT.to_owned()),
        },
    )?;
    written(planner, arguments, id)
}

fn written(planner: &Planner, arguments: &Plan, id: &SessionId) -> Result<u8, Error> {
    let request = write::Arguments {
        session_id: id.clone(),
        output_path: arguments.output.clone(),
        overwrite: arguments.overwrite,
    };
    if arguments.json {
        Printer::json(&planner.write(&request)?);
        return Ok(DONE);
    }
    output::write(planner, request).inspect_err(|_| {
        say!("\nThe yes is kept: `quantplan confirm {id} --output FILE` writes the plan.");
    })
}

const HELP: &str = "\
yes                     confirm this table and write the plan
name=value …            change rows, for example preset=A8W8 calibration.data_size=64; answer a
                        question (npu_device=STX); or say more (hardware=MI300X tensor_parallel=2)
insist NAME             keep your value of a row against advice
withdraw NAME           take your value of a row back
explain NAME [NAME]     what a name means, or two beside each other
no                      stop; the session is kept
";

/// What was typed.
enum Line {
    Yes,
    Stop,
    Help,
    Explain(Vec<String>),
    Revise(Box<RevisionArguments>),
    Nothing,
    Unknown,
}

impl Line {
    fn revise(revision: RevisionArguments) -> Self {
        Self::Revise(Box::new(revision))
    }
}

fn talk(planner: &Planner, id: &SessionId, talk: Talk<'_>) -> Result<u8, Error> {
    let mut session = planner.present(id)?;
    show(&session);
    loop {
        let open = session.draft().questions.iter().find(|question| question.blocking).cloned();
        if open.is_none() && matches!(talk, Talk::Answers) {
            return Ok(DONE);
        }
        let line = match &open {
            Some(question) => {
                say!("\n{}", clean(&question.text));
                for option in &question.options {
                    say!("  {}: {}", option.value, clean(&option.meaning));
                }
                let Some(text) = read_line(&format!("{} > ", question.id)) else {
                    return Ok(stopped(id));
                };
                match parse(&text, id) {
                    line @ (Line::Nothing | Line::Help | Line::Stop | Line::Explain(_)) => line,
                    Line::Revise(revision) if is_about_the_plan(&revision) => {
                        Line::Revise(revision)
                    }
                    // Any other words answer the question, `images=1x3x640x640` too.
                    _ => Line::revise(RevisionArguments {
                        answers: BTreeMap::from([(question.id.clone(), text)]),
                        ..RevisionArguments::of(id.clone())
                    }),
                }
            }
            None => {
                let Some(text) = read_line(
                    "\nConfirm this plan? Any changes? (yes / no / name=value / help) > ",
                ) else {
                    return Ok(stopped(id));
                };
                parse(&text, id)
            }
        };
        match line {
            Line::Nothing => {}
            Line::Help => put!("{HELP}"),
            Line::Stop => return Ok(stopped(id)),
            Line::Unknown => say!("Type `yes`, `no`, `name=value`, or `help`."),
            Line::Explain(names) => explained(planner, id, &names),
            Line::Yes => match confirmed(planner, &session) {
                Ok(()) => {
                    return match talk {
                        Talk::Plan(arguments) => written(planner, arguments, id),
                        Talk::Answers => Ok(DONE),
                    };
                }
                Err(error) => {
                    fail(&error, false);
                    session = planner.present(id)?;
                }
            },
            Line::Revise(revision) => match planner.revise(&revision) {
                Ok(reply) => {
                    if let Some(handoff) = &reply.handoff {
                        output::handoff(handoff);
                        continue;
                    }
                    session = planner.present(id)?;
                    show(&session);
                    for change in &reply.changed {
                        say!(
                            "changed: {} from {} to {}",
                            change.decision,
                            clean(&change.before.to_string()),
                            clean(&change.after.to_string())
                        );
                    }
                }
                Err(error) => {
                    fail(&error, false);
                }
            },
        }
    }
}

/// Whether what was typed is about the plan and not an answer that looks like it.
fn is_about_the_plan(revision: &RevisionArguments) -> bool {
    let named = revision.values.keys().any(|name| is_row(name.as_str()));
    let said = !revision.answers.is_empty() || revision.intent != Intent::default();
    named || said || !revision.insist.is_empty() || !revision.withdraw.is_empty()
}

/// Puts what was typed as `name=value` where it belongs: rows, questions, or what else can be said.
fn sorted(pairs: &[(String, String)], id: &SessionId) -> RevisionArguments {
    let mut revision = RevisionArguments::of(id.clone());
    for (name, text) in pairs {
        if !is_row(name) && is_question(name) {
            revision.answers.insert(QuestionId::new(name), text.clone());
        } else if let Some(said) =
            Some(name).filter(|name| !is_row(name)).and_then(|_| wish(name, text))
        {
            revision.intent.take_over(&said);
        } else {
            revision.values.insert(DecisionId::new(name), value_from_text(name, text));
        }
    }
    revision
}

/// What `name=value` says when the name is one of a wish: `hardware`, `tensor_parallel`, `goal`, …
fn wish(name: &str, text: &str) -> Option<Intent> {
    let forms = [
        serde_json::Value::from(text),
        serde_json::from_str(text).unwrap_or_default(),
        text.split(',').map(str::trim).collect(),
    ];
    forms
        .into_iter()
        .find_map(|value| serde_json::from_value(serde_json::json!({ name: value })).ok())
}

/// The person has the table on the screen and typed `yes`.
fn confirmed(planner: &Planner, session: &Session) -> Result<(), Error> {
    let id = session.id();
    let arguments = confirm::Arguments { session_id: id.clone(), digest: session.digest() };
    match planner.ask(&arguments, Channel::Terminal)? {
        Inquiry::Confirmed(_) => Ok(()),
        Inquiry::Ask(asked) => ask::answer(planner, id, &asked, Reply::Yes).map(|_| ()),
    }
}

fn stopped(id: &SessionId) -> u8 {
    say!("\nNothing was written. The session is kept: {id}");
    say!("`quantplan confirm {id}` takes it up again.");
    REFUSED
}

fn explained(planner: &Planner, id: &SessionId, names: &[String]) {
    let reply = planner.explain(&explain::Arguments {
        id: names.first().cloned().unwrap_or_default(),
        compare_with: names.get(1).cloned(),
        model_path: None,
        session_id: Some(id.clone()),
    });
    match reply {
        Ok(reply) => say!("{}", reply.markdown),
        Err(error) => {
            fail(&error, false);
        }
    }
}

fn parse(text: &str, id: &SessionId) -> Line {
    let words: Vec<&str> = text.split_whitespace().collect();
    let revision = RevisionArguments::of(id.clone());
    let named = |names: &[&str]| -> BTreeSet<DecisionId> {
        names.iter().map(|name| DecisionId::new(*name)).collect()
    };
    match words.as_slice() {
        [] => Line::Nothing,
        [word] if word.eq_ignore_ascii_case("yes") => Line::Yes,
        [word] if ["no", "n", "quit", "q", "exit"].contains(&word.to_lowercase().as_str()) => {
            Line::Stop
        }
        ["help" | "?" | "h"] => Line::Help,
        ["explain", names @ ..] if !names.is_empty() => {
            Line::Explain(names.iter().map(|n| (*n).to_owned()).collect())
        }
        ["insist", names @ ..] if !names.is_empty() => {
            Line::revise(RevisionArguments { insist: named(names), ..revision })
        }
        ["withdraw", names @ ..] if !names.is_empty() => {
            Line::revise(RevisionArguments { withdraw: named(names), ..revision })
        }
        words => {
            // A value with spaces (`nodes_to_exclude=["a", "b"]`) goes on until the next `name=`.
            let mut pairs: Vec<String> = Vec::new();
            for word in words {
                let starts = word.split_once('=').is_some_and(|(name, _)| {
                    name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.')
                        && !name.is_empty()
                });
                match pairs.last_mut() {
                    Some(last) if !starts => {
                        last.push(' ');
                        last.push_str(word);
                    }
                    _ => pairs.push((*word).to_owned()),
                }
            }
            let parsed: Result<Vec<_>, _> = pairs.iter().map(|text| pair(text)).collect();
            match parsed {
                Ok(pairs) => Line::revise(sorted(&pairs, id)),
                Err(_) => Line::Unknown,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn typed_lines_are_understood() {
        let id = SessionId::new("s");
        let values = |text: &str| match parse(text, &id) {
            Line::Revise(revision) => json!(revision.values),
            _ => json!("other"),
        };
        assert_eq!(values("preset=A8W8"), json!({"preset": "A8W8"}));
        assert_eq!(
            values("preset=A8W8 calibration.data_size=64"),
            json!({"preset": "A8W8", "calibration.data_size": 64})
        );
        assert_eq!(values("algorithms=CLE,AdaRound"), json!({"algorithms": ["CLE", "AdaRound"]}));
        assert_eq!(
            values("nodes_to_exclude=[\"/a b\", \"c=d\"]"),
            json!({"nodes_to_exclude": ["/a b", "c=d"]})
        );
        assert!(matches!(parse("YES", &id), Line::Yes));
        assert!(matches!(parse("yes please", &id), Line::Unknown));
        assert!(matches!(parse("", &id), Line::Nothing));
    }
}
