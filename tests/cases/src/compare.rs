//! Holding a result against the recorded one.

use crate::case::{Case, Flag};
use cotangent_graph::interp::{Data, Tensor};
use cotangent_graph::ir::Kind;

/// Compares a tensor with the recorded one: shape, kind, and every element within the tolerance of its kind. NaN must
/// stand at the same places and infinities have the same sign.
///
/// # Errors
/// What differs, in words.
pub fn compare(got: &Tensor, want: &Tensor, case: &Case) -> Result<(), String> {
    if got.shape() != want.shape() {
        return Err(format!("shape {:?} instead of {:?}", got.shape(), want.shape()));
    }
    if got.kind() != want.kind() {
        return Err(format!("kind {} instead of {}", got.kind().name(), want.kind().name()));
    }
    let (g, w) = match (got.data(), want.data()) {
        (Data::Float(g), Data::Float(w)) => (g, w),
        (Data::Int(g), Data::Int(w)) if g == w => return Ok(()),
        _ => return Err(format!("{:?} instead of {:?}", brief(got), brief(want))),
    };
    let (rtol, atol) = tolerance(want.kind(), case);
    match g.iter().zip(w).position(|(g, w)| !close(*g, *w, rtol, atol)) {
        None => Ok(()),
        Some(i) => Err(format!("element {i} is {} instead of {}", g[i], w[i])),
    }
}

fn tolerance(kind: Kind, case: &Case) -> (f64, f64) {
    let (rtol, atol): (f64, f64) = match kind {
        Kind::F64 => (1e-10, 1e-12),
        Kind::F32 => (1e-5, 1e-6),
        _ => (1e-2, 1e-3),
    };
    // Ill-conditioned problems move with the last bits of their inputs. Ties and kinks do not: a wrong convention is
    // off by far more than this.
    let rtol = if case.has(Flag::Sensitive) {
        rtol.max(1e-6)
    } else {
        rtol
    };
    (rtol, atol)
}

fn close(got: f64, want: f64, rtol: f64, atol: f64) -> bool {
    if got.is_nan() || want.is_nan() || got.is_infinite() || want.is_infinite() {
        return got == want || (got.is_nan() && want.is_nan());
    }
    (got - want).abs() <= atol + rtol * want.abs()
}

fn brief(t: &Tensor) -> Vec<f64> {
    t.to_f64().into_iter().take(8).collect()
}
