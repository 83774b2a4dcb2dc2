//! Two things beside each other.

use crate::planner::explain::{
    cards::{self, prose},
    things::Thing,
};

/// What differs between two things, then when to pick which.
pub(super) fn comparison(first: Thing, second: Thing) -> String {
    let (a, b) = (first.id(), second.id());
    let mut out = format!(
        "**`{a}`**: {}.\n**`{b}`**: {}.\n",
        prose(&first.summary()),
        prose(&second.summary())
    );
    if first.is(second) {
        return format!("`{a}` and `{b}` are the same.\n\n{}", cards::card(first));
    }
    out = out.replacen(".\n**", ".  \n**", 1);
    if first.kind() == second.kind() {
        let (left, right) = (cards::facts(first), cards::facts(second));
        let value = |facts: &[(String, String)], what: &str| {
            facts
                .iter()
                .find(|fact| fact.0 == what)
                .map_or_else(|| "–".to_owned(), |fact| prose(&fact.1))
        };
        let mut rows: Vec<&str> = left.iter().map(|fact| fact.0.as_str()).collect();
        rows.extend(right.iter().map(|f| f.0.as_str()).filter(|w| !left.iter().any(|f| f.0 == *w)));
        let rows: Vec<[String; 3]> = rows
            .into_iter()
            .map(|what| [prose(what), value(&left, what), value(&right, what)])
            .filter(|[_, a, b]| a != b)
            .collect();
        if rows.is_empty() {
            out.push_str("\nNone of their facts differ.\n");
        } else {
            out.push_str(&format!("\nWhat differs:\n\n| | `{a}` | `{b}` |\n|---|---|---|\n"));
            for [what, a, b] in rows {
                out.push_str(&format!("| {what} | {a} | {b} |\n"));
            }
        }
    } else {
        out.push_str(&format!(
            "\nThey are different things: a {} and a {}.\n",
            first.kind(),
            second.kind()
        ));
    }
    for thing in [first, second] {
        if let Some(when) = thing.use_when() {
            out.push_str(&format!(
                "\n**`{}`:** {}.\n",
                thing.id(),
                prose(when.trim_end_matches('.'))
            ));
        }
    }
    let mine: Vec<(Thing, &String)> = [(first, second), (second, first)]
        .into_iter()
        .flat_map(|(thing, other)| {
            let own = thing.notes().iter().filter(move |note| !other.notes().contains(note));
            own.map(move |note| (thing, note))
        })
        .collect();
    if !mine.is_empty() {
        out.push_str("\nTo know:\n\n");
        for (thing, note) in mine {
            out.push_str(&format!("- `{}`: {}\n", thing.id(), prose(note)));
        }
    }
    out
}
