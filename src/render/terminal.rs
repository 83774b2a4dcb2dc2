//! Plain text, for terminals and for forms that show text only.

use comfy_table::{ContentArrangement, Table, presets};

use crate::render::View;

/// The whole view, wrapped to a width in columns.
pub fn render(view: &View, width: u16) -> String {
    let mut out = String::new();
    for line in &view.nutshell {
        out.push_str(line);
        out.push('\n');
    }
    out.push('\n');
    let rows = view.rows.iter().map(|row| {
        [
            row.decision.strip_prefix("onnx_specific.").unwrap_or(&row.decision).to_owned(),
            row.value.clone(),
            format!("{} ({})", row.reason, row.origin.as_str()),
        ]
    });
    out.push_str(&table(&["Decision", "Value", "Reason"], rows, width));
    section(
        &mut out,
        "Not taken",
        view.alternatives.iter().map(|[d, v, why]| format!("{d} = {v}: {why}")),
        width,
    );
    section(
        &mut out,
        "Risks",
        view.risks.iter().map(|r| format!("{}: {}", r.severity.as_str(), r.text)),
        width,
    );
    section(
        &mut out,
        "Questions",
        view.questions.iter().map(|q| {
            format!("{}{}: {}", q.id, if q.blocking { " (must be answered)" } else { "" }, q.text)
        }),
        width,
    );
    section(&mut out, "Other skills", view.handoffs.iter().cloned(), width);
    section(
        &mut out,
        "Expected",
        view.expected.iter().map(|[what, text]| format!("{what}: {text}")),
        width,
    );
    out
}

/// A table of text that wraps to a width in columns.
pub fn table<const N: usize>(
    header: &[&str; N],
    rows: impl Iterator<Item = [String; N]>,
    width: u16,
) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_FULL_CONDENSED)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width)
        .set_header(header.iter().copied());
    for row in rows {
        table.add_row(row.map(|text| crate::render::clean(&text)));
    }
    format!("{table}\n")
}

fn section(out: &mut String, title: &str, items: impl Iterator<Item = String>, width: u16) {
    let mut items = items.peekable();
    if items.peek().is_none() {
        return;
    }
    out.push_str(&format!("\n{title}\n"));
    for item in items {
        out.push_str(&wrapped(&crate::render::clean(&item), usize::from(width)));
    }
}

/// A list item, wrapped at words with a hanging indent.
fn wrapped(text: &str, width: usize) -> String {
    let mut out = String::from("  - ");
    let mut column = 4;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let length = word.chars().count();
        if column > 4 && column + 1 + length > width {
            out.push_str("\n    ");
            column = 4;
        } else if column > 4 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out.push('\n');
    out
}
