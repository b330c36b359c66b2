//! Scalar arithmetic of the host program, exactly as it does it: integers wrap at their width, floats round at theirs.
//!
//! One evaluator serves `specialize` (facts of one call), prologues (checks of every call) and the interpreter.

mod call;
mod function;

pub use call::Call;
pub use function::{Cast, FloatPredicate, Function, IntPredicate};

use crate::ir::{Arg, Type};
use serde::{Deserialize, Serialize};

/// Type of a scalar.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum ScalarType {
    /// An integer of that many bits, up to 64. Addresses are integers of 64 bits.
    Int(u8),
    /// A float of 32 or 64 bits.
    Float(u8),
}

impl ScalarType {
    /// The scalar type of a value of that type; `None` for tensors, lists, tapes and integers wider than 64 bits.
    pub fn of(ty: &Type) -> Option<Self> {
        match ty {
            Type::Int(w) if (1..=64).contains(w) => Some(Self::Int(*w)),
            Type::Ptr => Some(Self::Int(64)),
            Type::Float(w) if matches!(w, 32 | 64) => Some(Self::Float(*w)),
            _ => None,
        }
    }

    /// Number of bits.
    pub fn width(self) -> u8 {
        match self {
            Self::Int(w) | Self::Float(w) => w,
        }
    }
}

/// A scalar: its bits, zero-extended, and its type.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Number {
    /// The bits, zero above the width.
    pub bits: u64,
    /// The type.
    pub ty: ScalarType,
}

impl Number {
    /// The number with the low bits of `bits`.
    pub fn new(bits: u64, ty: ScalarType) -> Self {
        Self {
            bits: bits & mask(ty.width()),
            ty,
        }
    }

    /// A 64-bit integer.
    pub fn int(i: i64) -> Self {
        Self::new(i as u64, ScalarType::Int(64))
    }

    /// A truth value.
    pub fn flag(b: bool) -> Self {
        Self::new(u64::from(b), ScalarType::Int(1))
    }

    /// A float, rounded to the type.
    pub fn float(x: f64, ty: ScalarType) -> Self {
        match ty {
            ScalarType::Float(32) => Self::new(u64::from((x as f32).to_bits()), ty),
            _ => Self::new(x.to_bits(), ScalarType::Float(64)),
        }
    }

    /// A constant argument as a number of type `ty`; `None` if it is not a numeric constant.
    pub fn constant(arg: &Arg, ty: ScalarType) -> Option<Self> {
        match (arg, ty) {
            (Arg::Int(i), ScalarType::Int(_)) => Some(Self::new(*i as u64, ty)),
            (Arg::Int(i), ScalarType::Float(_)) => Some(Self::float(*i as f64, ty)),
            (Arg::Bool(b), ScalarType::Int(_)) => Some(Self::new(u64::from(*b), ty)),
            (Arg::Float(x), ScalarType::Float(_)) => Some(Self::float(*x, ty)),
            (Arg::Float(x), ScalarType::Int(_)) => Some(Self::float(*x, ScalarType::Float(64))),
            _ => None,
        }
    }

    /// Value of an integer: sign-extended, but 0 or 1 for a truth value.
    pub fn as_int(self) -> i64 {
        match self.ty.width() {
            1 => self.bits as i64,
            w => self.signed(w),
        }
    }

    /// Value of a float.
    pub fn as_float(self) -> f64 {
        match self.ty {
            ScalarType::Float(32) => f64::from(f32::from_bits(self.bits as u32)),
            _ => f64::from_bits(self.bits),
        }
    }

    fn signed(self, width: u8) -> i64 {
        let shift = 64 - u32::from(width);
        ((self.bits << shift) as i64) >> shift
    }
}

fn mask(width: u8) -> u64 {
    u64::MAX >> (64 - u32::from(width.clamp(1, 64)))
}
