//! Dropout: the mask is a value of the graph, drawn from LibTorch's generator as LibTorch draws it.

use super::{Rewrite, table};
use crate::ir::Arg;
use crate::ops::Rule::Composite;
use crate::ops::formula::{Term, op};
use crate::ops::shapes::like;

table! {
    "dropout": like, Composite(dropout), "2x3 0.0 true | 2x3 1.0 true | 2x3 0.5 false";
}

fn dropout<'m>(m: &'m Rewrite<'_>) -> Term<'m> {
    let (x, train) = (m.x(0), m.flag(2));
    let Some(p) = m.number(1) else { return x };
    if !(0.0..=1.0).contains(&p) {
        m.refuse(format!("a probability of {p}"));
    }
    if p == 0.0 || !train || x.ty().numel() == 0 {
        return x;
    }
    if p == 1.0 {
        let nothing: [i64; 0] = [];
        return x * x.apply("zeros", vec![nothing.into(), x.kind().into(), Arg::Device(-1)]);
    }
    // `bernoulli_p` reads only the shape and kind of its argument. It fills an empty tensor like it in place, which is
    // what dropout does, so generator and mask are the same.
    x * (op!(bernoulli_p(op!(detach(x)), 1.0 - p)) / (1.0 - p))
}
