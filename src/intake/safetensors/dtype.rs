//! The element types of safetensors files.

/// An element type.
#[derive(Debug, PartialEq, Eq)]
pub struct Dtype {
    /// The spelling of the file.
    pub code: &'static str,
    /// The spelling of the facts, which is PyTorch's.
    pub name: &'static str,
    /// Bits of one element; 0 when not known.
    pub bits: u64,
}

impl Dtype {
    /// Whether such weights are floats that a model is trained or served in.
    pub fn is_float(&self) -> bool {
        matches!(self.code, "F16" | "BF16" | "F32" | "F64")
    }

    /// Whether such a weight is quantized: an integer, or a float of eight bits or less.
    pub fn is_narrow(&self) -> bool {
        matches!(self.bits, 1..=8) && self.code != "BOOL"
    }
}

/// What is not in the table.
pub const UNKNOWN: &Dtype = &Dtype { code: "?", name: "unknown", bits: 0 };

const fn dtype(code: &'static str, name: &'static str, bits: u64) -> Dtype {
    Dtype { code, name, bits }
}

/// Every type that the format names.
const TABLE: &[Dtype] = &[
    dtype("BF16", "bfloat16", 16),
    dtype("F16", "float16", 16),
    dtype("F32", "float32", 32),
    dtype("F64", "float64", 64),
    dtype("F8_E4M3", "float8_e4m3fn", 8),
    dtype("F8_E5M2", "float8_e5m2", 8),
    dtype("F8_E8M0", "float8_e8m0fnu", 8),
    dtype("F8_E4M3FNUZ", "float8_e4m3fnuz", 8),
    dtype("F8_E5M2FNUZ", "float8_e5m2fnuz", 8),
    dtype("F6_E2M3", "float6_e2m3fn", 6),
    dtype("F6_E3M2", "float6_e3m2fn", 6),
    dtype("F4", "float4_e2m1fn_x2", 4),
    dtype("I8", "int8", 8),
    dtype("U8", "uint8", 8),
    dtype("I16", "int16", 16),
    dtype("U16", "uint16", 16),
    dtype("I32", "int32", 32),
    dtype("U32", "uint32", 32),
    dtype("I64", "int64", 64),
    dtype("U64", "uint64", 64),
    dtype("BOOL", "bool", 8),
    dtype("C64", "complex64", 64),
];

/// The type that a header spells so; [`UNKNOWN`] when there is none.
pub fn by_code(code: &str) -> &'static Dtype {
    TABLE.iter().find(|dtype| dtype.code == code).unwrap_or(UNKNOWN)
}

/// The type that PyTorch and configs spell so, with or without `torch.`.
pub fn by_name(name: &str) -> Option<&'static Dtype> {
    let name = name.strip_prefix("torch.").unwrap_or(name);
    let name = match name {
        "half" | "fp16" => "float16",
        "float" | "fp32" => "float32",
        "bf16" => "bfloat16",
        other => other,
    };
    TABLE.iter().find(|dtype| dtype.name == name)
}
