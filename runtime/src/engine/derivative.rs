//! One function, at known kinds and shapes, differentiated for a set of its inputs.
//!
//! A [`Derivative`] has a graph, compiled code for its forward, and code for its backward per set of seeded outputs
//! and wanted inputs, made when it is first asked for. The backward is itself a graph, from what the forward saved and
//! the seeds to the cotangents; differentiating that graph ([`Derivative::higher`]) gives higher derivatives.

use super::backward::{Backward, Calls, Feed, Owner, Start, Wish, missing, position};
use super::code::{Code, Datum, Operand};
use super::mask::Mask;
use crate::error::Error;
use cotangent_graph::alias::{Aliases, may_alias};
use cotangent_graph::differentiate::{Joint, ShapeOracle, push, vjp};
use cotangent_graph::extract::part;
use cotangent_graph::ir::{Graph, Type, Value};
use cotangent_graph::partition::{self, Ownership, Policy};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// Where a value is after the forward ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Among what the forward was given.
    Given(usize),
    /// Among what it made.
    Made(usize),
}

/// What stands for a value in every joint graph of one derivative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    /// A value of the graph itself.
    Value(Value),
    /// The tape of the opaque instruction at this position.
    Tape(usize),
}

/// A value that the backward reads.
#[derive(Debug)]
pub(super) struct Residual {
    key: Key,
    /// Where the forward leaves it.
    pub(super) source: Source,
    /// Is it one of the outputs that the caller gets? Then it is kept without its place in LibTorch's graph.
    pub(super) escapes: bool,
    /// What may share its storage, of that which others can write to.
    pub(super) shares: Vec<Source>,
    /// Whose it is in a backward that runs once.
    owner: Ownership,
}

/// What a derivative is made from.
pub(super) struct Recipe<'a> {
    /// Name of the function, for messages.
    pub(super) name: Arc<str>,
    /// A closed, functional graph. Its outputs are what can be seeded.
    pub(super) graph: Graph,
    /// Values to differentiate for.
    pub(super) active: Vec<Value>,
    /// What the forward starts from.
    pub(super) given: Vec<Value>,
    /// What the forward must make (or be given), besides what the backward reads.
    pub(super) make: Vec<Value>,
    /// Whether the forward stands for the whole function, so that its random draws happen in any case.
    pub(super) effects: bool,
    /// Shapes of LibTorch's ops.
    pub(super) oracle: &'a dyn ShapeOracle,
}

/// See the [module](self).
pub(super) struct Derivative {
    pub(super) name: Arc<str>,
    graph: Graph,
    active: Vec<Value>,
    /// Which of the given values the active ones are.
    active_given: Vec<usize>,
    forward: Code,
    /// Which of the given values each input of the forward's code is.
    feeds: Vec<usize>,
    /// Where each value that had to be made is.
    pub(super) made: Vec<Source>,
    pub(super) residuals: Vec<Residual>,
    /// For each output, whether it varies with an active value.
    pub(super) varies: Vec<bool>,
    joints: Mutex<HashMap<Mask, Arc<Joint>>>,
    backwards: RwLock<HashMap<Wish, Arc<Backward>>>,
    pushes: RwLock<HashMap<Mask, Arc<Backward>>>,
    higher: Mutex<HashMap<(Mask, Mask, Mask), Arc<Derivative>>>,
}

