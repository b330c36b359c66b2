//! What a derivative rule sees: the op's arguments, its results, their cotangents, and a way to emit ops.

use super::{ShapeOracle, emit};
use crate::ir::{Arg, Graph, Loc, TensorType, Type, Value};
use crate::ops::{Op, RuleError, constant_bool, constant_int, constant_ints};
use std::collections::{BTreeMap, BTreeSet};

/// One application of a rule. A rule reads arguments and cotangents and calls [`Vjp::give`] for each argument that
/// [`Vjp::wants`] one. It need not undo broadcasting or kind promotion: the sweep sums and casts what it is given to
/// the shape and kind of the argument.
pub struct Vjp<'a> {
    pub(super) graph: &'a mut Graph,
    pub(super) oracle: &'a dyn ShapeOracle,
    /// Position of the instruction that is differentiated.
    pub(super) at: usize,
    pub(super) op: Op,
    pub(super) args: Vec<Arg>,
    pub(super) results: Vec<Value>,
    pub(super) bars: Vec<Option<Value>>,
    pub(super) active: &'a dyn Fn(Value) -> bool,
    pub(super) loc: Option<Loc>,
    pub(super) given: BTreeMap<(usize, usize), Vec<Value>>,
    pub(super) given_none: BTreeSet<usize>,
}

impl Vjp<'_> {
    /// The op that is differentiated.
    pub fn op(&self) -> Op {
        self.op
    }

    /// How many arguments the op has.
    pub fn arg_count(&self) -> usize {
        self.args.len()
    }

    /// Argument in position `i`, as it stands.
    pub fn arg(&self, i: usize) -> Arg {
        self.args[i].clone()
    }

    /// Tensor (or scalar value) in position `i`.
    pub fn x(&self, i: usize) -> Value {
        match &self.args[i] {
            Arg::Value(v) => *v,
            other => unreachable!("argument {i} of {} is {other:?}, not a value", self.op),
        }
    }

    /// Optional tensor in position `i`.
    pub fn opt_x(&self, i: usize) -> Option<Value> {
        (self.args[i] != Arg::None).then(|| self.x(i))
    }

    /// Tensors of the list in position `i`.
    pub fn xs(&self, i: usize) -> Vec<Option<Value>> {
        match &self.args[i] {
            Arg::List(vs) => vs.clone(),
            other => unreachable!("argument {i} of {} is {other:?}, not a list", self.op),
        }
    }

    /// Constant integer in position `i`.
    pub fn int(&self, i: usize) -> i64 {
        constant_int(&self.args[i])
    }

    /// Constant integers in position `i`.
    pub fn ints(&self, i: usize) -> Option<Vec<i64>> {
        constant_ints(&self.args[i])
    }

    /// Constant flag in position `i`.
    pub fn flag(&self, i: usize) -> bool {
        constant_bool(&self.args[i])
    }

    /// Result `k` of the op.
    pub fn y(&self, k: usize) -> Value {
        self.results[k]
    }

    /// How many results the op has.
    pub fn result_count(&self) -> usize {
        self.results.len()
    }

    /// Cotangent of result `k`, if it has one.
    pub fn bar(&self, k: usize) -> Option<Value> {
        self.bars[k]
    }

    /// Cotangent of the only result. A rule runs only if some result has a cotangent.
    pub fn y_bar(&self) -> Value {
        self.bars[0].expect("the sweep calls a rule only where a cotangent arrives")
    }

    /// Kind and shape of a tensor.
    pub fn ty(&self, v: Value) -> TensorType {
        self.graph.tensor(v).clone()
    }

    /// Type of any value: tensors and floats alike.
    pub fn value_type(&self, v: Value) -> Type {
        self.graph.ty(v).clone()
    }

    /// Shape of a tensor.
    pub fn shape(&self, v: Value) -> Vec<i64> {
        self.graph.tensor(v).shape.clone()
    }

    /// Is a cotangent wanted for the tensor or float in position `i`?
    pub fn wants(&self, i: usize) -> bool {
        matches!(&self.args[i], Arg::Value(v) if (self.active)(*v))
    }

    /// Is a cotangent wanted for item `k` of the list in position `i`?
    pub fn wants_item(&self, i: usize, k: usize) -> bool {
        matches!(&self.args[i], Arg::List(vs) if vs[k].is_some_and(|v| (self.active)(v)))
    }

    /// Contributes to the cotangent of the argument in position `i`. Ignored where none is wanted.
    pub fn give(&mut self, i: usize, bar: Value) {
        if self.wants(i) {
            self.given.entry((i, 0)).or_default().push(bar);
        }
    }

    /// Contributes to the cotangent of item `k` of the list in position `i`.
    pub fn give_item(&mut self, i: usize, k: usize, bar: Value) {
        if self.wants_item(i, k) {
            self.given.entry((i, k)).or_default().push(bar);
        }
    }

    /// The argument in position `i` gets no cotangent through this op, as LibTorch gives it none (or, for a float, a
    /// zero). Without this, a rule that gives nothing to an argument that wants a cotangent is an error.
    pub fn give_none(&mut self, i: usize) {
        self.given_none.insert(i);
    }

    /// LibTorch differentiates this application, through a tape that the forward leaves: for options of an op that a rule
    /// does not cover.
    pub fn leave_to_libtorch(&mut self) -> Result<(), RuleError> {
        super::sweep::opaque(self)
    }

    /// Emits an op on scalars whose result has the type of `like`.
    pub fn emit_scalar(&mut self, op: &str, args: Vec<Arg>, like: Value) -> Value {
        let ty = self.value_type(like);
        self.emit_typed(op, args, ty)
    }

    /// Emits an op with one result of that type.
    pub fn emit_typed(&mut self, op: &str, args: Vec<Arg>, ty: Type) -> Value {
        self.graph.push(Op::named(op), args, vec![ty], self.loc.clone())[0]
    }

    /// Emits an op with one result.
    pub fn emit(&mut self, op: &str, args: impl Into<Vec<Arg>>) -> Result<Value, RuleError> {
        Ok(self.emit_all(op, args)?[0])
    }

    /// Emits an op and gives all its results.
    pub fn emit_all(&mut self, op: &str, args: impl Into<Vec<Arg>>) -> Result<Vec<Value>, RuleError> {
        let op = Op::named(op);
        emit(self.graph, self.oracle, op, args.into(), self.loc.clone())
            .map_err(|e| self.error(format!("its derivative rule emits `{op}`, which refuses: {e}")))
    }

    /// A refusal of the rule's op.
    pub fn error(&self, why: impl Into<String>) -> RuleError {
        RuleError {
            op: self.op.name,
            why: why.into(),
        }
    }
}
