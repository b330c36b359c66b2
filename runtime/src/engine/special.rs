//! A function at known decisions, kinds and shapes: what a call of it checks, runs and leaves in memory.

use super::code::{Code, Operand};
use super::counters;
use super::derivative::{Derivative, Recipe};
use super::function::Param;
use super::mask::Mask;
use super::outputs::Outputs;
use crate::differentiable::Leaf;
use crate::error::Error;
use cotangent_graph::canonicalize::canonicalize;
use cotangent_graph::differentiate::{ShapeOracle, varied};
use cotangent_graph::functionalize::{Effects, functionalize};
use cotangent_graph::ir::{Graph, Type, Value};
use cotangent_graph::simplify;
use cotangent_graph::specialize::{
    Action, ClosedBase, ClosedDatum, ClosedImage, Cut, InputInfo, Inputs, Passed, Pointer, Prologue, Slot, Specialized,
    Suspended,
};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

/// Which outputs take a cotangent, and from whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Path {
    /// The user seeds what the function returns.
    Direct,
    /// LibTorch's engine seeds the tensors that the forward makes; it knows itself what is made of them natively.
    Attached,
}

/// Where an output that can be seeded lies when the call has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lies {
    /// In a block of the image.
    At(ClosedBase, i64),
    /// In the program's memory.
    Host(Pointer),
}

/// See the [module](self).
pub(super) struct Special {
    pub(super) name: Arc<str>,
    pub(super) prologue: Prologue,
    pub(super) inputs: Vec<InputInfo>,
    pub(super) image: ClosedImage,
    /// Inputs that the function writes to.
    pub(super) finals: Vec<usize>,
    pub(super) outputs: Outputs,
    pub(super) replay: Option<Code>,
    /// Where the outputs that a user can seed lie, in the order of the direct path's outputs; later ones win.
    pub(super) places: Vec<(Lies, usize)>,
    /// How many tensors the image mentions.
    pub(super) tensors: usize,
    /// What follows, if this is not the function's last region.
    pub(super) after: Option<After>,
    graph: Graph,
    /// What a forward makes: fresh outputs, final values, then floats of the image.
    make: Vec<Value>,
    direct: Vec<Value>,
    attached: Vec<Value>,
    derivatives: RwLock<HashMap<(Path, Mask), Arc<Derivative>>>,
}

/// The way on from a region that is not the last.
pub(super) struct After {
    /// For each output, its slot. These outputs come first among what the forward makes; final values follow.
    pub(super) outputs: Vec<Slot>,
    /// Outputs that are another handle to an input that the region writes to.
    pub(super) same: Vec<(usize, usize)>,
    pub(super) action: Action,
    pub(super) rest: Suspended,
    /// Slots whose values may vary with the arguments asked for.
    pub(super) varying: HashSet<Slot>,
    /// The regions that followed so far, most recently made first.
    pub(super) next: RwLock<Vec<Arc<Special>>>,
}

impl Special {
    /// Prepares a specialized function, or a region of one; `params` are those of its description, `varying` are the
    /// slots that may vary by what earlier regions did.
    pub(super) fn new(
        name: Arc<str>,
        mut specialized: Specialized,
        params: &[Param],
        varying: &HashSet<Slot>,
        oracle: &dyn ShapeOracle,
    ) -> Result<Self, Error> {
        let fail = |text: String| Error::new(format!("`{name}`: {text}"));
        refuse_symbols(&specialized.image).map_err(fail)?;
        if let Some(p) = specialized
            .constants
            .iter()
            .filter_map(|a| params.get(*a))
            .find(|p| p.wrt)
        {
            let text = "is used where an op takes a constant (a probability, an epsilon): leave it out of `wrt(..)`";
            return Err(fail(format!("cannot be differentiated: `{}` {text}", p.name)));
        }
        let is =
            |i: &InputInfo, flag: fn(&Param) -> bool| i.place.and_then(|p| params.get(p.argument)).is_some_and(flag);
        let wrt = specialized.inputs.iter();
        let wrt = wrt.filter(|i| is(i, |p| p.wrt) || varying.contains(&i.slot));
        let wrt: Vec<Value> = wrt.map(|i| i.value).collect();
        let effects = functionalize(&mut specialized, &wrt, oracle).map_err(|e| fail(e.to_string()))?;
        let Specialized {
            mut graph,
            inputs,
            prologue,
            image,
            cut,
            ..
        } = specialized;
        canonicalize(&mut graph, oracle).map_err(|(e, _)| fail(e.to_string()))?;
        simplify::graph(&mut graph);
        counters::region(&graph);
        let tensors = tensor_count(&image);
        let finals: Vec<(usize, Value)> = effects
            .writes
            .iter()
            .map(|w| (w.input, graph.outputs[w.output]))
            .collect();
        if let Some(cut) = cut {
            return Self::region(name, graph, inputs, prologue, (effects, finals), *cut, &wrt, varying);
        }
        graph.outputs.truncate(graph.outputs.len() - finals.len());

        let internal = |i: usize| inputs[i].internal;
        let outputs =
            Outputs::plan(&graph, tensors, &effects.aliases, &internal, oracle).map_err(|e| fail(e.to_string()))?;
        let replay = outputs.replay.as_ref().map(Code::compile_views).transpose()?;
        let floats = graph.outputs[tensors..].iter().copied();
        let make = outputs.fresh.iter().copied();
        let make = make.chain(finals.iter().map(|(_, v)| *v)).chain(floats).collect();
        let attached = outputs
            .fresh
            .iter()
            .copied()
            .chain(finals.iter().map(|(_, v)| *v))
            .collect();
        let mut direct = graph.outputs.clone();
        let places = places(&inputs, &image, |i| is(i, |p| p.mutable), &finals, &mut direct);
        Ok(Self {
            prologue,
            image,
            finals: finals.iter().map(|(i, _)| *i).collect(),
            outputs,
            replay,
            places,
            tensors,
            after: None,
            make,
            direct,
            attached,
            derivatives: RwLock::default(),
            inputs,
            graph,
            name,
        })
    }

