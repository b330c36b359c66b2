//! Cotangent's own ops on scalars and facts about tensors.
//!
//! Integers are held as their low bits, sign-extended; the width of a result is applied by the graph's type after the
//! op. Ops whose result depends on an operand's width (unsigned division, shifts right, zero extension, unsigned
//! comparisons) are computed at 64 bits, which is what `specialize` leaves in closed graphs.

use super::args::Kernel::{self, Many};
use super::args::{Args, Number, Out};
use super::{EvalArg, Value};

pub(super) const OPS: &[(&str, Kernel)] = &[
    ("scalar.add", Many(|a| int(a, i64::wrapping_add))),
    ("scalar.sub", Many(|a| int(a, i64::wrapping_sub))),
    ("scalar.mul", Many(|a| int(a, i64::wrapping_mul))),
    ("scalar.sdiv", Many(|a| divide(a, i64::checked_div))),
    ("scalar.srem", Many(|a| divide(a, i64::checked_rem))),
    (
        "scalar.udiv",
        Many(|a| divide(a, |x, y| (x as u64).checked_div(y as u64).map(|q| q as i64))),
    ),
    (
        "scalar.urem",
        Many(|a| divide(a, |x, y| (x as u64).checked_rem(y as u64).map(|r| r as i64))),
    ),
    ("scalar.and", Many(|a| int(a, |x, y| x & y))),
    ("scalar.or", Many(|a| int(a, |x, y| x | y))),
    ("scalar.xor", Many(|a| int(a, |x, y| x ^ y))),
    ("scalar.shl", Many(|a| int(a, |x, y| x.wrapping_shl(y as u32)))),
    (
        "scalar.lshr",
        Many(|a| int(a, |x, y| (x as u64).wrapping_shr(y as u32) as i64)),
    ),
    ("scalar.ashr", Many(|a| int(a, |x, y| x.wrapping_shr(y as u32)))),
    ("scalar.fadd", Many(|a| float(a, |x, y| x + y))),
    ("scalar.fsub", Many(|a| float(a, |x, y| x - y))),
    ("scalar.fmul", Many(|a| float(a, |x, y| x * y))),
    ("scalar.fdiv", Many(|a| float(a, |x, y| x / y))),
    ("scalar.frem", Many(|a| float(a, |x, y| x % y))),
    ("scalar.fneg", Many(|a| Ok(vec![Value::Float(-a.float(0)?)]))),
    ("scalar.icmp", Many(icmp)),
    ("scalar.fcmp", Many(fcmp)),
    ("scalar.cast", Many(cast)),
    ("scalar.select", Many(|a| number(a, if a.flag(0)? { 1 } else { 2 }))),
    ("scalar.call", Many(call)),
    (
        "size",
        Many(|a| one_int(a.tensor(0)?.shape()[a.dim(1, a.tensor(0)?.rank())?])),
    ),
    ("dim", Many(|a| one_int(a.tensor(0)?.rank() as i64))),
    ("numel", Many(|a| one_int(a.tensor(0)?.numel() as i64))),
    ("kind", Many(|a| one_int(a.tensor(0)?.kind() as i64))),
    ("device", Many(|_| one_int(-1))),
    ("defined", Many(|a| one_int(i64::from(a.opt_tensor(0)?.is_some())))),
    ("item", Many(item)),
];

fn one_int(i: i64) -> Out<Vec<Value>> {
    Ok(vec![Value::Int(i)])
}

fn int(a: &Args<'_>, f: fn(i64, i64) -> i64) -> Out<Vec<Value>> {
    one_int(f(a.int(0)?, a.int(1)?))
}

fn divide(a: &Args<'_>, f: fn(i64, i64) -> Option<i64>) -> Out<Vec<Value>> {
    match f(a.int(0)?, a.int(1)?) {
        Some(i) => one_int(i),
        None => a.invalid("division by zero or overflow"),
    }
}

fn float(a: &Args<'_>, f: fn(f64, f64) -> f64) -> Out<Vec<Value>> {
    Ok(vec![Value::Float(f(a.float(0)?, a.float(1)?))])
}

fn number(a: &Args<'_>, i: usize) -> Out<Vec<Value>> {
    Ok(vec![match a.number(i)? {
        Number::Float(x) => Value::Float(x),
        Number::Int(n) => Value::Int(n),
        Number::Bool(b) => Value::Int(i64::from(b)),
    }])
}

