//! The graph that an evaluation writes, with equal scalars given one number.

use cotangent_graph::ir::{Arg, Graph, Loc, Type, Value};
use cotangent_graph::ops::Op;
use std::collections::HashMap;
use std::rc::Rc;

/// A graph under construction.
#[derive(Default)]
pub struct Trace {
    /// The graph so far.
    pub graph: Graph,
    scalars: HashMap<Key, Value>,
    /// Scalars that a decision has fixed.
    pub known: HashMap<Value, i64>,
}

/// Identity of a pure scalar instruction.
type Key = (&'static str, Vec<KeyArg>, Type);

#[derive(PartialEq, Eq, Hash)]
enum KeyArg {
    Value(Value),
    Int(i64),
    Float(u64),
    Str(String),
    Other,
}

impl Trace {
    /// An empty trace for a function of that name.
    pub fn new(name: &str) -> Self {
        Self {
            graph: Graph::new(name),
            ..Self::default()
        }
    }

    /// A scalar instruction: pure, so that equal ones share a value.
    pub fn scalar(&mut self, op: &'static str, args: Vec<Arg>, ty: Type, loc: Option<Rc<Loc>>) -> Value {
        let key = (op, args.iter().map(key_arg).collect(), ty.clone());
        if let Some(v) = self.scalars.get(&key) {
            return *v;
        }
        let v = self
            .graph
            .push(Op::named(op), args, vec![ty], loc.map(|l| (*l).clone()))[0];
        self.scalars.insert(key, v);
        v
    }

    /// An instruction over tensors.
    pub fn tensors(&mut self, op: Op, args: Vec<Arg>, results: Vec<Type>, loc: Option<Rc<Loc>>) -> Vec<Value> {
        self.graph.push(op, args, results, loc.map(|l| (*l).clone()))
    }
}

fn key_arg(arg: &Arg) -> KeyArg {
    match arg {
        Arg::Value(v) => KeyArg::Value(*v),
        Arg::Int(i) => KeyArg::Int(*i),
        Arg::Bool(b) => KeyArg::Int(i64::from(*b)),
        Arg::Float(f) => KeyArg::Float(f.to_bits()),
        Arg::Str(s) => KeyArg::Str(s.clone()),
        _ => KeyArg::Other,
    }
}
