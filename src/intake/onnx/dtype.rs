//! The element types of ONNX tensors: their names and sizes.

/// Name and bits of each `TensorProto.DataType`, by its number; strings have no size of their own.
const TYPES: [(&str, u64); 29] = [
    ("unknown", 0),
    ("float32", 32),
    ("uint8", 8),
    ("int8", 8),
    ("uint16", 16),
    ("int16", 16),
    ("int32", 32),
    ("int64", 64),
    ("string", 0),
    ("bool", 8),
    ("float16", 16),
    ("float64", 64),
    ("uint32", 32),
    ("uint64", 64),
    ("complex64", 64),
    ("complex128", 128),
    ("bfloat16", 16),
    ("float8e4m3fn", 8),
    ("float8e4m3fnuz", 8),
    ("float8e5m2", 8),
    ("float8e5m2fnuz", 8),
    ("uint4", 4),
    ("int4", 4),
    ("float4e2m1", 4),
    ("float8e8m0", 8),
    ("uint2", 2),
    ("int2", 2),
    ("float6e2m3", 6),
    ("float6e3m2", 6),
];

/// The number of `int32`.
pub const INT32: i64 = 6;
/// The number of `int64`.
pub const INT64: i64 = 7;

/// The name of an element type; `unknown` for numbers that ONNX does not define.
pub fn name(number: i64) -> &'static str {
    entry(number).0
}

/// The bytes of `elements` values, packed.
pub fn bytes(number: i64, elements: u64) -> u64 {
    let bits = u128::from(elements) * u128::from(entry(number).1);
    u64::try_from(bits.div_ceil(8)).unwrap_or(u64::MAX)
}

fn entry(number: i64) -> (&'static str, u64) {
    usize::try_from(number).ok().and_then(|index| TYPES.get(index)).copied().unwrap_or(TYPES[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_packed_and_saturate() {
        assert_eq!((name(22), bytes(22, 3)), ("int4", 2));
        assert_eq!((name(1), bytes(1, u64::MAX)), ("float32", u64::MAX));
        assert_eq!((name(-1), name(99)), ("unknown", "unknown"));
    }
}
