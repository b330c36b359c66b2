//! Tensors that hold one known number everywhere: filled ones, and what is computed of nothing but such tensors.
//!
//! The instruction that makes such a tensor stays as it is, until nothing reads it. What changes is who reads it: an
//! element by element op takes the number itself. A number is noted only where it is certain, to the bit, what
//! LibTorch computes: sums, for example, where no partial sum is rounded.

use crate::ir::{Arg, Graph, Inst, Kind, TensorType, Type, Value};
use std::collections::HashMap;

/// What a tensor is filled with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fill {
    /// The number, as the tensor's kind has it.
    pub(super) number: f64,
    /// All elements are one in memory (or there is only one). Such an operand has no say in how the result of an op
    /// lies in memory.
    pub(super) one: bool,
}

/// The filled tensors of a graph.
#[derive(Debug, Default)]
pub(super) struct Fills(HashMap<Value, Fill>);

impl Fills {
    /// Starts from inputs that are known to be filled.
    pub(super) fn of_inputs(graph: &Graph, known: &[(Value, f64)]) -> Self {
        let fills = known.iter().filter_map(|(v, number)| {
            let ty = tensor(graph, *v)?;
            Some((*v, made(ty, *number)))
        });
        Self(fills.collect())
    }

    /// What the tensor in position `i` of an instruction is filled with.
    pub(super) fn argument(&self, inst: &Inst, i: usize) -> Option<Fill> {
        match inst.args.get(i)? {
            Arg::Value(v) => self.0.get(v).copied(),
            _ => None,
        }
    }

    /// Notes what the result of an instruction is filled with, if it is.
    pub(super) fn note(&mut self, graph: &Graph, inst: &Inst) {
        if let [y] = inst.results[..]
            && let Some(fill) = self.fill(graph, inst, y)
        {
            self.0.insert(y, fill);
        }
    }

    fn fill(&self, graph: &Graph, inst: &Inst, y: Value) -> Option<Fill> {
        let ty = tensor(graph, y)?;
        let x = || self.argument(inst, 0);
        let of = |number: f64| Some(made(ty, number));
        match inst.op.name {
            "ones" | "ones_like" => of(1.0),
            "zeros" | "zeros_like" => of(0.0),
            "full" | "full_like" => of(round(ty.kind, constant(inst.args.get(1)?)?)),
            "alias" | "broadcast_to" | "expand" | "expand_as" | "mt" | "permute" | "squeeze" | "squeeze_dim" | "t"
            | "transpose" | "unsqueeze" => x(),
            "contiguous" | "reshape" | "view" | "_unsafe_view" => of(x()?.number),
            name => of(self.computed(graph, inst, ty, name)?),
        }
    }

    /// The number that an element by element op, or a sum, computes of filled tensors.
    fn computed(&self, graph: &Graph, inst: &Inst, ty: &TensorType, name: &str) -> Option<f64> {
        let plain = |i: usize| match inst.args.get(i)? {
            Arg::Value(v) if tensor(graph, *v)?.kind == ty.kind => self.0.get(v).map(|f| f.number),
            _ => None,
        };
        if !is_plain(ty.kind) {
            return None;
        }
        let second = || match name.ends_with("_scalar") {
            true => constant(inst.args.get(1)?).map(|c| round(ty.kind, c)),
            false => plain(1),
        };
        // Computed in double and rounded once: for these operations that is the single-precision result.
        let exact = match name {
            "neg" => -plain(0)?,
            "add" | "add_scalar" => plain(0)? + second()?,
            "sub" | "sub_scalar" => plain(0)? - second()?,
            "mul" | "mul_scalar" => plain(0)? * second()?,
            "div" | "div_scalar" => plain(0)? / second()?,
            "sum" | "sum_dim_intlist" => {
                let Arg::Value(x) = inst.args.first()? else { return None };
                let count = tensor(graph, *x)?.numel().checked_div(ty.numel())?;
                sum(plain(0)?, count, ty.kind)?
            }
            _ => return None,
        };
        let number = round(ty.kind, exact);
        number.is_finite().then_some(number)
    }
}

/// A tensor that an instruction fills.
fn made(ty: &TensorType, number: f64) -> Fill {
    Fill {
        number,
        one: ty.numel() == 1,
    }
}

/// Kinds whose arithmetic is that of their numbers, each result rounded once.
pub(super) fn is_plain(kind: Kind) -> bool {
    matches!(kind, Kind::F32 | Kind::F64)
}

fn round(kind: Kind, x: f64) -> f64 {
    match kind {
        Kind::F32 => f64::from(x as f32),
        _ => x,
    }
}

/// The sum of `count` equal numbers, if no partial sum is rounded, in whatever order they are added.
fn sum(x: f64, count: i64, kind: Kind) -> Option<f64> {
    let digits = if kind == Kind::F32 {
        f32::MANTISSA_DIGITS
    } else {
        f64::MANTISSA_DIGITS
    };
    // `x` is a whole number of its last digit's units, and so is every partial sum.
    let bits = x.abs().to_bits();
    let fraction = bits & ((1 << (f64::MANTISSA_DIGITS - 1)) - 1);
    let significand = match bits >> (f64::MANTISSA_DIGITS - 1) {
        0 => fraction,
        _ => fraction | 1 << (f64::MANTISSA_DIGITS - 1),
    };
    let units = significand.checked_shr(significand.trailing_zeros())?;
    let fits = u128::from(units) * u128::try_from(count).ok()? <= 1 << digits;
    (fits && count > 0).then_some(x * count as f64)
}

fn constant(arg: &Arg) -> Option<f64> {
    match arg {
        Arg::Int(i) => Some(*i as f64),
        Arg::Float(x) => Some(*x),
        Arg::Bool(b) => Some(f64::from(u8::from(*b))),
        _ => None,
    }
}

fn tensor(graph: &Graph, v: Value) -> Option<&TensorType> {
    match graph.ty(v) {
        Type::Tensor(t) => t.as_ref(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_is_known_only_where_no_order_of_adding_rounds() {
        assert_eq!(sum(1.0 / 256.0, 1280, Kind::F32), Some(5.0));
        assert_eq!(sum(-3.0, 5, Kind::F64), Some(-15.0));
        assert_eq!(sum(f64::from(0.1f32), 3, Kind::F32), None);
        assert_eq!(sum(1.0, 1 << 24, Kind::F32), Some(16_777_216.0));
        assert_eq!(sum(1.0, (1 << 24) + 1, Kind::F32), None);
        assert_eq!(sum(-0.0, 4, Kind::F32), None);
        assert_eq!(sum(f64::from_bits(3), 2, Kind::F64), Some(f64::from_bits(6)));
    }
}
