//! Tests of the library from outside, in one binary.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    missing_docs
)]

mod catalogue;
mod intake;
mod layering;
mod onnx_fixtures;
#[cfg(unix)]
mod probe;
mod rules;
mod schemas;
mod sessions;
