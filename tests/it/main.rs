//! Integration tests, one binary.

mod catalogue;
