//! Versions by their numbers alone, as drivers, toolkits and people spell them.

use std::cmp::Ordering;

/// The leading numbers of a version; `None` when it does not begin with one.
pub fn parse(text: &str) -> Option<Vec<u64>> {
    let text = text.trim().trim_start_matches(['v', 'V', '=']);
    let mut numbers = Vec::new();
    for part in text.split('.') {
        let digits: &str = &part[..part.bytes().take_while(u8::is_ascii_digit).count()];
        let Ok(number) = digits.parse() else { break };
        numbers.push(number);
        if digits.len() < part.len() {
            break;
        }
    }
    (!numbers.is_empty()).then_some(numbers)
}

/// How two versions compare, by their numbers; missing ones count as 0.
pub fn compare(a: &str, b: &str) -> Option<Ordering> {
    let (a, b) = (parse(a)?, parse(b)?);
    let at = |numbers: &[u64], i: usize| numbers.get(i).copied().unwrap_or(0);
    (0..a.len().max(b.len()))
        .map(|i| at(&a, i).cmp(&at(&b, i)))
        .find(|o| o.is_ne())
        .or(Some(Ordering::Equal))
}

/// Whether `version` is at least `least`; `None` when one of them is no version.
pub fn at_least(version: &str, least: &str) -> Option<bool> {
    compare(version, least).map(Ordering::is_ge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_their_numbers() {
        let check = |version: &str, least: &str, expected: Option<bool>| {
            assert_eq!(at_least(version, least), expected, "`{version}` from `{least}`");
        };
        check("1.6", "1.6.0", Some(true));
        check("v1.10.2-rc", "1.9", Some(true));
        check("6.4.0-47", "7", Some(false));
        check("new", "1", None);
    }
}
