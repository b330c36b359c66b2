//! Rewriting composite functions into the functions that LibTorch runs for them.
//!
//! LibTorch implements `layer_norm`, `dropout`, `cross_entropy_loss` and others by calling other functions, and
//! differentiates those. `canonicalize` does the same to a closed graph, so that what their derivatives need (the mean
//! and deviation of a normalisation, the mask of a dropout) is a value of the graph. Decompositions stand in the
//! family files beside the table entries.

use crate::differentiate::{ShapeOracle, emit};
use crate::ir::{Arg, Graph, Loc, TensorType, Value};
use crate::ops::formula::{Builder, Emit, Term, build};
use crate::ops::{Op, RuleError, constant_bool, constant_int, constant_ints};
use std::cell::RefCell;

/// One application of a decomposition.
pub struct Rewrite<'a> {
    to: RefCell<Target<'a>>,
    op: Op,
    args: Vec<Arg>,
    error: RefCell<Option<RuleError>>,
}

struct Target<'a> {
    graph: &'a mut Graph,
    oracle: &'a dyn ShapeOracle,
    loc: Option<Loc>,
    op: Op,
}

impl Emit for Target<'_> {
    fn emit_op(&mut self, op: &'static str, args: Vec<Arg>) -> Result<Vec<Value>, RuleError> {
        emit(self.graph, self.oracle, Op::named(op), args, self.loc.clone()).map_err(|e| RuleError {
            op: self.op.name,
            why: format!("it is made of `{op}`, which refuses: {e}"),
        })
    }
    fn type_of(&self, v: Value) -> TensorType {
        self.graph.tensor(v).clone()
    }
}

impl Builder for Rewrite<'_> {
    fn build(&self, op: &'static str, args: Vec<Arg>) -> Vec<Value> {
        build(&mut *self.to.borrow_mut(), &self.error, op, args)
    }
    fn type_of(&self, v: Value) -> TensorType {
        self.to.borrow().type_of(v)
    }
}

impl<'a> Rewrite<'a> {
    /// Appends the decomposition of `op` on `args` to a closed graph and gives what stands for its result.
    pub fn run(
        graph: &'a mut Graph,
        oracle: &'a dyn ShapeOracle,
        (op, args, loc): (Op, Vec<Arg>, Option<Loc>),
        decompose: crate::ops::DecomposeFn,
    ) -> Result<Value, RuleError> {
        let to = RefCell::new(Target { graph, oracle, loc, op });
        let rewrite = Self {
            to,
            op,
            args,
            error: RefCell::default(),
        };
        let result = decompose(&rewrite).v;
        rewrite.error.into_inner().map_or(Ok(result), Err)
    }

    /// Argument in position `i`, as it stands.
    pub fn arg(&self, i: usize) -> Arg {
        self.args[i].clone()
    }

    /// Tensor in position `i`.
    pub fn x(&self, i: usize) -> Term<'_> {
        match &self.args[i] {
            Arg::Value(v) => Term::new(self, *v),
            other => unreachable!("argument {i} of {} is {other:?}, not a value", self.op),
        }
    }

    /// Optional tensor in position `i`.
    pub fn opt_x(&self, i: usize) -> Option<Term<'_>> {
        (self.args[i] != Arg::None).then(|| self.x(i))
    }

    /// Constant integer in position `i`.
    pub fn int(&self, i: usize) -> i64 {
        constant_int(&self.args[i])
    }

    /// Constant integers in position `i`; empty where absent.
    pub fn ints(&self, i: usize) -> Vec<i64> {
        constant_ints(&self.args[i]).unwrap_or_default()
    }

    /// Constant flag in position `i`.
    pub fn flag(&self, i: usize) -> bool {
        constant_bool(&self.args[i])
    }

    /// The constant number in position `i`; `None`, after a refusal, if only run time knows it.
    pub fn number(&self, i: usize) -> Option<f64> {
        match &self.args[i] {
            Arg::Float(x) => Some(*x),
            Arg::Int(x) => Some(*x as f64),
            _ => {
                let name = self.op.params[i].name;
                self.refuse(format!("its `{name}` is not known before the call; make it a constant"));
                None
            }
        }
    }

    /// Refuses the arguments.
    pub fn refuse(&self, why: impl Into<String>) {
        self.error.borrow_mut().get_or_insert(RuleError {
            op: self.op.name,
            why: why.into(),
        });
    }
}