    /// A region that is not the last: it makes what the next ones read, and writes what it has written to.
    #[expect(clippy::too_many_arguments, reason = "the parts of what was specialized")]
    fn region(
        name: Arc<str>,
        graph: Graph,
        inputs: Vec<InputInfo>,
        prologue: Prologue,
        (effects, finals): (Effects, Vec<(usize, Value)>),
        cut: Cut,
        wrt: &[Value],
        varying: &HashSet<Slot>,
    ) -> Result<Self, Error> {
        let mut same = vec![];
        for alias in &effects.aliases {
            if !alias.steps.is_empty() {
                return Err(Error::new(format!(
                    "`{name}`: it writes to an argument of which it holds a view, before it reads a tensor's element or \
                     calls a function with a rule of its own; take the view after that, or a `copy()`"
                )));
            }
            same.push((alias.output, alias.input));
        }
        let varied = varied(&graph, wrt);
        let written = finals.iter().map(|(i, _)| inputs[*i].slot);
        let slots: Vec<Slot> = cut.outputs.iter().copied().chain(written).collect();
        let mut varying = varying.clone();
        varying.extend(wrt.iter().filter_map(|v| slot(&inputs, *v)));
        varying.extend(
            slots
                .iter()
                .zip(&graph.outputs)
                .filter(|(_, v)| varied[v.index()])
                .map(|(s, _)| *s),
        );
        if let Action::Rule(call) = &cut.action {
            let varies = |p: &Passed| match p {
                Passed::Tensor { slot, wrt: true, .. }
                | Passed::Float {
                    slot: Some(slot),
                    wrt: true,
                    ..
                } => varying.contains(slot),
                _ => false,
            };
            if call.arguments.iter().any(varies) {
                varying.extend(call.results.iter().map(|r| r.slot));
            }
        }
        Ok(Self {
            finals: finals.iter().map(|(i, _)| *i).collect(),
            outputs: Outputs::default(),
            replay: None,
            places: vec![],
            tensors: 0,
            after: Some(After {
                outputs: cut.outputs,
                same,
                action: cut.action,
                rest: cut.rest,
                varying,
                next: RwLock::default(),
            }),
            make: graph.outputs.clone(),
            direct: graph.outputs.clone(),
            attached: graph.outputs.clone(),
            image: ClosedImage::default(),
            derivatives: RwLock::default(),
            prologue,
            inputs,
            graph,
            name,
        })
    }

    /// The function differentiated for a set of its inputs.
    pub(super) fn derivative(
        &self,
        path: Path,
        active: &Mask,
        oracle: &dyn ShapeOracle,
    ) -> Result<Arc<Derivative>, Error> {
        let key = (path, active.clone());
        let known = self.derivatives.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(derivative) = known.get(&key) {
            return Ok(derivative.clone());
        }
        drop(known);
        let mut graph = self.graph.clone();
        graph.outputs = match path {
            Path::Direct => self.direct.clone(),
            Path::Attached => self.attached.clone(),
        };
        let inputs = self.graph.inputs.iter().map(|i| i.value);
        let derivative = Arc::new(Derivative::new(Recipe {
            name: self.name.clone(),
            graph,
            active: inputs
                .clone()
                .enumerate()
                .filter(|(i, _)| active.has(*i))
                .map(|(_, v)| v)
                .collect(),
            given: inputs.collect(),
            make: self.make.clone(),
            effects: true,
            oracle,
        })?);
        let mut known = self.derivatives.write().unwrap_or_else(PoisonError::into_inner);
        Ok(known.entry(key).or_insert(derivative).clone())
    }

