//! LibTorch's type promotion: which kind an op computes in.

use crate::ir::Kind;

/// The kind that a float result has where the operands are integers.
pub const DEFAULT_FLOAT: Kind = Kind::F32;

/// What takes part in a promotion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operand {
    /// A tensor of that kind and rank.
    Tensor(Kind, usize),
    /// A flag given as a number.
    Bool,
    /// An integer given as a number.
    Int,
    /// A float given as a number.
    Float,
}

/// The kind that LibTorch's `result_type` gives. Tensors with dimensions decide first, then 0-dim tensors, then
/// numbers: the lower may change the class (integer, float, complex) of the result, never its width.
pub fn result_kind(operands: impl IntoIterator<Item = Operand>) -> Kind {
    let [mut dimensioned, mut zero_dim, mut number] = [None; 3];
    for operand in operands {
        let (class, kind) = match operand {
            Operand::Tensor(kind, 0) => (&mut zero_dim, kind),
            Operand::Tensor(kind, _) => (&mut dimensioned, kind),
            Operand::Bool => (&mut number, Kind::Bool),
            Operand::Int => (&mut number, Kind::I64),
            Operand::Float => (&mut number, DEFAULT_FLOAT),
        };
        *class = Some(class.map_or(kind, |k| promote(k, kind)));
    }
    combine(dimensioned, combine(zero_dim, number)).unwrap_or(DEFAULT_FLOAT)
}

fn combine(higher: Option<Kind>, lower: Option<Kind>) -> Option<Kind> {
    let (Some(high), Some(low)) = (higher, lower) else {
        return higher.or(lower);
    };
    Some(if high.is_complex() {
        high
    } else if high.is_float() {
        if low.is_complex() { to_complex(high) } else { high }
    } else if high == Kind::Bool || low.is_differentiable() {
        promote(high, low)
    } else {
        high
    })
}

/// The smallest kind that both convert to.
pub fn promote(a: Kind, b: Kind) -> Kind {
    use Kind::{BF16, Bool, C32, C64, C128, F16, F32, F64, I8, I16, U8};
    if a == b {
        return a;
    }
    if a.is_complex() || b.is_complex() {
        let parts = [a, b].map(|k| match k {
            C32 => F16,
            C64 => F32,
            C128 => F64,
            other => other,
        });
        return match promote(parts[0], parts[1]) {
            F64 => C128,
            F32 => C64,
            _ => C32,
        };
    }
    match (a.is_float(), b.is_float()) {
        (true, true) => match (a, b) {
            (F16, BF16) | (BF16, F16) => F32,
            (F64, _) | (_, F64) => F64,
            _ => F32,
        },
        (true, false) => a,
        (false, true) => b,
        (false, false) => match (a, b) {
            (Bool, other) | (other, Bool) => other,
            (U8, I8) | (I8, U8) => I16,
            _ => wider(a, b),
        },
    }
}

/// The wider of two integer kinds; between an unsigned byte and a wider kind, the latter.
fn wider(a: Kind, b: Kind) -> Kind {
    if a.bytes() >= b.bytes() { a } else { b }
}

fn to_complex(float: Kind) -> Kind {
    match float {
        Kind::F16 => Kind::C32,
        Kind::F64 => Kind::C128,
        _ => Kind::C64,
    }
}

/// The kind of a function that gives floats: integers become the default float.
pub fn floating(kind: Kind) -> Kind {
    if kind.is_differentiable() { kind } else { DEFAULT_FLOAT }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Kind::*;

    #[test]
    fn a_dimensioned_tensor_decides_the_width_and_lower_classes_only_the_category() {
        let cases = [
            (vec![Operand::Tensor(F32, 1), Operand::Tensor(F64, 0)], F32),
            (vec![Operand::Tensor(F32, 1), Operand::Tensor(F64, 2)], F64),
            (vec![Operand::Tensor(F32, 1), Operand::Tensor(I64, 1)], F32),
            (vec![Operand::Tensor(I64, 1), Operand::Tensor(F16, 0)], F16),
            (vec![Operand::Tensor(I32, 1), Operand::Tensor(I64, 0)], I32),
            (vec![Operand::Tensor(I64, 1), Operand::Float], F32),
            (vec![Operand::Tensor(F16, 0), Operand::Float], F16),
            (vec![Operand::Tensor(Bool, 1), Operand::Int], I64),
            (vec![Operand::Tensor(Bool, 1), Operand::Bool], Bool),
            (vec![Operand::Tensor(U8, 1), Operand::Int], U8),
            (vec![Operand::Tensor(F64, 1), Operand::Tensor(C64, 0)], C128),
        ];
        for (operands, kind) in cases {
            assert_eq!(result_kind(operands.clone()), kind, "{operands:?}");
        }
    }

    #[test]
    fn promotion_is_symmetric_and_never_loses_a_class() {
        for a in Kind::ALL {
            for b in Kind::ALL {
                let c = promote(a, b);
                assert_eq!(c, promote(b, a), "{a:?} {b:?}");
                assert_eq!(c, promote(c, a), "{a:?} {b:?}");
                assert_eq!(c.is_complex(), a.is_complex() || b.is_complex());
            }
        }
        assert_eq!(promote(F16, BF16), F32);
        assert_eq!(promote(U8, I8), I16);
        assert_eq!(promote(BF16, C32), C64);
    }
}
