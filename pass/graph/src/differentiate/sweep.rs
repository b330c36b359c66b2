//! The sweep itself: one loop over the instructions in reverse, with an accumulator per value.

use super::rule::Vjp;
use super::{ShapeOracle, emit};
use crate::ir::{Arg, Graph, Inst, Loc, Type, Value};
use crate::ops::{Op, Rule, RuleError, ShapeError};
use std::collections::HashMap;

/// Forward and backward in one graph.
#[derive(Clone, Debug)]
pub struct Joint {
    /// The forward's instructions, then the backward's. Its outputs are those of the forward.
    pub graph: Graph,
    /// How many instructions belong to the forward.
    pub forward: usize,
    /// For each output of the forward, the input that carries its cotangent; `None` where it gets none.
    pub seeds: Vec<Option<Value>>,
    /// For each input asked for, its cotangent; `None` where no path leads from it to a seeded output.
    pub cotangents: Vec<Option<Value>>,
}

/// Differentiates a closed graph for the inputs `wrt`. `seeded` tells which outputs get a cotangent.
///
/// Linear in the number of instructions (times the size of the rules).
///
/// # Errors
/// If an op on a path from an input asked for to a seeded output has no derivative.
pub fn vjp(
    graph: &Graph,
    wrt: &[Value],
    seeded: &[bool],
    oracle: &dyn ShapeOracle,
) -> Result<Joint, (RuleError, Option<Loc>)> {
    let mut joint = graph.clone();
    let forward = joint.insts.len();
    let varied = varied(graph, wrt);
    let active = |v: Value| varied.get(v.index()).copied().unwrap_or(false);

    let mut bars = Bars::default();
    let mut seeds = vec![None; graph.outputs.len()];
    for (k, (&output, _)) in graph.outputs.iter().zip(seeded).enumerate().filter(|(_, (_, s))| **s) {
        if active(output) {
            let seed = joint.input(format!("seed{k}"), graph.ty(output).clone());
            seeds[k] = Some(seed);
            bars.add(&mut joint, oracle, output, seed, None)
                .map_err(|e| (bug(e), None))?;
        }
    }
    for (at, inst) in graph.insts.iter().enumerate().rev() {
        let y_bars: Vec<_> = inst.results.iter().map(|r| bars.0.get(r).copied()).collect();
        if y_bars.iter().all(Option::is_none) {
            continue; // Nothing flows back.
        }
        pull(&mut joint, oracle, at, inst, y_bars, &active, &mut bars).map_err(|e| (e, inst.loc.clone()))?;
    }
    let cotangents = wrt.iter().map(|v| bars.0.get(v).copied()).collect();
    Ok(Joint {
        graph: joint,
        forward,
        seeds,
        cotangents,
    })
}

/// Which values vary with the inputs asked for: forward reachability through ops that pass a derivative on.
pub fn varied(graph: &Graph, wrt: &[Value]) -> Vec<bool> {
    let mut varied = vec![false; graph.value_count()];
    for v in wrt {
        varied[v.index()] = carries(graph.ty(*v));
    }
    for inst in &graph.insts {
        if matches!(inst.op.own.map(|o| o.rule), Some(Rule::Constant)) || detaches(inst) {
            continue;
        }
        let mut depends = false;
        inst.args
            .iter()
            .for_each(|a| a.for_each_value(&mut |v| depends |= varied[v.index()]));
        for r in &inst.results {
            // What is read from a tape varies with what the taped op read.
            varied[r.index()] = depends && (carries(graph.ty(*r)) || *graph.ty(*r) == Type::Tape);
        }
    }
    varied
}

/// Reading a tensor as a number detaches it, except where the sweep itself does so.
fn detaches(inst: &Inst) -> bool {
    inst.op.name == "item" && inst.args.get(1) != Some(&Arg::Bool(true))
}

/// Values of this type can carry a derivative.
fn carries(ty: &Type) -> bool {
    match ty {
        Type::Tensor(Some(t)) => t.kind.is_differentiable(),
        Type::Float(_) => true,
        _ => false,
    }
}