    /// The inputs of a call.
    pub(super) fn given(&self, table: &Inputs) -> Vec<Operand<'static>> {
        let of = |(info, input): (&InputInfo, &cotangent_graph::ir::Input)| {
            let word = table.word(info.slot);
            match self.graph.ty(input.value) {
                Type::Float(32) => Operand::Float(f32::from_bits(word as u32).into()),
                Type::Float(_) => Operand::Float(f64::from_bits(word)),
                _ => Operand::Tensor(word as crate::torch::Raw),
            }
        };
        self.inputs.iter().zip(&self.graph.inputs).map(of).collect()
    }

    /// Can the input carry a derivative?
    pub(super) fn differentiable(&self, i: usize) -> bool {
        match self.graph.ty(self.graph.inputs[i].value) {
            Type::Tensor(Some(t)) => t.kind.is_differentiable(),
            Type::Float(_) => true,
            _ => false,
        }
    }

    /// For each leaf, the inputs that it is (more than one only where the function reads one place by two ways).
    pub(super) fn match_leaves(&self, table: &Inputs, leaves: &[Leaf]) -> Vec<Vec<usize>> {
        let count = self.inputs.len();
        let mut matched: Vec<Vec<usize>> = vec![vec![]; leaves.len()];
        let mut taken = vec![false; count];
        let is = |i: usize, leaf: &Leaf| {
            self.inputs[i].place.is_some_and(|place| {
                place.argument == leaf.param && address(table, place.pointer) == leaf.place.address()
            })
        };
        // Leaves and inputs come mostly in the same order: look for each leaf from where the last one was found.
        let mut from = 0;
        for (leaf, matched) in leaves.iter().zip(&mut matched) {
            let found = (0..count)
                .map(|k| (from + k) % count)
                .find(|i| !taken[*i] && is(*i, leaf));
            if let Some(i) = found {
                taken[i] = true;
                from = i + 1;
                if self.differentiable(i) {
                    matched.push(i);
                }
            }
        }
        for i in (0..count)
            .filter(|i| !taken[*i] && self.differentiable(*i))
            .collect::<Vec<_>>()
        {
            if let Some(k) = leaves.iter().position(|leaf| is(i, leaf)) {
                matched[k].push(i);
            }
        }
        matched
    }
}

fn slot(inputs: &[InputInfo], v: Value) -> Option<Slot> {
    inputs.iter().find(|i| i.value == v).map(|i| i.slot)
}

/// The address that a pointer is in one call.
pub(super) fn address(table: &Inputs, pointer: Pointer) -> u64 {
    table.word(pointer.slot).wrapping_add_signed(pointer.offset)
}

fn tensor_count(image: &ClosedImage) -> usize {
    let outputs = image.writes.iter().filter_map(|w| match w.datum {
        ClosedDatum::Tensor(k) => Some(k + 1),
        _ => None,
    });
    outputs.max().unwrap_or(0)
}

fn refuse_symbols(image: &ClosedImage) -> Result<(), String> {
    let symbol = |base: &ClosedBase| matches!(base, ClosedBase::Symbol(_));
    let refused = image
        .writes
        .iter()
        .any(|w| symbol(&w.base) || matches!(&w.datum, ClosedDatum::Address(base, _) if symbol(base)));
    match refused {
        true => Err("its result refers to a constant of the program, which cannot be made at run time yet".into()),
        false => Ok(()),
    }
}

/// Where the outputs that can be seeded lie. Adds to `direct` what is an output only because the caller can see it.
fn places(
    inputs: &[InputInfo],
    image: &ClosedImage,
    mutable: impl Fn(&InputInfo) -> bool,
    finals: &[(usize, Value)],
    direct: &mut Vec<Value>,
) -> Vec<(Lies, usize)> {
    let mut places = vec![];
    // Of several handles to one tensor, `functionalize` writes through the first.
    let identity = |i: usize| inputs[i].facts.as_ref().map(|f| f.identity);
    let last = |i: usize| {
        let written = finals.iter().find(|(j, _)| *j == i || identity(*j) == identity(i));
        written.map_or(inputs[i].value, |(_, v)| *v)
    };
    for (i, info) in inputs.iter().enumerate() {
        if let Some(place) = info.place
            && mutable(info)
        {
            direct.push(last(i));
            places.push((Lies::Host(place.pointer), direct.len() - 1));
        }
    }
    for write in &image.writes {
        let output = match write.datum {
            ClosedDatum::Tensor(k) => k,
            ClosedDatum::Float { output, .. } => output,
            // A handle of the caller's that was moved.
            ClosedDatum::Word { from, bytes: 8 } if from.offset == 0 => {
                let Some(i) = inputs.iter().position(|i| i.slot == from.slot && i.facts.is_some()) else {
                    continue;
                };
                direct.push(last(i));
                direct.len() - 1
            }
            _ => continue,
        };
        places.push((Lies::At(write.base, write.offset), output));
    }
    places
}