fn icmp(a: &Args<'_>) -> Out<Vec<Value>> {
    let (x, y) = (a.int(1)?, a.int(2)?);
    let (ux, uy) = (x as u64, y as u64);
    let holds = match a.text(0)? {
        "eq" => x == y,
        "ne" => x != y,
        "slt" => x < y,
        "sle" => x <= y,
        "sgt" => x > y,
        "sge" => x >= y,
        "ult" => ux < uy,
        "ule" => ux <= uy,
        "ugt" => ux > uy,
        "uge" => ux >= uy,
        other => return a.invalid(format!("`{other}` is no integer predicate")),
    };
    one_int(i64::from(holds))
}

fn fcmp(a: &Args<'_>) -> Out<Vec<Value>> {
    let (x, y) = (a.float(1)?, a.float(2)?);
    let unordered = x.is_nan() || y.is_nan();
    let predicate = a.text(0)?;
    let base = |p: &str| match p {
        "eq" => Some(x == y),
        "ne" => Some(x != y && !unordered),
        "lt" => Some(x < y),
        "le" => Some(x <= y),
        "gt" => Some(x > y),
        "ge" => Some(x >= y),
        _ => None,
    };
    let holds = match predicate {
        "false" => Some(false),
        "true" => Some(true),
        "ord" => Some(!unordered),
        "uno" => Some(unordered),
        p => match (p.strip_prefix('o'), p.strip_prefix('u')) {
            (Some(p), _) => base(p),
            (_, Some(p)) => base(p).map(|b| b || unordered),
            _ => None,
        },
    };
    match holds {
        Some(b) => one_int(i64::from(b)),
        None => a.invalid(format!("`{predicate}` is no float predicate")),
    }
}

fn cast(a: &Args<'_>) -> Out<Vec<Value>> {
    match a.text(0)? {
        "sitofp" => Ok(vec![Value::Float(a.int(1)? as f64)]),
        "uitofp" => Ok(vec![Value::Float(a.int(1)? as u64 as f64)]),
        "fptosi" => one_int(a.float(1)? as i64),
        "fptoui" => one_int(a.float(1)? as u64 as i64),
        "fpext" | "fptrunc" | "zext" | "sext" | "trunc" => number(a, 1),
        other => a.invalid(format!("`{other}` is no cast between scalars")),
    }
}

fn call(a: &Args<'_>) -> Out<Vec<Value>> {
    let function = a.text(0)?;
    let x = a.float(1)?;
    let second = || a.float(2);
    let value = match function {
        "sqrt" => x.sqrt(),
        "exp" => x.exp(),
        "exp2" => x.exp2(),
        "expm1" => x.exp_m1(),
        "log" => x.ln(),
        "log2" => x.log2(),
        "log10" => x.log10(),
        "log1p" => x.ln_1p(),
        "sin" => x.sin(),
        "cos" => x.cos(),
        "tan" => x.tan(),
        "asin" => x.asin(),
        "acos" => x.acos(),
        "atan" => x.atan(),
        "sinh" => x.sinh(),
        "cosh" => x.cosh(),
        "tanh" => x.tanh(),
        "fabs" => x.abs(),
        "floor" => x.floor(),
        "ceil" => x.ceil(),
        "trunc" => x.trunc(),
        "round" => x.round(),
        "rint" | "roundeven" | "nearbyint" => x.round_ties_even(),
        "pow" => x.powf(second()?),
        "powi" => x.powf(second()?),
        "atan2" => x.atan2(second()?),
        "hypot" => x.hypot(second()?),
        "fmod" => x % second()?,
        "copysign" => x.copysign(second()?),
        "minnum" | "fmin" => x.min(second()?),
        "maxnum" | "fmax" => x.max(second()?),
        "fma" | "fmuladd" => x.mul_add(second()?, a.float(3)?),
        other => return Err(super::InterpError::NotInterpreted(format!("scalar.call {other}"))),
    };
    Ok(vec![Value::Float(value)])
}

fn item(a: &Args<'_>) -> Out<Vec<Value>> {
    let EvalArg::Tensor(x) = &a.args[0] else {
        return a.invalid("needs a tensor");
    };
    if x.numel() != 1 {
        return a.invalid(format!("a tensor of shape {:?} is not one number", x.shape()));
    }
    Ok(vec![if x.kind().is_float() {
        Value::Float(x.to_f64()[0])
    } else {
        Value::Int(x.to_i64()[0])
    }])
}
