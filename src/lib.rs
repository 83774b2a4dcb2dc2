//! Plans the quantization of models for AMD Quark.

pub mod facts;
pub mod intake;
pub mod vocab;