/// Pulls the cotangents of one instruction's results back to its arguments.
fn pull(
    joint: &mut Graph,
    oracle: &dyn ShapeOracle,
    at: usize,
    inst: &Inst,
    y_bars: Vec<Option<Value>>,
    active: &dyn Fn(Value) -> bool,
    bars: &mut Bars,
) -> Result<(), RuleError> {
    let rule = match inst.op.own.map(|o| o.rule) {
        Some(Rule::Elementwise(f) | Rule::Linear(f) | Rule::Bilinear(f) | Rule::Custom(f)) => f,
        Some(Rule::Constant) => return Ok(()),
        Some(Rule::Zero) => super::sweep::zero,
        Some(Rule::Unsupported(why)) => {
            return Err(RuleError {
                op: inst.op.name,
                why: why.to_string(),
            });
        }
        Some(Rule::Composite(_)) => composite,
        None => opaque,
    };
    let mut vjp = Vjp {
        graph: joint,
        oracle,
        at,
        op: inst.op,
        args: inst.args.clone(),
        results: inst.results.clone(),
        bars: y_bars,
        active,
        loc: inst.loc.clone(),
        given: Default::default(),
        given_none: Default::default(),
    };
    // Rules of ours are written for real numbers; the derivative of a complex function conjugates.
    if complex(&vjp) {
        opaque(&mut vjp)?
    } else {
        rule(&mut vjp)?
    }
    complete(&vjp)?;
    let given = std::mem::take(&mut vjp.given);
    for ((i, k), contributions) in given {
        let target = match &inst.args[i] {
            Arg::Value(v) => *v,
            Arg::List(vs) => vs[k].expect("a rule gives only where a cotangent is wanted"),
            _ => continue,
        };
        for bar in contributions {
            let bar = fit(joint, oracle, bar, target, &inst.loc).map_err(bug)?;
            bars.add(joint, oracle, target, bar, inst.loc.clone()).map_err(bug)?;
        }
    }
    Ok(())
}

/// Composites are gone once a graph is canonical.
fn composite(cx: &mut Vjp<'_>) -> Result<(), RuleError> {
    Err(cx.error("internal error, please report it: the graph was not canonicalized"))
}

/// Does the op take or give a complex tensor?
fn complex(cx: &Vjp<'_>) -> bool {
    let complex = |v: &Value| matches!(cx.graph.ty(*v), Type::Tensor(Some(t)) if t.kind.is_complex());
    let mut any = cx.results.iter().any(complex);
    cx.args
        .iter()
        .for_each(|a| a.for_each_value(&mut |v| any |= complex(&v)));
    any
}

/// Every argument that wants a cotangent got one, or the rule said that there is none: nothing is lost silently.
fn complete(cx: &Vjp<'_>) -> Result<(), RuleError> {
    for (i, arg) in cx.args.iter().enumerate().filter(|(i, _)| !cx.given_none.contains(i)) {
        let missing = match arg {
            Arg::List(vs) => (0..vs.len()).any(|k| cx.wants_item(i, k) && !cx.given.contains_key(&(i, k))),
            _ => cx.wants(i) && !cx.given.contains_key(&(i, 0)),
        };
        if missing {
            let name = cx.op.params.get(i).map_or("?", |p| p.name);
            return Err(cx.error(format!("it cannot be differentiated for its argument `{name}`")));
        }
    }
    Ok(())
}

/// The derivative exists and is zero: zeros for every argument that wants one.
fn zero(cx: &mut Vjp<'_>) -> Result<(), RuleError> {
    for i in 0..cx.args.len() {
        if cx.wants(i) && cx.value_type(cx.x(i)).is_tensor() {
            let zeros = cx.emit("zeros_like", [cx.arg(i)])?;
            cx.give(i, zeros);
        } else {
            cx.give_none(i);
        }
    }
    Ok(())
}

/// An opaque op: LibTorch differentiates it. The forward instruction gets a tape as one result more, and one argument
/// more: where the tensors stand to which the tape must lead, as pairs (argument, item of a list or zero). The
/// results of `tape.vjp` are their cotangents, in the same order.
pub(super) fn opaque(cx: &mut Vjp<'_>) -> Result<(), RuleError> {
    let mut targets = vec![];
    for (i, arg) in cx.args.iter().enumerate() {
        match arg {
            Arg::Value(v) if cx.wants(i) => targets.push((i, 0, *v)),
            Arg::List(vs) => {
                let wanted = vs.iter().enumerate().filter(|(k, _)| cx.wants_item(i, *k));
                targets.extend(wanted.map(|(k, v)| (i, k, v.expect("an absent item is not wanted"))));
            }
            Arg::Floats(items) => {
                let mut active = false;
                items
                    .iter()
                    .for_each(|a| a.for_each_value(&mut |v| active |= (cx.active)(v)));
                if active {
                    return Err(cx.error(NO_FLOAT));
                }
            }
            _ => {}
        }
    }
    if !cx.op.is_libtorch() {
        return Err(cx.error("Cotangent has no rule for it"));
    }
    if targets.iter().any(|(_, _, v)| !cx.graph.ty(*v).is_tensor()) {
        return Err(cx.error(NO_FLOAT));
    }
    let places = targets.iter().flat_map(|(i, k, _)| [*i as i64, *k as i64]);
    let places = Arg::Ints(places.map(Arg::Int).collect());
    let mut bars = cx.bars.clone();
    let is_tape = |v: &&Value| *cx.graph.ty(**v) == Type::Tape;
    let tape = match cx.results.last().filter(is_tape).copied() {
        // Where a derivative is differentiated, the op has left a tape already.
        Some(tape) if cx.args.last() == Some(&places) => {
            bars.pop();
            tape
        }
        Some(_) => return Err(cx.error("LibTorch's derivative of it was taken for other arguments before")),
        None => {
            let tape = cx.graph.fresh(Type::Tape);
            let forward = &mut cx.graph.insts[cx.at];
            forward.results.push(tape);
            forward.args.push(places);
            tape
        }
    };

    let types = targets.iter().map(|(_, _, v)| cx.graph.ty(*v).clone()).collect();
    let args = vec![Arg::Value(tape), Arg::List(bars)];
    let got = cx.graph.push(Op::named("tape.vjp"), args, types, cx.loc.clone());
    for ((i, k, _), v) in targets.into_iter().zip(got) {
        cx.given.entry((i, k)).or_default().push(v);
    }
    Ok(())
}

