//! Einstein sums and attention.

use super::InterpError;
use super::args::Kernel::{self, One};
use super::args::{Args, Out};
use super::elementwise::zip;
use super::lanes::map_lanes;
use super::matmul::matmul;
use super::normalisation::softmax_lane;
use super::promote::broadcast;
use super::tensor::{Tensor, count, strided_indices};
use crate::ir::Kind;
use std::collections::BTreeMap;

pub(super) const OPS: &[(&str, Kernel)] = &[
    ("einsum", One(einsum)),
    ("scaled_dot_product_attention", One(attention)),
];

/// Letters of an operand of `rank` dimensions. Dimensions under an ellipsis get labels below the letters, counted
/// from the right.
fn labels(text: &str, rank: usize) -> Option<Vec<char>> {
    let letters = text.chars().filter(|c| c.is_ascii_alphabetic()).count();
    let hidden = rank.checked_sub(letters)?;
    let (before, after) = text.split_once("...").unwrap_or((text, ""));
    if !text.contains("...") && hidden > 0 {
        return None;
    }
    let ellipsis = (0..hidden).rev().map(|i| char::from(b' ' - 1 - i as u8));
    let all: Vec<char> = before.chars().chain(ellipsis).chain(after.chars()).collect();
    all.iter().all(|c| c.is_ascii_alphabetic() || *c < ' ').then_some(all)
}

fn einsum(a: &Args<'_>) -> Out<Tensor> {
    let xs = a.tensors(1)?;
    let equation: String = a.text(0)?.chars().filter(|c| *c != ' ').collect();
    let malformed = || InterpError::invalid(format!("`einsum`: `{equation}` does not fit the operands"));
    let (inputs, output) = match equation.split_once("->") {
        Some((i, o)) => (i, Some(o)),
        None => (equation.as_str(), None),
    };
    let parts: Vec<&str> = inputs.split(',').collect();
    if parts.len() != xs.len() {
        return Err(malformed());
    }
    let operands = parts
        .iter()
        .zip(&xs)
        .map(|(p, x)| labels(p, x.rank()).ok_or_else(malformed))
        .collect::<Out<Vec<_>>>()?;
    let (mut sizes, mut uses) = (BTreeMap::new(), BTreeMap::new());
    for (names, x) in operands.iter().zip(&xs) {
        for (c, n) in names.iter().zip(x.shape()) {
            *uses.entry(*c).or_insert(0) += 1;
            let size = sizes.entry(*c).or_insert(1);
            if *size != *n && *size != 1 && *n != 1 {
                return Err(malformed());
            }
            *size = (*size).max(*n).min(if *n == 0 { 0 } else { i64::MAX });
        }
    }
    let hidden: Vec<char> = sizes.keys().copied().filter(|c| *c < ' ').collect();
    let result = match output {
        Some(o) => labels(
            o,
            o.chars().filter(|c| *c != '.').count() + if o.contains("...") { hidden.len() } else { 0 },
        ),
        None => {
            let once = uses.iter().filter(|(c, n)| **n == 1 && **c >= ' ').map(|(c, _)| *c);
            Some(hidden.into_iter().chain(once).collect())
        }
    };
    let result = result.ok_or_else(malformed)?;
    if result.iter().any(|c| !sizes.contains_key(c)) {
        return Err(malformed());
    }
    let summed: Vec<char> = sizes.keys().copied().filter(|c| !result.contains(c)).collect();
    let order: Vec<char> = result.iter().chain(&summed).copied().collect();
    let extents: Vec<i64> = order.iter().map(|c| sizes[c]).collect();
    // Each operand walked in the order of the result: a label that it has twice walks its diagonal.
    let mut product = vec![1.0; count(&extents)];
    for (names, x) in operands.iter().zip(&xs) {
        let steps = x.strides();
        let step = |c: &char| -> i64 {
            let mine = names.iter().enumerate().filter(|(d, n)| *n == c && x.shape()[*d] != 1);
            mine.map(|(d, _)| steps[d]).sum()
        };
        let walk = strided_indices(&extents, &order.iter().map(step).collect::<Vec<_>>(), 0);
        let values = x.to_f64();
        product.iter_mut().zip(walk).for_each(|(p, i)| *p *= values[i]);
    }
    let shape = &extents[..result.len()];
    let inner = count(&extents[result.len()..]);
    let out = (0..count(shape)).map(|o| product[o * inner..(o + 1) * inner].iter().sum());
    Ok(Tensor::from_f64(xs[0].kind(), shape, out.collect()))
}

fn swap_last(x: &Tensor) -> Tensor {
    let mut order: Vec<usize> = (0..x.rank()).collect();
    let n = order.len();
    order.swap(n - 1, n - 2);
    x.permute(&order)
}

/// Heads repeated so that there are as many as of the query.
fn grouped(x: &Tensor, heads: i64) -> Out<Tensor> {
    let mut shape = x.shape().to_vec();
    let d = shape.len() - 3;
    let times = heads / shape[d].max(1);
    shape.insert(d + 1, 1);
    let one = x.reshape(&shape)?;
    shape[d + 1] = times;
    let many = one.expand(&shape)?;
    shape.remove(d + 1);
    shape[d] *= times;
    many.reshape(&shape)
}

/// Rows that see nothing give zero, as LibTorch's safe softmax does.
fn attention(a: &Args<'_>) -> Out<Tensor> {
    let (q, k, v) = (a.tensor(0)?, a.tensor(1)?, a.tensor(2)?);
    if a.float(4)? != 0.0 {
        return a.not_interpreted();
    }
    if [q, k, v].iter().any(|t| t.rank() < 2) {
        return a.invalid("needs at least two dimensions");
    }
    let (k, v) = match a.flag(7)? && q.rank() > 2 {
        true => (
            grouped(k, q.shape()[q.rank() - 3])?,
            grouped(v, q.shape()[q.rank() - 3])?,
        ),
        false => (k.clone(), v.clone()),
    };
    let width = q.shape()[q.rank() - 1];
    let scale = match a.args[6] {
        super::EvalArg::None => 1.0 / (width as f64).sqrt(),
        _ => a.float(6)?,
    };
    let mut scores = super::elementwise::map(&matmul(q, &swap_last(&k))?, |s| s * scale);
    if let Some(mask) = a.opt_tensor(3)? {
        let shape = broadcast(scores.shape(), mask.shape())?;
        let boolean = mask.kind() == Kind::Bool;
        let mask = mask.expand(&shape)?;
        scores = zip(scores.kind(), &scores.expand(&shape)?, &mask, |s, m| match boolean {
            true if m == 0.0 => f64::NEG_INFINITY,
            true => s,
            false => s + m,
        });
    }
    if a.flag(5)? {
        let [.., rows, columns] = *scores.shape() else {
            return a.invalid("needs two dimensions");
        };
        let values = scores.to_f64().into_iter().enumerate().map(|(i, s)| {
            let (r, c) = (i as i64 / columns % rows, i as i64 % columns);
            if c > r { f64::NEG_INFINITY } else { s }
        });
        scores = Tensor::from_f64(scores.kind(), scores.shape(), values.collect());
    }
    let weights = map_lanes(&scores, scores.rank() - 1, scores.kind(), |row| {
        match row.iter().all(|s| *s == f64::NEG_INFINITY) {
            true => vec![0.0; row.len()],
            false => softmax_lane(row),
        }
    });
    matmul(&weights, &v)
}
