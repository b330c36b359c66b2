//! Intrinsics of x86 that are more than arithmetic lane by lane become instructions, which have rules.
//!
//!     hadd(a, b)      in each 128 bits: the even lanes of both, plus the odd lanes
//!     hsub(a, b)      the same, minus
//!     addsub(a, b)    even lanes: a - b; odd lanes: a + b; so fmaddsub(a, b, c) of a * b and c
//!     dp(a, b, i)     in each 128 bits: the sum of those a * b that the high bits of i say, in those lanes that the low say
//!     max.sd(a, b)    the first lane: max of both; the others: those of a. So of min, cmp, rcp, rsqrt, and round of b
//!     cvtpd2ps(a)     lane by lane, the rest zero; cvtsd2ss(a, b) in the first lane of a
//!     insertps(a, b, i)       a lane of b in the place of one of a; those that the low bits of i say are zero
//!     permute(a, i)   lane by lane: the lane of a (or of its 128 bits) that i says
//!     gather(a, p, i, m, s)   lane by lane: load p + i * s where the sign of m is set, else what `a` has

use crate::llvm::{Builder, IntPredicate, Mod, RealPredicate, Type, Value};

/// Rewrites the calls of a module.
pub(super) fn lower(module: Mod<'_>) {
    for f in module.functions() {
        let calls: Vec<_> = f.instructions().filter(|i| i.is_call()).collect();
        for call in calls {
            let name = call.intrinsic().unwrap_or_default();
            let Some(name) = name.strip_prefix("llvm.x86.") else {
                continue;
            };
            let b = Builder::new(module.context());
            b.before(call);
            b.set_location(call.location());
            if let Some(by) = lowered(module, &b, call, name) {
                call.replace_with(by);
                call.erase();
            }
        }
    }
}

/// What stands for a call of the intrinsic of this name (`sse2.max.sd`).
fn lowered<'m>(module: Mod<'m>, b: &Builder<'m>, call: Value<'m>, name: &str) -> Option<Value<'m>> {
    let mut parts = name.split('.').skip(1);
    let (op, form) = (parts.next()?, parts.next().unwrap_or_default());
    let [x, y] = [0, 1].map(|k| call.operand(k.min(call.argument_count() - 1)));
    let first = matches!(form, "sd" | "ss");
    Some(match op {
        "hadd" => horizontal(b, call, true),
        "hsub" => horizontal(b, call, false),
        "addsub" => alternating(b, b.fsub(x, y), b.fadd(x, y)),
        "vfmaddsub" if call.argument_count() == 3 => {
            let z = call.operand(2);
            let fma = module.intrinsic("llvm.fma", &[call.ty()])?;
            b.call(fma, &[x, y, alternating(b, b.fneg(z), z)])
        }
        "dp" | "dppd" | "dpps" => dot(b, call),
        "cmp" if first => with_first(b, x, compared(b, call)),
        "min" | "max" | "rcp" | "rsqrt" | "round" if first => {
            let packed = format!("llvm.x86.{}", name.replace(".sd", ".pd").replace(".ss", ".ps"));
            let all: Vec<_> = (0..call.argument_count()).map(|k| call.operand(k)).collect();
            // Of `round` the first operand has the other lanes alone.
            let own = if op == "round" { &all[1..] } else { &all[..] };
            let whole = b.call(module.intrinsic(&packed, &[])?, own);
            with_first(b, x, lane(b, whole, 0))
        }
        "cvtsd2ss" => with_first(b, x, b.fptrunc(lane(b, y, 0), call.ty().element())),
        "cvtpd2ps" => {
            let narrow = b.fptrunc(x, call.ty().element().vector(2));
            picked(b, narrow, narrow.ty().zero(), 0..4)
        }
        "insertps" => inserted(b, call),
        "vpermilvar" => permuted(b, call, 128 / bits(call.ty()), u64::from(form == "pd")),
        "permps" | "permvar" if call.ty().element().is_float() => permuted(b, call, call.ty().length(), 0),
        "gather" if call.ty().element().is_float() && call.argument_count() == 5 => gather(b, call),
        _ => return None,
    })
}

