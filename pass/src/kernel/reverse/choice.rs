//! Ops that give one of their operands (`fmax`, `fmin`): all that the reverse asks is which, and that is one bit. It
//! becomes a value of the primal, beside the op, before anything is planned; so the plan can keep it in the place of operands.
//!
//!     forward   c = the condition of the rule; y = f(x..)
//!     reverse   x̄ += c ? ȳ : 0, or the other way round

use crate::kernel::rules::rule_of;
use crate::llvm::{Builder, Function, Value};
use std::collections::HashMap;

/// The conditions, by their ops.
#[derive(Default)]
pub struct Choices<'m> {
    conditions: HashMap<Value<'m>, Value<'m>>,
}

impl<'m> Choices<'m> {
    /// Adds the conditions of a function's ops to its code.
    pub fn add(&mut self, f: Function<'m>) {
        let b = Builder::new(f.module().context());
        let ops: Vec<_> = f.instructions().filter(|i| i.ty().is_float()).collect();
        for op in ops {
            let Some(rule) = rule_of(op) else { continue };
            b.before(op);
            self.conditions.extend(rule.choice(&b).map(|c| (op, c)));
        }
    }

    /// The condition of an op.
    pub fn of(&self, op: Value<'m>) -> Option<Value<'m>> {
        self.conditions.get(&op).copied()
    }

    /// Takes those that nobody uses out of the code again.
    pub fn erase(self) {
        for condition in self.conditions.into_values() {
            let mut unused = vec![condition];
            while let Some(v) = unused.pop() {
                if v.is_instruction() && v.ty().scalar().is_int() && v.users().next().is_none() {
                    let operands: Vec<_> = v.operands().collect();
                    v.erase();
                    unused.extend(operands);
                }
            }
        }
    }
}
