//! One function, at known kinds and shapes, differentiated for a set of its inputs.
//!
//! A [`Derivative`] has a graph, compiled code for its forward, and code for its backward per set of seeded outputs
//! and wanted inputs, made when it is first asked for. The backward is itself a graph, from what the forward saved and
//! the seeds to the cotangents; differentiating that graph ([`Derivative::higher`]) gives higher derivatives.

use super::code::{Code, Datum, Operand};
use super::mask::Mask;
use crate::error::Error;
use cotangent_graph::alias::Aliases;
use cotangent_graph::differentiate::{Joint, ShapeOracle, vjp};
use cotangent_graph::extract::{Missing, part};
use cotangent_graph::ir::{Graph, Type, Value};
use cotangent_graph::partition::{self, Policy};
use cotangent_graph::simplify;
use std::collections::{HashMap, HashSet};
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
    backwards: RwLock<HashMap<(Mask, Mask, Owner), Arc<Backward>>>,
    higher: Mutex<HashMap<(Mask, Mask, Mask), Arc<Derivative>>>,
}

/// Who gets the cotangents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Owner {
    /// A user, who may write to each of them: no two share storage, nor one with a seed.
    User,
    /// LibTorch's engine, which counts references to what it is given: a seed may be passed on.
    Engine,
}

/// Where an input of the backward comes from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Feed {
    /// What the forward saved.
    Residual(usize),
    /// The seed of an output.
    Seed(usize),
}

/// The backward for a set of seeds and a set of wanted cotangents.
pub(super) struct Backward {
    pub(super) code: Option<Code>,
    pub(super) feeds: Vec<Feed>,
    /// For each active value, its cotangent; `None` where it is not wanted or no path leads to it.
    pub(super) cotangents: Vec<Option<Cotangent>>,
}

