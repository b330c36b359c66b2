//! Which steps write their result over an operand.

use super::live::Live;
use crate::ir::{Arg, Graph, Inst, Value};
use crate::ops::{Op, ParamKind, Results};

/// Ops whose operands may be exchanged without changing a bit.
const COMMUTATIVE: &[&str] = &["add", "mul"];

/// Products that can be accumulated, with what accumulates them.
const PRODUCTS: &[(&str, &str)] = &[("mm", "addmm_"), ("matmul", "addmm_")];

/// How far a product's operands may be kept longer for it to be accumulated.
const REACH: usize = 8;

/// Ops with a twin that takes the place of its result as one more argument in front, and may be given an operand
/// there: each element is read before it is written.
const INTO: &[(&str, &str)] = &[
    ("div", "div_out"),
    ("sigmoid_backward", "sigmoid_backward_grad_input"),
    ("silu_backward", "silu_backward_grad_input"),
    ("sub", "sub_out"),
    ("tanh_backward", "tanh_backward_grad_input"),
    ("threshold_backward", "threshold_backward_grad_input"),
];

/// Lets instruction `i` write over an operand that dies there, if its op has a form for that. Tells whether it does.
pub(super) fn reuse(graph: &Graph, insts: &mut [Option<Inst>], i: usize, live: &mut Live) -> bool {
    let Some(inst) = &insts[i] else { return false };
    let [result] = inst.results[..] else { return false };
    let dying = inst.args.iter().enumerate().filter_map(|(k, arg)| match arg {
        Arg::Value(x) => {
            let fits = graph.ty(*x) == graph.ty(result);
            (fits && live.dies_at(*x, i) && !shared_elsewhere(inst, *x, live)).then_some((k, *x))
        }
        _ => None,
    });
    let Some((x, op, args)) = dying.into_iter().find_map(|(k, x)| written_over(inst, k, x)) else {
        return false;
    };
    live.take_over(x, result);
    insts[i] = Some(Inst {
        op,
        args,
        ..inst.clone()
    });
    true
}

/// The op and arguments that do the same as `inst` and write over its operand `k`, which is `x`.
fn written_over(inst: &Inst, k: usize, x: Value) -> Option<(Value, Op, Vec<Arg>)> {
    let mut args = inst.args.clone();
    if let Some(twin) = twin(inst.op)
        && (k == 0 || (k == 1 && COMMUTATIVE.contains(&inst.op.name)))
    {
        args.swap(0, k);
        return Some((x, twin, args));
    }
    let (_, into) = INTO.iter().find(|(name, _)| *name == inst.op.name)?;
    args.insert(0, x.into());
    Some((x, Op::named(into), args))
}

/// Lets instruction `i`, a sum of a product and of something that dies there, accumulate the product into it. Tells
/// whether it does.
pub(super) fn accumulate(graph: &Graph, insts: &mut [Option<Inst>], i: usize, live: &mut Live) -> bool {
    let Some(inst) = insts[i].as_ref().filter(|inst| inst.op.name == "add") else {
        return false;
    };
    let (Arg::Value(a), Arg::Value(b)) = (&inst.args[0], &inst.args[1]) else {
        return false;
    };
    for (sum, product) in [(*a, *b), (*b, *a)] {
        let Some((at, factors, op)) = the_product(insts, i, product) else {
            continue;
        };
        let result = inst.results[0];
        let fits = graph.ty(sum) == graph.ty(result)
            && graph.ty(product) == graph.ty(result)
            && factors.iter().all(|f| graph.tensor(*f).rank() == 2)
            && factors
                .iter()
                .all(|f| graph.tensor(*f).kind == graph.tensor(result).kind);
        // Only this sum uses the product, and what it is made of is still there.
        let ready = live.dies_at(product, i)
            && !factors
                .iter()
                .any(|f| live.is_overwritten(*f) || live.may_share(*f, sum))
            && live.is_used_once(product);
        if !fits || !ready || sum == product || !live.dies_at(sum, i) {
            continue;
        }
        factors.iter().for_each(|f| live.extend(*f, i));
        live.take_over(sum, result);
        let args = vec![sum.into(), factors[0].into(), factors[1].into()];
        insts[i] = Some(Inst {
            op,
            args,
            ..inst.clone()
        });
        insts[at] = None;
        return true;
    }
    false
}

/// The instruction not far before `i` that makes `v`, if it is a product: its position, its factors, and the op that
/// accumulates it.
fn the_product(insts: &[Option<Inst>], i: usize, v: Value) -> Option<(usize, [Value; 2], Op)> {
    let near = i.saturating_sub(REACH)..i;
    let at = near
        .rev()
        .find(|k| insts[*k].as_ref().is_some_and(|inst| inst.results.contains(&v)))?;
    let inst = insts[at].as_ref()?;
    let (_, into) = PRODUCTS.iter().find(|(name, _)| *name == inst.op.name)?;
    match inst.args[..] {
        [Arg::Value(x), Arg::Value(y)] => Some((at, [x, y], Op::named(into))),
        _ => None,
    }
}

/// Does the instruction read the memory of `x` other than as `x` itself?
fn shared_elsewhere(inst: &Inst, x: Value, live: &Live) -> bool {
    let mut shared = false;
    for arg in &inst.args {
        arg.for_each_value(&mut |v| shared |= v != x && live.may_share(v, x));
    }
    shared
}

/// The op that does the same, element by element, writing over its first argument.
fn twin(op: Op) -> Option<Op> {
    let plain = op.facts.pointwise && !op.facts.random && op.facts.mutates.is_empty() && !op.facts.view;
    let twin = Op::find(&format!("{}_", op.name)).filter(|_| plain)?;
    let same = |a: &[crate::ops::Param], b: &[crate::ops::Param]| {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.kind == b.kind && a.name == b.name)
    };
    (twin.facts.mutates == [0]
        && twin.facts.pointwise
        && !twin.facts.random
        && twin.base.strip_suffix('_') == Some(op.base)
        && twin.results == Results::Count(1)
        && twin.params.first().is_some_and(|p| p.kind == ParamKind::Tensor)
        && same(&op.params, &twin.params))
    .then_some(twin)
}