impl Derivative {
    /// Differentiates and compiles the forward.
    pub(super) fn new(recipe: Recipe<'_>) -> Result<Self, Error> {
        let Recipe {
            name,
            graph,
            active,
            given,
            make,
            effects,
            oracle,
        } = recipe;
        let seeded = vec![!active.is_empty(); graph.outputs.len()];
        let mut joint = differentiate(&name, &graph, &active, &seeded, oracle)?;
        let keys = partition::residuals(&mut joint, Policy::SaveReads);
        let keys: Vec<Key> = keys.into_iter().map(|v| key_of(v, &joint, &graph)).collect();
        let of_key = |key: &Key| value_of(*key, &joint, &graph).expect("the key came from this joint graph");

        let mut code = vec![];
        let mut place = |v: Value| {
            if let Some(i) = given.iter().position(|g| *g == v) {
                return Source::Given(i);
            }
            let i = code.iter().position(|m| *m == v).unwrap_or_else(|| {
                code.push(v);
                code.len() - 1
            });
            Source::Made(i)
        };
        let made: Vec<Source> = make.iter().map(|v| place(*v)).collect();
        let aliases = Aliases::of(&joint.graph);
        let kept: Vec<Value> = keys.iter().map(of_key).collect();
        let residuals = keys
            .iter()
            .zip(&kept)
            .map(|(key, v)| {
                let v = *v;
                let source = place(v);
                let others = given.iter().enumerate().map(|(i, g)| (*g, Source::Given(i)));
                let others = others.chain(make.iter().copied().zip(made.iter().copied()));
                let shares =
                    others.filter(|(o, s)| *s != source && graph_tensor(&joint.graph, *o) && aliases.may_share(*o, v));
                let escapes = matches!(source, Source::Made(_)) && made.contains(&source);
                let shares: Vec<Source> = match (source, joint.graph.ty(v)) {
                    (Source::Made(_), Type::Tensor(_)) => shares.map(|(_, s)| s).collect(),
                    _ => vec![],
                };
                let alone = matches!(source, Source::Made(_))
                    && !escapes
                    && shares.is_empty()
                    && !kept.iter().any(|k| *k != v && aliases.may_share(*k, v))
                    && is_whole(&joint.graph, v);
                Residual {
                    key: *key,
                    source,
                    escapes,
                    shares,
                    owner: if alone { Ownership::RunAlone } else { Ownership::Run },
                }
            })
            .collect();
        let part = part(&joint.graph, &name, &code, &given, effects.then_some(joint.forward))
            .map_err(|m| missing(&name, &joint.graph, m))?;
        let feeds = part.inputs.iter().map(|v| position(&given, *v)).collect();
        let varies = joint.seeds.iter().map(Option::is_some).collect();
        let full = Mask::of(seeded);
        let active_given = active
            .iter()
            .filter_map(|v| given.iter().position(|g| g == v))
            .collect();
        Ok(Self {
            active_given,
            forward: Code::compile(&part.graph)?,
            feeds,
            made,
            residuals,
            varies,
            joints: Mutex::new(HashMap::from([(full, Arc::new(joint))])),
            backwards: RwLock::default(),
            pushes: RwLock::default(),
            higher: Mutex::default(),
            name,
            graph,
            active,
        })
    }

