//! The backward of a derivative for a set of seeded outputs and wanted cotangents: code, and where its inputs and
//! results belong. In forward mode the same, with tangents for seeds and tangents for cotangents.

use super::code::{Code, Datum};
use super::mask::Mask;
use crate::error::Error;
use cotangent_graph::alias::Aliases;
use cotangent_graph::extract::{Missing, part};
use cotangent_graph::ir::{Graph, Value};
use cotangent_graph::partition::Ownership;
use cotangent_graph::simplify;
use std::collections::HashSet;

/// What a backward is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Wish {
    /// The seeded outputs.
    pub(super) seeds: Mask,
    /// The active values whose cotangents are wanted.
    pub(super) needs: Mask,
    pub(super) owner: Owner,
    pub(super) calls: Calls,
}

/// Who gets the cotangents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Owner {
    /// A user, who may write to each of them: no two share storage, nor one with a seed.
    User,
    /// LibTorch's engine, which counts references to what it is given: a seed may be passed on.
    Engine,
}

/// What is known of the calls of a backward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Calls {
    /// There may be any number of them on the same saved values.
    Often,
    /// There is one for what a forward saved: it may use that up.
    Once,
    /// There is one, and every seed is one.
    OnceWithOne,
}

/// Where an input of the backward comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Feed {
    /// What the forward saved.
    Residual(usize),
    /// The seed of an output.
    Seed(usize),
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

/// See the [module](self).
pub(super) struct Backward {
    pub(super) code: Option<Code>,
    pub(super) feeds: Vec<Feed>,
    /// For each active value, its cotangent; `None` where it is not wanted or no path leads to it.
    pub(super) cotangents: Vec<Option<Cotangent>>,
}

/// What a backward is made from.
pub(super) struct Start<'a> {
    pub(super) name: &'a str,
    pub(super) graph: &'a Graph,
    /// What the backward starts from: values of the graph, and what they are.
    pub(super) given: Vec<Value>,
    pub(super) feeds: Vec<Feed>,
    /// For each active value, its cotangent if it is wanted and there.
    pub(super) wanted: Vec<Option<Value>>,
    /// Whose each saved value is in a backward that runs once.
    pub(super) owners: Vec<Ownership>,
}

impl Backward {
    /// Compiles a backward.
    pub(super) fn compile(start: &Start<'_>, wish: &Wish) -> Result<Self, Error> {
        let Start { graph, given, .. } = start;
        let mut code = vec![];
        for v in start.wanted.iter().flatten().filter(|v| !given.contains(v)) {
            if !code.contains(v) {
                code.push(*v);
            }
        }
        let part =
            part(graph, &format!("{}'", start.name), &code, given, None).map_err(|m| missing(start.name, graph, m))?;
        let feed = |v: &Value| start.feeds[position(given, *v)];
        let mut graph = part.graph;
        let mut feeds: Vec<Feed> = part.inputs.iter().map(feed).collect();
        let is_one = |feed: &Feed| wish.calls == Calls::OnceWithOne && matches!(feed, Feed::Seed(_));
        let ones = graph.inputs.iter().zip(&feeds).filter(|(_, feed)| is_one(feed));
        let ones: Vec<(Value, f64)> = ones.map(|(input, _)| (input.value, 1.0)).collect();
        simplify::graph_knowing(&mut graph, &ones);
        drop_unread(&mut graph, &mut feeds);

        let copies = copies(&graph, &feeds, wish.owner);
        let mut taken = HashSet::new();
        let cotangent = |v: &Value| {
            let again = !taken.insert(*v);
            if let Some(result) = code.iter().position(|c| c == v) {
                let copy = copies[result] || (again && wish.owner == Owner::User);
                return Cotangent::Made { result, copy };
            }
            match feed(v) {
                Feed::Seed(output) => Cotangent::Seed {
                    output,
                    copy: wish.owner == Owner::User,
                },
                Feed::Residual(_) => unreachable!("a cotangent is computed from a seed"),
            }
        };
        let mut cotangent = cotangent;
        let cotangents = start.wanted.iter().map(|v| v.as_ref().map(&mut cotangent)).collect();
        let owner = |feed: &Feed| match feed {
            Feed::Residual(i) if wish.calls != Calls::Often => start.owners[*i],
            _ => Ownership::Caller,
        };
        let owners: Vec<Ownership> = feeds.iter().map(owner).collect();
        Ok(Self {
            code: match code.is_empty() {
                true => None,
                false => Some(Code::compile_once(&graph, &owners)?),
            },
            feeds,
            cotangents,
        })
    }

