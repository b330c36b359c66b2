//! The op table: what can stand in a graph, what it takes and gives, and how it is differentiated.
//!
//! Ops are named like LibTorch's C functions without the `atg_` prefix (`add_scalar`, `sum_dim_intlist`). The facts
//! about all of them (parameters, results, which argument is written to, which results are views) come from one
//! generated table, `atg.tsv`. An op of which Cotangent knows more has an [`OwnOp`] entry in a family file
//! ([`elementwise`], [`linear`], …): its shape rule and its derivative rule. All others are *opaque*: LibTorch itself
//! gives their derivative.

mod atg;
mod extra;
pub mod formula;
pub mod kinds;
mod scalar;
pub mod shapes;

use crate::differentiate::Vjp;
use crate::ir::{Arg, TensorType, Value};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::LazyLock;

pub mod families;

/// What an op takes in one position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParamKind {
    /// A tensor.
    Tensor,
    /// A tensor or nothing.
    OptTensor,
    /// A list of tensors.
    Tensors,
    /// A list of tensors, each of which may be absent.
    OptTensors,
    /// A number, integer or float: the distinction is kept.
    Scalar,
    /// A 64-bit integer.
    Int,
    /// A 64-bit integer or nothing.
    OptInt,
    /// A list of 64-bit integers.
    Ints,
    /// A list of 64-bit integers or nothing.
    OptInts,
    /// A double.
    Float,
    /// A double or nothing.
    OptFloat,
    /// A list of doubles.
    Floats,
    /// A list of doubles or nothing.
    OptFloats,
    /// A flag.
    Bool,
    /// An element type.
    Kind,
    /// An element type or nothing.
    OptKind,
    /// A device.
    Device,
    /// A string.
    Str,
    /// Anything: ops of Cotangent's own that are not LibTorch functions.
    Any,
}

/// A parameter of an op.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// LibTorch's name for it.
    pub name: &'static str,
    /// What it takes.
    pub kind: ParamKind,
}

/// How many values an op gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Results {
    /// So many.
    Count(usize),
    /// A list of tensors: one list value in open graphs, as many tensors as there are in closed ones.
    List,
}

/// What is known of an op's effects.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Facts {
    /// Positions of the tensors that it writes to.
    pub mutates: Vec<usize>,
    /// Results may share storage with the first tensor argument.
    pub view: bool,
    /// Draws from LibTorch's generator.
    pub random: bool,
    /// The shape of the result depends on values, not only on shapes.
    pub dynamic_shape: bool,
    /// Works element by element.
    pub pointwise: bool,
}

/// An op of the table. Use it through [`Op`].
#[derive(Debug)]
pub struct OpDef {
    /// Name, unique.
    pub name: &'static str,
    /// LibTorch's function without the overload.
    pub base: &'static str,
    /// Parameters, in order.
    pub params: Vec<Param>,
    /// Results.
    pub results: Results,
    /// Effects.
    pub facts: Facts,
    /// Cotangent's own entry, if it has one.
    pub own: Option<&'static OwnOp>,
}

impl OpDef {
    /// Position of the parameter of that name.
    pub fn param(&self, name: &str) -> Option<usize> {
        self.params.iter().position(|p| p.name == name)
    }

    /// Is it a LibTorch function (and not one of Cotangent's own scalar and host ops)?
    pub fn is_libtorch(&self) -> bool {
        !self.base.is_empty()
    }
}

/// Why a shape rule refuses its arguments. LibTorch's own message is what users see: a graph whose shapes do not fit
/// is handed back to the original function.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct ShapeError(pub String);

/// Why an op cannot be differentiated.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no derivative for `{op}`: {why}")]
pub struct RuleError {
    /// The op.
    pub op: &'static str,
    /// What is missing and what to do.
    pub why: String,
}

