//! Running a graph, and one op.

use super::args::{Args, Kernel};
use super::{
    Tensor, activations, contraction, convolution, create, elementwise, facts, images, indexing, losses, matmul,
    normalisation, ordering, padding, pieces, reductions, scalars, shape, tensor,
};
use crate::ir::{Arg, Graph, Inst, Kind, Type};
use crate::ops::Op;
use std::collections::HashMap;
use std::sync::LazyLock;

/// A value while a graph runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A tensor.
    Tensor(Tensor),
    /// A float of any width.
    Float(f64),
    /// An integer of any width, flags included.
    Int(i64),
    /// The undefined tensor.
    Undefined,
}

impl From<Tensor> for Value {
    fn from(t: Tensor) -> Self {
        Self::Tensor(t)
    }
}

/// An argument of an op with the values filled in.
#[derive(Clone, Debug, PartialEq)]
pub enum EvalArg {
    /// Absent.
    None,
    /// A tensor.
    Tensor(Tensor),
    /// A list of tensors, some of which may be absent.
    List(Vec<Option<Tensor>>),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A flag.
    Bool(bool),
    /// Integers.
    Ints(Vec<i64>),
    /// Floats.
    Floats(Vec<f64>),
    /// An element type.
    Kind(Kind),
    /// A device; the interpreter has one.
    Device(i32),
    /// A string.
    Str(String),
}

/// Why a graph does not run.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum InterpError {
    /// The interpreter does not have this op (or not with these options).
    #[error("the reference interpreter does not have `{0}`")]
    NotInterpreted(String),
    /// The arguments are wrong: LibTorch would raise an error as well.
    #[error("{0}")]
    Invalid(String),
}

impl InterpError {
    pub(super) fn invalid(why: impl Into<String>) -> Self {
        Self::Invalid(why.into())
    }
}

static KERNELS: LazyLock<HashMap<&'static str, Kernel>> =
    LazyLock::new(|| TABLES.into_iter().flatten().copied().collect());

const TABLES: [&[(&str, Kernel)]; 16] = [
    activations::OPS,
    contraction::OPS,
    convolution::OPS,
    create::OPS,
    elementwise::OPS,
    facts::OPS,
    images::OPS,
    indexing::OPS,
    losses::OPS,
    matmul::OPS,
    normalisation::OPS,
    ordering::OPS,
    padding::OPS,
    pieces::OPS,
    reductions::OPS,
    shape::OPS,
];

/// Does the interpreter have this op?
pub fn supports(op: Op) -> bool {
    kernel(op).is_some() || is_scalar(op)
}

/// Scalar arithmetic goes by the types of a graph and is not computed by [`eval_op`].
fn is_scalar(op: Op) -> bool {
    op.name.starts_with("scalar.")
}

/// The kernel of an op; that of the functional twin for an op that writes to its first argument.
fn kernel(op: Op) -> Option<(Kernel, bool)> {
    if let Some(k) = KERNELS.get(op.name) {
        return Some((*k, false));
    }
    let twin = op.name.strip_suffix('_').filter(|_| op.facts.mutates == [0])?;
    KERNELS.get(twin).map(|k| (*k, true))
}

/// Computes one op.
///
/// # Errors
/// If the interpreter lacks the op or the arguments do not fit it.
pub fn eval_op(op: Op, args: &[EvalArg]) -> Result<Vec<Value>, InterpError> {
    let (kernel, in_place) = kernel(op).ok_or_else(|| InterpError::NotInterpreted(op.name.to_string()))?;
    let args = Args { op, args };
    let results = match kernel {
        Kernel::One(f) => vec![Value::Tensor(f(&args)?)],
        Kernel::Many(f) => f(&args)?,
    };
    if !in_place {
        return Ok(results);
    }
    let target = args.tensor(0)?;
    match results.as_slice() {
        // An in-place view op changes the shape, not the elements.
        [Value::Tensor(t)] if t.shape() == target.shape() || is_view_twin(op) => {
            if t.kind().is_float() && !target.kind().is_float() {
                return args.invalid(format!(
                    "a {:?} result does not fit in place of {:?}",
                    t.kind(),
                    target.kind()
                ));
            }
            Ok(vec![Value::Tensor(t.cast(target.kind()))])
        }
        _ => args.invalid("the result does not have the shape of the tensor it is written to"),
    }
}

fn is_view_twin(op: Op) -> bool {
    op.name
        .strip_suffix('_')
        .and_then(Op::find)
        .is_some_and(|twin| twin.facts.view)
}

