//! Values of the evaluator: concrete where they can be, a scalar of the graph where only run time knows.

use crate::code::{Symbol, Ty};
use cotangent_graph::ir::{Arg, Type, Value};
use std::fmt;

/// A first-class value.
#[derive(Clone, Debug, PartialEq)]
pub enum Val {
    /// Nothing is known, and no right program asks.
    Undef,
    /// An integer of so many bits; the bits above are zero.
    Int(u128, u32),
    /// A single.
    F32(f32),
    /// A double.
    F64(f64),
    /// A scalar of the graph: an integer or a float, never an address.
    Sym(Value, Ty),
    /// An address. It may stand where an integer of 64 bits is expected.
    Ptr(Ptr),
    /// A structure or array.
    Agg(Vec<Val>),
}

/// An address: a base and a byte offset.
#[derive(Clone, Debug, PartialEq)]
pub struct Ptr {
    /// What it points into.
    pub base: Base,
    /// Bytes from its start.
    pub off: i64,
}

/// What an address points into.
#[derive(Clone, Debug, PartialEq)]
pub enum Base {
    /// Nothing: the offset is the address (null, dangling pointers of empty vectors).
    Absolute,
    /// Memory that the evaluator models: stack, heap, constants.
    Object(usize),
    /// Code.
    Func(Symbol),
    /// Memory of the running program, at a pointer value of the graph.
    Host(Value),
    /// A C tensor that the function made.
    Handle(usize),
    /// A C scalar that the function made.
    Scalar(usize),
    /// The null-terminated array of C tensors that an op with a list of results returns.
    List(usize),
}

impl fmt::Display for Val {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undef => write!(f, "a value that was never set"),
            Self::Int(x, bits) => write!(f, "the integer {}", sign_extend(*x, *bits)),
            Self::F32(x) => write!(f, "the float {x}"),
            Self::F64(x) => write!(f, "the float {x}"),
            Self::Sym(_, ty) => write!(f, "{ty} known at run time only"),
            Self::Ptr(p) => write!(f, "{p}"),
            Self::Agg(_) => write!(f, "a structure"),
        }
    }
}

impl fmt::Display for Ptr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.base {
            Base::Absolute => write!(f, "the address {:#x}", self.off),
            Base::Object(_) => write!(f, "the address of a variable or of an allocation"),
            Base::Func(symbol) => write!(f, "the address of `{}`", crate::externs::demangle(symbol)),
            Base::Host(_) => write!(f, "an address from the caller"),
            Base::Handle(_) => write!(f, "a tensor"),
            Base::Scalar(_) => write!(f, "a scalar of LibTorch"),
            Base::List(_) => write!(f, "a list of tensors"),
        }
    }
}

impl Ptr {
    /// Where it would be if the evaluator's objects lay in memory, in the order they were made and far apart. No
    /// program may depend on where its objects lie, but it may compare them, or look whether they overlap.
    pub(crate) fn placed(&self) -> Option<i64> {
        match self.base {
            Base::Object(o) => Some(((o as i64 + 1) << 32).wrapping_add(self.off)),
            _ => None,
        }
    }

    /// The start of a base.
    pub fn to(base: Base) -> Self {
        Self { base, off: 0 }
    }

    /// The null pointer.
    pub fn null() -> Self {
        Self::to(Base::Absolute)
    }

    /// Is it certainly null?
    pub fn is_null(&self) -> bool {
        *self == Self::null()
    }
}

impl Val {
    /// A boolean.
    pub fn bool(b: bool) -> Self {
        Self::Int(u128::from(b), 1)
    }

    /// An integer, cut to its width.
    pub fn int(v: u128, bits: u32) -> Self {
        Self::Int(mask(v, bits), bits)
    }

    /// A signed integer.
    pub fn signed(v: i128, bits: u32) -> Self {
        Self::int(v as u128, bits)
    }

    /// The null pointer.
    pub fn null() -> Self {
        Self::Ptr(Ptr::null())
    }

    /// Is it known completely?
    pub fn is_concrete(&self) -> bool {
        matches!(self, Self::Int(..) | Self::F32(_) | Self::F64(_))
    }

    /// The argument of an instruction that stands for a scalar.
    pub fn as_arg(&self) -> Option<Arg> {
        Some(match self {
            Self::Int(v, bits) => Arg::Int(sign_extend(*v, *bits) as i64),
            Self::F32(v) => Arg::Float(f64::from(*v)),
            Self::F64(v) => Arg::Float(*v),
            Self::Sym(v, _) => Arg::Value(*v),
            Self::Ptr(Ptr {
                base: Base::Absolute,
                off,
            }) => Arg::Int(*off),
            _ => return None,
        })
    }
}

/// The low `bits` of `v`.
pub fn mask(v: u128, bits: u32) -> u128 {
    if bits >= 128 { v } else { v & ((1 << bits) - 1) }
}

/// The value of the low `bits` of `v` as a signed integer.
pub fn sign_extend(v: u128, bits: u32) -> i128 {
    let shift = 128 - bits.clamp(1, 128);
    ((v << shift) as i128) >> shift
}

/// The graph's type for a scalar type of the code.
pub fn scalar_type(ty: &Ty) -> Option<Type> {
    Some(match ty {
        Ty::Int(bits) if *bits <= 64 => Type::Int(*bits as u8),
        Ty::F32 => Type::Float(32),
        Ty::F64 => Type::Float(64),
        Ty::Ptr => Type::Ptr,
        _ => return None,
    })
}
