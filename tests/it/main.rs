//! Tests of the library from outside, in one binary.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    missing_docs
)]

mod catalogue;
mod chain;
mod check;
mod explain;
mod intake;
mod layering;
mod mcp;
mod onnx_fixtures;
#[cfg(unix)]
mod probe;
mod route;
mod route_errors;
mod route_texts;
mod rules;
mod schemas;
mod sessions;
mod torch_fixtures;
mod torch_intake;
mod torch_sessions;
