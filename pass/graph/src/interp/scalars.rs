//! Scalar arithmetic within a graph, at the widths that the graph's types state.

use super::{InterpError, Value};
use crate::ir::{Arg, Graph, Inst};
use crate::scalar::{Function, Number, ScalarType};

/// Computes a `scalar.*` instruction.
pub(super) fn eval(graph: &Graph, inst: &Inst, values: &[Option<Value>]) -> Result<Value, InterpError> {
    let (function, first) = Function::of(inst.op, &inst.args)
        .ok_or_else(|| InterpError::NotInterpreted(format!("{} {:?}", inst.op, inst.args.first())))?;
    let refused = |why: &str| InterpError::invalid(format!("`{}`: {why}", inst.op));
    let result = inst.results.first().and_then(|r| ScalarType::of(graph.ty(*r)));
    let result = result.ok_or_else(|| refused("the result is not a scalar"))?;
    let operands = &inst.args[first..];
    let own = |a: &Arg| match a {
        Arg::Value(v) => ScalarType::of(graph.ty(*v)),
        _ => None,
    };
    // A constant has the width of the value that it meets: in a comparison the result does not tell it.
    let peer = operands.iter().find_map(own).unwrap_or(result);
    let select = matches!(function, Function::Select);
    let numbers = operands
        .iter()
        .enumerate()
        .map(|(i, a)| {
            let ty = own(a).unwrap_or(match (select, i) {
                (true, 0) => ScalarType::Int(1),
                (true, _) => result,
                _ => peer,
            });
            let constant = match a {
                Arg::Value(v) => match &values[v.index()] {
                    Some(Value::Int(i)) => Arg::Int(*i),
                    Some(Value::Float(x)) => Arg::Float(*x),
                    _ => return Err(refused("an operand is not a scalar")),
                },
                other => other.clone(),
            };
            Number::constant(&constant, ty).ok_or_else(|| refused("an operand is not a number"))
        })
        .collect::<Result<Vec<_>, _>>()?;
    let number = function
        .evaluate(&numbers, result)
        .ok_or_else(|| refused("the host has no defined result for these operands"))?;
    Ok(match number.ty {
        ScalarType::Int(_) => Value::Int(number.as_int()),
        ScalarType::Float(_) => Value::Float(number.as_float()),
    })
}
