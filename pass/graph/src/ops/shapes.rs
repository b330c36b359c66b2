//! What shape rules are made of: broadcasting, dimensions counted from the end, and the common forms.

use super::kinds::{Operand, floating, promote, result_kind};
use super::{Infer, ParamKind, ShapeError};
use crate::ir::{Arg, Kind, TensorType};

/// What a shape rule gives.
pub type Inferred = Result<Vec<TensorType>, ShapeError>;

/// A refusal.
pub fn refuse<T>(why: impl Into<String>) -> Result<T, ShapeError> {
    Err(ShapeError(why.into()))
}

/// One result of that kind and shape.
#[allow(clippy::unnecessary_wraps, reason = "the form that shape rules return")]
pub fn one(kind: Kind, shape: impl Into<Vec<i64>>) -> Inferred {
    Ok(vec![TensorType::new(kind, shape)])
}

/// A dimension of a tensor of that rank, counted from the front. A 0-dim tensor counts as one-dimensional.
pub fn dim(d: i64, rank: usize) -> Result<usize, ShapeError> {
    let n = rank.max(1) as i64;
    if (-n..n).contains(&d) {
        Ok(if d < 0 { d + n } else { d } as usize)
    } else {
        refuse(format!("dimension {d} of a tensor of rank {rank}"))
    }
}

/// The distinct dimensions of a reduction; all of them where none is given.
pub fn dims(list: Option<Vec<i64>>, rank: usize) -> Result<Vec<usize>, ShapeError> {
    let list = match list {
        Some(list) if !list.is_empty() => list,
        _ => return Ok((0..rank).collect()),
    };
    let mut out = vec![];
    for d in list {
        let d = dim(d, rank)?;
        if out.contains(&d) {
            return refuse(format!("dimension {d} twice"));
        }
        out.push(d);
    }
    out.retain(|d| *d < rank); // The one dimension that a 0-dim tensor has by courtesy.
    Ok(out)
}

/// The shape that two shapes broadcast to.
pub fn broadcast(a: &[i64], b: &[i64]) -> Result<Vec<i64>, ShapeError> {
    let rank = a.len().max(b.len());
    let at = |s: &[i64], i: usize| if i + s.len() >= rank { s[i + s.len() - rank] } else { 1 };
    (0..rank)
        .map(|i| match (at(a, i), at(b, i)) {
            (x, y) if x == y => Ok(x),
            (1, y) => Ok(y),
            (x, 1) => Ok(x),
            (x, y) => refuse(format!(
                "extents {x} and {y} of shapes {a:?} and {b:?} do not broadcast"
            )),
        })
        .collect()
}

/// `shape` without the reduced dimensions, or with extent one there.
pub fn reduce(shape: &[i64], dims: &[usize], keep: bool) -> Vec<i64> {
    (shape.iter().enumerate())
        .filter(|(d, _)| keep || !dims.contains(d))
        .map(|(d, n)| if dims.contains(&d) { 1 } else { *n })
        .collect()
}

/// A requested shape with its `-1` filled in.
pub fn fill_in(size: &[i64], numel: i64) -> Result<Vec<i64>, ShapeError> {
    let known: i64 = size.iter().filter(|n| **n != -1).product();
    let mut out = size.to_vec();
    match size.iter().filter(|n| **n == -1).count() {
        0 => {}
        1 if known != 0 && numel % known == 0 => {
            out.iter_mut().filter(|n| **n == -1).for_each(|n| *n = numel / known);
        }
        _ => return refuse(format!("shape {size:?} for {numel} elements")),
    }
    if out.iter().any(|n| *n < 0) || out.iter().product::<i64>() != numel {
        return refuse(format!("shape {size:?} for {numel} elements"));
    }
    Ok(out)
}

