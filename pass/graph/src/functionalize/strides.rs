//! Strides, as far as they tell whether `reshape` and `contiguous` copy.

use super::views::wrap;
use crate::ir::Arg;
use crate::ops::{constant_int, constant_ints};
use crate::specialize::contiguous_strides;

/// How a tensor lies in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Strides, in elements.
    pub(super) strides: Vec<i64>,
}

impl Layout {
    /// A tensor with its elements in order.
    pub(super) fn contiguous(shape: &[i64]) -> Self {
        Self {
            strides: contiguous_strides(shape),
        }
    }

    /// Do the elements lie in order, without gaps?
    pub(super) fn is_contiguous(&self, shape: &[i64]) -> bool {
        let mut expected = 1;
        shape.contains(&0)
            || shape.iter().zip(&self.strides).rev().all(|(n, s)| {
                let fits = *n == 1 || *s == expected;
                expected *= n;
                fits
            })
    }
}

/// Strides with which a tensor can be seen under another shape; `None` if `reshape` has to copy it.
///
/// Runs of dimensions that lie in memory like one are matched, from the innermost, with runs of the new shape.
pub(super) fn reshape_strides(shape: &[i64], strides: &[i64], new: &[i64]) -> Option<Vec<i64>> {
    if shape == new {
        return Some(strides.to_vec());
    }
    if shape.contains(&0) {
        return Some(contiguous_strides(new));
    }
    let mut out = vec![1; new.len()];
    let mut at = new.len();
    let mut d = shape.len();
    // A scalar is one element of stride one.
    let (mut base, mut elements) = (strides.last().copied().unwrap_or(1), 1);
    while d > 0 || at > 0 {
        if d > 0 {
            elements *= shape[d - 1];
            d -= 1;
        }
        let run_ends = d == 0 || (shape[d - 1] != 1 && strides[d - 1] != elements * base);
        if !run_ends {
            continue;
        }
        let mut covered = 1;
        while at > 0 && (covered < elements || new[at - 1] == 1) {
            out[at - 1] = covered * base;
            covered *= new[at - 1];
            at -= 1;
        }
        if covered != elements {
            return None;
        }
        if d > 0 {
            base = strides[d - 1];
            elements = 1;
        } else if at > 0 {
            return None;
        }
    }
    Some(out)
}

/// Layout of a view; `None` where Cotangent does not know it.
pub(super) fn layout_of_view(op: &str, args: &[Arg], shape: &[i64], layout: &Layout, new: &[i64]) -> Option<Layout> {
    let rank = shape.len();
    let mut strides = layout.strides.clone();
    let dim = |i: usize| wrap(constant_int(&args[i]), rank);
    match op {
        "detach" | "narrow" => {}
        "select" => drop(strides.remove(dim(1))),
        "slice" => strides[dim(1)] *= constant_int(&args[4]),
        "transpose" if rank > 0 => strides.swap(dim(1), dim(2)),
        "t" | "numpy_t" => strides.reverse(),
        "mt" => strides.swap(rank - 1, rank - 2),
        "permute" => {
            let dims = constant_ints(&args[1])?;
            strides = dims.iter().map(|d| layout.strides[wrap(*d, rank)]).collect();
        }
        "expand" => {
            let extra = new.len() - rank;
            strides = vec![0; extra];
            let kept = shape.iter().zip(&new[extra..]).zip(&layout.strides);
            strides.extend(kept.map(|((old, new), s)| if old == new { *s } else { 0 }));
        }
        "view" | "squeeze" | "squeeze_dim" | "squeeze_dims" | "unsqueeze" | "unflatten" => {
            strides = reshape_strides(shape, &layout.strides, new)?;
        }
        _ => return None,
    }
    Some(Layout { strides })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reshape_copies_exactly_where_the_elements_lie_out_of_order() {
        let at = reshape_strides;
        assert_eq!(at(&[2, 3], &[3, 1], &[6]), Some(vec![1]));
        assert_eq!(at(&[2, 3], &[3, 1], &[3, 2]), Some(vec![2, 1]));
        assert_eq!(at(&[2, 3], &[1, 2], &[6]), None, "transposed");
        assert_eq!(at(&[2, 3], &[1, 2], &[2, 3, 1]), Some(vec![1, 2, 2]));
        assert_eq!(at(&[2, 3], &[1, 2], &[1, 2, 1, 3]).map(|s| (s[1], s[3])), Some((1, 2)));
        assert_eq!(
            at(&[4, 6], &[12, 2], &[2, 2, 6]),
            Some(vec![24, 12, 2]),
            "every other column"
        );
        assert_eq!(at(&[4, 6], &[12, 2], &[24]), Some(vec![2]));
        assert_eq!(at(&[4, 6], &[24, 2], &[24]), None);
        assert_eq!(at(&[], &[], &[1, 1]), Some(vec![1, 1]));
        assert_eq!(at(&[1, 3], &[7, 1], &[3]), Some(vec![1]));
        assert_eq!(at(&[0, 3], &[3, 1], &[3, 0]), Some(vec![1, 1]));
    }

    #[test]
    fn gaps_and_order_decide_contiguity_and_extents_of_one_do_not() {
        let contiguous = |shape: &[i64], strides: &[i64]| {
            Layout {
                strides: strides.to_vec(),
            }
            .is_contiguous(shape)
        };
        assert!(contiguous(&[2, 1, 3], &[3, 99, 1]));
        assert!(!contiguous(&[2, 3], &[1, 2]));
        assert!(!contiguous(&[2, 3], &[4, 1]));
        assert!(contiguous(&[], &[]));
    }
}
