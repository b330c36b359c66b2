//! The functions on scalars, and what they compute.

use super::{Call, Number, ScalarType};
use crate::ir::Arg;
use crate::ops::Op;

/// A function on scalars: a `scalar.*` op, with its predicate, opcode or callee read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Function {
    /// `scalar.add`.
    Add,
    /// `scalar.sub`.
    Sub,
    /// `scalar.mul`.
    Mul,
    /// `scalar.sdiv`.
    SDiv,
    /// `scalar.udiv`.
    UDiv,
    /// `scalar.srem`.
    SRem,
    /// `scalar.urem`.
    URem,
    /// `scalar.and`.
    And,
    /// `scalar.or`.
    Or,
    /// `scalar.xor`.
    Xor,
    /// `scalar.shl`.
    Shl,
    /// `scalar.lshr`.
    LShr,
    /// `scalar.ashr`.
    AShr,
    /// `scalar.fadd`.
    FAdd,
    /// `scalar.fsub`.
    FSub,
    /// `scalar.fmul`.
    FMul,
    /// `scalar.fdiv`.
    FDiv,
    /// `scalar.frem`.
    FRem,
    /// `scalar.fneg`.
    FNeg,
    /// `scalar.icmp`.
    ICmp(IntPredicate),
    /// `scalar.fcmp`.
    FCmp(FloatPredicate),
    /// `scalar.cast`.
    Cast(Cast),
    /// `scalar.select`.
    Select,
    /// `scalar.call`.
    Call(Call),
}

/// Predicates of `icmp`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "LLVM's names")]
pub enum IntPredicate {
    Eq,
    Ne,
    Ugt,
    Uge,
    Ult,
    Ule,
    Sgt,
    Sge,
    Slt,
    Sle,
}

/// Predicates of `fcmp`: which of the outcomes unordered, less, greater, equal make it true, as bits 8, 4, 2, 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FloatPredicate(pub u8);

/// Opcodes of casts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "LLVM's names")]
pub enum Cast {
    ZExt,
    SExt,
    Trunc,
    SIToFP,
    UIToFP,
    FPToSI,
    FPToUI,
    FPTrunc,
    FPExt,
    /// `ptrtoint`, `inttoptr`, `bitcast`: the same bits.
    Bits,
}

impl Function {
    /// Reads a `scalar.*` op; gives the function and the position of its first operand. `None` if it is not a scalar
    /// op, or has a predicate, opcode or callee that Cotangent does not know.
    pub fn of(op: Op, args: &[Arg]) -> Option<(Self, usize)> {
        let word = || match args.first() {
            Some(Arg::Str(s)) => Some(s.as_str()),
            _ => None,
        };
        let plain = match op.name.strip_prefix("scalar.")? {
            "icmp" => return Some((Self::ICmp(IntPredicate::parse(word()?)?), 1)),
            "fcmp" => return Some((Self::FCmp(FloatPredicate::parse(word()?)?), 1)),
            "cast" => return Some((Self::Cast(Cast::parse(word()?)?), 1)),
            "call" => return Some((Self::Call(Call::parse(word()?)?), 1)),
            "add" => Self::Add,
            "sub" => Self::Sub,
            "mul" => Self::Mul,
            "sdiv" => Self::SDiv,
            "udiv" => Self::UDiv,
            "srem" => Self::SRem,
            "urem" => Self::URem,
            "and" => Self::And,
            "or" => Self::Or,
            "xor" => Self::Xor,
            "shl" => Self::Shl,
            "lshr" => Self::LShr,
            "ashr" => Self::AShr,
            "fadd" => Self::FAdd,
            "fsub" => Self::FSub,
            "fmul" => Self::FMul,
            "fdiv" => Self::FDiv,
            "frem" => Self::FRem,
            "fneg" => Self::FNeg,
            "select" => Self::Select,
            _ => return None,
        };
        Some((plain, 0))
    }

