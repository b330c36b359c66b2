//! Views: which results share storage with an argument, how to make them again, and how to write through them.

use super::strides::{Layout, layout_of_view, reshape_strides};
use crate::ir::{Arg, Kind, TensorType};
use crate::ops::{Op, constant_bool, constant_int, constant_ints};

/// One view operation, with constants for arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The op.
    pub op: Op,
    /// Its arguments; the first stands for the tensor that is viewed and is [`Arg::None`].
    pub args: Vec<Arg>,
}

impl Step {
    fn new(name: &str, rest: impl IntoIterator<Item = Arg>) -> Self {
        let mut args = vec![Arg::None];
        args.extend(rest);
        Self {
            op: Op::named(name),
            args,
        }
    }

    /// The arguments, on a tensor.
    pub fn args_on(&self, tensor: Arg) -> Vec<Arg> {
        let mut args = self.args.clone();
        args[0] = tensor;
        args
    }
}

/// How a result relates to the op's first argument.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Relation {
    /// Storage of its own.
    Fresh,
    /// The same tensor.
    Same,
    /// A view through this step.
    View(Step),
    /// It may share storage or not; Cotangent cannot tell.
    Unknown,
}

/// Ops that return their first argument in some cases that only LibTorch decides.
const SOMETIMES: &[&str] = &[
    "_cast_byte",
    "_cast_char",
    "_cast_double",
    "_cast_float",
    "_cast_half",
    "_cast_int",
    "_cast_long",
    "_cast_short",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_tensors",
    "chain_matmul",
    "einsum",
    "meshgrid",
    "meshgrid_indexing",
    "sum_to_size",
    "type_as",
    "_unsafe_view",
];

/// May the op return an argument in cases that only LibTorch decides?
pub(super) fn sometimes(op: Op) -> bool {
    SOMETIMES.contains(&op.name)
}

/// Do strides decide whether the op's result shares storage with its argument?
pub(super) fn reads_strides(op: Op) -> bool {
    matches!(op.name, "contiguous" | "reshape" | "reshape_as" | "flatten" | "ravel")
}

/// Do the elements of the op's result lie in order, however those of its arguments lie, if it copies?
pub(super) fn copies_in_order(op: Op) -> bool {
    reads_strides(op) || matches!(op.name, "mm" | "bmm" | "addmm" | "baddbmm")
}

/// Does the op put dimensions in another order?
pub(super) fn permutes(op: Op) -> bool {
    matches!(
        op.name,
        "transpose" | "t" | "numpy_t" | "mt" | "permute" | "movedim" | "movedim_int"
    )
}

/// How result `k` of an op relates to its first argument.
pub(super) fn relation(
    op: Op,
    args: &[Arg],
    from: &TensorType,
    layout: Option<&Layout>,
    results: &[TensorType],
    k: usize,
) -> Relation {
    let to = &results[k];
    let copies = op.name.ends_with("_copy") || op.name.ends_with("_out");
    if sometimes(op) {
        return Relation::Unknown;
    }
    match op.name {
        "dropout" | "alpha_dropout" | "feature_dropout" | "feature_alpha_dropout" => {
            let p = match args[1] {
                Arg::Float(p) => p,
                _ => return Relation::Unknown,
            };
            let off = p == 0.0 || !constant_bool(&args[2]) || from.numel() == 0;
            return if off { Relation::Same } else { Relation::Fresh };
        }
        _ if !op.facts.view || copies => return Relation::Fresh,
        _ => {}
    }
    let view = |name: &str, rest: &[Arg]| Relation::View(Step::new(name, rest.iter().cloned()));
    let reshaped = |to: &TensorType| view("view", &[Arg::ints(&to.shape)]);
    match op.name {
        "alias" | "lift_fresh" | "positive" => Relation::Same,
        "real" | "resolve_conj" | "resolve_neg" | "conj" if !from.kind.is_complex() => Relation::Same,
        "totype" | "to_dtype" if from.kind != to.kind => Relation::Fresh,
        "to_dtype" if constant_bool(&args[3]) => Relation::Fresh,
        "totype" | "to_dtype" => Relation::Same,
        "contiguous" => match layout.map(|l| l.is_contiguous(&from.shape)) {
            Some(true) => Relation::Same,
            Some(false) => Relation::Fresh,
            None => Relation::Unknown,
        },
        "reshape" | "reshape_as" | "flatten" => match layout {
            Some(l) if reshape_strides(&from.shape, &l.strides, &to.shape).is_some() => reshaped(to),
            Some(_) => Relation::Fresh,
            None => Relation::Unknown,
        },
        "ravel" => match layout.map(|l| l.is_contiguous(&from.shape)) {
            Some(true) => reshaped(to),
            Some(false) => Relation::Fresh,
            None => Relation::Unknown,
        },
        "view" | "view_as" | "unflatten" | "squeeze" | "squeeze_dim" | "squeeze_dims" | "unsqueeze" => {
            // All of them keep the number of elements; the op itself is kept where its arguments are constants.
            match op.name {
                "view_as" => reshaped(to),
                _ => view(op.name, &args[1..]),
            }
        }
        "expand" | "expand_as" | "broadcast_to" => view("expand", &[Arg::ints(&to.shape), Arg::Bool(false)]),
        "select" | "narrow" | "slice" | "transpose" | "t" | "numpy_t" | "mt" | "permute" | "diagonal" | "movedim"
        | "movedim_int" | "detach" => view(op.name, &args[1..]),
        "moveaxis" => view("movedim", &args[1..]),
        "moveaxis_int" => view("movedim_int", &args[1..]),
        "swapaxes" | "swapdims" => view("transpose", &args[1..]),
        "mh" | "matrix_h" | "adjoint" if !from.kind.is_complex() => view("mt", &[]),
        "unbind" => view("select", &[args[1].clone(), Arg::Int(k as i64)]),
        "split" | "split_sizes" | "split_with_sizes" | "chunk" | "tensor_split" | "tensor_split_indices" => {
            let dim = constant_int(args.last().expect("the dimension comes last"));
            piece(dim, results, k)
        }
        "hsplit" | "hsplit_array" => piece(i64::from(from.rank() > 1), results, k),
        "vsplit" | "vsplit_array" => piece(0, results, k),
        "dsplit" | "dsplit_array" => piece(2, results, k),
        _ => Relation::Unknown,
    }
}

