//! The closed graph of a case: one call.

use crate::case::{Case, CaseArg};
use cotangent_graph::ir::{Arg, Graph, Type, Value};
use cotangent_graph::ops::{Op, Results};

/// The graph of one case.
#[derive(Clone, Debug)]
pub struct CaseGraph {
    /// Inputs are the case's, in order; outputs are the case's that are defined, in order.
    pub graph: Graph,
    /// Of each output of the graph: its number in the case.
    pub outputs: Vec<usize>,
}

impl Case {
    /// The closed graph of the call. The types of its results are the recorded ones.
    ///
    /// An in-place op works on `self = leaf * 1`, as the case wants it; where `self` does not require grad it works
    /// on the input itself, of which the caller passes a copy.
    ///
    /// # Errors
    /// If the op table does not have the function.
    pub fn graph(&self) -> Result<CaseGraph, String> {
        let op = self
            .op
            .ok_or_else(|| format!("the op table does not have `{}`", self.name))?;
        let mut graph = Graph::new(self.id.clone());
        let inputs: Vec<Value> = self
            .inputs
            .iter()
            .map(|i| graph.input(i.key.clone(), Type::Tensor(Some(i.value.tensor.ty()))))
            .collect();
        let mut args: Vec<Arg> = self.args.iter().map(|a| arg(a, &inputs)).collect();
        if self.inplace
            && let Some(CaseArg::Tensor(i)) = self.args.first()
            && self.inputs[*i].grad.is_some()
        {
            let ty = Type::Tensor(Some(self.inputs[*i].value.tensor.ty()));
            let copy = graph.push(
                Op::named("mul_scalar"),
                vec![inputs[*i].into(), Arg::Int(1)],
                vec![ty],
                None,
            );
            // Where the case passes the same tensor twice, both are the leaf's copy.
            let leaf = inputs[*i];
            args.iter_mut()
                .for_each(|a| *a = a.map_values(&mut |v| Arg::Value(if v == leaf { copy[0] } else { v })));
        }
        if let Results::Count(n) = op.results
            && n != self.outputs.len()
        {
            return Err(format!("`{op}` gives {n} results, the case has {}", self.outputs.len()));
        }
        let types = self.outputs.iter().map(|t| Type::Tensor(t.as_ref().map(|t| t.ty())));
        let results = graph.push(op, args, types.collect(), None);
        let outputs: Vec<usize> = (0..results.len()).filter(|k| self.outputs[*k].is_some()).collect();
        graph.outputs = outputs.iter().map(|k| results[*k]).collect();
        Ok(CaseGraph { graph, outputs })
    }
}

fn arg(a: &CaseArg, inputs: &[Value]) -> Arg {
    match a {
        CaseArg::None => Arg::None,
        CaseArg::Tensor(i) => inputs[*i].into(),
        CaseArg::Tensors(ts) => Arg::List(ts.iter().map(|t| t.map(|i| inputs[i])).collect()),
        CaseArg::Int(i) => Arg::Int(*i),
        CaseArg::Float(x) => Arg::Float(*x),
        CaseArg::Bool(b) => Arg::Bool(*b),
        CaseArg::Ints(v) => Arg::ints(v),
        CaseArg::Floats(v) => Arg::Floats(v.iter().map(|x| Arg::Float(*x)).collect()),
        CaseArg::Str(s) => Arg::Str(s.clone()),
        CaseArg::Kind(k) => Arg::Kind(*k),
        CaseArg::Device(d) => Arg::Device(*d),
    }
}