/// Where a cotangent is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cotangent {
    /// A seed as it is.
    Seed {
        /// Which.
        output: usize,
        /// Whether the user needs a copy.
        copy: bool,
    },
    /// A result of the code.
    Made {
        /// Which.
        result: usize,
        /// Whether it shares storage with what others own.
        copy: bool,
    },
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
        let residuals = keys
            .iter()
            .map(|key| {
                let v = of_key(key);
                let source = place(v);
                let others = given.iter().enumerate().map(|(i, g)| (*g, Source::Given(i)));
                let others = others.chain(make.iter().copied().zip(made.iter().copied()));
                let shares =
                    others.filter(|(o, s)| *s != source && graph_tensor(&joint.graph, *o) && aliases.may_share(*o, v));
                Residual {
                    key: *key,
                    source,
                    escapes: matches!(source, Source::Made(_)) && made.contains(&source),
                    shares: match (source, joint.graph.ty(v)) {
                        (Source::Made(_), Type::Tensor(_)) => shares.map(|(_, s)| s).collect(),
                        _ => vec![],
                    },
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

    /// The type of an output.
    pub(super) fn output(&self, k: usize) -> &Type {
        self.graph.ty(self.graph.outputs[k])
    }

    /// The backward for these seeds and wanted cotangents.
    pub(super) fn backward(
        &self,
        seeds: &Mask,
        needs: &Mask,
        owner: Owner,
        oracle: &dyn ShapeOracle,
    ) -> Result<Arc<Backward>, Error> {
        let key = (seeds.clone(), needs.clone(), owner);
        let known = self.backwards.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(backward) = known.get(&key) {
            return Ok(backward.clone());
        }
        drop(known);
        let backward = Arc::new(self.compile_backward(seeds, needs, owner, oracle)?);
        let mut known = self.backwards.write().unwrap_or_else(PoisonError::into_inner);
        Ok(known.entry(key).or_insert(backward).clone())
    }

    fn compile_backward(
        &self,
        seeds: &Mask,
        needs: &Mask,
        owner: Owner,
        oracle: &dyn ShapeOracle,
    ) -> Result<Backward, Error> {
        let joint = self.joint(seeds, oracle)?;
        let (given, feeds) = self.starts(&joint);
        let wanted = self.wanted(&joint, needs);
        let mut code = vec![];
        for v in wanted.iter().flatten().filter(|v| !given.contains(v)) {
            if !code.contains(v) {
                code.push(*v);
            }
        }
        let part = part(&joint.graph, &format!("{}'", self.name), &code, &given, None)
            .map_err(|m| missing(&self.name, &joint.graph, m))?;
        let mut graph = part.graph;
        simplify::graph(&mut graph);
        let copies = copies(&graph, &part.inputs, &given, &feeds, owner);
        let mut taken = HashSet::new();
        let cotangents = wanted
            .iter()
            .map(|v| {
                let v = (*v)?;
                let again = !taken.insert(v);
                if let Some(result) = code.iter().position(|c| *c == v) {
                    let copy = copies[result] || (again && owner == Owner::User);
                    return Some(Cotangent::Made { result, copy });
                }
                match feeds[position(&given, v)] {
                    Feed::Seed(output) => Some(Cotangent::Seed {
                        output,
                        copy: owner == Owner::User,
                    }),
                    Feed::Residual(_) => unreachable!("a cotangent is computed from a seed"),
                }
            })
            .collect();
        let feeds = part.inputs.iter().map(|v| feeds[position(&given, *v)]).collect();
        Ok(Backward {
            code: match code.is_empty() {
                true => None,
                false => Some(Code::compile(&graph)?),
            },
            feeds,
            cotangents,
        })
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
        let saved = self.residuals.iter().enumerate();
        let saved = saved.filter_map(|(i, r)| Some((value_of(r.key, joint, &self.graph)?, Feed::Residual(i))));
        let seeds = joint.seeds.iter().enumerate();
        let seeds = seeds.filter_map(|(k, s)| Some(((*s)?, Feed::Seed(k))));
        saved.chain(seeds).unzip()
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
        let tape = |v: &Value| *graph.ty(*v) == Type::Tape;
        let taped = graph.insts.iter().filter(|i| i.results.iter().any(tape));
        let ops: Vec<String> = taped.map(|i| format!("`{}`", i.op)).collect();
        Error::new(format!(
            "`{name}` cannot be differentiated again: LibTorch itself differentiates {}, and only once{at}",
            ops.join(", ")
        ))
    })
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

/// For each result of a backward, whether its owner needs a copy.
fn copies(graph: &Graph, inputs: &[Value], given: &[Value], feeds: &[Feed], owner: Owner) -> Vec<bool> {
    let aliases = Aliases::of(graph);
    let borrowed = graph.inputs.iter().zip(inputs).filter(|(i, old)| {
        let seed = matches!(feeds[position(given, **old)], Feed::Seed(_));
        graph_tensor(graph, i.value) && (owner == Owner::User || !seed)
    });
    let mut taken: HashSet<usize> = borrowed.map(|(i, _)| aliases.class(i.value)).collect();
    let outputs = graph.outputs.iter();
    outputs
        .map(|v| graph_tensor(graph, *v) && !taken.insert(aliases.class(*v)))
        .collect()
}

fn graph_tensor(graph: &Graph, v: Value) -> bool {
    graph.ty(v).is_tensor()
}

fn position(list: &[Value], v: Value) -> usize {
    list.iter()
        .position(|x| *x == v)
        .expect("a part starts from what it was given")
}

fn missing(name: &str, graph: &Graph, missing: Missing) -> Error {
    Error::new(match missing {
        Missing::Input(v) => {
            let input = graph.inputs.iter().find(|i| i.value == v);
            format!(
                "`{name}` cannot be differentiated again: that takes the value of `{}`, which its backward does not keep",
                input.map_or("an input", |i| &i.name)
            )
        }
        Missing::Random(i) => format!(
            "`{name}` cannot be differentiated again: that would draw the random numbers of `{}` a second time",
            graph.insts[i].op
        ),
    })
}
