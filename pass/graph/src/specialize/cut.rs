//! Where a region ends: what only running can tell, and what is kept for the regions after it.
//!
//! A function is one region as long as nothing depends on the contents of a tensor. Where a decision or an integer
//! does, or a rule of the user's is called, the closed graph ends: its outputs are the tensors and floats that may be
//! read later. The call runs it, acts on what it gave ([`Action`]), and goes on with the region that [`super::resume`]
//! closes from what is known then. What passes from region to region has slots of the call's table, as what the
//! prologue reads has: tensors by their handles, floats and integers by their bits.

use super::eval::{Closer, Known, State, Stop};
use super::nodes::Scalar;
use super::outcome::{ClosedImage, Specialized};
use super::prologue::Slot;
use crate::ir::{Arg, Graph, Inst, Loc, Value};
use crate::scalar::ScalarType;
use std::collections::BTreeSet;

/// The end of a region that is not the last.
#[derive(Clone, Debug, PartialEq)]
pub struct Cut {
    /// For each output of the graph, its slot.
    pub outputs: Vec<Slot>,
    /// What only running can tell.
    pub action: Action,
    /// From what the next region is closed.
    pub rest: Suspended,
}

/// What a call does between two regions.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Nothing: the floats among the outputs are numbers now.
    Numbers,
    /// Reads the one element of a tensor as an integer.
    Element {
        /// Slot of the tensor.
        tensor: Slot,
        /// Slot of the integer.
        to: Slot,
    },
    /// Calls a function with a derivative of its own.
    Rule(RuleCall),
}

/// A call of a function with a derivative of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleCall {
    /// Symbol of the rule.
    pub rule: String,
    /// Its arguments.
    pub arguments: Vec<Passed>,
    /// What its result is made of.
    pub results: Vec<Returned>,
    /// Where it is called.
    pub at: Option<Loc>,
}

/// An argument of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    /// A tensor.
    Tensor {
        /// Its slot.
        slot: Slot,
        /// By reference?
        borrowed: bool,
        /// Is the rule differentiated for it?
        wrt: bool,
    },
    /// A float.
    Float {
        /// Its slot, where it has one.
        slot: Option<Slot>,
        /// Its bits, where they are always the same.
        bits: u64,
        /// How many bytes it has.
        bytes: u8,
        /// Is the rule differentiated for it?
        wrt: bool,
    },
    /// An integer or flag.
    Integer {
        /// Its value.
        bits: u64,
    },
}

/// A tensor or float in the result of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Returned {
    /// Byte offset in the result.
    pub offset: i64,
    /// The width of a float; `None` for a tensor.
    pub float: Option<u8>,
    /// Its slot.
    pub slot: Slot,
}

/// What is known where a region ends. Opaque: [`super::resume`] reads it.
#[derive(Clone, Debug, PartialEq)]
pub struct Suspended {
    /// The state at the end, with the region's graph.
    pub(super) state: State,
    /// How many slots the table has so far.
    pub(super) slots: usize,
    /// Slots of the region's outputs, by value.
    pub(super) kept: Vec<(Value, Slot)>,
    /// The value of the open graph that the action gives.
    pub(super) given: Option<(Value, Given)>,
}

/// What an action gives.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Given {
    Integer(Slot, ScalarType),
    List(Vec<Returned>),
}

/// Why a region ends.
#[derive(Debug)]
pub(super) enum Want {
    /// A float of the graph must be a number.
    Numbers,
    /// The element of a tensor must be an integer.
    Element(Value, ScalarType),
    /// A rule is called.
    Rule,
}

