//! Plans the quantization of models for AMD Quark.

pub mod catalogue;
pub mod estimate;
pub mod facts;
pub mod intent;
pub mod plan;
pub mod rules;
pub mod vocab;
