//! The verifier: what a graph promises at each stage, checked.
//!
//! One list of checks; a [`Stage`] says which of them hold. A violation is a mistake of Cotangent's, not of its user:
//! the message says so, and names the instruction.

use crate::differentiate::{NoOracle, infer};
use crate::ir::{Arg, Graph, Inst, Type, Value};
use crate::ops::{ParamKind, Results};

/// How far a graph has come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Stage {
    /// Raised: may mention run-time facts and write to tensors.
    Open,
    /// Specialized: every integer is a constant, every tensor has a kind and a shape.
    Closed,
    /// Functionalized: closed, and no instruction writes to a tensor that another one reads. A random fill
    /// (`bernoulli_`) of a tensor made for it alone is the exception.
    Functional,
}

/// A promise that a graph breaks.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("internal error, please report it: the {stage:?} graph of `{graph}` is not well formed: {message}")]
pub struct VerifyError {
    /// What the graph should be.
    pub stage: Stage,
    /// Name of the graph.
    pub graph: String,
    /// The promise and the instruction.
    pub message: String,
}

/// Checks that `graph` keeps the promises of `stage`.
///
/// # Errors
/// The first promise that it breaks.
pub fn verify(graph: &Graph, stage: Stage) -> Result<(), VerifyError> {
    let mut checker = Checker {
        graph,
        stage,
        defined: vec![false; graph.value_count()],
        uses: uses(graph),
    };
    checker.all().map_err(|message| VerifyError {
        stage,
        graph: graph.name.clone(),
        message,
    })
}

/// How often each value is used, as an argument or as an output.
pub(crate) fn uses(graph: &Graph) -> Vec<usize> {
    let mut uses = vec![0; graph.value_count()];
    let mut count = |v: Value| {
        if let Some(n) = uses.get_mut(v.index()) {
            *n += 1;
        }
    };
    for inst in &graph.insts {
        inst.args.iter().for_each(|a| a.for_each_value(&mut count));
    }
    graph.outputs.iter().for_each(|v| count(*v));
    uses
}

/// May an instruction of a functional graph write to its argument in position `i`?
pub(crate) fn is_fresh_fill(graph: &Graph, inst: &Inst, uses: &[usize]) -> bool {
    let made_here = |v: Value| {
        let maker = graph.insts.iter().find(|i| i.results.contains(&v));
        maker.is_some_and(|m| !crate::alias::may_alias(m.op))
    };
    inst.op.facts.random
        && inst
            .op
            .facts
            .mutates
            .iter()
            .all(|i| matches!(&inst.args[*i], Arg::Value(v) if uses[v.index()] == 1 && made_here(*v)))
}

struct Checker<'a> {
    graph: &'a Graph,
    stage: Stage,
    defined: Vec<bool>,
    uses: Vec<usize>,
}

type Check = Result<(), String>;

