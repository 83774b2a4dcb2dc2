//! Versions as packages spell them, and ranges such as `>=1.21.0,<=1.22.0`.

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

/// Whether a version lies in a range of the form `>=1.2,<2`; `None` when either cannot be read.
pub fn within(version: &str, range: &str) -> Option<bool> {
    let mut inside = true;
    for bound in range.split(',').map(str::trim) {
        let end = bound.find(|c: char| c.is_ascii_digit())?;
        let order = compare(version, &bound[end..])?;
        inside &= match bound[..end].trim() {
            ">=" => order.is_ge(),
            ">" => order.is_gt(),
            "<=" => order.is_le(),
            "<" => order.is_lt(),
            "==" => order.is_eq(),
            "!=" => order.is_ne(),
            _ => return None,
        };
    }
    Some(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_lie_in_ranges_by_their_numbers() {
        let check = |version: &str, range: &str, expected: Option<bool>| {
            assert_eq!(within(version, range), expected, "`{version}` in `{range}`");
        };
        check("1.22.0", ">=1.21.0,<=1.22.0", Some(true));
        check("1.19", ">=1.21.0,<=1.22.0", Some(false));
        check("3.13.1", ">=3.11,<3.14", Some(true));
        check("3.14", ">=3.11,<3.14", Some(false));
        check("1.28.0.post1", ">=1.22.2,<=1.28.0", Some(true));
        check("new", ">=1", None);
        check("1.0", "about 1", None);
    }
}
