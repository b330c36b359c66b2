//! Ops that move or combine lanes of vectors, and conversions between float types: written out in both modes.

use super::emit::{Emitter, splat};
use super::expr::Reads;
use crate::llvm::{Opcode, RealPredicate, Value};

/// What the contribution of an operand looks at: indices, and the values that products and extrema need.
pub(super) fn reads(rule: &str) -> Reads {
    let (operands, result) = match rule {
        "extract" => (0b10, false),
        "insert" => (0b100, false),
        "reduce_fmul" => (0b11, false),
        r if r.starts_with("reduce_f") && r != "reduce_fadd" => (0b1, true),
        _ => (0, false),
    };
    Reads { operands, result }
}

/// The tangent of the result. `op` is the instruction, `t` has a tangent per operand.
pub(super) fn jvp<'m>(e: &Emitter<'_, 'm>, rule: &str, op: Value<'m>, t: &[Option<Value<'m>>]) -> Value<'m> {
    let b = e.builder;
    let tangent = |i: usize| t[i].unwrap_or_else(|| e.operands[i].ty().zero());
    match rule {
        "convert" => b.cast(op.opcode(), tangent(0), op.ty()),
        "extract" => b.extract_element(tangent(0), e.operands[1]),
        "insert" => b.insert_element(tangent(0), tangent(1), e.operands[2]),
        "shuffle" => b.shuffle(tangent(0), tangent(1), mask(op, &op.shuffle_mask())),
        "reduce_fadd" => e.flag(b.call(op.callee().expect("an intrinsic"), &[tangent(0), tangent(1)])),
        "reduce_fmul" => {
            let (mut product, mut total) = (e.operands[0], tangent(0));
            for i in 0..e.operands[1].ty().length() {
                let (x, dx) = (lane(e, e.operands[1], i), lane(e, tangent(1), i));
                let kept = e.unless_zero(total, e.flag(b.fmul(total, x)));
                let new = e.unless_zero(dx, e.flag(b.fmul(product, dx)));
                total = e.flag(b.fadd(kept, new));
                product = e.flag(b.fmul(product, x));
            }
            total
        }
        _ => {
            let n = e.operands[0].ty().length();
            let mut total = lane(e, tangent(0), n - 1);
            for i in (0..n - 1).rev() {
                total = b.select(is_extremum(e, i), lane(e, tangent(0), i), total);
            }
            total
        }
    }
}

/// The cotangents of the operands.
pub(super) fn vjp<'m>(e: &Emitter<'_, 'm>, rule: &str, op: Value<'m>, d: Value<'m>) -> Vec<Option<Value<'m>>> {
    let b = e.builder;
    let ty = |i: usize| e.operands[i].ty();
    match rule {
        "convert" => {
            let back = match op.opcode() {
                Opcode::LLVMFPTrunc => Opcode::LLVMFPExt,
                _ => Opcode::LLVMFPTrunc,
            };
            vec![Some(b.cast(back, d, ty(0)))]
        }
        "extract" => vec![Some(b.insert_element(ty(0).zero(), d, e.operands[1])), None],
        "insert" => {
            let rest = b.insert_element(d, ty(1).zero(), e.operands[2]);
            vec![Some(rest), Some(b.extract_element(d, e.operands[2])), None]
        }
        "shuffle" => (0..2).map(|side| shuffle_back(e, op, d, side)).collect(),
        "reduce_fadd" => vec![Some(d), Some(splat(b, ty(1), d))],
        "reduce_fmul" => reduce_fmul_back(e, d),
        _ => {
            let mut back = ty(0).zero();
            let mut open = e.module.context().int(1).all_ones();
            for i in 0..ty(0).length() {
                let here = is_extremum(e, i);
                let x = b.select(b.and(open, here), d, d.ty().zero());
                back = set_lane(e, back, x, i);
                open = b.select(here, open.ty().zero(), open);
            }
            vec![Some(back)]
        }
    }
}

fn index<'m>(e: &Emitter<'_, 'm>, i: u64) -> Value<'m> {
    e.module.context().int(32).int(i)
}

fn lane<'m>(e: &Emitter<'_, 'm>, v: Value<'m>, i: u64) -> Value<'m> {
    e.builder.extract_element(v, index(e, i))
}

