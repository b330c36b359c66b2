//! The evaluator: runs a program's leaves on the facts of one call and writes the closed graph.

use super::cut::Want;
use super::host::Host;
use super::nodes::{Nodes, Scalar};
use super::outcome::{InputInfo, Outcome, SpecializeError, Specialized};
use super::prologue::Prologue;
use crate::differentiate::ShapeOracle;
use crate::ir::{Arg, Graph, Inst, Kind, Loc, TensorType, Type, Value};
use crate::program::{Program, Refusal, Tree};
use crate::scalar::{Function, Number, ScalarType};
use std::collections::HashMap;

/// Why the evaluation ended early.
#[derive(Debug)]
pub(super) enum Stop {
    /// The original function fails here.
    Replay,
    /// The tree ends here.
    Refused(Vec<Refusal>),
    Grow(Vec<Option<i64>>),
    /// Only running can tell how to go on.
    Cut(Want),
    /// Cotangent cannot go on.
    Error(SpecializeError),
}

/// What is known of a value of the open graph.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Known {
    /// A scalar or an address.
    Scalar(Scalar),
    /// A tensor: this value of the closed graph.
    Tensor(Value),
    /// The undefined tensor.
    Undefined,
    /// A list of tensors.
    List(Vec<Value>),
    /// What a rule's call gave.
    Items(Vec<Known>),
    /// A tensor that nothing reads any more, with its device.
    Gone(TensorType, i32),
}

/// One specialization at work.
pub(super) struct Closer<'a> {
    pub(super) host: &'a dyn Host,
    pub(super) oracle: &'a dyn ShapeOracle,
    pub(super) prologue: Prologue,
    pub(super) state: State,
    /// Place of the instruction at work.
    pub(super) loc: Option<Loc>,
}

/// The closed graph so far and what is known: what one region hands to the next.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct State {
    pub(super) graph: Graph,
    pub(super) inputs: Vec<InputInfo>,
    pub(super) nodes: Nodes,
    /// What was read so far, by where.
    pub(super) arguments: HashMap<usize, Scalar>,
    pub(super) loads: HashMap<(usize, i64, ScalarType), Scalar>,
    /// Tensors by where their handle was read.
    pub(super) handles: HashMap<usize, Known>,
    /// What is known of the open values.
    pub(super) env: HashMap<Value, Known>,
    /// Device of each tensor of the closed graph.
    pub(super) devices: HashMap<Value, i32>,
    /// Arguments with floats that an op takes as a constant.
    pub(super) constants: Vec<usize>,
    /// The decisions so far.
    pub(super) path: Vec<Option<i64>>,
}

impl State {
    /// Nothing is known, and the graph is empty.
    fn new(key: &str) -> Self {
        Self {
            graph: Graph::new(key.to_owned()),
            inputs: vec![],
            nodes: Nodes::default(),
            arguments: HashMap::new(),
            loads: HashMap::new(),
            handles: HashMap::new(),
            env: HashMap::new(),
            devices: HashMap::new(),
            constants: vec![],
            path: vec![],
        }
    }
}

/// Closes a program for calls like this one.
///
/// # Errors
/// If a shape depends on the contents of a tensor, or the function reads what Cotangent cannot follow.
pub fn specialize(program: &Program, host: &dyn Host, oracle: &dyn ShapeOracle) -> Result<Outcome, SpecializeError> {
    let closer = Closer {
        host,
        oracle,
        prologue: Prologue::default(),
        state: State::new(&program.key),
        loc: None,
    };
    outcome(closer.close(program))
}

/// What became of a specialization.
pub(super) fn outcome(closed: Result<Specialized, Stop>) -> Result<Outcome, SpecializeError> {
    match closed {
        Ok(done) => Ok(Outcome::Closed(Box::new(done))),
        Err(Stop::Replay) => Ok(Outcome::Replay),
        Err(Stop::Refused(why)) => Ok(Outcome::Refused(why)),
        Err(Stop::Grow(path)) => Ok(Outcome::Grow(path)),
        Err(Stop::Error(e)) => Err(e),
        Err(Stop::Cut(want)) => Err(SpecializeError {
            message: format!("internal error, please report it: {want:?} outside of a region"),
            at: None,
        }),
    }
}

