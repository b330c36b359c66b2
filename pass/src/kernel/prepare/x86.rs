//! Intrinsics of x86 that are more than arithmetic lane by lane become instructions, which have rules.
//!
//!     hadd(a, b)      in each 128 bits: the even lanes of both, plus the odd lanes
//!     hsub(a, b)      the same, minus
//!     gather(a, p, i, m, s)   lane by lane: load p + i * s where the sign of m is set, else what `a` has

use crate::llvm::{Builder, IntPredicate, Mod, Value};

/// Rewrites the calls of a module.
pub(super) fn lower(module: Mod<'_>) {
    for f in module.functions() {
        let calls: Vec<_> = f.instructions().filter(|i| i.is_call()).collect();
        for call in calls {
            let name = call.intrinsic().unwrap_or_default();
            let is = |sort: &str| name.starts_with("llvm.x86.") && name.contains(sort);
            let b = Builder::new(module.context());
            b.before(call);
            b.set_location(call.location());
            let (plus, minus) = (is(".hadd.p"), is(".hsub.p"));
            let by = if plus || minus {
                horizontal(&b, call, plus)
            } else if is(".gather.") && call.ty().element().is_float() && call.argument_count() == 5 {
                gather(&b, call)
            } else {
                continue;
            };
            call.replace_with(by);
            call.erase();
        }
    }
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
    let bits = if element == context.double() { 64 } else { 32 };
    let signs = b.bitcast(mask, context.int(bits).vector(ty.length() as u32));
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
    let ty = call.ty();
    let (lanes, bits) = (ty.length(), if ty.element() == ty.context().double() { 64 } else { 32 });
    let (within, index) = (128 / bits, ty.context().int(32));
    // Of lane `k` of the result: which lane of `a`, or behind these of `b`.
    let pair = |k: u64, odd: u64| {
        let (block, at) = (k / within * within, k % within);
        let (operand, at) = (at / (within / 2), at % (within / 2));
        index.int(operand * lanes + block + 2 * at + odd)
    };
    let picked = |odd: u64| {
        let mask: Vec<_> = (0..lanes).map(|k| pair(k, odd)).collect();
        b.shuffle(call.operand(0), call.operand(1), ty.context().const_vector(&mask))
    };
    let (even, odd) = (picked(0), picked(1));
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
