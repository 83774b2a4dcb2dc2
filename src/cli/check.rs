//! `quantplan check` and `quantplan diff`: plans that are there already.

use std::path::Path;

use crate::{
    cli::{
        DONE, REFUSED, USAGE,
        arguments::{Check, Place},
        output::{Printer, fail, width},
        planner,
    },
    planner::{
        check::{self, report},
        diff::{Difference, Reply, Side},
    },
    render::{clean, plain, terminal},
};

/// Checks a plan; gives the exit code.
pub fn check(arguments: &Check) -> u8 {
    let reply = planner(&arguments.place).and_then(|planner| {
        planner.check(&check::Arguments {
            path: arguments.path.clone(),
            model_path: arguments.model.clone(),
            environment_path: arguments.environment.clone(),
            environment: None,
        })
    });
    let reply = match reply {
        Ok(reply) => reply,
        Err(error) => {
            fail(&error, arguments.json);
            return USAGE;
        }
    };
    if arguments.json {
        Printer::json(&reply);
    } else {
        checked(&reply);
    }
    if reply.clean { DONE } else { REFUSED }
}

fn checked(reply: &check::Reply) {
    say!("{}", clean(&report::headline(reply)));
    say!("Confirmation: {}.", clean(&reply.agreement.explanation));
    if !reply.held_against.is_empty() {
        say!("Held against {}.", clean(&reply.held_against.join(", ")));
    }
    let rows = reply.findings.iter().map(|finding| {
        [
            finding.grade.as_str().to_owned(),
            finding.field.clone().unwrap_or_default(),
            report::text(finding),
        ]
    });
    if !reply.findings.is_empty() {
        put!("\n{}", terminal::table(&["", "Field", "Finding"], rows, width()));
    }
    let matches = reply.matches.iter().map(|entry| {
        [
            entry.decision.to_string(),
            entry.pattern.clone(),
            entry.nodes.to_string(),
            entry.examples.join(", "),
        ]
    });
    if !reply.matches.is_empty() {
        put!("\n{}", terminal::table(&["Row", "Entry", "Means", "For example"], matches, width()));
    }
}

/// Compares two plans; gives the exit code, which is that of `diff`.
pub fn diff(left: &Path, right: &Path, json: bool) -> u8 {
    let reply = planner(&Place::default()).and_then(|planner| planner.diff(left, right));
    let reply = match reply {
        Ok(reply) => reply,
        Err(error) => {
            fail(&error, json);
            return USAGE;
        }
    };
    if json {
        Printer::json(&reply);
    } else {
        compared(&reply);
    }
    if reply.same { DONE } else { REFUSED }
}

fn compared(reply: &Reply) {
    if reply.same {
        say!("both plans say the same");
    }
    for (title, differences) in [("Decision", &reply.decisions), ("Field", &reply.fields)] {
        if !differences.is_empty() {
            let rows = differences.iter().map(row);
            put!("{}", terminal::table(&[title, &reply.left, &reply.right], rows, width()));
        }
    }
    for (path, risks) in
        [(&reply.left, &reply.risks_only_left), (&reply.right, &reply.risks_only_right)]
    {
        if !risks.is_empty() {
            say!("\nRisks only in {}:", clean(path));
            for risk in risks {
                say!("  {}", clean(risk));
            }
        }
    }
}

fn row(difference: &Difference) -> [String; 3] {
    [difference.field.clone(), cell(&difference.left), cell(&difference.right)]
}

fn cell(side: &Side) -> String {
    let value = side.value.as_ref().map_or_else(|| "(not in the plan)".to_owned(), plain);
    match &side.reason {
        Some(reason) => format!("{value} ({reason})"),
        None => value,
    }
}