fn set_lane<'m>(e: &Emitter<'_, 'm>, v: Value<'m>, x: Value<'m>, i: u64) -> Value<'m> {
    e.builder.insert_element(v, x, index(e, i))
}

/// Is lane `i` the value that was returned? Of several that are, the first counts.
fn is_extremum<'m>(e: &Emitter<'_, 'm>, i: u64) -> Value<'m> {
    let (b, r) = (e.builder, e.result.expect("read by the rule"));
    let x = lane(e, e.operands[0], i);
    let unordered = |v| b.fcmp(RealPredicate::LLVMRealUNO, v, v);
    let equal = b.fcmp(RealPredicate::LLVMRealOEQ, x, r);
    b.or(equal, b.and(unordered(x), unordered(r)))
}

fn mask<'m>(op: Value<'m>, lanes: &[Option<u32>]) -> Value<'m> {
    let i32 = op.ty().context().int(32);
    let lanes: Vec<_> = lanes
        .iter()
        .map(|l| l.map_or(i32.poison(), |l| i32.int(l.into())))
        .collect();
    op.ty().context().const_vector(&lanes)
}

/// Every lane of the operand collects the lanes that it went to.
fn shuffle_back<'m>(e: &Emitter<'_, 'm>, op: Value<'m>, d: Value<'m>, side: u32) -> Option<Value<'m>> {
    let ty = e.operands[side as usize].ty();
    let n = ty.length() as u32;
    let mut to: Vec<Vec<u32>> = vec![vec![]; n as usize];
    for (k, from) in op.shuffle_mask().into_iter().enumerate() {
        let from = from.and_then(|f| f.checked_sub(side * n)).filter(|f| *f < n);
        if let Some(from) = from {
            to[from as usize].push(k as u32);
        }
    }
    let rounds = to.iter().map(Vec::len).max().unwrap_or(0);
    let zero_lane = d.ty().length() as u32;
    (0..rounds)
        .map(|round| {
            let lanes: Vec<_> = to
                .iter()
                .map(|k| Some(k.get(round).copied().unwrap_or(zero_lane)))
                .collect();
            e.builder.shuffle(d, d.ty().zero(), mask(op, &lanes))
        })
        .reduce(|a, b| e.builder.fadd(a, b))
}

/// Of a product, every factor gets the product of the others: before it times after it, without a division.
fn reduce_fmul_back<'m>(e: &Emitter<'_, 'm>, d: Value<'m>) -> Vec<Option<Value<'m>>> {
    let (b, v) = (e.builder, e.operands[1]);
    let n = v.ty().length();
    let factors: Vec<_> = std::iter::once(e.operands[0])
        .chain((0..n).map(|i| lane(e, v, i)))
        .collect();
    let mut after = vec![d.ty().real(1.0)];
    for x in factors[1..].iter().rev() {
        let last = after[after.len() - 1];
        after.push(e.flag(b.fmul(last, *x)));
    }
    after.reverse();
    let mut before: Option<Value<'m>> = None;
    let mut cotangents = vec![];
    for (x, after) in factors.iter().zip(after) {
        let others = before.map_or(after, |p| e.flag(b.fmul(p, after)));
        cotangents.push(e.unless_zero(d, e.flag(b.fmul(d, others))));
        before = Some(before.map_or(*x, |p| e.flag(b.fmul(p, *x))));
    }
    let lanes = cotangents[1..].iter().enumerate();
    let vector = lanes.fold(v.ty().zero(), |vector, (i, x)| set_lane(e, vector, *x, i as u64));
    vec![Some(cotangents[0]), Some(vector)]
}
