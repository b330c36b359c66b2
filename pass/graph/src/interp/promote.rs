//! Kind promotion and broadcasting.

use super::args::{Operand, Out};
use super::{InterpError, Tensor};
use crate::ir::Kind;

/// The kind of results computed from integers where floats are needed: LibTorch's default element type.
pub(super) const DEFAULT: Kind = Kind::F32;

/// The smallest kind that holds both.
pub(super) fn promote(a: Kind, b: Kind) -> Kind {
    use Kind::{BF16, Bool, F16, F32, I16, U8};
    match (a, b) {
        _ if a == b => a,
        (Bool, k) | (k, Bool) => k,
        (F16, BF16) | (BF16, F16) => F32,
        _ if a.is_float() && b.is_float() => wider(a, b),
        _ if a.is_float() => a,
        _ if b.is_float() => b,
        (U8, k) | (k, U8) => wider(k, I16),
        _ => wider(a, b),
    }
}

fn wider(a: Kind, b: Kind) -> Kind {
    if b.bytes() > a.bytes() { b } else { a }
}

/// The kind in which an elementwise op on these operands is computed. Tensors with dimensions decide; 0-dim tensors
/// matter only where they are of a higher category (float over integer over boolean), wrapped numbers last.
pub(super) fn result_kind<'a>(operands: impl IntoIterator<Item = &'a Operand>) -> Kind {
    let mut groups: [Option<Kind>; 3] = [None; 3];
    for o in operands {
        let group = if o.wrapped {
            2
        } else {
            usize::from(o.tensor.rank() == 0)
        };
        let kind = match o.tensor.kind() {
            k if o.wrapped && k.is_float() => DEFAULT,
            k => k,
        };
        groups[group] = Some(groups[group].map_or(kind, |g| promote(g, kind)));
    }
    let below = combine(groups[1], groups[2]);
    combine(groups[0], below).unwrap_or(DEFAULT)
}

fn combine(higher: Option<Kind>, lower: Option<Kind>) -> Option<Kind> {
    match (higher, lower) {
        (Some(h), Some(l)) if !h.is_float() && (h == Kind::Bool || l.is_float()) => Some(promote(h, l)),
        (Some(h), _) => Some(h),
        (None, l) => l,
    }
}

/// The shape to which both broadcast.
pub(super) fn broadcast(a: &[i64], b: &[i64]) -> Out<Vec<i64>> {
    let rank = a.len().max(b.len());
    let at = |s: &[i64], d: usize| (d + s.len()).checked_sub(rank).map_or(1, |i| s[i]);
    (0..rank)
        .map(|d| match (at(a, d), at(b, d)) {
            (x, y) if x == y => Ok(x),
            (1, y) => Ok(y),
            (x, 1) => Ok(x),
            _ => Err(InterpError::invalid(format!("{a:?} and {b:?} do not broadcast"))),
        })
        .collect()
}

/// The shape to which all broadcast.
pub(super) fn broadcast_all<'a>(tensors: impl IntoIterator<Item = &'a Tensor>) -> Out<Vec<i64>> {
    tensors
        .into_iter()
        .try_fold(vec![], |shape, t| broadcast(&shape, t.shape()))
}