/// Shape rule: result types from argument types.
pub type InferFn = fn(&Infer<'_>) -> Result<Vec<TensorType>, ShapeError>;

/// Derivative rule: emits the cotangents of the arguments that need one.
pub type VjpFn = fn(&mut Vjp<'_>) -> Result<(), RuleError>;

/// Rewrites a composite op into what LibTorch runs for it.
pub type DecomposeFn = for<'m> fn(&'m families::Rewrite<'_>) -> formula::Term<'m>;

/// How an op is differentiated. Each entry of the table has exactly one.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    /// Element by element: one partial per tensor argument, times the cotangent.
    Elementwise(VjpFn),
    /// Linear in its tensor arguments: the rule is the transpose.
    Linear(VjpFn),
    /// Linear in each of two arguments: two transposes.
    Bilinear(VjpFn),
    /// Anything else.
    Custom(VjpFn),
    /// The derivative exists and is zero everywhere (`floor`, `sign`).
    Zero,
    /// The result cannot vary with the argument (`detach`, comparisons): no cotangent at all.
    Constant,
    /// Made of other ops, into which `canonicalize` rewrites it before a derivative is taken.
    Composite(DecomposeFn),
    /// No derivative is known; the text says what to do instead.
    Unsupported(&'static str),
}

/// What Cotangent itself knows of an op.
#[derive(Debug)]
pub struct OwnOp {
    /// Name in the table.
    pub name: &'static str,
    /// Shape rule.
    pub infer: InferFn,
    /// Derivative rule.
    pub rule: Rule,
    /// Arguments that the generated tests call it with.
    pub samples: &'static str,
}

/// A handle to an op of the table: `Copy`, compared by name.
#[derive(Clone, Copy)]
pub struct Op(&'static OpDef);

impl Op {
    /// The op of that name.
    pub fn find(name: &str) -> Option<Self> {
        TABLE.get(name).copied()
    }

    /// The op of that name, which the caller knows to exist.
    ///
    /// # Panics
    /// If the table has no such op: a misspelt name in Cotangent's own code, found by that rule's generated test.
    pub fn named(name: &str) -> Self {
        Self::find(name).unwrap_or_else(|| panic!("no op is called `{name}`"))
    }

    /// All ops, by name.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.values().copied()
    }
}

static TABLE: LazyLock<HashMap<&'static str, Op>> = LazyLock::new(|| {
    let own: HashMap<&str, &'static OwnOp> = families::all().map(|o| (o.name, o)).collect();
    atg::table()
        .into_iter()
        .chain(extra::table())
        .chain(scalar::table())
        .map(|mut def| {
            def.own = own.get(def.name).copied();
            let def: &'static OpDef = Box::leak(Box::new(def));
            (def.name, Op(def))
        })
        .collect()
});

impl Deref for Op {
    type Target = OpDef;
    fn deref(&self) -> &OpDef {
        self.0
    }
}

impl PartialEq for Op {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}
impl Eq for Op {}

impl std::hash::Hash for Op {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
    }
}

impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

impl Serialize for Op {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(self.0.name)
    }
}

impl<'de> Deserialize<'de> for Op {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let name = String::deserialize(d)?;
        Self::find(&name).ok_or_else(|| serde::de::Error::custom(format!("unknown op `{name}`")))
    }
}

/// Arguments of a shape rule.
pub struct Infer<'a> {
    /// The op.
    pub op: Op,
    /// Its arguments; every integer is a constant.
    pub args: &'a [Arg],
    /// Types of the values among them.
    pub types: &'a dyn Fn(Value) -> TensorType,
}

impl Infer<'_> {
    /// Type of the tensor in position `i`.
    pub fn tensor(&self, i: usize) -> TensorType {
        match &self.args[i] {
            Arg::Value(v) => (self.types)(*v),
            other => unreachable!("argument {i} of {} is {other:?}, not a tensor", self.op),
        }
    }

    /// Type of the optional tensor in position `i`.
    pub fn opt_tensor(&self, i: usize) -> Option<TensorType> {
        match &self.args[i] {
            Arg::None => None,
            _ => Some(self.tensor(i)),
        }
    }

    /// Types of the tensor list in position `i`.
    pub fn tensors(&self, i: usize) -> Vec<TensorType> {
        match &self.args[i] {
            Arg::List(vs) => vs.iter().flatten().map(|v| (self.types)(*v)).collect(),
            other => unreachable!("argument {i} of {} is {other:?}, not a list", self.op),
        }
    }

    /// The integer in position `i`.
    pub fn int(&self, i: usize) -> i64 {
        constant_int(&self.args[i])
    }

    /// The optional integer in position `i`.
    pub fn opt_int(&self, i: usize) -> Option<i64> {
        (self.args[i] != Arg::None).then(|| self.int(i))
    }

    /// The integers in position `i`; `None` where an optional list is absent.
    pub fn ints(&self, i: usize) -> Option<Vec<i64>> {
        constant_ints(&self.args[i])
    }

    /// The flag in position `i`.
    pub fn flag(&self, i: usize) -> bool {
        constant_bool(&self.args[i])
    }
}

/// The constant integer (or flag) that an argument of a closed graph is.
pub fn constant_int(arg: &Arg) -> i64 {
    match arg {
        Arg::Int(i) => *i,
        Arg::Bool(b) => i64::from(*b),
        other => unreachable!("{other:?} is not an integer of a closed graph"),
    }
}

/// The constant integers that an argument of a closed graph holds; `None` if it is absent.
pub fn constant_ints(arg: &Arg) -> Option<Vec<i64>> {
    match arg {
        Arg::None => None,
        Arg::Ints(items) => Some(items.iter().map(constant_int).collect()),
        other => unreachable!("{other:?} is not a list of integers of a closed graph"),
    }
}

/// The constant flag that an argument of a closed graph is.
pub fn constant_bool(arg: &Arg) -> bool {
    constant_int(arg) != 0
}
