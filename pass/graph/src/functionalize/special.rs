//! Writing ops whose functional form is more than another name: `copy_`, and batch normalisation's running
//! statistics.

use super::rewrite::{Outcome, Rewriter, tensor};
use crate::ir::{Arg, Inst, Type, Value};
use crate::ops::{Op, constant_bool};

/// Rewrites an op that needs more than its twin; `None` if it does not. `before` are its arguments by their own
/// names, `inst` has what they hold now.
pub(super) fn run(cx: &mut Rewriter<'_>, inst: &Inst, before: &[Arg]) -> Option<Outcome<()>> {
    match inst.op.name {
        "copy_" => Some(copy(cx, inst, before)),
        "batch_norm" => Some(batch_norm(cx, inst, before)),
        _ => None,
    }
}

/// `copy_(target, source)`: the source, broadcast, cast, and in storage of its own.
fn copy(cx: &mut Rewriter<'_>, inst: &Inst, before: &[Arg]) -> Outcome<()> {
    let (Some(target), Some(source)) = (tensor(&before[0]), tensor(&inst.args[1])) else {
        return Err(cx.error("internal error, please report it: `copy_` without tensors"));
    };
    let want = cx.graph.tensor(target).clone();
    let have = cx.graph.tensor(source).clone();
    let in_order = have.shape == want.shape && tensor(&before[1]).is_some_and(|v| cx.is_in_order(v));
    let mut new = source;
    if have.shape != want.shape {
        let mut ty = have.clone();
        ty.shape.clone_from(&want.shape);
        let args = vec![Arg::Value(new), Arg::ints(&want.shape), Arg::Bool(false)];
        new = cx.push(Op::named("expand"), args, vec![Type::Tensor(Some(ty))])[0];
    }
    let casts = have.kind != want.kind;
    if casts {
        new = cx.fit(new, target)?;
    }
    if cx.is_whole(target) {
        let ty = vec![Type::Tensor(Some(want.clone()))];
        if !casts {
            new = cx.push(Op::named("alias_copy"), vec![new.into()], ty.clone())[0];
        }
        if !in_order {
            new = cx.push(Op::named("contiguous"), vec![new.into()], ty)[0];
        }
    }
    let new = cx.overwrite(target, new)?;
    cx.write(target, new)?;
    if let Some(result) = inst.results.first() {
        cx.same(*result, target);
    }
    Ok(())
}

/// `batch_norm` with running statistics. In training, they are updated, and the result does not depend on them; in
/// evaluation, it is the other way round.
fn batch_norm(cx: &mut Rewriter<'_>, inst: &Inst, before: &[Arg]) -> Outcome<()> {
    let [x, weight, bias, mean, var, training, momentum, eps, ..] = &inst.args[..] else {
        return Err(cx.error("internal error, please report it: `batch_norm` with other arguments"));
    };
    let take = |args: &[&Arg]| args.iter().map(|a| (*a).clone()).collect::<Vec<Arg>>();
    let normalised = if constant_bool(training) {
        let args = take(&[x, weight, bias, training, momentum, eps]);
        cx.emit(Op::named("_native_batch_norm_legit_no_stats"), args)?[0]
    } else {
        let args = take(&[x, weight, bias, mean, var, momentum, eps]);
        cx.emit(Op::named("_native_batch_norm_legit_no_training"), args)?[0]
    };
    if let (true, Some(mean_at), Some(var_at)) = (constant_bool(training), tensor(&before[3]), tensor(&before[4])) {
        let Some(x) = tensor(x) else {
            return Err(cx.error("internal error, please report it: `batch_norm` of no tensor"));
        };
        let ty = cx.graph.ty(x).clone();
        let constant = cx.push(Op::named("detach"), vec![x.into()], vec![ty])[0];
        let args = take(&[
            &constant.into(),
            &Arg::None,
            &Arg::None,
            mean,
            var,
            training,
            momentum,
            eps,
        ]);
        let stats = cx.emit(Op::named("_native_batch_norm_legit_functional"), args)?;
        for (target, new) in [(mean_at, stats[3]), (var_at, stats[4])] {
            let new = cx.fit(new, target)?;
            cx.write(target, new)?;
        }
    }
    stand_for(cx, inst.results[0], normalised);
    Ok(())
}

/// `result` is what `value` is.
fn stand_for(cx: &mut Rewriter<'_>, result: Value, value: Value) {
    let alias = Inst {
        op: Op::named("alias"),
        args: vec![value.into()],
        results: vec![result],
        loc: cx.loc.clone(),
    };
    cx.place(alias, &[]);
}