/// Runs a closed graph; gives its outputs in order.
///
/// Every result is checked against the type that the graph states for it, so that a wrong shape rule shows here.
///
/// # Errors
/// If the inputs do not fit the graph, an op is not interpreted, or a result contradicts its type.
pub fn run(graph: &Graph, inputs: &[Value]) -> Result<Vec<Value>, InterpError> {
    if inputs.len() != graph.inputs.len() {
        return Err(InterpError::invalid(format!(
            "{} takes {} inputs, {} were given",
            graph.name,
            graph.inputs.len(),
            inputs.len()
        )));
    }
    let mut values: Vec<Option<Value>> = vec![None; graph.value_count()];
    for (input, given) in graph.inputs.iter().zip(inputs) {
        values[input.value.index()] = Some(conform(given.clone(), graph.ty(input.value), &input.name)?);
    }
    for inst in &graph.insts {
        if is_scalar(inst.op) {
            let result = scalars::eval(graph, inst, &values)?;
            define(graph, inst, vec![result], &mut values)?;
            continue;
        }
        let args = inst
            .args
            .iter()
            .map(|a| fill(a, &|v| values[v.index()].clone().ok_or_else(|| undefined(v))))
            .collect::<Result<Vec<_>, _>>()?;
        let results = eval_op(inst.op, &args)?;
        define(graph, inst, results, &mut values)?;
    }
    graph
        .outputs
        .iter()
        .map(|v| values[v.index()].clone().ok_or_else(|| undefined(*v)))
        .collect()
}

fn undefined(v: crate::ir::Value) -> InterpError {
    InterpError::invalid(format!("{v} is used before it is defined"))
}

fn define(graph: &Graph, inst: &Inst, results: Vec<Value>, values: &mut [Option<Value>]) -> Result<(), InterpError> {
    if results.len() != inst.results.len() {
        return Err(InterpError::invalid(format!(
            "`{}` gives {} results, the graph has {}",
            inst.op,
            results.len(),
            inst.results.len()
        )));
    }
    for (v, result) in inst.results.iter().zip(results) {
        let result = conform(result, graph.ty(*v), inst.op.name)?;
        values[v.index()] = Some(result);
    }
    Ok(())
}

/// The value as the type has it: scalars get their width, tensors must agree.
fn conform(value: Value, ty: &Type, what: &str) -> Result<Value, InterpError> {
    match (value, ty) {
        (Value::Tensor(t), Type::Tensor(Some(want))) if t.ty() != *want => Err(InterpError::invalid(format!(
            "`{what}` gives {:?} {:?} where the graph says {:?} {:?}",
            t.kind(),
            t.shape(),
            want.kind,
            want.shape
        ))),
        (v @ (Value::Tensor(_) | Value::Undefined), Type::Tensor(_)) => Ok(v),
        (Value::Float(x), Type::Float(32)) => Ok(Value::Float(tensor::round(Kind::F32, x))),
        (Value::Float(x), Type::Float(_)) => Ok(Value::Float(x)),
        (Value::Int(i), Type::Int(width)) => Ok(Value::Int(narrow(i, *width))),
        (v, ty) => Err(InterpError::invalid(format!(
            "`{what}` gives {v:?} where the graph says {ty:?}"
        ))),
    }
}

/// Sign-extends the low `width` bits; a flag is 0 or 1.
fn narrow(i: i64, width: u8) -> i64 {
    match width {
        1 => i & 1,
        w if w < 64 => (i << (64 - w)) >> (64 - w),
        _ => i,
    }
}

/// The argument with its values filled in.
pub(super) fn fill(
    arg: &Arg,
    value: &dyn Fn(crate::ir::Value) -> Result<Value, InterpError>,
) -> Result<EvalArg, InterpError> {
    let get = |v: &crate::ir::Value| value(*v);
    Ok(match arg {
        Arg::None => EvalArg::None,
        Arg::Value(v) => match get(v)? {
            Value::Tensor(t) => EvalArg::Tensor(t),
            Value::Float(x) => EvalArg::Float(x),
            Value::Int(i) => EvalArg::Int(i),
            Value::Undefined => EvalArg::None,
        },
        Arg::List(vs) => EvalArg::List(
            vs.iter()
                .map(|v| {
                    v.as_ref().map_or(Ok(None), |v| match get(v)? {
                        Value::Tensor(t) => Ok(Some(t)),
                        Value::Undefined => Ok(None),
                        other => Err(InterpError::invalid(format!("{other:?} stands in a list of tensors"))),
                    })
                })
                .collect::<Result<_, _>>()?,
        ),
        Arg::Int(i) => EvalArg::Int(*i),
        Arg::Float(x) => EvalArg::Float(*x),
        Arg::Bool(b) => EvalArg::Bool(*b),
        Arg::Ints(items) => EvalArg::Ints(
            items
                .iter()
                .map(|a| match fill(a, value)? {
                    EvalArg::Int(i) => Ok(i),
                    EvalArg::Bool(b) => Ok(i64::from(b)),
                    other => Err(InterpError::invalid(format!("{other:?} stands in a list of integers"))),
                })
                .collect::<Result<_, _>>()?,
        ),
        Arg::Floats(items) => EvalArg::Floats(
            items
                .iter()
                .map(|a| match fill(a, value)? {
                    EvalArg::Float(x) => Ok(x),
                    EvalArg::Int(i) => Ok(i as f64),
                    other => Err(InterpError::invalid(format!("{other:?} stands in a list of floats"))),
                })
                .collect::<Result<_, _>>()?,
        ),
        Arg::Kind(k) => EvalArg::Kind(*k),
        Arg::Device(d) => EvalArg::Device(*d),
        Arg::Str(s) => EvalArg::Str(s.clone()),
    })
}
