//! Inactive functions: what leaves them is constant for the derivative.
//!
//! Ops on tensors give constants there, as under `no_grad`; floats become constants when they are returned or stored. A
//! tensor of the caller's that leaves as it is would keep its derivative, and is refused.

use super::{Eval, Flow};
use crate::code::Ty;
use crate::value::{Base, Ptr, Val};
use cotangent_graph::ir::Value;

/// An inactive function at work.
#[derive(Debug)]
pub(crate) struct Inactive {
    /// Objects from this one on are its own.
    objects: usize,
    /// Tensors from this value on are its own.
    values: usize,
    /// The grad mode to go back to.
    grad_enabled: bool,
}

impl Eval<'_> {
    /// The function at work, whose objects start at `objects`, is inactive.
    pub(super) fn enter_inactive(&mut self, objects: usize) {
        self.marked_inactive = false;
        let grad_enabled = std::mem::replace(&mut self.grad_enabled, false);
        self.inactive.push(Inactive {
            objects,
            values: self.trace.graph.value_count(),
            grad_enabled,
        });
    }

    /// What a function returns; `inactive` says that it was marked so, and ends that.
    pub(super) fn returned(&mut self, v: Val, inactive: bool) -> Flow<Val> {
        let v = self.leaving(v, inactive)?;
        if inactive && let Some(left) = self.inactive.pop() {
            self.grad_enabled = left.grad_enabled;
        }
        Ok(v)
    }

    /// What is stored in an object.
    pub(super) fn stored(&mut self, v: Val, object: usize) -> Flow<Val> {
        let outside = self.inactive.first().is_some_and(|i| object < i.objects);
        self.leaving(v, outside)
    }

    fn leaving(&mut self, v: Val, escapes: bool) -> Flow<Val> {
        let Some(Inactive { values, .. }) = self.inactive.first() else {
            return Ok(v);
        };
        let active = match &v {
            Val::Sym(_, ty @ (Ty::F32 | Ty::F64)) => {
                let ty = ty.clone();
                return self.stop_gradient(&v, &ty);
            }
            Val::Agg(items) => {
                let items = items.clone().into_iter();
                return Ok(Val::Agg(
                    items.map(|item| self.leaving(item, escapes)).collect::<Flow<_>>()?,
                ));
            }
            Val::Ptr(Ptr {
                base: Base::Handle(h),
                off: 0,
            }) => self.handles[*h].value.index() < *values,
            Val::Ptr(Ptr {
                base: Base::Host(h),
                off: 0,
            }) => self.is_tensor_handle(*h),
            _ => false,
        };
        if active && escapes {
            return self.refuse(
                "an inactive function returns or stores a tensor that it was given; let it take the tensor by reference, \
                 and return a tensor of its own",
            );
        }
        Ok(v)
    }

    fn is_tensor_handle(&self, h: Value) -> bool {
        let insts = &self.trace.graph.insts;
        insts.iter().any(|i| i.op.name == "host.tensor" && i.args == [h.into()])
    }
}
