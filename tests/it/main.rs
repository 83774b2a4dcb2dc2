//! Tests of the library from outside, in one binary.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod catalogue;
mod intake;
mod layering;
mod onnx_fixtures;
mod schemas;
mod sessions;
mod torch_fixtures;
mod torch_intake;
