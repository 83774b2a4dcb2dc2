//! Versions of Python packages and the ranges that releases state, such as `>=1.21.0,<=1.22.0`.
//!
//! The order is PEP 440's: `2.9.1+rocm6.4` lies in `<=2.9.1`, `5.17rc1` does not lie in `<5.17`.

use std::str::FromStr;

use pep440_rs::{Version, VersionSpecifiers};

/// A version; `None` when it is none.
pub fn parse(text: &str) -> Option<Version> {
    Version::from_str(text.trim()).ok()
}

/// Whether a version lies in a range; `None` when either cannot be read.
pub fn within(version: &str, range: &str) -> Option<bool> {
    let range = VersionSpecifiers::from_str(range).ok()?;
    Some(range.contains(&parse(version)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_lie_in_ranges_as_pip_sees_it() {
        let check = |version: &str, range: &str, expected: Option<bool>| {
            assert_eq!(within(version, range), expected, "`{version}` in `{range}`");
        };
        check("1.22.0", ">=1.21.0,<=1.22.0", Some(true));
        check("1.22", ">=1.21.0,<=1.22.0", Some(true));
        check("1.19", ">=1.21.0,<=1.22.0", Some(false));
        check("3.13.1", ">=3.11,<3.14", Some(true));
        check("3.9", ">=3.11,<3.14", Some(false));
        check("3.14", ">=3.11,<3.14", Some(false));
        check("5.0", ">5,<5.17", Some(false));
        check("5.0.1", ">5,<5.17", Some(true));
        check("5.17rc1", ">5,<5.17", Some(false));
        check("1.28.0+cu126", ">=1.22.2,<=1.28.0", Some(true));
        check("0.12.post1", ">=0.12,<0.13", Some(true));
        check("unknown", ">=1", None);
        check("", ">=1", None);
        check("1.0", "about 1", None);
    }
}