/// Result `k` of an op that cuts a tensor along a dimension.
fn piece(dim: i64, results: &[TensorType], k: usize) -> Relation {
    let at = wrap(dim, results[k].rank());
    let start: i64 = results[..k].iter().map(|t| t.shape[at]).sum();
    let step = Step::new(
        "narrow",
        [Arg::Int(at as i64), Arg::Int(start), Arg::Int(results[k].shape[at])],
    );
    Relation::View(step)
}

/// How to write a new value of a view back: an op on the viewed tensor, the new value, or both.
pub(super) enum Inverse {
    /// `op(viewed, new, …)`.
    Scatter(Op, Vec<Arg>),
    /// `op(new, …)`.
    Transform(Op, Vec<Arg>),
    /// The new value, as a constant: the viewed tensor has its own derivative.
    Detached,
    /// Not possible: why.
    Refused(String),
}

/// How to write through a step, from a tensor of type `from` to its view of type `to`.
pub(super) fn inverse(step: &Step, from: &TensorType, to: &TensorType) -> Inverse {
    let args = &step.args;
    let rest = || args[1..].to_vec();
    let rank = from.rank();
    let at = |i: usize| wrap(constant_int(&args[i]), rank);
    let transform = |name: &str, rest: Vec<Arg>| Inverse::Transform(Op::named(name), rest);
    match step.op.name {
        "select" => Inverse::Scatter(Op::named("select_scatter"), rest()),
        "slice" => Inverse::Scatter(Op::named("slice_scatter"), rest()),
        "diagonal" => Inverse::Scatter(Op::named("diagonal_scatter"), rest()),
        "narrow" => {
            let (dim, start, length) = (at(1), constant_int(&args[2]), constant_int(&args[3]));
            let start = if start < 0 { start + from.shape[dim] } else { start };
            let bounds = [dim as i64, start, start + length, 1].map(Arg::Int);
            Inverse::Scatter(Op::named("slice_scatter"), bounds.to_vec())
        }
        "transpose" | "t" | "numpy_t" | "mt" => transform(step.op.name, rest()),
        "movedim" | "movedim_int" => transform(step.op.name, vec![args[2].clone(), args[1].clone()]),
        "permute" => {
            let dims = constant_ints(&args[1]).unwrap_or_default();
            let mut back = vec![0; rank];
            for (to, from) in dims.iter().enumerate() {
                back[wrap(*from, rank)] = to as i64;
            }
            transform("permute", vec![Arg::ints(&back)])
        }
        "detach" => Inverse::Detached,
        "expand" if from.numel() != to.numel() => Inverse::Refused(
            "writes through an expanded view, where several elements are one in memory; LibTorch refuses that too"
                .into(),
        ),
        // What is left keeps the elements in their order.
        _ => transform("reshape", vec![Arg::ints(&from.shape)]),
    }
}

/// Layout of a step's result.
pub(super) fn layout(step: &Step, from: &TensorType, layout: &Layout, to: &TensorType) -> Option<Layout> {
    layout_of_view(step.op.name, &step.args, &from.shape, layout, &to.shape)
}

/// A dimension counted from the front.
pub(super) fn wrap(dim: i64, rank: usize) -> usize {
    let rank = rank.max(1) as i64;
    dim.rem_euclid(rank) as usize
}

/// Kinds for which a write casts: from the twin's kind to the target's.
pub(super) fn cast(from: Kind, to: Kind) -> Option<(Op, Vec<Arg>)> {
    (from != to).then(|| (Op::named("totype"), vec![Arg::Kind(to)]))
}