impl Closer<'_> {
    /// Ends the region before the instruction at work, or with it if it is a rule's call.
    pub(super) fn suspend(mut self, want: Want, inst: &Inst, open: &Graph) -> Result<Specialized, Stop> {
        let mut kept = Kept::default();
        let live = self.live();
        for v in &live {
            if self.state.graph.ty(*v).is_tensor() && !self.state.inputs.iter().any(|i| i.value == *v) {
                kept.add(*v, &mut self);
            }
        }
        let (action, given) = match want {
            Want::Numbers => (Action::Numbers, None),
            Want::Element(t, ty) => {
                let tensor = kept.slot(t, &mut self);
                let to = self.prologue.slot();
                (
                    Action::Element { tensor, to },
                    Some((inst.results[0], Given::Integer(to, ty))),
                )
            }
            Want::Rule => {
                let call = self.rule_call(inst, open, &mut kept)?;
                let given = Given::List(call.results.clone());
                (Action::Rule(call), Some((inst.results[0], given)))
            }
        };
        // Tensors stand before floats.
        for v in live {
            if !self.state.graph.ty(v).is_tensor() {
                kept.add(v, &mut self);
            }
        }
        let graph = &mut self.state.graph;
        kept.0.sort_by_key(|(v, _)| !graph.ty(*v).is_tensor());
        graph.outputs = kept.0.iter().map(|(v, _)| *v).collect();
        let rest = Suspended {
            state: self.state.clone(),
            slots: self.prologue.slots,
            kept: kept.0.clone(),
            given,
        };
        Ok(Specialized {
            leaf: 0,
            graph: self.state.graph,
            inputs: self.state.inputs,
            prologue: self.prologue,
            image: ClosedImage::default(),
            constants: self.state.constants,
            cut: Some(Box::new(Cut {
                outputs: kept.0.iter().map(|(_, slot)| *slot).collect(),
                action,
                rest,
            })),
        })
    }

    /// The values of the closed graph that later instructions may read.
    pub(super) fn live(&self) -> BTreeSet<Value> {
        let mut live = BTreeSet::new();
        for known in self.state.env.values() {
            match known {
                Known::Tensor(t) | Known::Scalar(Scalar::Graph(t, _)) => live.extend([*t]),
                Known::List(items) => live.extend(items),
                Known::Items(items) => live.extend(items.iter().filter_map(|k| match k {
                    Known::Tensor(t) | Known::Scalar(Scalar::Graph(t, _)) => Some(*t),
                    _ => None,
                })),
                Known::Scalar(_) | Known::Undefined | Known::Gone(..) => {}
            }
        }
        live
    }

    fn rule_call(&mut self, inst: &Inst, open: &Graph, kept: &mut Kept) -> Result<RuleCall, Stop> {
        let texts = |arg: &Arg| match arg {
            Arg::Str(text) => text.split_whitespace().map(str::to_owned).collect(),
            _ => Vec::<String>::new(),
        };
        let items = |arg: &Arg| match arg {
            Arg::Ints(items) | Arg::Floats(items) => items.clone(),
            Arg::List(items) => items.iter().flatten().map(|v| Arg::Value(*v)).collect(),
            _ => vec![],
        };
        let [rule, parameters, tensors, integers, floats, wrt, results] = inst.args.as_slice() else {
            return Err(self.error("internal error, please report it: a rule's call lacks arguments"));
        };
        let Arg::Str(rule) = rule else {
            return Err(self.error("internal error, please report it: a rule's call names no rule"));
        };
        let (mut tensors, mut integers, mut floats) = (
            items(tensors).into_iter(),
            items(integers).into_iter(),
            items(floats).into_iter(),
        );
        let mut arguments = vec![];
        for (code, wrt) in texts(parameters).iter().zip(items(wrt)) {
            let wrt = wrt == Arg::Int(1);
            let next = |of: &mut std::vec::IntoIter<Arg>| of.next().unwrap_or(Arg::None);
            arguments.push(match code.as_str() {
                "tensor" | "&tensor" => {
                    let t = self.tensor(&next(&mut tensors))?;
                    Passed::Tensor {
                        slot: kept.slot(t, self),
                        borrowed: code.starts_with('&'),
                        wrt,
                    }
                }
                "f32" | "f64" => {
                    let bytes = if code == "f32" { 4 } else { 8 };
                    let hint = ScalarType::Float(8 * bytes);
                    let scalar = self.scalar_arg(&next(&mut floats), hint, open)?;
                    let (slot, bits) = match self.state.nodes.refresh(scalar) {
                        Scalar::Constant(n) => (None, n.bits),
                        Scalar::Node { id, .. } => (Some(self.float_slot(id, kept)), 0),
                        Scalar::Graph(v, _) => (Some(kept.slot(v, self)), 0),
                    };
                    Passed::Float { slot, bits, bytes, wrt }
                }
                _ => Passed::Integer {
                    bits: self.int(&next(&mut integers), open)? as u64,
                },
            });
        }
        let results = texts(results).into_iter().map(|text| {
            let (kind, offset) = text.split_once('@').unwrap_or((&text, "0"));
            Returned {
                offset: offset.parse().unwrap_or(0),
                float: match kind {
                    "f32" => Some(32),
                    "f64" => Some(64),
                    _ => None,
                },
                slot: self.prologue.slot(),
            }
        });
        Ok(RuleCall {
            rule: rule.clone(),
            arguments,
            results: results.collect(),
            at: inst.loc.clone(),
        })
    }

    /// Slot of a float that differs from call to call. Where it varies with an argument, it is one of the region's
    /// outputs, or an input as it is.
    fn float_slot(&mut self, id: usize, kept: &mut Kept) -> Slot {
        match self.float_arg(Scalar::Node {
            id,
            plus: 0,
            number: self.state.nodes.0[id].number,
        }) {
            Arg::Value(v) => kept.slot(v, self),
            _ => self.slot_of(id),
        }
    }
}

/// Outputs of a region with their slots.
#[derive(Default)]
struct Kept(Vec<(Value, Slot)>);

impl Kept {
    fn add(&mut self, v: Value, closer: &mut Closer<'_>) -> Slot {
        match self.0.iter().find(|(k, _)| *k == v) {
            Some((_, slot)) => *slot,
            None => {
                let slot = closer.prologue.slot();
                self.0.push((v, slot));
                slot
            }
        }
    }

    /// The slot of a value, which becomes an output unless it is an input.
    fn slot(&mut self, v: Value, closer: &mut Closer<'_>) -> Slot {
        match closer.state.inputs.iter().find(|i| i.value == v) {
            Some(input) => input.slot,
            None => self.add(v, closer),
        }
    }
}
