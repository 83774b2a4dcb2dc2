//! Plans the quantization of models for AMD Quark.

pub mod catalogue;
pub mod emit;
pub mod facts;
pub mod intake;
pub mod intent;
pub mod mcp;
pub mod plan;
pub mod planner;
pub mod render;
pub mod rules;
pub mod session;
pub mod store;
pub mod vocab;
