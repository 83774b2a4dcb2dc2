//! The `quantplan` binary.

fn main() {}
