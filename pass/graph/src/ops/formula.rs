//! Derivative rules as formulas: tensors with operators that emit instructions.
//!
//! A [`Term`] is a value of the graph under construction. `-t(g) * x` emits three instructions. Emission can fail (an
//! op has no shape rule); the first failure is kept and reported when the rule ends, so that formulas stay formulas.

use super::{Op, RuleError};
use crate::differentiate::Vjp;
use crate::ir::{Arg, Kind, TensorType, Value};
use std::cell::RefCell;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// Where instructions can be appended.
pub trait Emit {
    /// Appends an op and gives its results.
    fn emit_op(&mut self, op: &'static str, args: Vec<Arg>) -> Result<Vec<Value>, RuleError>;
    /// Kind and shape of a tensor.
    fn type_of(&self, v: Value) -> TensorType;
}

impl Emit for Vjp<'_> {
    fn emit_op(&mut self, op: &'static str, args: Vec<Arg>) -> Result<Vec<Value>, RuleError> {
        self.emit_all(op, args)
    }
    fn type_of(&self, v: Value) -> TensorType {
        self.ty(v)
    }
}

/// What a [`Term`] needs of the formula that it belongs to.
pub trait Builder {
    /// Appends an op; after a failure, does nothing.
    fn build(&self, op: &'static str, args: Vec<Arg>) -> Vec<Value>;
    /// Kind and shape.
    fn type_of(&self, v: Value) -> TensorType;
}

/// A tensor in a formula.
#[derive(Clone, Copy)]
pub struct Term<'m> {
    m: &'m dyn Builder,
    /// The value it stands for.
    pub v: Value,
}

/// Calls an op by name on terms and constants: `op!(threshold_backward(g, y, 0.0))`.
macro_rules! op {
    ($name:ident ( $first:expr $(, $rest:expr)* $(,)? )) => {
        $crate::ops::formula::Term::call($first, stringify!($name), vec![$($crate::ir::Arg::from($rest)),*])
    };
}
pub(crate) use op;

impl<'m> Term<'m> {
    /// The term of a value.
    pub fn new(m: &'m dyn Builder, v: Value) -> Self {
        Self { m, v }
    }

    /// Applies `op` to the term and further arguments; the only result.
    pub fn call(self, op: &'static str, rest: Vec<Arg>) -> Self {
        self.call_all(op, rest)[0]
    }

    /// Applies `op` to the term and further arguments; all results.
    pub fn call_all(self, op: &'static str, rest: Vec<Arg>) -> Vec<Self> {
        let mut args = vec![Arg::Value(self.v)];
        args.extend(rest);
        self.m
            .build(op, args)
            .into_iter()
            .map(|v| Self { m: self.m, v })
            .collect()
    }

    /// Applies an op whose first argument is not a tensor.
    pub fn apply(self, op: &'static str, args: Vec<Arg>) -> Self {
        Self {
            m: self.m,
            v: self.m.build(op, args)[0],
        }
    }

    /// Kind and shape.
    pub fn ty(self) -> TensorType {
        self.m.type_of(self.v)
    }

    /// Extents.
    pub fn shape(self) -> Vec<i64> {
        self.ty().shape
    }

    /// Element type.
    pub fn kind(self) -> Kind {
        self.ty().kind
    }

    /// Number of dimensions.
    pub fn rank(self) -> usize {
        self.ty().rank()
    }

    /// The tensor with that shape: itself if it has it.
    pub fn reshaped(self, shape: &[i64]) -> Self {
        if self.shape() == shape {
            self
        } else {
            op!(reshape(self, shape))
        }
    }

    /// The tensor broadcast to that shape: itself if it has it.
    pub fn expanded(self, shape: &[i64]) -> Self {
        if self.shape() == shape {
            self
        } else {
            op!(expand(self, shape, false))
        }
    }

    /// The tensor in that kind: itself if it has it.
    pub fn cast(self, kind: Kind) -> Self {
        if self.kind() == kind {
            self
        } else {
            op!(totype(self, kind))
        }
    }

    /// Sum over those dimensions.
    pub fn sum_over(self, dims: &[i64], keep: bool) -> Self {
        if dims.is_empty() {
            self
        } else {
            op!(sum_dim_intlist(self, dims, keep, Arg::None))
        }
    }

    /// Power with a constant exponent.
    pub fn pow(self, exponent: f64) -> Self {
        op!(pow_tensor_scalar(self, exponent))
    }
}

