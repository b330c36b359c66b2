//! Closes the region after a cut: the same evaluation goes on, with what the call knows now.

use super::cut::{Given, Suspended};
use super::eval::{Closer, Known, State, Stop, outcome};
use super::host::Host;
use super::nodes::{Node, Nodes, Recipe, Scalar};
use super::outcome::{Outcome, SpecializeError};
use super::prologue::{Inputs, Prologue, Slot, Step};
use crate::differentiate::ShapeOracle;
use crate::ir::{Graph, Type, Value};
use crate::program::Program;
use crate::scalar::{Number, ScalarType};
use std::collections::HashMap;

/// Closes the region that follows a cut, for calls like this one. `table` is what the call knows: what its prologues
/// read, what its regions gave, and what came of the action.
///
/// # Errors
/// As [`super::specialize`].
pub fn resume(
    program: &Program,
    from: &Suspended,
    table: &Inputs,
    host: &dyn Host,
    oracle: &dyn ShapeOracle,
) -> Result<Outcome, SpecializeError> {
    let Suspended {
        mut state,
        slots,
        kept,
        given,
    } = from.clone();
    let old = Old {
        graph: std::mem::replace(&mut state.graph, Graph::new(program.key.clone())),
        inputs: std::mem::take(&mut state.inputs),
        devices: std::mem::take(&mut state.devices),
        kept,
        given,
    };
    let closer = Closer {
        host,
        oracle,
        prologue: Prologue { steps: vec![], slots },
        state,
        loc: None,
    };
    outcome(closer.go_on(program, old, table))
}

/// What the region before had.
struct Old {
    graph: Graph,
    inputs: Vec<super::InputInfo>,
    devices: HashMap<Value, i32>,
    kept: Vec<(Value, Slot)>,
    given: Option<(Value, Given)>,
}

