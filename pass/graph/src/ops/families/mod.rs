//! The families of ops that Cotangent knows itself, one file each.
//!
//! An entry is a line: name, shape rule, derivative rule, samples. The samples are the arguments that the generated
//! tests call the op with (their grammar is in `tests/rules/samples.rs`).

use super::OwnOp;

mod activations;
mod compare;
mod composite;
mod dropout;
mod elementwise;
mod extrema;
mod functions;
mod indexing;
mod linear;
mod losses;
mod matmul;
mod normalisation;
mod norms;
mod pair_losses;
mod pieces;
mod reductions;
mod scalar_float;
mod second_order;
mod writes;

pub use composite::Rewrite;

/// Every entry of every family.
pub fn all() -> impl Iterator<Item = &'static OwnOp> {
    [
        elementwise::OPS,
        functions::OPS,
        activations::OPS,
        extrema::OPS,
        norms::OPS,
        pieces::OPS,
        pair_losses::OPS,
        second_order::OPS,
        linear::OPS,
        matmul::OPS,
        reductions::OPS,
        normalisation::OPS,
        losses::OPS,
        indexing::OPS,
        dropout::OPS,
        compare::OPS,
        scalar_float::OPS,
        writes::OPS,
    ]
    .into_iter()
    .flatten()
}

/// A family's table.
macro_rules! table {
    ($($name:literal: $infer:expr, $rule:expr, $samples:literal;)*) => {
        pub(super) const OPS: &[$crate::ops::OwnOp] = &[$($crate::ops::OwnOp {
            name: $name,
            infer: $infer,
            rule: $rule,
            samples: $samples,
        }),*];
    };
}
pub(crate) use table;

#[cfg(test)]
mod tests {
    use super::super::Op;
    use std::collections::HashSet;

    #[test]
    fn every_entry_names_an_op_of_the_table_and_no_op_has_two() {
        let mut seen = HashSet::new();
        for own in super::all() {
            assert!(Op::find(own.name).is_some(), "the table has no `{}`", own.name);
            assert!(seen.insert(own.name), "`{}` has two entries", own.name);
        }
    }
}
