//! The distinct kinds of nodes of a model, numbered, so that a large graph is not searched by name again and
//! again.

use std::collections::{BTreeMap, HashMap};

/// A domain with an op type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    /// Domain; empty for `ai.onnx`.
    pub domain: String,
    /// Op type.
    pub op_type: String,
    /// Nodes of this kind.
    pub count: u64,
    /// Those of them in the top graph.
    pub count_top: u64,
}

/// Numbers kinds in the order in which they come.
#[derive(Debug, Default)]
pub struct Kinds {
    /// All kinds, by their number.
    pub list: Vec<Kind>,
    numbers: HashMap<String, u32>,
}

impl Kinds {
    /// Counts a node and gives the number of its kind, and whether that is new.
    pub fn number(&mut self, domain: &str, op_type: &str, top: bool) -> (u32, bool) {
        let known = if domain.is_empty() {
            self.numbers.get(op_type)
        } else {
            self.numbers.get(&qualified(domain, op_type))
        };
        let (number, new) = match known {
            Some(&number) => (number, false),
            None => (self.list.len() as u32, true),
        };
        if new {
            let name =
                if domain.is_empty() { op_type.to_owned() } else { qualified(domain, op_type) };
            self.numbers.insert(name, number);
            let (domain, op_type) = (domain.to_owned(), op_type.to_owned());
            self.list.push(Kind { domain, op_type, count: 0, count_top: 0 });
        }
        let kind = &mut self.list[number as usize];
        kind.count += 1;
        kind.count_top += u64::from(top);
        (number, new)
    }

    /// Whether there is a node of this op type, in any domain.
    pub fn has(&self, op_type: &str) -> bool {
        self.list.iter().any(|kind| kind.op_type == op_type)
    }

    /// What `about` says of each kind, by its number.
    pub fn map<T>(&self, about: impl Fn(&Kind) -> T) -> Vec<T> {
        self.list.iter().map(about).collect()
    }

    /// Sums `count` over the kinds that have the same name by `name`, leaving zeros out.
    pub fn sum(
        &self,
        name: impl Fn(&Kind) -> &str,
        count: impl Fn(&Kind) -> u64,
    ) -> BTreeMap<String, u64> {
        let mut sums = BTreeMap::new();
        for kind in self.list.iter().filter(|kind| count(kind) > 0) {
            *sums.entry(name(kind).to_owned()).or_insert(0) += count(kind);
        }
        sums
    }
}

/// The key of a kind outside of the default domain; op types with NUL are nobody's.
fn qualified(domain: &str, op_type: &str) -> String {
    format!("{domain}\u{0}{op_type}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_apart_by_domain_and_summed_by_name() {
        let mut kinds = Kinds::default();
        assert_eq!(kinds.number("", "Add", true), (0, true));
        assert_eq!(kinds.number("acme", "Add", false), (1, true));
        assert_eq!(kinds.number("", "Add", false), (0, false));
        let sum = |count: fn(&Kind) -> u64| kinds.sum(|kind| &kind.op_type, count);
        assert_eq!(sum(|kind| kind.count), BTreeMap::from([("Add".to_owned(), 3)]));
        assert_eq!(sum(|kind| kind.count_top), BTreeMap::from([("Add".to_owned(), 1)]));
    }
}