    /// Runs the forward.
    pub(super) fn run(&self, given: &[Operand<'_>]) -> Result<Vec<Datum>, String> {
        let operands: Vec<Operand<'_>> = self.feeds.iter().map(|i| given[*i]).collect();
        self.forward.run(&operands)
    }

    /// How many values it is differentiated for.
    pub(super) fn active(&self) -> usize {
        self.active.len()
    }

    /// Which of the given values it is differentiated for.
    pub(super) fn active_given(&self) -> &[usize] {
        &self.active_given
    }

    /// What a backward for these seeds starts from, in the order that [`Derivative::higher`] is given it.
    pub(super) fn feeds_of(&self, seeds: &Mask, oracle: &dyn ShapeOracle) -> Result<Vec<Feed>, Error> {
        Ok(self.starts(&*self.joint(seeds, oracle)?).1)
    }

    /// The type of an active value.
    pub(super) fn input(&self, i: usize) -> &Type {
        self.graph.ty(self.active[i])
    }

    /// The type of an output.
    pub(super) fn output(&self, k: usize) -> &Type {
        self.graph.ty(self.graph.outputs[k])
    }

    /// The backward that is wished for.
    pub(super) fn backward(&self, wish: Wish, oracle: &dyn ShapeOracle) -> Result<Arc<Backward>, Error> {
        let known = self.backwards.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(backward) = known.get(&wish) {
            return Ok(backward.clone());
        }
        drop(known);
        let joint = self.joint(&wish.seeds, oracle)?;
        let (given, feeds) = self.starts(&joint);
        let start = Start {
            name: &self.name,
            graph: &joint.graph,
            given,
            feeds,
            wanted: self.wanted(&joint, &wish.needs),
            owners: self.residuals.iter().map(|r| r.owner).collect(),
        };
        let backward = Arc::new(Backward::compile(&start, &wish)?);
        let mut known = self.backwards.write().unwrap_or_else(PoisonError::into_inner);
        Ok(known.entry(wish).or_insert(backward).clone())
    }

    /// Forward mode, from what the forward saved: takes the tangents of the active values in `moving` for seeds, and gives
    /// the tangents of the outputs.
    pub(super) fn push(&self, moving: &Mask, oracle: &dyn ShapeOracle) -> Result<Arc<Backward>, Error> {
        let known = self.pushes.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(moving) {
            return Ok(known.clone());
        }
        drop(known);
        let everything = Mask::of(self.graph.outputs.iter().map(|_| true));
        let joint = self.joint(&everything, oracle)?;
        let flags: Vec<bool> = (0..self.active.len()).map(|i| moving.has(i)).collect();
        let push = push(&joint, &flags, oracle).map_err(|(error, loc)| {
            let at = loc.map(|l| format!(" (at {l})")).unwrap_or_default();
            let why = match error.op {
                "tape.vjp" => format!(
                    "LibTorch itself differentiates {}, and only backward",
                    taped(&joint.graph)
                ),
                _ => error.to_string(),
            };
            Error::new(format!("`{}` has no forward mode: {why}{at}; use `vjp`", self.name))
        })?;
        let tangents = push.tangents.iter().enumerate();
        let tangents = tangents.filter_map(|(i, t)| Some(((*t)?, Feed::Seed(i))));
        let (given, feeds) = self.saved(&joint).chain(tangents).unzip();
        let start = Start {
            name: &self.name,
            graph: &push.graph,
            given,
            feeds,
            wanted: push.outputs,
            owners: self.residuals.iter().map(|r| r.owner).collect(),
        };
        let wish = Wish {
            seeds: moving.clone(),
            needs: everything,
            owner: Owner::User,
            calls: Calls::Once,
        };
        let made = Arc::new(Backward::compile(&start, &wish)?);
        let mut known = self.pushes.write().unwrap_or_else(PoisonError::into_inner);
        Ok(known.entry(moving.clone()).or_insert(made).clone())
    }

    /// The backward as a function of its own, to be differentiated for the same values and for the seeds in `active`.
    /// It is given what was saved, then the seeds; its outputs are the wanted cotangents to which a path leads.
    pub(super) fn higher(
        &self,
        seeds: &Mask,
        needs: &Mask,
        active: &Mask,
        oracle: &dyn ShapeOracle,
    ) -> Result<Arc<Derivative>, Error> {
        let key = (seeds.clone(), needs.clone(), active.clone());
        let mut known = self.higher.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(higher) = known.get(&key) {
            return Ok(higher.clone());
        }
        let joint = self.joint(seeds, oracle)?;
        let (given, _) = self.starts(&joint);
        let outputs: Vec<Value> = self.wanted(&joint, needs).into_iter().flatten().collect();
        let mut graph = joint.graph.clone();
        graph.outputs = outputs.clone();
        let seeds = joint.seeds.iter().enumerate().filter(|(k, _)| active.has(*k));
        let higher = Arc::new(Self::new(Recipe {
            name: format!("{}'", self.name).into(),
            active: self
                .active
                .iter()
                .copied()
                .chain(seeds.filter_map(|(_, s)| *s))
                .collect(),
            graph,
            given,
            make: outputs,
            effects: false,
            oracle,
        })?);
        known.insert(key, higher.clone());
        Ok(higher)
    }

    /// Which wanted cotangents have a path from these seeds.
    pub(super) fn reaches(&self, seeds: &Mask, needs: &Mask, oracle: &dyn ShapeOracle) -> Result<Vec<bool>, Error> {
        let joint = self.joint(seeds, oracle)?;
        Ok(self.wanted(&joint, needs).iter().map(Option::is_some).collect())
    }

    fn wanted(&self, joint: &Joint, needs: &Mask) -> Vec<Option<Value>> {
        let cotangents = joint.cotangents.iter().enumerate();
        cotangents.map(|(i, c)| c.filter(|_| needs.has(i))).collect()
    }

    /// What a backward by this joint graph starts from: what was saved, then the seeds.
    fn starts(&self, joint: &Joint) -> (Vec<Value>, Vec<Feed>) {
        let seeds = joint.seeds.iter().enumerate();
        let seeds = seeds.filter_map(|(k, s)| Some(((*s)?, Feed::Seed(k))));
        self.saved(joint).chain(seeds).unzip()
    }

    /// What was saved, as values of this joint graph.
    fn saved<'a>(&'a self, joint: &'a Joint) -> impl Iterator<Item = (Value, Feed)> + 'a {
        let saved = self.residuals.iter().enumerate();
        saved.filter_map(|(i, r)| Some((value_of(r.key, joint, &self.graph)?, Feed::Residual(i))))
    }

    fn joint(&self, seeds: &Mask, oracle: &dyn ShapeOracle) -> Result<Arc<Joint>, Error> {
        let mut known = self.joints.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(joint) = known.get(seeds) {
            return Ok(joint.clone());
        }
        let seeded: Vec<bool> = (0..self.graph.outputs.len()).map(|k| seeds.has(k)).collect();
        let mut joint = differentiate(&self.name, &self.graph, &self.active, &seeded, oracle)?;
        // The same rewriting as for the joint graph that decided what is saved.
        partition::residuals(&mut joint, Policy::SaveReads);
        let joint = Arc::new(joint);
        known.insert(seeds.clone(), joint.clone());
        Ok(joint)
    }
}

fn differentiate(
    name: &str,
    graph: &Graph,
    active: &[Value],
    seeded: &[bool],
    oracle: &dyn ShapeOracle,
) -> Result<Joint, Error> {
    vjp(graph, active, seeded, oracle).map_err(|(error, loc)| {
        let at = loc.map(|l| format!(" (at {l})")).unwrap_or_default();
        if error.op != "tape.vjp" {
            return Error::new(format!("`{name}` cannot be differentiated: {error}{at}"));
        }
        Error::new(format!(
            "`{name}` cannot be differentiated again: LibTorch itself differentiates {}, and only once{at}",
            taped(graph)
        ))
    })
}

/// The ops that LibTorch itself differentiates.
fn taped(graph: &Graph) -> String {
    let tape = |v: &Value| *graph.ty(*v) == Type::Tape;
    let taped = graph.insts.iter().filter(|i| i.results.iter().any(tape));
    let ops: Vec<String> = taped.map(|i| format!("`{}`", i.op)).collect();
    ops.join(", ")
}

/// What stands for a value of a joint graph in every other.
fn key_of(v: Value, joint: &Joint, graph: &Graph) -> Key {
    match v.index() < graph.value_count() {
        true => Key::Value(v),
        false => {
            let maker = joint.graph.insts.iter().position(|i| i.results.contains(&v));
            Key::Tape(maker.expect("a value that is no input has a maker"))
        }
    }
}

/// The value in a joint graph; `None` for a tape that this joint graph has no use for.
fn value_of(key: Key, joint: &Joint, graph: &Graph) -> Option<Value> {
    match key {
        Key::Value(v) => Some(v),
        Key::Tape(at) => {
            let last = *joint.graph.insts[at].results.last()?;
            (last.index() >= graph.value_count()).then_some(last)
        }
    }
}

/// Was it made as a whole? A view has elements that overlap, or is part of more.
fn is_whole(graph: &Graph, v: Value) -> bool {
    let maker = graph.insts.iter().find(|i| i.results.contains(&v));
    maker.is_some_and(|m| !may_alias(m.op) && m.op.is_libtorch() && m.op.facts.mutates.is_empty())
}

fn graph_tensor(graph: &Graph, v: Value) -> bool {
    graph.ty(v).is_tensor()
}