    /// The result, of type `ty`. `None` where the host's instruction has no defined result (a division by zero, a
    /// shift beyond the width, a float out of the integer's range).
    pub fn evaluate(self, x: &[Number], ty: ScalarType) -> Option<Number> {
        let w = ty.width();
        let bits = |i: usize| x[i].bits;
        let s = |i: usize| x[i].signed(w);
        let f = |i: usize| x[i].as_float();
        let amount = || (bits(1) < u64::from(w)).then(|| bits(1) as u32);
        let int = |b: u64| Some(Number::new(b, ty));
        let float = |v: f64| Some(Number::float(v, ty));
        match self {
            Self::Add => int(bits(0).wrapping_add(bits(1))),
            Self::Sub => int(bits(0).wrapping_sub(bits(1))),
            Self::Mul => int(bits(0).wrapping_mul(bits(1))),
            Self::SDiv => int(s(0).checked_div(s(1))? as u64),
            Self::SRem => int(s(0).checked_rem(s(1))? as u64),
            Self::UDiv => int(bits(0).checked_div(bits(1))?),
            Self::URem => int(bits(0).checked_rem(bits(1))?),
            Self::And => int(bits(0) & bits(1)),
            Self::Or => int(bits(0) | bits(1)),
            Self::Xor => int(bits(0) ^ bits(1)),
            Self::Shl => int(bits(0) << amount()?),
            Self::LShr => int(bits(0) >> amount()?),
            Self::AShr => int((s(0) >> amount()?) as u64),
            // Rounding the exact f64 result of two f32s once more gives the f32 result (53 >= 2 * 24 + 2).
            Self::FAdd => float(f(0) + f(1)),
            Self::FSub => float(f(0) - f(1)),
            Self::FMul => float(f(0) * f(1)),
            Self::FDiv => float(f(0) / f(1)),
            Self::FRem => float(f(0) % f(1)),
            Self::FNeg => float(-f(0)),
            Self::ICmp(p) => Some(Number::flag(p.holds(x[0], x[1]))),
            Self::FCmp(p) => Some(Number::flag(p.holds(f(0), f(1)))),
            Self::Cast(how) => how.apply(x[0], ty),
            Self::Select => Some(if bits(0) != 0 { x[1] } else { x[2] }),
            Self::Call(callee) => callee.evaluate(x, ty),
        }
    }
}

impl IntPredicate {
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "eq" => Self::Eq,
            "ne" => Self::Ne,
            "ugt" => Self::Ugt,
            "uge" => Self::Uge,
            "ult" => Self::Ult,
            "ule" => Self::Ule,
            "sgt" => Self::Sgt,
            "sge" => Self::Sge,
            "slt" => Self::Slt,
            "sle" => Self::Sle,
            _ => return None,
        })
    }

    fn holds(self, a: Number, b: Number) -> bool {
        let (u, v) = (a.bits, b.bits);
        let (s, t) = (a.signed(a.ty.width()), b.signed(b.ty.width()));
        match self {
            Self::Eq => u == v,
            Self::Ne => u != v,
            Self::Ugt => u > v,
            Self::Uge => u >= v,
            Self::Ult => u < v,
            Self::Ule => u <= v,
            Self::Sgt => s > t,
            Self::Sge => s >= t,
            Self::Slt => s < t,
            Self::Sle => s <= t,
        }
    }
}

impl FloatPredicate {
    fn parse(name: &str) -> Option<Self> {
        Some(Self(match name {
            "false" => 0,
            "oeq" => 1,
            "ogt" => 2,
            "oge" => 3,
            "olt" => 4,
            "ole" => 5,
            "one" => 6,
            "ord" => 7,
            "uno" => 8,
            "ueq" => 9,
            "ugt" => 10,
            "uge" => 11,
            "ult" => 12,
            "ule" => 13,
            "une" => 14,
            "true" => 15,
            _ => return None,
        }))
    }

    fn holds(self, a: f64, b: f64) -> bool {
        let outcome = match a.partial_cmp(&b) {
            Some(std::cmp::Ordering::Equal) => 1,
            Some(std::cmp::Ordering::Greater) => 2,
            Some(std::cmp::Ordering::Less) => 4,
            None => 8,
        };
        self.0 & outcome != 0
    }
}

impl Cast {
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "zext" => Self::ZExt,
            "sext" => Self::SExt,
            "trunc" => Self::Trunc,
            "sitofp" => Self::SIToFP,
            "uitofp" => Self::UIToFP,
            "fptosi" => Self::FPToSI,
            "fptoui" => Self::FPToUI,
            "fptrunc" => Self::FPTrunc,
            "fpext" => Self::FPExt,
            "ptrtoint" | "inttoptr" | "bitcast" | "ptrtoaddr" => Self::Bits,
            _ => return None,
        })
    }

    fn apply(self, x: Number, ty: ScalarType) -> Option<Number> {
        let signed = x.signed(x.ty.width());
        Some(match self {
            Self::ZExt | Self::Trunc | Self::Bits => Number::new(x.bits, ty),
            Self::SExt => Number::new(signed as u64, ty),
            // Through f64 a 64-bit integer would be rounded twice on its way to f32.
            Self::SIToFP if ty == ScalarType::Float(32) => Number::new(u64::from((signed as f32).to_bits()), ty),
            Self::UIToFP if ty == ScalarType::Float(32) => Number::new(u64::from((x.bits as f32).to_bits()), ty),
            Self::SIToFP => Number::float(signed as f64, ty),
            Self::UIToFP => Number::float(x.bits as f64, ty),
            Self::FPToSI | Self::FPToUI => {
                let v = x.as_float().trunc();
                let w = i32::from(ty.width());
                let (low, high) = match self {
                    Self::FPToSI => (-(2f64.powi(w - 1)), 2f64.powi(w - 1)),
                    _ => (0.0, 2f64.powi(w)),
                };
                if !(v >= low && v < high) {
                    return None;
                }
                match self {
                    Self::FPToSI => Number::new(v as i64 as u64, ty),
                    _ => Number::new(v as u64, ty),
                }
            }
            Self::FPTrunc | Self::FPExt => Number::float(x.as_float(), ty),
        })
    }
}
