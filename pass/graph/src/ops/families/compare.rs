//! Results that cannot vary with their arguments, and constants.

use super::table;
use crate::ir::{Arg, Kind};
use crate::ops::Rule::{Constant, Linear, Unsupported};
use crate::ops::formula::{grads, op, rule};
use crate::ops::shapes::{Inferred, like, one, predicate, scalar};
use crate::ops::{Infer, constant_ints};

const RANDOM: &str = "LibTorch has none either; call it on `detach()` of its argument";

table! {
    "eq": predicate, Constant, "2x3 1.5";
    "ne": predicate, Constant, "2x3 1.5";
    "lt": predicate, Constant, "2x3 1.5";
    "le": predicate, Constant, "2x3 1.5";
    "gt": predicate, Constant, "2x3 1.5";
    "ge": predicate, Constant, "2x3 1.5";
    "eq_tensor": predicate, Constant, "2x3 2x3 | 2x1 3";
    "ne_tensor": predicate, Constant, "2x3 2x3 | 2x1 3";
    "lt_tensor": predicate, Constant, "2x3 2x3 | 2x1 3";
    "le_tensor": predicate, Constant, "2x3 2x3 | 2x1 3";
    "gt_tensor": predicate, Constant, "2x3 2x3 | 2x1 3";
    "ge_tensor": predicate, Constant, "2x3 2x3 | 2x1 3";
    "logical_not": predicate, Constant, "2x3";
    "logical_and": predicate, Constant, "2x3? 2x3?";
    "logical_or": predicate, Constant, "2x3? 2x3?";
    "logical_xor": predicate, Constant, "2x3? 2x3?";
    "isnan": predicate, Constant, "2x3";
    "isinf": predicate, Constant, "2x3";
    "isfinite": predicate, Constant, "2x3";
    "zeros_like": like, Constant, "2x3";
    "ones_like": like, Constant, "2x3";
    "empty_like": like, Constant, "";
    "bernoulli_p": like, Unsupported(RANDOM), "";
    "randint_like": like, Unsupported(RANDOM), "";
    "randint_like_low_dtype": like, Unsupported(RANDOM), "";
    "rand_like": like, Constant, "";
    "randn_like": like, Constant, "";
    "zeros": |cx| filled(cx, 0), Constant, "[2,3] f64 cpu";
    "ones": |cx| filled(cx, 0), Constant, "[2,3] f64 cpu";
    "empty": |cx| filled(cx, 0), Constant, "";
    "full": |cx| filled(cx, 1), Linear(grads!(|m| 1 => m.g())), "[2,3] 1.5 f64 cpu | [2,3] $ f64 cpu";
    "scalar_tensor": |cx| filled(cx, 0), Linear(grads!(|m| 0 => m.g())), "1.5 f64 cpu | $ f64 cpu";
    "full_like": like, Linear(rule!(|m| {
        m.give_none(0);
        m.give(1, m.g());
    })), "2x3 1.5 | 2x3 $";
    "fill": like, Linear(grads!(|m| 0 => op!(zeros_like(m.x(0))), 1 => m.g())), "2x3 1.5 | 2x3 $";
    "item": scalar, Linear(|cx| {
        let (x, g) = (cx.arg(0), cx.y_bar());
        let bar = cx.emit("full_like", [x, g.into()])?;
        cx.give(0, bar);
        Ok(())
    }), ". true | 1x1 true";
}

/// A tensor made of sizes, after `skip` more positions a kind and a device.
fn filled(cx: &Infer<'_>, skip: usize) -> Inferred {
    let (shape, kind) = match &cx.args[0] {
        sizes @ Arg::Ints(_) => (constant_ints(sizes).unwrap_or_default(), cx.kind(1 + skip)),
        _ => (vec![], cx.kind(1)),
    };
    one(kind.unwrap_or(Kind::F32), shape)
}
