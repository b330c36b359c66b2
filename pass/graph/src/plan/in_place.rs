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

/// Lets instruction `i` write over an operand that dies there, if it has an in-place twin. Tells whether it does.
pub(super) fn reuse(graph: &Graph, insts: &mut [Option<Inst>], i: usize, live: &mut Live) -> bool {
    let Some(inst) = &insts[i] else { return false };
    let Some(twin) = twin(inst.op) else { return false };
    let result = inst.results[0];
    let operands: &[usize] = if COMMUTATIVE.contains(&inst.op.name) {
        &[0, 1]
    } else {
        &[0]
    };
    for &k in operands {
        let Arg::Value(x) = inst.args[k] else { continue };
        if graph.ty(x) != graph.ty(result) || !live.dies_at(x, i) || shared_elsewhere(inst, x, live) {
            continue;
        }
        let mut args = inst.args.clone();
        args.swap(0, k);
        live.take_over(x, result);
        insts[i] = Some(Inst {
            op: twin,
            args,
            ..inst.clone()
        });
        return true;
    }
    false
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
            && uses(insts, product) == 1;
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

fn uses(insts: &[Option<Inst>], v: Value) -> usize {
    let mut uses = 0;
    for arg in insts.iter().flatten().flat_map(|inst| &inst.args) {
        arg.for_each_value(&mut |w| uses += usize::from(w == v));
    }
    uses
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