impl Checker<'_> {
    fn all(&mut self) -> Check {
        for input in &self.graph.inputs {
            self.define(input.value).map_err(|e| format!("input {e}"))?;
        }
        for inst in &self.graph.insts {
            self.inst(inst).map_err(|e| {
                let results: Vec<String> = inst.results.iter().map(ToString::to_string).collect();
                let args: Vec<String> = inst.args.iter().map(ToString::to_string).collect();
                let at = inst
                    .loc
                    .as_ref()
                    .map(|l| format!(", written at {l}"))
                    .unwrap_or_default();
                format!(
                    "{e}, in `{} = {}({})`{at}",
                    results.join(", "),
                    inst.op,
                    args.join(", ")
                )
            })?;
        }
        for v in &self.graph.outputs {
            self.used(*v).map_err(|e| format!("output {e}"))?;
            if !matches!(self.graph.ty(*v), Type::Tensor(_) | Type::Float(_) | Type::Tape) {
                return Err(format!("output {v} is {}", self.graph.ty(*v)));
            }
        }
        Ok(())
    }

    fn define(&mut self, v: Value) -> Check {
        let Some(defined) = self.defined.get_mut(v.index()) else {
            return Err(format!("{v} has no type"));
        };
        if std::mem::replace(defined, true) {
            return Err(format!("{v} is defined twice"));
        }
        let ty = self.graph.ty(v);
        let allowed = match ty {
            Type::Tensor(t) => t.is_some() || self.stage == Stage::Open,
            Type::Tape | Type::Float(32 | 64) => true,
            // A truth value: what the derivative of a float compared.
            Type::Int(1) => true,
            Type::Int(8 | 16 | 32 | 64) | Type::List | Type::Ptr => self.stage == Stage::Open,
            Type::Int(_) | Type::Float(_) => false,
        };
        match allowed {
            true => Ok(()),
            false => Err(format!("{v} is of type `{ty}`")),
        }
    }

    fn used(&self, v: Value) -> Check {
        match self.defined.get(v.index()) {
            Some(true) => Ok(()),
            _ => Err(format!("{v} is used before its definition")),
        }
    }

    fn inst(&mut self, inst: &Inst) -> Check {
        for arg in &inst.args {
            let mut all_defined = Ok(());
            arg.for_each_value(&mut |v| {
                if all_defined.is_ok() {
                    all_defined = self.used(v);
                }
            });
            all_defined?;
        }
        self.legal(inst)?;
        self.forms(inst)?;
        for r in &inst.results {
            self.define(*r)?;
        }
        self.results(inst)
    }

    /// Does an instruction of this kind belong in the stage?
    fn legal(&self, inst: &Inst) -> Check {
        if self.stage >= Stage::Closed && !inst.op.is_libtorch() {
            let floats = inst.results.iter().all(|r| matches!(self.graph.ty(*r), Type::Float(_)));
            let allowed = match inst.op.name {
                "tape.vjp" | "item" => true,
                // What a derivative of a float compares, it only selects by.
                name => name == "scalar.fcmp" || (name.starts_with("scalar.") && floats),
            };
            if !allowed {
                return Err("it belongs in open graphs only".into());
            }
        }
        // A tensor that is absent is not written to (the running statistics of a normalisation).
        let present = |i: &usize| matches!(inst.args.get(*i), Some(Arg::Value(_)));
        let writes = inst.op.facts.mutates.iter().any(present);
        if self.stage >= Stage::Functional && writes && !is_fresh_fill(self.graph, inst, &self.uses) {
            return Err("it writes to a tensor".into());
        }
        Ok(())
    }

    fn forms(&self, inst: &Inst) -> Check {
        // Cotangent's own ops may leave out trailing arguments (`scalar.call`); LibTorch's have all of theirs.
        // An op with a tape has one more: where the tensors stand to which the tape leads.
        let tape = self.has_tape(inst);
        let (have, want) = (inst.args.len() - usize::from(tape), inst.op.params.len());
        if have > want || (have < want && inst.op.is_libtorch()) {
            return Err(format!("it has {have} arguments, not {want}"));
        }
        for (i, (arg, param)) in inst.args.iter().zip(&inst.op.params).enumerate() {
            if !self.form(arg, param.kind) {
                return Err(format!("argument {i} (`{}`) cannot be `{arg}`", param.name));
            }
        }
        Ok(())
    }

    fn has_tape(&self, inst: &Inst) -> bool {
        let last = inst.results.last().map(|v| self.graph.ty(*v));
        last == Some(&Type::Tape) && matches!(inst.args.last(), Some(Arg::Ints(_)))
    }

    fn form(&self, arg: &Arg, kind: ParamKind) -> bool {
        use ParamKind as P;
        let open = self.stage == Stage::Open;
        let is = |v: &Value, f: fn(&Type) -> bool| f(self.graph.ty(*v));
        let int = |a: &Arg| match a {
            Arg::Int(_) | Arg::Bool(_) => true,
            Arg::Value(v) => open && is(v, |t| matches!(t, Type::Int(_))),
            _ => false,
        };
        let float = |a: &Arg| match a {
            Arg::Float(_) => true,
            Arg::Value(v) => is(v, |t| matches!(t, Type::Float(_))),
            _ => false,
        };
        let tensor = |v: &Value| is(v, Type::is_tensor);
        match (kind, arg) {
            (P::Any, _) => true,
            (P::OptTensor | P::OptInt | P::OptInts | P::OptFloat | P::OptFloats | P::OptKind, Arg::None) => true,
            (P::Tensor | P::OptTensor, Arg::Value(v)) => tensor(v),
            (P::Tensors, Arg::List(vs)) => vs.iter().all(|v| v.as_ref().is_some_and(tensor)),
            (P::OptTensors, Arg::List(vs)) => vs.iter().flatten().all(tensor),
            (P::Tensors | P::OptTensors, Arg::Value(v)) => open && is(v, |t| *t == Type::List),
            (P::Scalar, a) => int(a) || float(a),
            (P::Int | P::OptInt | P::Bool, a) => int(a),
            (P::Ints | P::OptInts, Arg::Ints(items)) => items.iter().all(int),
            (P::Float | P::OptFloat, a) => float(a),
            (P::Floats | P::OptFloats, Arg::Floats(items)) => items.iter().all(float),
            (P::Kind | P::OptKind, Arg::Kind(_)) | (P::Device, Arg::Device(_)) | (P::Str, Arg::Str(_)) => true,
            (P::Kind | P::OptKind | P::Device, Arg::Value(_)) => int(arg),
            _ => false,
        }
    }

    fn results(&self, inst: &Inst) -> Check {
        let is_tape = |v: &&Value| *self.graph.ty(**v) == Type::Tape;
        let tape = inst.results.last().filter(is_tape);
        let plain = &inst.results[..inst.results.len() - usize::from(tape.is_some())];
        if let Some(v) = plain.iter().find(|v| *self.graph.ty(**v) == Type::Tape) {
            return Err(format!("{v} is a tape, which only the last result can be"));
        }
        match inst.op.results {
            Results::Count(n) if n != plain.len() => return Err(format!("it gives {n} results")),
            Results::List if self.stage == Stage::Open && plain.len() != 1 => return Err("it gives one list".into()),
            _ => {}
        }
        if inst.op.is_libtorch() {
            let listed = inst.op.results == Results::List && self.stage == Stage::Open;
            for v in plain {
                let ty = self.graph.ty(*v);
                if !(ty.is_tensor() || listed && *ty == Type::List) {
                    return Err(format!("{v} is of type `{ty}`"));
                }
            }
        }
        // Scalars have the types that the graph says.
        if self.stage >= Stage::Closed && inst.op.is_libtorch() && inst.op.own.is_some() {
            let types =
                infer(self.graph, &NoOracle, inst.op, &inst.args).map_err(|e| format!("its shape rule: {e}"))?;
            for (v, ty) in plain.iter().zip(types) {
                if self.graph.tensor(*v) != &ty {
                    return Err(format!("{v} should be `{}`", Type::Tensor(Some(ty))));
                }
            }
        }
        Ok(())
    }
}
