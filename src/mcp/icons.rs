//! Icons, as data URIs: a picture must not need the network.

use rmcp::model::Icon;

/// The product: a table with a tick.
pub(super) const PLAN: &str = "M3 4h18v16H3zM3 9h18M9 9v11M12 15l2 2 4-4";

/// An outline on a grid of 24 by 24, from the data of an SVG path.
pub(super) fn icon(path: &str) -> Icon {
    let svg = format!(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24' fill='none' stroke='#d9480f' \
         stroke-width='2' stroke-linecap='round' stroke-linejoin='round'><path d='{path}'/></svg>"
    );
    let mut uri = String::from("data:image/svg+xml,");
    for c in svg.chars() {
        match c {
            ' ' => uri.push_str("%20"),
            '<' => uri.push_str("%3C"),
            '>' => uri.push_str("%3E"),
            '#' => uri.push_str("%23"),
            c => uri.push(c),
        }
    }
    Icon::new(uri).with_mime_type("image/svg+xml").with_sizes(vec!["any".to_owned()])
}