impl Infer<'_> {
    /// The kind in position `i`, if one is given.
    pub fn kind(&self, i: usize) -> Option<Kind> {
        match &self.args[i] {
            Arg::Kind(k) => Some(*k),
            _ => None,
        }
    }

    /// What the argument in position `i` contributes to a promotion; nothing if it is neither tensor nor number.
    pub fn operand(&self, i: usize) -> Option<Operand> {
        match (self.op.params[i].kind, &self.args[i]) {
            (_, Arg::None) => None,
            (ParamKind::Tensor | ParamKind::OptTensor, _) => {
                let t = self.tensor(i);
                Some(Operand::Tensor(t.kind, t.rank()))
            }
            (ParamKind::Scalar, Arg::Int(_)) => Some(Operand::Int),
            (ParamKind::Scalar, Arg::Bool(_)) => Some(Operand::Bool),
            (ParamKind::Scalar, _) => Some(Operand::Float),
            _ => None,
        }
    }

    /// Kind and shape that all tensors and numbers among the arguments promote and broadcast to.
    pub fn promoted(&self) -> Result<TensorType, ShapeError> {
        Ok(TensorType::new(self.promoted_kind(), self.broadcast_all()?))
    }

    /// The kind that all tensors and numbers among the arguments promote to.
    pub fn promoted_kind(&self) -> Kind {
        result_kind((0..self.args.len()).filter_map(|i| self.operand(i)))
    }

    /// The shape that all tensors among the arguments broadcast to.
    pub fn broadcast_all(&self) -> Result<Vec<i64>, ShapeError> {
        let mut shape = vec![];
        for (i, param) in self.op.params.iter().enumerate() {
            if matches!(param.kind, ParamKind::Tensor | ParamKind::OptTensor)
                && let Some(t) = self.opt_tensor(i)
            {
                shape = broadcast(&shape, &t.shape)?;
            }
        }
        Ok(shape)
    }

    /// The only kind that the tensors in those positions have.
    pub fn same_kind(&self, positions: &[usize]) -> Result<Kind, ShapeError> {
        let mut kinds = positions.iter().filter_map(|i| self.opt_tensor(*i)).map(|t| t.kind);
        let first = kinds.next().expect("a rule asks for the kind of at least one tensor");
        match kinds.find(|k| *k != first) {
            None => Ok(first),
            Some(other) => refuse(format!("{} of {} and {}", self.op, first.name(), other.name())),
        }
    }
}

/// Kind and shape of the first argument.
pub fn like(cx: &Infer<'_>) -> Inferred {
    Ok(vec![cx.tensor(0)])
}

/// Like the first argument, which is a float.
pub fn float_like(cx: &Infer<'_>) -> Inferred {
    let x = cx.tensor(0);
    if !x.kind.is_differentiable() {
        return refuse(format!("{} of {}", cx.op, x.kind.name()));
    }
    Ok(vec![x])
}

/// Like the first argument, which is not a flag.
pub fn numeric_like(cx: &Infer<'_>) -> Inferred {
    let x = cx.tensor(0);
    if x.kind == Kind::Bool {
        return refuse(format!("{} of bool", cx.op));
    }
    Ok(vec![x])
}

/// Element by element on one tensor, in floating point.
pub fn float_unary(cx: &Infer<'_>) -> Inferred {
    let x = cx.tensor(0);
    one(floating(x.kind), x.shape)
}

/// Promoted and broadcast.
pub fn pointwise(cx: &Infer<'_>) -> Inferred {
    Ok(vec![cx.promoted()?])
}

/// Promoted and broadcast; no flags on both sides, which LibTorch refuses to subtract.
pub fn subtract(cx: &Infer<'_>) -> Inferred {
    let flag = |i| matches!(cx.operand(i), Some(Operand::Tensor(Kind::Bool, _) | Operand::Bool));
    if flag(0) || flag(1) {
        return refuse(format!("{} of bool", cx.op));
    }
    pointwise(cx)
}

/// Promoted and broadcast, in floating point.
pub fn float_pointwise(cx: &Infer<'_>) -> Inferred {
    let t = cx.promoted()?;
    one(floating(t.kind), t.shape)
}

/// Broadcast; the result is a flag.
pub fn predicate(cx: &Infer<'_>) -> Inferred {
    one(Kind::Bool, cx.broadcast_all()?)
}

/// Kinds of the tensors promoted and shapes broadcast; numbers take no part.
pub fn tensors_pointwise(cx: &Infer<'_>) -> Inferred {
    let operands: Vec<Operand> = (0..cx.args.len())
        .filter_map(|i| cx.operand(i))
        .filter(|o| matches!(o, Operand::Tensor(..)))
        .collect();
    one(result_kind(operands), cx.broadcast_all()?)
}

/// Promotion of the kinds of a list of tensors, as `cat` does it.
pub fn list_kind(list: &[TensorType]) -> Kind {
    match list.iter().map(|t| t.kind).reduce(promote) {
        Some(first) if list.iter().all(|t| t.kind == first) => first,
        _ => result_kind(list.iter().map(|t| Operand::Tensor(t.kind, t.rank()))),
    }
}

/// Scalar ops have no tensor result; their types stand in the graph.
pub fn scalar(cx: &Infer<'_>) -> Inferred {
    refuse(format!("`{}` gives a scalar: its type is told by its result", cx.op))
}