impl From<Term<'_>> for Arg {
    fn from(t: Term<'_>) -> Self {
        Self::Value(t.v)
    }
}
impl From<Option<Term<'_>>> for Arg {
    fn from(t: Option<Term<'_>>) -> Self {
        t.map_or(Self::None, Self::from)
    }
}
impl From<i64> for Arg {
    fn from(i: i64) -> Self {
        Self::Int(i)
    }
}
impl From<f64> for Arg {
    fn from(x: f64) -> Self {
        Self::Float(x)
    }
}
impl From<bool> for Arg {
    fn from(b: bool) -> Self {
        Self::Bool(b)
    }
}
impl From<Kind> for Arg {
    fn from(k: Kind) -> Self {
        Self::Kind(k)
    }
}
impl From<&[i64]> for Arg {
    fn from(v: &[i64]) -> Self {
        Self::ints(v)
    }
}
impl From<&Vec<i64>> for Arg {
    fn from(v: &Vec<i64>) -> Self {
        Self::ints(v)
    }
}
impl<const N: usize> From<[i64; N]> for Arg {
    fn from(v: [i64; N]) -> Self {
        Self::ints(&v)
    }
}
impl From<Vec<Term<'_>>> for Arg {
    fn from(v: Vec<Term<'_>>) -> Self {
        Self::List(v.into_iter().map(|t| Some(t.v)).collect())
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $tensor:ident $scalar:ident;)*) => {$(
        impl<'m> $trait for Term<'m> {
            type Output = Self;
            fn $method(self, other: Self) -> Self {
                op!($tensor(self, other))
            }
        }
        impl<'m> $trait<f64> for Term<'m> {
            type Output = Self;
            fn $method(self, other: f64) -> Self {
                op!($scalar(self, other))
            }
        }
        impl<'m> $trait<Arg> for Term<'m> {
            type Output = Self;
            fn $method(self, other: Arg) -> Self {
                op!($scalar(self, other))
            }
        }
    )*};
}
operators! {
    Add add add add_scalar;
    Sub sub sub sub_scalar;
    Mul mul mul mul_scalar;
    Div div div div_scalar;
}

impl Neg for Term<'_> {
    type Output = Self;
    fn neg(self) -> Self {
        op!(neg(self))
    }
}

/// A formula under construction for a derivative rule.
pub struct Formula<'a, 'b> {
    cx: RefCell<&'a mut Vjp<'b>>,
    error: RefCell<Option<RuleError>>,
}

impl Builder for Formula<'_, '_> {
    fn build(&self, op: &'static str, args: Vec<Arg>) -> Vec<Value> {
        build(&mut **self.cx.borrow_mut(), &self.error, op, args)
    }
    fn type_of(&self, v: Value) -> TensorType {
        self.cx.borrow().ty(v)
    }
}

/// Emits unless something failed before. After a failure the formula runs on with values that stand for nothing; what
/// it emitted is thrown away with the graph.
pub(crate) fn build(
    to: &mut dyn Emit,
    error: &RefCell<Option<RuleError>>,
    op: &'static str,
    args: Vec<Arg>,
) -> Vec<Value> {
    let results = match Op::named(op).results {
        super::Results::Count(n) => n,
        super::Results::List => 1,
    };
    let mut stand_in = None;
    args.iter()
        .for_each(|a| a.for_each_value(&mut |v| stand_in = stand_in.or(Some(v))));
    if error.borrow().is_none() {
        match to.emit_op(op, args) {
            Ok(values) => return values,
            Err(e) => *error.borrow_mut() = Some(e),
        }
    }
    vec![stand_in.unwrap_or(Value(0)); results]
}

impl<'a, 'b> Formula<'a, 'b> {
    /// Runs a rule written as formulas.
    pub fn run(cx: &'a mut Vjp<'b>, rule: impl FnOnce(&Self)) -> Result<(), RuleError> {
        let formula = Self {
            cx: RefCell::new(cx),
            error: RefCell::default(),
        };
        rule(&formula);
        formula.error.into_inner().map_or(Ok(()), Err)
    }

    /// The op that is differentiated.
    pub fn op(&self) -> Op {
        self.cx.borrow().op()
    }