const NO_FLOAT: &str = "its derivative comes from LibTorch, which has none for numbers: pass the float as a tensor";

/// Undoes broadcasting and kind promotion: sums `bar` to the shape of `target` and casts it to its kind.
fn fit(
    graph: &mut Graph,
    oracle: &dyn ShapeOracle,
    bar: Value,
    target: Value,
    loc: &Option<Loc>,
) -> Result<Value, ShapeError> {
    let Type::Tensor(Some(want)) = graph.ty(target).clone() else {
        return fit_float(graph, oracle, bar, target, loc);
    };
    let mut bar = bar;
    let have = graph.tensor(bar).clone();
    if have.shape != want.shape {
        let extra = have.rank().saturating_sub(want.rank());
        let mut dims: Vec<i64> = (0..extra as i64).collect();
        for (d, n) in want.shape.iter().enumerate() {
            if *n == 1 && have.shape.get(d + extra).is_some_and(|h| *h != 1) {
                dims.push((d + extra) as i64);
            }
        }
        if !dims.is_empty() {
            // Dimensions that the target lacks are summed away; those of extent one stay.
            let keep = dims.len() > extra;
            let args = vec![bar.into(), Arg::ints(&dims), Arg::Bool(keep), Arg::None];
            bar = emit(graph, oracle, Op::named("sum_dim_intlist"), args, loc.clone())?[0];
        }
        if graph.tensor(bar).shape != want.shape {
            let args = vec![bar.into(), Arg::ints(&want.shape)];
            bar = emit(graph, oracle, Op::named("reshape"), args, loc.clone())?[0];
        }
    }
    if have.kind != want.kind {
        let args = vec![bar.into(), Arg::Kind(want.kind)];
        bar = emit(graph, oracle, Op::named("totype"), args, loc.clone())?[0];
    }
    Ok(bar)
}

/// The cotangent of a float from the cotangent that a rule gave as a tensor: its sum, read as a number.
fn fit_float(
    graph: &mut Graph,
    oracle: &dyn ShapeOracle,
    bar: Value,
    target: Value,
    loc: &Option<Loc>,
) -> Result<Value, ShapeError> {
    if !graph.ty(bar).is_tensor() {
        return Ok(bar);
    }
    let sum = match graph.tensor(bar).rank() {
        0 => bar,
        _ => emit(
            graph,
            oracle,
            Op::named("sum"),
            vec![bar.into(), Arg::None],
            loc.clone(),
        )?[0],
    };
    let ty = graph.ty(target).clone();
    Ok(graph.push(
        Op::named("item"),
        vec![sum.into(), Arg::Bool(true)],
        vec![ty],
        loc.clone(),
    )[0])
}

/// The cotangent of each value so far.
#[derive(Default)]
struct Bars(HashMap<Value, Value>);

impl Bars {
    fn add(
        &mut self,
        graph: &mut Graph,
        oracle: &dyn ShapeOracle,
        x: Value,
        bar: Value,
        loc: Option<Loc>,
    ) -> Result<(), ShapeError> {
        let total = match self.0.get(&x) {
            None => bar,
            Some(&sum) if graph.ty(x).is_tensor() => {
                emit(graph, oracle, Op::named("add"), vec![sum.into(), bar.into()], loc)?[0]
            }
            Some(&sum) => {
                let ty = graph.ty(x).clone();
                graph.push(Op::named("scalar.fadd"), vec![sum.into(), bar.into()], vec![ty], loc)[0]
            }
        };
        self.0.insert(x, total);
        Ok(())
    }
}

/// A shape rule that refuses what the sweep itself emits is a mistake of ours; it is reported, not hidden.
fn bug(e: ShapeError) -> RuleError {
    RuleError {
        op: "the reverse sweep",
        why: format!("internal error, please report it: {e}"),
    }
}
