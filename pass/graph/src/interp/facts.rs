//! Facts about tensors, and numbers read out of them.

use super::Value;
use super::args::Kernel::{self, Many};
use super::args::{Args, Out};

pub(super) const OPS: &[(&str, Kernel)] = &[
    ("size", Many(size)),
    ("dim", Many(|a| int(a.tensor(0)?.rank() as i64))),
    ("numel", Many(|a| int(a.tensor(0)?.numel() as i64))),
    ("kind", Many(|a| int(a.tensor(0)?.kind() as i64))),
    ("device", Many(|_| int(-1))),
    ("defined", Many(|a| int(i64::from(a.opt_tensor(0)?.is_some())))),
    ("item", Many(item)),
];

fn int(i: i64) -> Out<Vec<Value>> {
    Ok(vec![Value::Int(i)])
}

fn size(a: &Args<'_>) -> Out<Vec<Value>> {
    let x = a.tensor(0)?;
    match x.shape().get(a.dim(1, x.rank())?) {
        Some(n) => int(*n),
        None => a.invalid("a 0-dim tensor has no size"),
    }
}

fn item(a: &Args<'_>) -> Out<Vec<Value>> {
    let x = a.tensor(0)?;
    if x.numel() != 1 {
        return a.invalid(format!("a tensor of shape {:?} is not one number", x.shape()));
    }
    Ok(vec![if x.kind().is_float() {
        Value::Float(x.to_f64()[0])
    } else {
        Value::Int(x.to_i64()[0])
    }])
}