impl Closer<'_> {
    /// Goes down the tree from where the path so far leads, up to a leaf or to where the region ends.
    pub(super) fn close(mut self, program: &Program) -> Result<Specialized, Stop> {
        let mut tree = follow(&program.tree, &self.state.path);
        let leaf = loop {
            match tree {
                Tree::Leaf(i) => break *i,
                Tree::Replay => return Err(Stop::Replay),
                Tree::Refused(why) => return Err(Stop::Refused(why.clone())),
                Tree::Grow => return Err(Stop::Grow(self.state.path)),
                Tree::Branch {
                    leaf,
                    on,
                    exact,
                    arms,
                    otherwise,
                } => {
                    let open = &program.leaves[*leaf].graph;
                    if let Some((want, at)) = self.run(open, Some(*on))? {
                        return self.suspend(want, at, open);
                    }
                    let decision = self.scalar(*on, open)?;
                    let decision = match self.fix(decision) {
                        Err(Stop::Cut(want)) => {
                            let at = open.insts.iter().find(|i| i.results.contains(on));
                            let at = at.expect("a decision is on a value of the graph");
                            return self.suspend(want, at, open);
                        }
                        decision => decision?,
                    };
                    let taken = |value: &i64| Number::new(*value as u64, decision.ty) == decision;
                    tree = match arms.iter().find(|(v, _)| taken(v)) {
                        Some((v, arm)) => {
                            self.state.path.push(Some(*v));
                            arm
                        }
                        None if *exact => {
                            self.state.path.push(Some(decision.as_int()));
                            &Tree::Grow
                        }
                        None => {
                            self.state.path.push(None);
                            otherwise
                        }
                    };
                }
            }
        };
        let open = &program.leaves[leaf].graph;
        if let Some((want, at)) = self.run(open, None)? {
            return self.suspend(want, at, open);
        }
        self.loc = None;
        for v in &open.outputs {
            match self.state.env.get(v) {
                Some(Known::Tensor(t)) => self.state.graph.outputs.push(*t),
                Some(Known::Undefined) => return Err(Stop::Replay),
                other => return Err(self.error(format!("internal error, please report it: output {v} is {other:?}"))),
            }
        }
        let image = self.close_image(&program.leaves[leaf].image, open)?;
        Ok(Specialized {
            leaf,
            graph: self.state.graph,
            inputs: self.state.inputs,
            prologue: self.prologue,
            image,
            constants: self.state.constants,
            cut: None,
        })
    }

    /// Runs the instructions that did not run yet: up to the definition of `until`, or all. Stops at one at which the
    /// region ends.
    fn run<'g>(&mut self, open: &'g Graph, until: Option<Value>) -> Result<Option<(Want, &'g Inst)>, Stop> {
        for inst in &open.insts {
            if until.is_some_and(|v| self.state.env.contains_key(&v)) {
                break;
            }
            if inst.op.name == "release" {
                self.release(&inst.args[0]);
                continue;
            }
            // Leaves below a branch share what stands above it, under the same value numbers.
            if inst.results.iter().all(|r| self.state.env.contains_key(r)) {
                continue;
            }
            self.loc.clone_from(&inst.loc);
            let known = match self.step(inst, open) {
                Err(Stop::Cut(want)) => return Ok(Some((want, inst))),
                known => known?,
            };
            for (r, k) in inst.results.iter().zip(known) {
                self.state.env.insert(*r, k);
            }
        }
        Ok(None)
    }

    /// Nothing reads the value any more, but for its sizes.
    fn release(&mut self, arg: &Arg) {
        let Arg::Value(v) = arg else { return };
        let gone = match self.state.env.get(v) {
            Some(Known::Tensor(t)) if !self.state.inputs.iter().any(|i| i.value == *t && !i.internal) => Known::Gone(
                self.state.graph.tensor(*t).clone(),
                self.state.devices.get(t).copied().unwrap_or(-1),
            ),
            Some(Known::List(_) | Known::Items(_)) => Known::List(vec![]),
            _ => return,
        };
        self.state.env.insert(*v, gone);
    }

    fn step(&mut self, inst: &Inst, open: &Graph) -> Result<Vec<Known>, Stop> {
        let (op, args) = (inst.op, &inst.args);
        if let Some((function, first)) = Function::of(op, args) {
            let ty = open.ty(inst.results[0]).clone();
            let x = self.operands(function, &args[first..], &ty, open)?;
            return Ok(vec![Known::Scalar(self.compute(op, args, function, x, &ty)?)]);
        }
        let ty = || open.ty(inst.results[0]).clone();
        let known = match op.name {
            "host.arg" => {
                let index = self.int(&args[0], open)?;
                Known::Scalar(self.argument(usize::try_from(index).map_err(|_| Stop::Replay)?))
            }
            "host.global" => {
                let Arg::Str(symbol) = &args[0] else {
                    return Err(self.error("internal error, please report it: a static without a symbol"));
                };
                Known::Scalar(self.global(symbol)?)
            }
            "host.load" => {
                let pointer = self.scalar_arg(&args[0], ScalarType::Int(64), open)?;
                let offset = self.int(&args[1], open)?;
                Known::Scalar(self.load(pointer, offset, &ty())?)
            }
            "host.tensor" => {
                let handle = self.scalar_arg(&args[0], ScalarType::Int(64), open)?;
                self.host_tensor(handle)?
            }
            "size" | "dim" | "numel" | "kind" | "device" | "defined" | "requires_grad" => {
                let result = ScalarType::of(&ty()).unwrap_or(ScalarType::Int(64));
                let fact = self.fact(op.name, args, open)?;
                Known::Scalar(Scalar::Constant(Number::new(fact as u64, result)))
            }
            "item" => self.item(&args[0], &ty())?,
            "list.len" => {
                let n = self.list(&args[0])?.len();
                Known::Scalar(Scalar::Constant(Number::int(n as i64)))
            }
            "list.get" => {
                let i = usize::try_from(self.int(&args[1], open)?).map_err(|_| Stop::Replay)?;
                match &args[0] {
                    Arg::Value(v) if matches!(self.state.env.get(v), Some(Known::Items(_))) => {
                        let Some(Known::Items(items)) = self.state.env.get(v) else {
                            unreachable!("just looked up")
                        };
                        items.get(i).cloned().ok_or(Stop::Replay)?
                    }
                    list => Known::Tensor(*self.list(list)?.get(i).ok_or(Stop::Replay)?),
                }
            }
            "rule.call" => {
                // What is passed as it is must be known before.
                if let Arg::Ints(integers) = &args[3] {
                    for i in integers {
                        self.int(i, open)?;
                    }
                }
                return Err(Stop::Cut(Want::Rule));
            }
            "shallow_clone" => Known::Tensor(self.tensor(&args[0])?),
            _ if op.is_libtorch() => return self.tensor_op(inst, open),
            name => return Err(self.error(format!("internal error, please report it: `{name}` in an open graph"))),
        };
        Ok(vec![known])
    }

    /// The operands of a scalar op, with the constants among them read at the type they have there.
    fn operands(&mut self, function: Function, args: &[Arg], ty: &Type, open: &Graph) -> Result<Vec<Scalar>, Stop> {
        let given = args.iter().find_map(|a| match a {
            Arg::Value(v) => ScalarType::of(open.ty(*v)),
            _ => None,
        });
        let result = ScalarType::of(ty);
        let mut x = vec![];
        for (i, arg) in args.iter().enumerate().filter(|(_, a)| **a != Arg::None) {
            let hint = match function {
                Function::ICmp(_) => given.unwrap_or(ScalarType::Int(64)),
                Function::FCmp(_) | Function::Cast(_) => given.unwrap_or(match arg {
                    Arg::Float(_) => ScalarType::Float(64),
                    _ => ScalarType::Int(64),
                }),
                Function::Select if i == 0 => ScalarType::Int(1),
                Function::Call(_) if matches!(arg, Arg::Int(_)) => match result {
                    Some(ScalarType::Int(w)) => ScalarType::Int(w),
                    _ => ScalarType::Int(32),
                },
                _ => result.unwrap_or(ScalarType::Int(64)),
            };
            x.push(self.scalar_arg(arg, hint, open)?);
        }
        Ok(x)
    }

    /// Kind of that number.
    pub(super) fn kind(&self, number: i64) -> Result<Kind, Stop> {
        Kind::from_number(number).ok_or_else(|| self.error(format!("uses the element type number {number}")))
    }

    /// The tensor that an argument is.
    pub(super) fn tensor(&self, arg: &Arg) -> Result<Value, Stop> {
        let Arg::Value(v) = arg else {
            return Err(Stop::Replay);
        };
        match self.state.env.get(v) {
            Some(Known::Tensor(t)) => Ok(*t),
            Some(Known::Undefined) => Err(Stop::Replay),
            other => Err(self.error(format!(
                "internal error, please report it: {v} is {other:?}, not a tensor"
            ))),
        }
    }

    /// The list of tensors that an argument is.
    pub(super) fn list(&self, arg: &Arg) -> Result<Vec<Value>, Stop> {
        match arg {
            Arg::Value(v) => match self.state.env.get(v) {
                Some(Known::List(list)) => Ok(list.clone()),
                other => Err(self.error(format!(
                    "internal error, please report it: {v} is {other:?}, not a list"
                ))),
            },
            other => Err(self.error(format!("internal error, please report it: {other:?} is not a list"))),
        }
    }

    /// The scalar that a value of the open graph is.
    pub(super) fn scalar(&self, v: Value, open: &Graph) -> Result<Scalar, Stop> {
        match self.state.env.get(&v) {
            Some(Known::Scalar(s)) => Ok(*s),
            other => Err(self.error(format!(
                "internal error, please report it: {v} of type {:?} is {other:?}, not a scalar",
                open.ty(v)
            ))),
        }
    }

    /// The scalar that an argument is; `hint` is the type of a constant.
    pub(super) fn scalar_arg(&self, arg: &Arg, hint: ScalarType, open: &Graph) -> Result<Scalar, Stop> {
        match arg {
            Arg::Value(v) => self.scalar(*v, open),
            constant => Number::constant(constant, hint).map(Scalar::Constant).ok_or_else(|| {
                self.error(format!(
                    "internal error, please report it: {constant:?} is not a scalar"
                ))
            }),
        }
    }

    /// The integer that an argument is, fixed.
    pub(super) fn int(&mut self, arg: &Arg, open: &Graph) -> Result<i64, Stop> {
        let s = self.scalar_arg(arg, ScalarType::Int(64), open)?;
        let n = self.fix(s)?;
        match n.ty {
            ScalarType::Int(_) => Ok(n.as_int()),
            ScalarType::Float(_) => Err(self.error("internal error, please report it: a float stands for an integer")),
        }
    }

    /// A refusal at the instruction at work.
    pub(super) fn error(&self, message: impl Into<String>) -> Stop {
        Stop::Error(SpecializeError {
            message: message.into(),
            at: self.loc.clone(),
        })
    }
}

/// The part of a tree that a path leads to.
fn follow<'t>(mut tree: &'t Tree, path: &[Option<i64>]) -> &'t Tree {
    for choice in path {
        let Tree::Branch { arms, otherwise, .. } = tree else {
            return tree;
        };
        tree = match choice {
            None => otherwise,
            Some(value) => arms.iter().find(|(v, _)| v == value).map_or(&Tree::Grow, |(_, t)| t),
        };
    }
    tree
}