impl Closer<'_> {
    fn go_on(mut self, program: &Program, old: Old, table: &Inputs) -> Result<super::Specialized, Stop> {
        self.renew_nodes(table)?;
        let live = self.live();
        let dead = |v: &Value| old.graph.ty(*v).is_tensor() && !live.contains(v);
        // Values of the graph before, as they are now.
        let mut now: HashMap<Value, Known> = HashMap::new();
        for (input, info) in old.graph.inputs.iter().zip(&old.inputs) {
            if info.internal && dead(&input.value) {
                continue;
            }
            let ty = old.graph.ty(input.value).clone();
            let facts = match ty {
                Type::Tensor(_) => self.facts(table.word(info.slot))?,
                _ => None,
            };
            let value = self.add_input(ty.clone(), info.slot, info.place, facts, info.internal);
            self.state
                .devices
                .extend(old.devices.get(&input.value).map(|d| (value, *d)));
            now.insert(input.value, known(value, &ty));
        }
        for (v, slot) in old.kept.iter().filter(|(v, _)| !dead(v)) {
            let ty = old.graph.ty(*v).clone();
            let device = old.devices.get(v).copied();
            now.insert(*v, self.take(&ty, *slot, device, table)?);
        }
        for node in &mut self.state.nodes.0 {
            node.value = node.value.and_then(|v| match now.get(&v) {
                Some(Known::Scalar(Scalar::Graph(v, _))) => Some(*v),
                _ => None,
            });
        }
        // An internal float is known as a node, which is the input of the graph.
        for (v, k) in &old.kept {
            if let Type::Float(width) = old.graph.ty(*v)
                && let Some(Known::Scalar(Scalar::Graph(value, ty))) = now.get(v).cloned()
            {
                let number = Number::new(table.word(*k), ScalarType::Float(*width));
                let node = self.give(*k, number, Some(value));
                debug_assert_eq!(ty, number.ty);
                now.insert(*v, Known::Scalar(node));
            }
        }
        self.renew(&now);
        match old.given {
            None => {}
            Some((result, Given::Integer(slot, ty))) => {
                let node = self.give(slot, Number::new(table.word(slot), ty), None);
                self.state.env.insert(result, Known::Scalar(node));
            }
            Some((result, Given::List(items))) => {
                let mut list = vec![];
                for item in items {
                    list.push(match item.float {
                        Some(width) => {
                            let value = self.add_input(Type::Float(width), item.slot, None, None, true);
                            let number = Number::new(table.word(item.slot), ScalarType::Float(width));
                            Known::Scalar(self.give(item.slot, number, Some(value)))
                        }
                        None => self.check_in(item.slot, table)?,
                    });
                }
                self.state.env.insert(result, Known::Items(list));
            }
        }
        self.close(program)
    }

    /// The numbers of this call.
    fn renew_nodes(&mut self, table: &Inputs) -> Result<(), Stop> {
        for id in 0..self.state.nodes.0.len() {
            let node = &self.state.nodes.0[id];
            let ty = node.number.ty;
            let number = match (&node.recipe, node.slot) {
                _ if node.fixed => node.number,
                (_, Some(slot)) => Number::new(table.word(slot), ty),
                (Recipe::Compute { function, operands, .. }, None) => {
                    let numbers: Vec<Number> = operands
                        .iter()
                        .filter_map(|s| self.state.nodes.current(*s).number())
                        .collect();
                    function.evaluate(&numbers, ty).ok_or(Stop::Replay)?
                }
                (Recipe::Argument | Recipe::Global | Recipe::Given | Recipe::Load(..), None) => node.number,
            };
            self.state.nodes.0[id].number = number;
        }
        Ok(())
    }

    /// Puts everything that is known in terms of this call and of the new graph.
    fn renew(&mut self, now: &HashMap<Value, Known>) {
        let State {
            nodes,
            arguments,
            loads,
            handles,
            env,
            ..
        } = &mut self.state;
        for known in env.values_mut().chain(handles.values_mut()) {
            renew_known(known, nodes, now);
        }
        for scalar in arguments.values_mut().chain(loads.values_mut()) {
            *scalar = nodes.current(*scalar);
        }
    }

    /// A value that an earlier region made, as an input.
    fn take(&mut self, ty: &Type, slot: Slot, device: Option<i32>, table: &Inputs) -> Result<Known, Stop> {
        let facts = match ty {
            Type::Tensor(_) => self.facts(table.word(slot))?,
            _ => None,
        };
        let value = self.add_input(ty.clone(), slot, None, facts, true);
        self.state.devices.extend(device.map(|d| (value, d)));
        Ok(known(value, ty))
    }

    /// A tensor of which only running told the type: the region holds for this one.
    fn check_in(&mut self, slot: Slot, table: &Inputs) -> Result<Known, Stop> {
        let Some(facts) = self.facts(table.word(slot))? else {
            self.prologue.push(Step::Undefined { slot });
            return Ok(Known::Undefined);
        };
        let (ty, device) = (facts.ty.clone(), facts.device);
        self.prologue.push(Step::Tensor {
            slot,
            ty: ty.clone(),
            device,
        });
        let value = self.add_input(Type::Tensor(Some(ty)), slot, None, Some(facts), true);
        self.state.devices.insert(value, device);
        Ok(Known::Tensor(value))
    }

    fn facts(&self, handle: u64) -> Result<Option<super::TensorFacts>, Stop> {
        self.host.tensor(handle).map_err(|what| self.error(what))
    }

    /// A number that the call has learnt.
    fn give(&mut self, slot: Slot, number: Number, value: Option<Value>) -> Scalar {
        self.state.nodes.add(Node {
            slot: Some(slot),
            value,
            ..Node::new(Recipe::Given, number)
        })
    }
}

fn known(value: Value, ty: &Type) -> Known {
    match ScalarType::of(ty) {
        Some(scalar) => Known::Scalar(Scalar::Graph(value, scalar)),
        None => Known::Tensor(value),
    }
}

/// Puts what is known of a value in terms of this call and of the new graph.
fn renew_known(known: &mut Known, nodes: &Nodes, now: &HashMap<Value, Known>) {
    let of = |v: &Value| now.get(v).cloned().expect("what is live was kept");
    match known {
        Known::Tensor(v) | Known::Scalar(Scalar::Graph(v, _)) => *known = of(v),
        Known::Scalar(s) => *s = nodes.current(*s),
        Known::List(items) => items.iter_mut().for_each(|v| {
            if let Known::Tensor(t) = of(v) {
                *v = t;
            }
        }),
        Known::Items(items) => items.iter_mut().for_each(|k| renew_known(k, nodes, now)),
        Known::Undefined | Known::Gone(..) => {}
    }
}
