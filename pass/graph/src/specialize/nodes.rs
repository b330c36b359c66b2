//! Scalars of one call, and the recipes of those that differ from call to call.

use super::prologue::Slot;
use crate::ir::{Arg, Value};
use crate::ops::Op;
use crate::scalar::{Function, Number, ScalarType};

/// A scalar of this call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scalar {
    /// The same in every call that the specialization is for.
    Constant(Number),
    /// A node, plus a constant (integers of 64 bits only).
    Node { id: usize, plus: i64, number: Number },
    /// A float of the closed graph, made from the contents of a tensor.
    Graph(Value, ScalarType),
}

impl Scalar {
    pub(super) fn ty(self) -> ScalarType {
        match self {
            Self::Constant(n) | Self::Node { number: n, .. } => n.ty,
            Self::Graph(_, ty) => ty,
        }
    }

    pub(super) fn number(self) -> Option<Number> {
        match self {
            Self::Constant(n) | Self::Node { number: n, .. } => Some(n),
            Self::Graph(..) => None,
        }
    }
}

/// A scalar that differs from call to call.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) recipe: Recipe,
    /// Its value in this call.
    pub(super) number: Number,
    /// Where the prologue puts it, once it does.
    pub(super) slot: Option<Slot>,
    /// Does the prologue check it?
    pub(super) fixed: bool,
    /// The float of the closed graph that it is.
    pub(super) value: Option<Value>,
    /// The argument through which it was reached.
    pub(super) argument: Option<usize>,
    /// Is it an address?
    pub(super) address: bool,
}

impl Node {
    pub(super) fn new(recipe: Recipe, number: Number) -> Self {
        Self {
            recipe,
            number,
            slot: None,
            fixed: false,
            value: None,
            argument: None,
            address: false,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Recipe {
    /// An argument's address.
    Argument,
    /// The address of a static or thread-local.
    Global,
    /// What an earlier region of the call gave.
    Given,
    /// Memory at a node plus an offset.
    Load(usize, i64),
    /// A function of other scalars, with the op and its leading string for the closed graph.
    Compute {
        function: Function,
        operands: Vec<Scalar>,
        op: Op,
        lead: Option<Arg>,
    },
}

/// The nodes of one specialization.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Nodes(pub(super) Vec<Node>);

impl Nodes {
    /// The argument through which a float was read.
    pub(super) fn float_argument(&self, id: usize) -> Option<usize> {
        let node = &self.0[id];
        let read = matches!(node.recipe, Recipe::Load(..)) && matches!(node.number.ty, ScalarType::Float(_));
        node.argument.filter(|_| read)
    }

    pub(super) fn add(&mut self, node: Node) -> Scalar {
        let number = node.number;
        self.0.push(node);
        Scalar::Node {
            id: self.0.len() - 1,
            plus: 0,
            number,
        }
    }

    /// The scalar with the number that its node has now.
    pub(super) fn current(&self, s: Scalar) -> Scalar {
        match s {
            Scalar::Node { id, plus, .. } => {
                let number = self.0[id].number;
                let number = Number::new(number.bits.wrapping_add_signed(plus), number.ty);
                Scalar::Node { id, plus, number }
            }
            s => s,
        }
    }

    /// The scalar as it stands now: a node that has been fixed since is a constant.
    pub(super) fn refresh(&self, s: Scalar) -> Scalar {
        match s {
            Scalar::Node { id, number, .. } if self.0[id].fixed => Scalar::Constant(number),
            s => s,
        }
    }
}
