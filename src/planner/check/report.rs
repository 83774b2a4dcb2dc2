//! The findings in Markdown.

use crate::{
    planner::check::{Finding, Grade, Reply},
    render::markdown::{cell, code},
};

pub(super) fn markdown(reply: &Reply) -> String {
    let mut out = format!("**{}**\n\n", cell(&headline(reply)));
    out.push_str(&format!("Confirmation: {}.\n", cell(&reply.agreement.explanation)));
    if !reply.held_against.is_empty() {
        out.push_str(&format!("\nHeld against {}.\n", cell(&reply.held_against.join(", "))));
    }
    if !reply.findings.is_empty() {
        out.push_str("\n| Grade | Field | Finding |\n|---|---|---|\n");
        for finding in &reply.findings {
            out.push_str(&format!(
                "| {} | {} | {} |\n",
                finding.grade.as_str(),
                finding.field.as_deref().map(code).unwrap_or_default(),
                cell(&text(finding))
            ));
        }
    }
    if !reply.matches.is_empty() {
        out.push_str("\n| Row | Entry | Means | For example |\n|---|---|---|---|\n");
        for entry in &reply.matches {
            out.push_str(&format!(
                "| {} | {} | {} | {} |\n",
                cell(entry.decision.as_str()),
                code(&entry.pattern),
                entry.nodes,
                cell(&entry.examples.join(", "))
            ));
        }
    }
    out
}

/// The verdict in a line.
pub fn headline(reply: &Reply) -> String {
    let count = |grade| reply.findings.iter().filter(|finding| finding.grade == grade).count();
    let many = |count: usize, what: &str| match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    };
    let (defects, warnings) = (count(Grade::Defect), count(Grade::Warning));
    let verdict = match (defects, warnings) {
        (0, 0) => "no defect".to_owned(),
        (0, _) => format!("no defect, {}", many(warnings, "warning")),
        (_, 0) => many(defects, "defect"),
        _ => format!("{}, {}", many(defects, "defect"), many(warnings, "warning")),
    };
    format!("{}: {verdict}", reply.path)
}

/// A finding with what to do about it.
pub fn text(finding: &Finding) -> String {
    match &finding.hint {
        Some(hint) => format!("{}; {hint}", finding.message),
        None => finding.message.clone(),
    }
}