    /// Does a run look at a seed?
    pub(super) fn reads_seeds(&self) -> bool {
        let passed_on = |c: &Option<Cotangent>| matches!(c, Some(Cotangent::Seed { .. }));
        self.feeds.iter().any(|f| matches!(f, Feed::Seed(_))) || self.cotangents.iter().any(passed_on)
    }

    /// Runs it on saved values that outlive the call.
    pub(super) fn run(&self, saved: &[Datum], seeds: &[Option<Datum>]) -> Result<Vec<Option<Datum>>, String> {
        let operand = |feed: &Feed| match feed {
            Feed::Residual(i) => saved[*i].lend(),
            Feed::Seed(k) => seed(seeds, *k).lend(),
        };
        let operands: Vec<_> = self.feeds.iter().map(operand).collect();
        let made = self.code.as_ref().map_or(Ok(vec![]), |code| code.run(&operands))?;
        self.results(&made, seeds)
    }

    /// Runs it on saved values that nobody needs any more.
    pub(super) fn run_once(&self, saved: Vec<Datum>, seeds: &[Option<Datum>]) -> Result<Vec<Option<Datum>>, String> {
        let mut saved: Vec<Option<Datum>> = saved.into_iter().map(Some).collect();
        let own = |feed: &Feed| match feed {
            Feed::Residual(i) => saved[*i].take().expect("a saved value is fed once"),
            Feed::Seed(k) => seed(seeds, *k).share(),
        };
        let data: Vec<Datum> = self.feeds.iter().map(own).collect();
        drop(saved);
        let made = self.code.as_ref().map_or(Ok(vec![]), |code| code.run_once(data))?;
        self.results(&made, seeds)
    }

    /// The cotangents, from what the code made.
    fn results(&self, made: &[Datum], seeds: &[Option<Datum>]) -> Result<Vec<Option<Datum>>, String> {
        let own = |datum: &Datum, copy: bool| match datum {
            Datum::Tensor(t) if copy => t.copy().map(Datum::Tensor).ok_or("not enough memory for a cotangent"),
            other => Ok(other.share()),
        };
        let result = |cotangent: &Option<Cotangent>| match cotangent {
            None => Ok(None),
            Some(Cotangent::Seed { output, copy }) => own(seed(seeds, *output), *copy).map(Some),
            Some(Cotangent::Made { result, copy }) => match &made[*result] {
                // LibTorch's own derivative of an op may have found no path.
                Datum::Tensor(t) if !t.defined() => Ok(None),
                datum => own(datum, *copy).map(Some),
            },
        };
        let results: Result<_, &str> = self.cotangents.iter().map(result).collect();
        results.map_err(str::to_owned)
    }
}

fn seed(seeds: &[Option<Datum>], output: usize) -> &Datum {
    seeds[output].as_ref().expect("a seeded output has a seed")
}

/// Removes inputs that nothing reads any more.
fn drop_unread(graph: &mut Graph, feeds: &mut Vec<Feed>) {
    let mut read: HashSet<Value> = graph.outputs.iter().copied().collect();
    for arg in graph.insts.iter().flat_map(|inst| &inst.args) {
        arg.for_each_value(&mut |v| {
            read.insert(v);
        });
    }
    let mut kept = graph.inputs.iter().map(|input| read.contains(&input.value));
    feeds.retain(|_| kept.next() == Some(true));
    graph.inputs.retain(|input| read.contains(&input.value));
}

/// For each result of a backward, whether its owner needs a copy.
fn copies(graph: &Graph, feeds: &[Feed], owner: Owner) -> Vec<bool> {
    let aliases = Aliases::of(graph);
    let is_tensor = |v: Value| graph.ty(v).is_tensor();
    let borrowed =
        graph.inputs.iter().zip(feeds).filter(|(input, feed)| {
            is_tensor(input.value) && (owner == Owner::User || matches!(feed, Feed::Residual(_)))
        });
    let mut taken: HashSet<usize> = borrowed.map(|(i, _)| aliases.class(i.value)).collect();
    let outputs = graph.outputs.iter();
    outputs
        .map(|v| is_tensor(*v) && !taken.insert(aliases.class(*v)))
        .collect()
}

pub(super) fn position(list: &[Value], v: Value) -> usize {
    list.iter()
        .position(|x| *x == v)
        .expect("a part starts from what it was given")
}

/// The refusal of a part that cannot be made.
pub(super) fn missing(name: &str, graph: &Graph, missing: Missing) -> Error {
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