/// Bits of a lane.
fn bits(ty: Type<'_>) -> u64 {
    if ty.element() == ty.context().double() { 64 } else { 32 }
}

fn lane<'m>(b: &Builder<'m>, vector: Value<'m>, k: u64) -> Value<'m> {
    b.extract_element(vector, vector.ty().context().int(32).int(k))
}

/// The vector with another first lane.
fn with_first<'m>(b: &Builder<'m>, vector: Value<'m>, first: Value<'m>) -> Value<'m> {
    b.insert_element(vector, first, vector.ty().context().int(32).int(0))
}

/// A shuffle of two vectors.
fn picked<'m>(b: &Builder<'m>, a: Value<'m>, c: Value<'m>, lanes: impl Iterator<Item = u64>) -> Value<'m> {
    let context = a.ty().context();
    let mask: Vec<_> = lanes.map(|k| context.int(32).int(k)).collect();
    b.shuffle(a, c, context.const_vector(&mask))
}

/// Even lanes of one, odd lanes of the other.
fn alternating<'m>(b: &Builder<'m>, even: Value<'m>, odd: Value<'m>) -> Value<'m> {
    let n = even.ty().length();
    picked(b, even, odd, (0..n).map(|k| k + k % 2 * n))
}

fn dot<'m>(b: &Builder<'m>, call: Value<'m>) -> Value<'m> {
    let (ty, says) = (call.ty(), call.operand(2).zext_value());
    let within = 128 / bits(ty);
    let says = |bit: u64| says >> bit & 1 == 1;
    let products = b.fmul(call.operand(0), call.operand(1));
    let zero = ty.element().zero();
    (0..ty.length()).step_by(within as usize).fold(ty.zero(), |all, block| {
        let term = |k: u64| {
            if says(4 + k) {
                lane(b, products, block + k)
            } else {
                zero
            }
        };
        // As the machine adds them.
        let pairs: Vec<_> = (0..within).step_by(2).map(|k| b.fadd(term(k), term(k + 1))).collect();
        let sum = pairs.into_iter().reduce(|x, y| b.fadd(x, y)).unwrap_or(zero);
        (0..within).filter(|k| says(*k)).fold(all, |all, k| {
            b.insert_element(all, sum, ty.context().int(32).int(block + k))
        })
    })
}

/// All bits of the first lane, or none.
fn compared<'m>(b: &Builder<'m>, call: Value<'m>) -> Value<'m> {
    use RealPredicate::*;
    let by = [
        LLVMRealOEQ,
        LLVMRealOLT,
        LLVMRealOLE,
        LLVMRealUNO,
        LLVMRealUNE,
        LLVMRealUGE,
        LLVMRealUGT,
        LLVMRealORD,
        LLVMRealUEQ,
        LLVMRealULT,
        LLVMRealULE,
        LLVMRealPredicateFalse,
        LLVMRealONE,
        LLVMRealOGE,
        LLVMRealOGT,
        LLVMRealPredicateTrue,
    ];
    // Sixteen more are the same, and differ in the exceptions that they raise.
    let by = by[call.operand(2).zext_value() as usize % by.len()];
    let is = b.fcmp(by, lane(b, call.operand(0), 0), lane(b, call.operand(1), 0));
    let ty = call.ty();
    b.bitcast(b.sext(is, ty.context().int(bits(ty) as u32)), ty.element())
}

fn inserted<'m>(b: &Builder<'m>, call: Value<'m>) -> Value<'m> {
    let says = call.operand(2).zext_value();
    let (from, to) = (says >> 6 & 3, says >> 4 & 3);
    let all = picked(
        b,
        call.operand(0),
        call.operand(1),
        (0..4).map(|k| if k == to { 4 + from } else { k }),
    );
    picked(b, all, all.ty().zero(), (0..4).map(|k| k + (says >> k & 1) * 4))
}

