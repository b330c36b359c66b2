//! Closes the region after a cut: the same evaluation goes on, with what the call knows now.

use super::cut::{Given, Suspended};
use super::eval::{Closer, Known, Stop, outcome};
use super::host::Host;
use super::nodes::{Node, Recipe, Scalar};
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
    let from = from.clone();
    let closer = Closer {
        host,
        oracle,
        graph: Graph::new(program.key.clone()),
        prologue: Prologue {
            steps: vec![],
            slots: from.slots,
        },
        inputs: vec![],
        nodes: from.nodes,
        arguments: from.arguments,
        loads: from.loads,
        handles: from.handles,
        env: from.env,
        devices: HashMap::new(),
        constants: from.constants,
        path: from.path,
        loc: None,
    };
    let old = Old {
        graph: from.graph,
        inputs: from.inputs,
        devices: from.devices,
        kept: from.kept,
        given: from.given,
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
            self.devices.extend(old.devices.get(&input.value).map(|d| (value, *d)));
            now.insert(input.value, known(value, &ty));
        }
        for (v, slot) in old.kept.iter().filter(|(v, _)| !dead(v)) {
            let ty = old.graph.ty(*v).clone();
            let device = old.devices.get(v).copied();
            now.insert(*v, self.take(&ty, *slot, device, table)?);
        }
        for node in &mut self.nodes.0 {
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
                self.env.insert(result, Known::Scalar(node));
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
                self.env.insert(result, Known::Items(list));
            }
        }
        self.close(program)
    }

    /// The numbers of this call.
    fn renew_nodes(&mut self, table: &Inputs) -> Result<(), Stop> {
        for id in 0..self.nodes.0.len() {
            let node = &self.nodes.0[id];
            let ty = node.number.ty;
            let number = match (&node.recipe, node.slot) {
                _ if node.fixed => node.number,
                (_, Some(slot)) => Number::new(table.word(slot), ty),
                (Recipe::Compute { function, operands, .. }, None) => {
                    let numbers: Vec<Number> = operands.iter().filter_map(|s| self.renewed(*s).number()).collect();
                    function.evaluate(&numbers, ty).ok_or(Stop::Replay)?
                }
                (Recipe::Argument | Recipe::Global | Recipe::Given | Recipe::Load(..), None) => node.number,
            };
            self.nodes.0[id].number = number;
        }
        Ok(())
    }

    /// A scalar with its number in this call.
    fn renewed(&self, s: Scalar) -> Scalar {
        match s {
            Scalar::Node { id, plus, .. } => {
                let number = self.nodes.0[id].number;
                Scalar::Node {
                    id,
                    plus,
                    number: Number::new(number.bits.wrapping_add_signed(plus), number.ty),
                }
            }
            s => s,
        }
    }

    /// Puts everything that is known in terms of this call and of the new graph.
    fn renew(&mut self, now: &HashMap<Value, Known>) {
        let mut env = std::mem::take(&mut self.env);
        let mut handles = std::mem::take(&mut self.handles);
        for known in env.values_mut().chain(handles.values_mut()) {
            self.renew_known(known, now);
        }
        (self.env, self.handles) = (env, handles);
        let mut arguments = std::mem::take(&mut self.arguments);
        arguments.values_mut().for_each(|s| *s = self.renewed(*s));
        self.arguments = arguments;
        let mut loads = std::mem::take(&mut self.loads);
        loads.values_mut().for_each(|s| *s = self.renewed(*s));
        self.loads = loads;
    }

    fn renew_known(&self, known: &mut Known, now: &HashMap<Value, Known>) {
        let of = |v: &Value| now.get(v).cloned().expect("what is live was kept");
        match known {
            Known::Tensor(v) | Known::Scalar(Scalar::Graph(v, _)) => *known = of(v),
            Known::Scalar(s) => *s = self.renewed(*s),
            Known::List(items) => items.iter_mut().for_each(|v| {
                if let Known::Tensor(t) = of(v) {
                    *v = t;
                }
            }),
            Known::Items(items) => items.iter_mut().for_each(|k| self.renew_known(k, now)),
            Known::Undefined | Known::Gone(..) => {}
        }
    }

    /// A value that an earlier region made, as an input.
    fn take(&mut self, ty: &Type, slot: Slot, device: Option<i32>, table: &Inputs) -> Result<Known, Stop> {
        let facts = match ty {
            Type::Tensor(_) => self.facts(table.word(slot))?,
            _ => None,
        };
        let value = self.add_input(ty.clone(), slot, None, facts, true);
        self.devices.extend(device.map(|d| (value, d)));
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
        self.devices.insert(value, device);
        Ok(Known::Tensor(value))
    }

    fn facts(&self, handle: u64) -> Result<Option<super::TensorFacts>, Stop> {
        self.host.tensor(handle).map_err(|what| self.error(what))
    }

    /// A number that the call has learnt.
    fn give(&mut self, slot: Slot, number: Number, value: Option<Value>) -> Scalar {
        self.nodes.add(Node {
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