    fn term(&self, v: Value) -> Term<'_> {
        Term::new(self, v)
    }

    /// How many results the op has.
    pub fn result_count(&self) -> usize {
        self.cx.borrow().result_count()
    }

    /// Number of elements that the first two arguments broadcast to.
    pub fn broadcast_count(&self) -> i64 {
        let shapes = [self.x(0).shape(), self.x(1).shape()];
        super::shapes::broadcast(&shapes[0], &shapes[1]).map_or(0, |s| s.iter().product())
    }

    /// Cotangent of the only result.
    pub fn g(&self) -> Term<'_> {
        self.term(self.cx.borrow().y_bar())
    }

    /// Cotangent of result `k`, if it has one.
    pub fn bar(&self, k: usize) -> Option<Term<'_>> {
        let bar = self.cx.borrow().bar(k);
        bar.map(|v| self.term(v))
    }

    /// Tensor in position `i`.
    pub fn x(&self, i: usize) -> Term<'_> {
        self.term(self.cx.borrow().x(i))
    }

    /// Optional tensor in position `i`.
    pub fn opt_x(&self, i: usize) -> Option<Term<'_>> {
        let x = self.cx.borrow().opt_x(i);
        x.map(|v| self.term(v))
    }

    /// Tensors of the list in position `i`.
    pub fn xs(&self, i: usize) -> Vec<Term<'_>> {
        let xs = self.cx.borrow().xs(i);
        xs.into_iter().flatten().map(|v| self.term(v)).collect()
    }

    /// The only result.
    pub fn y(&self) -> Term<'_> {
        self.y_of(0)
    }

    /// Result `k`.
    pub fn y_of(&self, k: usize) -> Term<'_> {
        self.term(self.cx.borrow().y(k))
    }

    /// Argument in position `i`, as it stands.
    pub fn arg(&self, i: usize) -> Arg {
        self.cx.borrow().arg(i)
    }

    /// Constant integer in position `i`.
    pub fn int(&self, i: usize) -> i64 {
        self.cx.borrow().int(i)
    }

    /// Constant integers in position `i`; empty where absent.
    pub fn ints(&self, i: usize) -> Vec<i64> {
        self.cx.borrow().ints(i).unwrap_or_default()
    }

    /// Constant flag in position `i`.
    pub fn flag(&self, i: usize) -> bool {
        self.cx.borrow().flag(i)
    }

    /// Is a cotangent wanted for the argument in position `i`?
    pub fn wants(&self, i: usize) -> bool {
        self.cx.borrow().wants(i)
    }

    /// Is a cotangent wanted for item `k` of the list in position `i`?
    pub fn wants_item(&self, i: usize, k: usize) -> bool {
        self.cx.borrow().wants_item(i, k)
    }

    /// Contributes to the cotangent of the argument in position `i`.
    pub fn give(&self, i: usize, bar: Term<'_>) {
        self.cx.borrow_mut().give(i, bar.v);
    }

    /// Contributes to the cotangent of item `k` of the list in position `i`.
    pub fn give_item(&self, i: usize, k: usize, bar: Term<'_>) {
        self.cx.borrow_mut().give_item(i, k, bar.v);
    }

    /// The argument in position `i` gets no cotangent through this op, as LibTorch gives it none.
    pub fn give_none(&self, i: usize) {
        self.cx.borrow_mut().give_none(i);
    }

    /// The float in position `i`, less one, as a number of the program.
    pub fn minus_one(&self, i: usize) -> Arg {
        let mut cx = self.cx.borrow_mut();
        let number = cx.x(i);
        Arg::Value(cx.emit_scalar("scalar.fsub", vec![number.into(), Arg::Float(1.0)], number))
    }

    /// LibTorch differentiates this application; see [`Vjp::leave_to_libtorch`].
    pub fn leave_to_libtorch(&self) {
        if let Err(e) = self.cx.borrow_mut().leave_to_libtorch() {
            self.error.borrow_mut().get_or_insert(e);
        }
    }

    /// The constant number in position `i`; `None` if only run time knows it.
    pub fn number(&self, i: usize) -> Option<f64> {
        match self.arg(i) {
            Arg::Float(x) => Some(x),
            Arg::Int(x) => Some(x as f64),
            Arg::Bool(b) => Some(f64::from(u8::from(b))),
            _ => None,
        }
    }

    /// Refuses the arguments.
    pub fn refuse(&self, why: impl Into<String>) {
        let error = self.cx.borrow().error(why);
        self.error.borrow_mut().get_or_insert(error);
    }
}

/// A rule as a table of formulas, one per argument: `grads!(|m| 0 => m.g() * m.x(1), 1 => m.g() * m.x(0))`. A formula
/// is emitted only if its argument wants a cotangent.
macro_rules! grads {
    (|$m:ident| $($i:literal => $formula:expr),* $(,)?) => {
        |cx: &mut $crate::differentiate::Vjp<'_>| $crate::ops::formula::Formula::run(cx, |$m| {
            $(if $m.wants($i) {
                $m.give($i, $formula);
            })*
        })
    };
}
pub(crate) use grads;

/// A rule as a block that gives by itself.
macro_rules! rule {
    (|$m:ident| $body:expr) => {
        |cx: &mut $crate::differentiate::Vjp<'_>| $crate::ops::formula::Formula::run(cx, |$m| $body)
    };
}
pub(crate) use rule;