/// Each lane is one of `among` lanes, of which the bits from `low` on tell.
fn permuted<'m>(b: &Builder<'m>, call: Value<'m>, among: u64, low: u64) -> Value<'m> {
    let (ty, from, by) = (call.ty(), call.operand(0), call.operand(1));
    let word = by.ty().element();
    (0..ty.length()).fold(ty.poison(), |all, k| {
        let within = b.and(b.lshr(lane(b, by, k), word.int(low)), word.int(among - 1));
        let at = b.or(within, word.int(k / among * among));
        b.insert_element(all, b.extract_element(from, at), ty.context().int(32).int(k))
    })
}

fn gather<'m>(b: &Builder<'m>, call: Value<'m>) -> Value<'m> {
    let (ty, context) = (call.ty(), call.ty().context());
    let (element, word, index) = (ty.element(), context.int(64), context.int(32));
    let [other, base, places, mask] = [0, 1, 2, 3].map(|k| call.operand(k));
    let scale = word.int(call.operand(4).zext_value());
    // Lanes that are left out are read from here: so all are plain loads.
    let aside = Builder::new(context);
    if let Some(first) = call.block().parent().entry().and_then(|e| e.first()) {
        aside.before(first);
    }
    let aside = aside.alloca(ty);
    b.store(other, aside);
    let signs = b.bitcast(mask, context.int(bits(ty) as u32).vector(ty.length() as u32));
    (0..ty.length()).fold(ty.poison(), |all, k| {
        let k = index.int(k);
        let place = b.mul(b.sext(b.extract_element(places, k), word), scale);
        let sign = b.extract_element(signs, k);
        let taken = b.icmp(IntPredicate::LLVMIntSLT, sign, sign.ty().zero());
        let at = b.select(taken, b.offset(base, place), b.gep_inbounds(element, aside, &[k]));
        b.insert_element(all, b.load_aligned(element, at, 1), k)
    })
}

fn horizontal<'m>(b: &Builder<'m>, call: Value<'m>, plus: bool) -> Value<'m> {
    let lanes = call.ty().length();
    let within = 128 / bits(call.ty());
    // Of lane `k` of the result: which lane of `a`, or behind these of `b`.
    let pair = |k: u64, odd: u64| {
        let (block, at) = (k / within * within, k % within);
        let (operand, at) = (at / (within / 2), at % (within / 2));
        operand * lanes + block + 2 * at + odd
    };
    let half = |odd: u64| picked(b, call.operand(0), call.operand(1), (0..lanes).map(|k| pair(k, odd)));
    let (even, odd) = (half(0), half(1));
    if plus { b.fadd(even, odd) } else { b.fsub(even, odd) }
}

#[cfg(test)]
mod tests {
    use crate::llvm::{Opcode, OwnedModule};

    #[test]
    fn neighbours_are_added_within_halves() {
        let text = "
            declare <4 x double> @llvm.x86.avx.hadd.pd.256(<4 x double>, <4 x double>)
            declare <4 x float> @llvm.x86.sse3.hsub.ps(<4 x float>, <4 x float>)
            define <4 x double> @f(<4 x double> %a, <4 x double> %b) {
              %r = call <4 x double> @llvm.x86.avx.hadd.pd.256(<4 x double> %a, <4 x double> %b)
              ret <4 x double> %r
            }
            define <4 x float> @g(<4 x float> %a, <4 x float> %b) {
              %r = call <4 x float> @llvm.x86.sse3.hsub.ps(<4 x float> %a, <4 x float> %b)
              ret <4 x float> %r
            }";
        let module = OwnedModule::read(text.as_bytes()).unwrap();
        super::lower(module.get());
        module.get().verify().unwrap();
        let masks = |name| {
            let f = module.get().function(name).unwrap();
            let shuffles = f.instructions().filter(|i| i.is(Opcode::LLVMShuffleVector));
            shuffles
                .map(|i| i.shuffle_mask().into_iter().flatten().collect())
                .collect::<Vec<Vec<u32>>>()
        };
        assert_eq!(masks("f"), [[0, 4, 2, 6], [1, 5, 3, 7]]);
        assert_eq!(masks("g"), [[0, 2, 4, 6], [1, 3, 5, 7]]);
    }
}
