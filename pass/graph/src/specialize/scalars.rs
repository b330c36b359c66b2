//! Scalars of one call: constants, what the prologue reads or computes, and floats that only the graph has.
//!
//! A scalar that came from host memory has its value in this call and its recipe. As long as nobody asks for the
//! value, the closed graph holds for any; where it is needed (a shape, a decision), it is *fixed*: the prologue
//! checks it from then on.

use super::cut::Want;
use super::eval::{Closer, Stop};
use super::nodes::{Node, Recipe, Scalar};
use super::outcome::{Place, Pointer};
use super::prologue::{Operand, Slot, Step};
use crate::ir::{Arg, Type, Value};
use crate::ops::Op;
use crate::scalar::{Function, Number, ScalarType};
use std::collections::BTreeSet;

impl Closer<'_> {
    /// The address of an argument.
    pub(super) fn argument(&mut self, index: usize) -> Scalar {
        if let Some(known) = self.state.arguments.get(&index) {
            return self.state.nodes.refresh(*known);
        }
        let slot = self.prologue.slot();
        self.prologue.push(Step::Argument { index, slot });
        let number = Number::new(self.host.argument(index), ScalarType::Int(64));
        let scalar = self.state.nodes.add(Node {
            slot: Some(slot),
            argument: Some(index),
            address: true,
            ..Node::new(Recipe::Argument, number)
        });
        self.state.arguments.insert(index, scalar);
        scalar
    }

    /// The address of a static or thread-local.
    pub(super) fn global(&mut self, symbol: &str) -> Computed {
        let Some(address) = self.host.global(symbol) else {
            return Err(self.error(format!(
                "uses the static `{symbol}` of a library that is not compiled with Cotangent; pass its value as an argument"
            )));
        };
        let slot = self.prologue.slot();
        self.prologue.push(Step::Global {
            symbol: symbol.into(),
            slot,
        });
        Ok(self.state.nodes.add(Node {
            slot: Some(slot),
            address: true,
            ..Node::new(Recipe::Global, Number::new(address, ScalarType::Int(64)))
        }))
    }

    /// Reads host memory.
    pub(super) fn load(&mut self, pointer: Scalar, offset: i64, ty: &Type) -> Computed {
        let Some(scalar_type) = ScalarType::of(ty) else {
            return Err(self.error("reads an integer of more than 64 bits from host memory"));
        };
        let Scalar::Node { id, plus, number } = pointer else {
            return Err(self.error("reads host memory at an address that Cotangent cannot trace to an argument"));
        };
        let offset = plus.wrapping_add(offset);
        if let Some(known) = self.state.loads.get(&(id, offset, scalar_type)) {
            return Ok(self.state.nodes.refresh(*known));
        }
        let bytes = match scalar_type.width().div_ceil(8) {
            n @ (1 | 2 | 4 | 8) => n,
            n => return Err(self.error(format!("reads an integer of {n} bytes from host memory"))),
        };
        let base = self.slot_of(id);
        let slot = self.prologue.slot();
        self.prologue.push(Step::Load {
            base,
            offset,
            bytes,
            slot,
        });
        let address = number.bits.wrapping_add_signed(offset.wrapping_sub(plus));
        let number = Number::new(self.host.load(address, bytes), scalar_type);
        let scalar = self.state.nodes.add(Node {
            slot: Some(slot),
            argument: self.state.nodes.0[id].argument,
            address: *ty == Type::Ptr,
            ..Node::new(Recipe::Load(id, offset), number)
        });
        self.state.loads.insert((id, offset, scalar_type), scalar);
        Ok(scalar)
    }

    /// Applies a scalar op. `ty` is the type of its result.
    pub(super) fn compute(&mut self, op: Op, args: &[Arg], function: Function, x: Vec<Scalar>, ty: &Type) -> Computed {
        let result = ScalarType::of(ty).ok_or_else(|| self.error("computes with integers of more than 64 bits"))?;
        let mut x: Vec<Scalar> = x.into_iter().map(|s| self.state.nodes.refresh(s)).collect();
        if let Some(short) = self.shortcut(function, &x, ty)? {
            return Ok(short);
        }
        if x.iter().any(|s| matches!(s, Scalar::Graph(..))) {
            return self.compute_in_graph(op, args, &x, result);
        }
        let floats = x.iter().filter(|s| matches!(s.ty(), ScalarType::Float(_))).count();
        if matches!(result, ScalarType::Float(_)) && floats > 0 && floats < x.len() {
            // The closed graph has floats only: `powi` with an exponent of the host's.
            for s in &mut x {
                if matches!(s.ty(), ScalarType::Int(_)) {
                    *s = Scalar::Constant(self.fix(*s)?);
                }
            }
        }
        if *ty == Type::Ptr {
            // Addresses stay of the form "what the prologue read, plus a constant" where they can.
            let pointers = x.iter().filter(|s| self.is_address(**s)).count();
            if pointers == 1 {
                for s in &mut x {
                    if !self.is_address(*s) {
                        *s = Scalar::Constant(self.fix(*s)?);
                    }
                }
                if let Some(short) = self.shortcut(function, &x, ty)? {
                    return Ok(short);
                }
            }
        }
        let numbers: Vec<Number> = x.iter().filter_map(|s| s.number()).collect();
        // The host's instruction has no defined result here: whatever happens, the original function does it.
        let number = function.evaluate(&numbers, result).ok_or(Stop::Replay)?;
        if x.iter().all(|s| matches!(s, Scalar::Constant(_))) {
            return Ok(Scalar::Constant(number));
        }
        let argument = x.iter().find_map(|s| match s {
            Scalar::Node { id, .. } => self.state.nodes.0[*id].argument,
            _ => None,
        });
        let lead = args.first().filter(|a| matches!(a, Arg::Str(_))).cloned();
        let recipe = Recipe::Compute {
            function,
            operands: x,
            op,
            lead,
        };
        Ok(self.state.nodes.add(Node {
            argument,
            address: *ty == Type::Ptr,
            ..Node::new(recipe, number)
        }))
    }

    /// Results that need no new node: constants added to a node, casts that keep the bits, comparisons of a node
    /// with itself, selections.
    fn shortcut(&mut self, function: Function, x: &[Scalar], ty: &Type) -> Result<Option<Scalar>, Stop> {
        let word = |n: Number| n.ty == ScalarType::Int(64);
        Ok(match (function, x) {
            (Function::Add, [Scalar::Node { id, plus, number }, Scalar::Constant(c)])
            | (Function::Add, [Scalar::Constant(c), Scalar::Node { id, plus, number }])
                if word(*number) =>
            {
                Some(moved(*id, *plus, *number, c.as_int()))
            }
            (Function::Sub, [Scalar::Node { id, plus, number }, Scalar::Constant(c)]) if word(*number) => {
                Some(moved(*id, *plus, *number, c.as_int().wrapping_neg()))
            }
            (
                Function::Sub,
                [
                    Scalar::Node { id: a, number: m, .. },
                    Scalar::Node { id: b, number: n, .. },
                ],
            ) if a == b && word(*m) => {
                let difference = m.bits.wrapping_sub(n.bits);
                Some(Scalar::Constant(Number::int(difference as i64)))
            }
            (
                Function::ICmp(p @ (crate::scalar::IntPredicate::Eq | crate::scalar::IntPredicate::Ne)),
                [
                    Scalar::Node { id: a, number: m, .. },
                    Scalar::Node { id: b, number: n, .. },
                ],
            ) if a == b => {
                let equal = m.bits == n.bits;
                let holds = equal == (p == crate::scalar::IntPredicate::Eq);
                Some(Scalar::Constant(Number::flag(holds)))
            }
            (Function::Cast(crate::scalar::Cast::Bits), [s]) if Some(s.ty()) == ScalarType::of(ty) => Some(*s),
            (Function::Select, [condition, a, b]) => {
                let taken = self.fix(*condition)?;
                Some(if taken.bits != 0 { *a } else { *b })
            }
            _ => None,
        })
    }

    fn compute_in_graph(&mut self, op: Op, args: &[Arg], x: &[Scalar], ty: ScalarType) -> Computed {
        let ScalarType::Float(width) = ty else {
            return Err(Stop::Cut(Want::Numbers));
        };
        let mut operands: Vec<Arg> = args.iter().filter(|a| matches!(a, Arg::Str(_))).cloned().collect();
        for s in x {
            operands.push(match s.ty() {
                ScalarType::Float(_) => self.float_arg(*s),
                ScalarType::Int(_) => Arg::Int(self.fix(*s)?.as_int()),
            });
        }
        let value = self.push_scalar(op, operands, width);
        Ok(Scalar::Graph(value, ty))
    }

    fn push_scalar(&mut self, op: Op, mut args: Vec<Arg>, width: u8) -> Value {
        args.resize(op.params.len(), Arg::None);
        let loc = self.loc.clone();
        self.state.graph.push(op, args, vec![Type::Float(width)], loc)[0]
    }

    /// Is it an address: an argument's, or reached from one?
    fn is_address(&self, s: Scalar) -> bool {
        matches!(s, Scalar::Node { id, .. } if self.state.nodes.0[id].address)
    }

    /// The value of a scalar in this call, on which the closed graph will depend.
    pub(super) fn fix(&mut self, s: Scalar) -> Result<Number, Stop> {
        match self.state.nodes.refresh(s) {
            Scalar::Constant(n) => Ok(n),
            Scalar::Node { id, number, .. } => {
                let slot = self.slot_of(id);
                let node = &mut self.state.nodes.0[id];
                node.fixed = true;
                let bits = node.number.bits;
                self.prologue.push(Step::Expect { slot, bits });
                Ok(number)
            }
            Scalar::Graph(..) => Err(Stop::Cut(Want::Numbers)),
        }
    }

    /// The slot of a node: the prologue computes it, and what it is made from, if it did not yet.
    pub(super) fn slot_of(&mut self, id: usize) -> Slot {
        for id in self.needed(id, |n| n.slot.is_some()) {
            let Recipe::Compute { function, operands, .. } = &self.state.nodes.0[id].recipe else {
                continue; // Arguments and loads have their slot from the start.
            };
            let mut list = [Operand::Constant(Number::int(0)); 3];
            for (place, s) in list.iter_mut().zip(operands) {
                *place = match *s {
                    Scalar::Constant(n) => Operand::Constant(n),
                    Scalar::Node { id, plus, number } => Operand::Slot(
                        self.state.nodes.0[id].slot.expect("operands have smaller numbers"),
                        plus,
                        number.ty,
                    ),
                    Scalar::Graph(..) => unreachable!("a node is not made from floats of the graph"),
                };
            }
            let (function, count) = (*function, operands.len() as u8);
            let slot = self.prologue.slot();
            let node = &mut self.state.nodes.0[id];
            node.slot = Some(slot);
            self.prologue.push(Step::Compute {
                function,
                operands: list,
                count,
                ty: node.number.ty,
                slot,
            });
        }
        self.state.nodes.0[id].slot.expect("just given")
    }

    /// The node and all that it is made from, in order, without those that are `done` and what only they need.
    pub(super) fn needed(&self, id: usize, done: impl Fn(&Node) -> bool) -> BTreeSet<usize> {
        let (mut needed, mut open) = (BTreeSet::new(), vec![id]);
        while let Some(id) = open.pop() {
            let node = &self.state.nodes.0[id];
            if !done(node)
                && needed.insert(id)
                && let Recipe::Compute { operands, .. } = &node.recipe
            {
                open.extend(operands.iter().filter_map(|s| match s {
                    Scalar::Node { id, .. } => Some(*id),
                    _ => None,
                }));
            }
        }
        needed
    }

    /// A float as an argument of an op of the closed graph.
    pub(super) fn float_arg(&mut self, s: Scalar) -> Arg {
        match self.state.nodes.refresh(s) {
            Scalar::Constant(n) => Arg::Float(n.as_float()),
            Scalar::Node { id, .. } => Arg::Value(self.float_value(id)),
            Scalar::Graph(v, _) => Arg::Value(v),
        }
    }

    /// The float of the closed graph that a node is: an input, or computed from inputs.
    fn float_value(&mut self, id: usize) -> Value {
        for id in self.needed(id, |n| {
            n.value.is_some() || !matches!(n.number.ty, ScalarType::Float(_))
        }) {
            let node = &self.state.nodes.0[id];
            let width = node.number.ty.width();
            let value = match &node.recipe {
                Recipe::Compute { operands, op, lead, .. }
                    if operands.iter().all(|s| matches!(s.ty(), ScalarType::Float(_))) =>
                {
                    let (op, operands) = (*op, operands.clone());
                    let mut args: Vec<Arg> = lead.iter().cloned().collect();
                    args.extend(operands.into_iter().map(|s| match s {
                        Scalar::Constant(n) => Arg::Float(n.as_float()),
                        Scalar::Node { id, .. } => Arg::Value(self.state.nodes.0[id].value.expect("made before")),
                        Scalar::Graph(v, _) => Arg::Value(v),
                    }));
                    self.push_scalar(op, args, width)
                }
                // Made from integers: the prologue computes it.
                _ => self.float_input(id, width),
            };
            self.state.nodes.0[id].value = Some(value);
        }
        self.state.nodes.0[id].value.expect("just given")
    }

    fn float_input(&mut self, id: usize, width: u8) -> Value {
        let slot = self.slot_of(id);
        let place = self.place(id);
        self.add_input(Type::Float(width), slot, place, None, false)
    }

    /// Where a node was read from memory.
    pub(super) fn place(&self, id: usize) -> Option<Place> {
        let node = &self.state.nodes.0[id];
        let Recipe::Load(base, offset) = node.recipe else {
            return None;
        };
        Some(Place {
            argument: node.argument?,
            pointer: Pointer {
                slot: self.state.nodes.0[base].slot?,
                offset,
            },
        })
    }
}

/// A scalar, or why there is none.
pub(super) type Computed = Result<Scalar, Stop>;

fn moved(id: usize, plus: i64, number: Number, by: i64) -> Scalar {
    Scalar::Node {
        id,
        plus: plus.wrapping_add(by),
        number: Number::new(number.bits.wrapping_add_signed(by), number.ty),
    }
}
