//! Element types in tch's terms.

use cotangent_graph::ir::Kind;
use tch::Tensor;

/// The kind in tch's terms.
pub fn to_tch(kind: Kind) -> tch::Kind {
    match kind {
        Kind::U8 => tch::Kind::Uint8,
        Kind::I8 => tch::Kind::Int8,
        Kind::I16 => tch::Kind::Int16,
        Kind::I32 => tch::Kind::Int,
        Kind::I64 => tch::Kind::Int64,
        Kind::F16 => tch::Kind::Half,
        Kind::F32 => tch::Kind::Float,
        Kind::F64 => tch::Kind::Double,
        Kind::C32 => tch::Kind::ComplexHalf,
        Kind::C64 => tch::Kind::ComplexFloat,
        Kind::C128 => tch::Kind::ComplexDouble,
        Kind::Bool => tch::Kind::Bool,
        Kind::BF16 => tch::Kind::BFloat16,
    }
}

/// The kind of a tensor; `None` if it is one that Cotangent does not know.
pub fn of(x: &Tensor) -> Option<Kind> {
    // SAFETY: `x` is a valid handle.
    let number = unsafe { torch_sys::at_scalar_type(x.as_ptr().cast_mut()) };
    Kind::from_number(i64::from(number))
}
