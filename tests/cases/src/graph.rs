//! The closed graph of a case: one call.

use crate::case::{Case, CaseArg};
use crate::report::Outcome;
use cotangent_graph::differentiate::ShapeOracle;
use cotangent_graph::functionalize::{Effects, functionalize};
use cotangent_graph::ir::{Arg, Graph, Type, Value};
use cotangent_graph::ops::{Op, Results};
use cotangent_graph::specialize::{ClosedImage, InputInfo, Prologue, Specialized, TensorFacts};
use cotangent_graph::verify::{Stage, verify};

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

impl CaseGraph {
    /// Rewrites writes into values, as if the inputs were separate contiguous tensors; final values of written inputs
    /// become outputs after the case's own. `wrt` are the inputs to differentiate for.
    ///
    /// # Errors
    /// If the graph writes in a way that has no functional form.
    pub fn functionalize(&mut self, wrt: &[usize], oracle: &dyn ShapeOracle) -> Result<Effects, Outcome> {
        let inputs = self.graph.inputs.iter().enumerate().map(|(i, input)| InputInfo {
            value: input.value,
            slot: i as u32,
            place: None,
            facts: Some(TensorFacts::contiguous(
                self.graph.tensor(input.value).clone(),
                i as u64 + 1,
            )),
            internal: false,
        });
        let inputs: Vec<InputInfo> = inputs.collect();
        let wrt: Vec<Value> = wrt.iter().map(|i| inputs[*i].value).collect();
        let mut specialized = Specialized {
            leaf: 0,
            inputs,
            graph: std::mem::take(&mut self.graph),
            prologue: Prologue::default(),
            image: ClosedImage::default(),
            constants: vec![],
            cut: None,
        };
        let effects = functionalize(&mut specialized, &wrt, oracle).map_err(|e| Outcome::Refused(e.to_string()))?;
        verify(&specialized.graph, Stage::Functional).map_err(|e| Outcome::Failed(e.to_string()))?;
        self.graph = specialized.graph;
        Ok(effects)
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
