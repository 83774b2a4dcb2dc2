//! Markdown, for agents and hosts.

use crate::render::{View, clean};

/// The whole view.
pub fn render(view: &View) -> String {
    let mut out = String::new();
    let mut line = |text: &str| {
        out.push_str(text);
        out.push('\n');
    };
    for text in &view.nutshell {
        line(&format!("{}  ", cell(text)));
    }
    line("");
    line("| Decision | Value | Reason | From |");
    line("|---|---|---|---|");
    for row in &view.rows {
        line(&format!(
            "| {} | {} | {} | {} |",
            code(&row.decision),
            code(&row.value),
            cell(&row.reason),
            row.origin.as_str()
        ));
    }
    if !view.alternatives.is_empty() {
        line("");
        line("Not taken:");
        line("");
        for [decision, value, why] in &view.alternatives {
            line(&format!("- {} = {}: {}", code(decision), code(value), cell(why)));
        }
    }
    if !view.risks.is_empty() {
        line("");
        line("Risks:");
        line("");
        for risk in &view.risks {
            line(&format!("- **{}**: {}", risk.severity.as_str(), cell(&risk.text)));
        }
    }
    if !view.questions.is_empty() {
        line("");
        line("Questions:");
        line("");
        for question in &view.questions {
            let must = if question.blocking { " (must be answered)" } else { "" };
            line(&format!("- {}{must}: {}", code(&question.id), cell(&question.text)));
        }
    }
    if !view.handoffs.is_empty() {
        line("");
        line("Other skills:");
        line("");
        for handoff in &view.handoffs {
            line(&format!("- {}", cell(handoff)));
        }
    }
    if !view.expected.is_empty() {
        line("");
        line("Expected:");
        line("");
        for [what, text] in &view.expected {
            line(&format!("- {}: {}", cell(what), cell(text)));
        }
    }
    line("");
    line(&format!("**{}**", cell(&view.ask)));
    out
}

/// Text that cannot leave its cell, become a tag or a link; code spans stay.
pub fn cell(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let clean = clean(text);
    // An odd backtick would open a span that runs into the next cell.
    let spans = clean.matches('`').count().is_multiple_of(2);
    let mut code = false;
    let mut before: Option<char> = None;
    for c in clean.chars() {
        match c {
            '`' if spans => {
                code = !code;
                out.push(c);
            }
            '`' => out.push('\''),
            '|' => out.push_str("\\|"),
            '<' if !code => out.push_str("&lt;"),
            '>' if !code => out.push_str("&gt;"),
            // Inside a word an underscore means nothing.
            '_' if !code && before.is_some_and(char::is_alphanumeric) => out.push(c),
            '[' | ']' | '*' | '_' | '!' if !code => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
        before = Some(c);
    }
    out
}

/// Text as a code span that nothing in it can end.
pub fn code(text: &str) -> String {
    format!("`{}`", clean(text).replace('`', "'").replace('|', "\\|"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_code_span_ends_it() {
        assert_eq!(code("a`b|c_d"), "`a'b\\|c_d`");
    }

    #[test]
    fn text_from_a_model_cannot_leave_its_cell() {
        let check = |text: &str, expected: &str| assert_eq!(cell(text), expected);
        check("a | b\n| c", "a \\| b \\| c");
        check("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;");
        check("![x](http://h)", "\\!\\[x\\](http://h)");
        check("odd ` tick", "odd ' tick");
        check("`a_b*`", "`a_b*`");
        check("a_b _c_", "a_b \\_c_");
        check("\u{1b}[31mred\u{202e}", "\u{fffd}\\[31mred\u{fffd}");
    }
}
