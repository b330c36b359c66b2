//! Cotangent's own ops that are not LibTorch functions: arithmetic on scalars, facts about tensors, host memory.
//!
//! They stand mostly in open graphs; `specialize` computes all of them but the floats that only run time knows.

use super::{Facts, OpDef, Param, ParamKind, Results};

/// Name and number of arguments of each op. The type of the result is told by the result value.
///
/// * Integer arithmetic wraps at the width of the result. `scalar.icmp` and `scalar.fcmp` take LLVM's predicate as a
///   string first, `scalar.cast` LLVM's opcode (`zext`, `sitofp`, …).
/// * `scalar.call` takes the name of a libm function or intrinsic, without the float suffix, then its arguments.
/// * `size`, `dim`, `numel`, `kind`, `device`, `defined`, `requires_grad` read a tensor's metadata.
/// * `item` reads a one-element tensor as a float or integer. That detaches, as in LibTorch, unless `linear` is true: so
///   Cotangent itself emits it for the cotangent of a float.
/// * `host.arg` gives the address of an argument of the function, `host.global` that of a static or thread-local of the
///   program, `host.load` reads memory at pointer plus offset, `host.tensor` is the tensor of a C handle.
/// * `list.len` and `list.get` take apart the result of an op that gives a list.
/// * `rule.call` calls a function with a derivative of its own: symbol of the rule; how each parameter is passed; the
///   tensors, integers and floats among the arguments, in order; which parameters are differentiated for; what the
///   result is made of. It gives a list of tensors and floats (see `specialize`).
/// * `release` says that nothing will read a tensor or list of tensors any more.
/// * `tape.vjp` is the derivative of an opaque op through the tape that the op left: the tape, then the cotangents.
const OPS: &[(&str, &[&str])] = &[
    ("scalar.add", &["a", "b"]),
    ("scalar.sub", &["a", "b"]),
    ("scalar.mul", &["a", "b"]),
    ("scalar.sdiv", &["a", "b"]),
    ("scalar.udiv", &["a", "b"]),
    ("scalar.srem", &["a", "b"]),
    ("scalar.urem", &["a", "b"]),
    ("scalar.and", &["a", "b"]),
    ("scalar.or", &["a", "b"]),
    ("scalar.xor", &["a", "b"]),
    ("scalar.shl", &["a", "b"]),
    ("scalar.lshr", &["a", "b"]),
    ("scalar.ashr", &["a", "b"]),
    ("scalar.fadd", &["a", "b"]),
    ("scalar.fsub", &["a", "b"]),
    ("scalar.fmul", &["a", "b"]),
    ("scalar.fdiv", &["a", "b"]),
    ("scalar.frem", &["a", "b"]),
    ("scalar.fneg", &["a"]),
    ("scalar.icmp", &["predicate", "a", "b"]),
    ("scalar.fcmp", &["predicate", "a", "b"]),
    ("scalar.cast", &["how", "a"]),
    ("scalar.select", &["condition", "a", "b"]),
    ("scalar.call", &["function", "a", "b", "c"]),
    ("size", &["tensor", "dim"]),
    ("dim", &["tensor"]),
    ("numel", &["tensor"]),
    ("kind", &["tensor"]),
    ("device", &["tensor"]),
    ("defined", &["tensor"]),
    ("requires_grad", &["tensor"]),
    ("item", &["tensor", "linear"]),
    ("host.arg", &["index"]),
    ("host.global", &["symbol", "thread_local"]),
    ("host.load", &["pointer", "offset"]),
    ("host.tensor", &["handle"]),
    ("list.len", &["list"]),
    ("list.get", &["list", "index"]),
    (
        "rule.call",
        &["rule", "parameters", "tensors", "integers", "floats", "wrt", "results"],
    ),
    ("release", &["value"]),
    ("tape.vjp", &["tape", "cotangents"]),
];

/// Every op of this file.
pub(super) fn table() -> Vec<OpDef> {
    OPS.iter()
        .map(|(name, params)| OpDef {
            name,
            base: "",
            params: params
                .iter()
                .map(|name| Param {
                    name,
                    kind: ParamKind::Any,
                })
                .collect(),
            results: match *name {
                "tape.vjp" | "rule.call" => Results::List,
                "release" => Results::Count(0),
                _ => Results::Count(1),
            },
            facts: Facts::default(),
            own: None,
        })
        .collect()
}
