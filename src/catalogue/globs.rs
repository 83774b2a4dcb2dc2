//! Quark's layer patterns.
//!
//! Quark compares a pattern with the whole dotted name of a module by Python's `fnmatch.fnmatch`: `*` is
//! any run of characters, dots included; `?` is one character; `[seq]` one of a set and `[!seq]` one
//! outside it; there is no escape but a set of one. Names are compared with case, as `fnmatch` does
//! everywhere but on Windows. Sources: amd-quark 0.13, `quark/torch/quantization/model_transformation.py:280-340`
//! and `quark/torch/quantization/config/config.py:151-155`; 0.11.2, `model_transformation.py:79,90`.

/// Whether the pattern has a character with a meaning of its own; one without is compared as it is.
pub fn has_meta(pattern: &str) -> bool {
    pattern.contains(['*', '?', '['])
}

/// Whether a pattern matches the whole of a name.
pub fn matches(pattern: &str, name: &str) -> bool {
    Glob::new(pattern).matches(name)
}

/// A pattern, read once for many names.
#[derive(Debug)]
pub struct Glob {
    tokens: Vec<Token>,
    /// The plain characters at its end: a name that does not end so cannot match.
    end: String,
}

impl Glob {
    /// Reads a pattern; there is none that cannot be read.
    pub fn new(pattern: &str) -> Self {
        let tokens = tokens(pattern);
        let plain = tokens.iter().rev().map_while(|token| match token {
            Token::Char(own) => Some(*own),
            _ => None,
        });
        let end: Vec<char> = plain.collect();
        Self { end: end.iter().rev().collect(), tokens }
    }

    /// Whether it matches the whole of a name.
    pub fn matches(&self, name: &str) -> bool {
        if !name.ends_with(&self.end) {
            return false;
        }
        if name.is_ascii() {
            let bytes = name.as_bytes();
            return walk(&self.tokens, bytes.len(), |at| char::from(bytes[at]));
        }
        let chars: Vec<char> = name.chars().collect();
        walk(&self.tokens, chars.len(), |at| chars[at])
    }
}

/// Whether tokens take the whole of `length` characters.
fn walk(tokens: &[Token], length: usize, char_at: impl Fn(usize) -> char) -> bool {
    // Where to go back to when a later part does not match: the last star, and how much it takes.
    let (mut token, mut at) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while at < length {
        match tokens.get(token) {
            Some(Token::Any) => {
                star = Some((token, at));
                token += 1;
                continue;
            }
            Some(one) if one.takes(char_at(at)) => {
                token += 1;
                at += 1;
                continue;
            }
            _ => {}
        }
        let Some((after, taken)) = star else { return false };
        token = after + 1;
        at = taken + 1;
        star = Some((after, at));
    }
    tokens[token..].iter().all(|rest| matches!(rest, Token::Any))
}

#[derive(Debug)]
enum Token {
    Any,
    One,
    Char(char),
    Set { outside: bool, ranges: Vec<(char, char)> },
}

impl Token {
    fn takes(&self, c: char) -> bool {
        match self {
            Self::Any => false,
            Self::One => true,
            Self::Char(own) => *own == c,
            Self::Set { outside, ranges } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *outside
            }
        }
    }
}

fn tokens(pattern: &str) -> Vec<Token> {
    let chars: Vec<char> = pattern.chars().collect();
    let mut found = Vec::with_capacity(chars.len());
    let mut at = 0;
    while at < chars.len() {
        let c = chars[at];
        at += 1;
        match c {
            '*' => {
                if !matches!(found.last(), Some(Token::Any)) {
                    found.push(Token::Any);
                }
            }
            '?' => found.push(Token::One),
            '[' => match set(&chars[at..]) {
                Some((token, length)) => {
                    found.push(token);
                    at += length;
                }
                // Without its end a bracket is a bracket.
                None => found.push(Token::Char('[')),
            },
            c => found.push(Token::Char(c)),
        }
    }
    found
}

/// The set that begins after a bracket, and how many characters it takes with its end.
fn set(rest: &[char]) -> Option<(Token, usize)> {
    let first = usize::from(rest.first() == Some(&'!'));
    // A closing bracket in the first place is one of the set.
    let from = first + usize::from(rest.get(first) == Some(&']'));
    let end = from + rest.get(from..)?.iter().position(|c| *c == ']')?;
    Some((members(&rest[..end], first), end + 1))
}

/// What a set holds, from its text and the place of its first member, cut at hyphens as Python cuts it.
fn members(text: &[char], first: usize) -> Token {
    let mut chunks: Vec<Vec<char>> = Vec::new();
    let mut from = 0;
    // Neither the first member nor one right after a range can be a hyphen of its own range.
    let mut look = first + 1;
    while let Some(at) = (look..text.len()).find(|at| text[*at] == '-') {
        chunks.push(text[from..at].to_vec());
        from = at + 1;
        look = at + 3;
    }
    match chunks.last_mut() {
        // A hyphen at the end is one of the set.
        Some(chunk) if from == text.len() => chunk.push('-'),
        _ => chunks.push(text[from..].to_vec()),
    }
    // A range that runs backwards is empty, and takes its ends with it.
    for at in (1..chunks.len()).rev() {
        if chunks[at - 1].last() > chunks[at].first() {
            let right = chunks.remove(at);
            chunks[at - 1].pop();
            chunks[at - 1].extend(right.iter().skip(1));
        }
    }
    // Python looks for the mark of a set turned round only now, so one may have come to the front.
    let outside = chunks[0].first() == Some(&'!');
    if outside {
        chunks[0].remove(0);
    }
    let mut ranges: Vec<(char, char)> = Vec::new();
    for (index, chunk) in chunks.iter().enumerate() {
        let mut singles = chunk.as_slice();
        // Between two chunks stands a range, from the end of the one to the begin of the other.
        if index > 0
            && let (Some((low, _)), Some((high, rest))) = (ranges.pop(), singles.split_first())
        {
            ranges.push((low, *high));
            singles = rest;
        }
        ranges.extend(singles.iter().map(|c| (*c, *c)));
    }
    Token::Set { outside, ranges }
}
