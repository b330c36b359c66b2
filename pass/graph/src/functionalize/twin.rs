//! Functional twins: for an op that writes to its arguments, the op that gives the new values instead.

use crate::differentiate::{ShapeOracle, infer};
use crate::ir::{Arg, Graph, TensorType, Value};
use crate::ops::{Op, Results, ShapeError};
use std::collections::HashMap;
use std::sync::LazyLock;

/// A functional twin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Twin {
    /// The op.
    pub(crate) op: Op,
    /// Which arguments of the writing op it takes, in its order.
    pub(crate) takes: Vec<usize>,
}

impl Twin {
    /// The twin's arguments.
    pub(crate) fn args(&self, args: &[Arg]) -> Vec<Arg> {
        self.takes.iter().map(|i| args[*i].clone()).collect()
    }
}

/// Ops that give handles another shape, storage or place in LibTorch's own graph, instead of writing elements.
const METADATA: &[&str] = &[
    "as_strided_",
    "detach_",
    "rename_",
    "requires_grad_",
    "resize_",
    "resize_as_",
    "resize_as_sparse_",
    "set_",
    "set_source_tensor_",
    "set_source_tensor_storage_offset_",
    "set_source_tensor_storage_offset",
    "sparse_resize_",
    "sparse_resize_and_clear_",
    "squeeze_",
    "squeeze_dim_",
    "squeeze_dims_",
    "swapaxes_",
    "swapdims_",
    "t_",
    "transpose_",
    "unsqueeze_",
];

/// Does the op change a tensor's metadata in place?
pub(crate) fn changes_metadata(op: Op) -> bool {
    METADATA.contains(&op.name)
}

/// Twins that the names do not tell.
const SPECIAL: &[(&str, &str, &[usize])] = &[
    ("clone", "alias_copy", &[1]),
    ("fill_", "full_like", &[0, 1]),
    ("normal_", "normal_functional", &[0, 1, 2]),
    ("zero_", "zeros_like", &[0]),
];

/// Ops that write nothing, by LibTorch's function and kinds of parameters.
static BY_BASE: LazyLock<HashMap<&'static str, Vec<Op>>> = LazyLock::new(|| {
    let mut map: HashMap<&'static str, Vec<Op>> = HashMap::new();
    for op in Op::all().filter(|o| o.is_libtorch() && o.facts.mutates.is_empty()) {
        map.entry(op.base).or_default().push(op);
    }
    map
});

/// The functional twin of an op that writes to arguments; `None` where Cotangent knows none.
pub(crate) fn twin(op: Op) -> Option<Twin> {
    if let Some((_, name, takes)) = SPECIAL.iter().find(|(n, ..)| *n == op.name) {
        return Some(Twin {
            op: Op::named(name),
            takes: takes.to_vec(),
        });
    }
    let everything = 0..op.params.len();
    let (base, takes): (&str, Vec<usize>) = if let Some(base) = op.base.strip_suffix("_out") {
        (base, everything.filter(|i| !op.facts.mutates.contains(i)).collect())
    } else if op.facts.mutates == [0] && !changes_metadata(op) {
        (op.base.strip_suffix('_')?, everything.collect())
    } else {
        return None;
    };
    let base = base.strip_suffix('_').filter(|b| b.starts_with("__")).unwrap_or(base);
    let fits = |candidate: &&Op| {
        candidate.params.len() == takes.len()
            && candidate
                .params
                .iter()
                .zip(&takes)
                .all(|(p, i)| p.kind == op.params[*i].kind)
            && candidate.results == Results::Count(op.facts.mutates.len())
    };
    let op = BY_BASE.get(base)?.iter().find(fits)?;
    Some(Twin { op: *op, takes })
}

/// Result types of an op of a closed graph that may write to arguments.
pub(crate) fn infer_any(
    graph: &Graph,
    oracle: &dyn ShapeOracle,
    op: Op,
    args: &[Arg],
) -> Result<Vec<TensorType>, ShapeError> {
    let targets: Vec<Value> = op
        .facts
        .mutates
        .iter()
        .filter_map(|i| match args[*i] {
            Arg::Value(v) => Some(v),
            _ => None,
        })
        .collect();
    let types = || targets.iter().map(|v| graph.tensor(*v).clone()).collect::<Vec<_>>();
    if op.name == "copy_" {
        let Arg::Value(source) = args[1] else {
            return Err(ShapeError("`copy_` has no source".into()));
        };
        check_write(graph.tensor(source), graph.tensor(targets[0]), true)?;
        return Ok(types());
    }
    match (targets.is_empty(), twin(op)) {
        (false, Some(twin)) => {
            let news = infer(graph, oracle, twin.op, &twin.args(args))?;
            for (new, target) in news.iter().zip(&targets) {
                check_write(new, graph.tensor(*target), false)?;
            }
            Ok(types())
        }
        _ => infer(graph, oracle, op, args),
    }
}

/// May a result of type `new` be written to a tensor of type `target`?
fn check_write(new: &TensorType, target: &TensorType, copies: bool) -> Result<(), ShapeError> {
    if copies {
        let extra = target.rank().checked_sub(new.rank());
        let fits = extra.is_some_and(|extra| {
            let pairs = new.shape.iter().zip(&target.shape[extra..]);
            pairs.into_iter().all(|(n, t)| n == t || *n == 1)
        });
        // `copy_` takes leading dimensions of extent one as well; LibTorch then says what it thinks of the rest.
        return match fits {
            true => Ok(()),
            false => Err(ShapeError(format!(
                "{:?} does not broadcast to {:?}",
                new.shape, target.shape
            ))),
        };
    }
    if new.shape != target.shape {
        return Err(ShapeError(format!(
            "a result of shape {:?} does not fit a tensor of shape {:?}",
            new.shape, target.shape
        )));
    }
    let class = |t: &TensorType| match t.kind {
        k if k.is_complex() => 3,
        k if k.is_float() => 2,
        crate::ir::Kind::Bool => 0,
        _ => 1,
    };
    if class(new) > class(target) {
        return Err(ShapeError(format!(
            "a result of kind {} cannot be cast to {}",
            new.kind.name(),
            target.kind.name()
        )));
    }
    Ok(())
}
