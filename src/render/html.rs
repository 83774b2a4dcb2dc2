//! A page of its own, without scripts or anything from outside.

use crate::render::{View, clean};

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:1.5rem auto;max-width:70rem;padding:0 1rem;color:#1c1c1c;background:#fff}\
h1{font-size:1.2rem}h2{font-size:1rem;margin:1.4rem 0 .4rem}p{margin:.2rem 0}\
table{border-collapse:collapse;width:100%}th,td{border:1px solid #d0d0d0;padding:.35rem .55rem;text-align:left;vertical-align:top}\
th{background:#f3f3f3}td:first-child,td:nth-child(2){font-family:ui-monospace,monospace;font-size:.86rem}td:first-child{white-space:nowrap}td:nth-child(2){overflow-wrap:anywhere}\
td:nth-child(4){white-space:nowrap;color:#555}code{font-family:ui-monospace,monospace;font-size:.9em;background:#f3f3f3;padding:0 .2em}\
ul{margin:.2rem 0;padding-left:1.2rem}.high{color:#a40000;font-weight:600}.medium{color:#8a5a00;font-weight:600}.low{color:#555;font-weight:600}\
.ask{margin-top:1.4rem;padding:.6rem .8rem;border-left:4px solid #555;background:#f3f3f3;font-weight:600}\
@media (prefers-color-scheme:dark){body{color:#e8e8e8;background:#181818}th,code,.ask{background:#262626}th,td{border-color:#444}\
td:nth-child(4),.low{color:#aaa}.high{color:#ff8a80}.medium{color:#ffcc80}}";

/// The whole view.
pub fn render(view: &View) -> String {
    let mut body = String::new();
    body.push_str("<h1>Quantization plan</h1>\n");
    for line in &view.nutshell {
        body.push_str(&format!("<p>{}</p>\n", text(line)));
    }
    body.push_str("<h2>Decisions</h2>\n<table><thead><tr><th>Decision</th><th>Value</th><th>Reason</th><th>From</th></tr></thead><tbody>\n");
    for row in &view.rows {
        body.push_str(&format!(
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
            text(&row.decision),
            text(&row.value),
            text(&row.reason),
            row.origin.as_str()
        ));
    }
    body.push_str("</tbody></table>\n");
    list(
        &mut body,
        "Not taken",
        view.alternatives
            .iter()
            .map(|[d, v, why]| format!("<code>{}</code> = {}: {}", text(d), text(v), text(why))),
    );
    list(
        &mut body,
        "Risks",
        view.risks.iter().map(|r| {
            let severity = r.severity.as_str();
            format!("<span class=\"{severity}\">{severity}</span> {}", text(&r.text))
        }),
    );
    list(
        &mut body,
        "Questions",
        view.questions.iter().map(|q| {
            let must = if q.blocking { " (must be answered)" } else { "" };
            format!("<code>{}</code>{must}: {}", text(&q.id), text(&q.text))
        }),
    );
    list(&mut body, "Other skills", view.handoffs.iter().map(|h| text(h)));
    list(
        &mut body,
        "Expected",
        view.expected.iter().map(|[what, t]| format!("{}: {}", text(what), text(t))),
    );
    body.push_str(&format!("<p class=\"ask\">{}</p>\n", text(&view.ask)));
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>Quantization plan</title><style>{STYLE}</style></head>\n<body>\n{body}</body></html>\n"
    )
}

fn list(body: &mut String, title: &str, items: impl Iterator<Item = String>) {
    let items: Vec<String> = items.map(|item| format!("<li>{item}</li>")).collect();
    if !items.is_empty() {
        body.push_str(&format!("<h2>{title}</h2>\n<ul>\n{}\n</ul>\n", items.join("\n")));
    }
}

/// Text that cannot become markup; what stands in backticks becomes code.
fn text(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let clean = clean(raw);
    let spans = clean.matches('`').count().is_multiple_of(2);
    let mut code = false;
    for c in clean.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '`' if spans => {
                out.push_str(if code { "</code>" } else { "<code>" });
                code = !code;
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_a_model_cannot_become_markup() {
        let check = |raw: &str, expected: &str| assert_eq!(text(raw), expected);
        check("<img src=x onerror=\"y\">", "&lt;img src=x onerror=&quot;y&quot;&gt;");
        check("`a<b`", "<code>a&lt;b</code>");
        check("a ` b", "a ` b");
    }
}
