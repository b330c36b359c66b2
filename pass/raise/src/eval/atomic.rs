//! Atomic access to memory that other threads see.
//!
//! A compiled call leaves its writes when it returns. A store or a load is as good then as at any other moment. An update
//! (`fetch_add`) is left as an update, so that none of another thread's is lost; but what stood there before is not
//! known until then, so nothing may depend on it. A compare-and-exchange is nothing but such a dependence.

use super::{Eval, Flow};
use crate::code::Ty;
use crate::value::{Base, Ptr, Val};
use cotangent_graph::ir::{Arg, Value};
use cotangent_graph::program::{Base as Place, Datum, How, Image, Update, Write};

/// Why a dependence on an old value is refused.
pub(super) const OLD_VALUE: &str = "it depends on what an atomic update of shared memory found there, which a compiled region \
     knows only when it returns; update it before or after the call";

/// An update of host memory.
#[derive(Clone, Debug)]
pub(crate) struct Updated {
    pointer: Value,
    offset: i64,
    ty: Ty,
    how: Update,
    operand: Val,
    old: Val,
    /// What stands there for the rest of the call.
    new: Val,
}

impl Eval<'_> {
    /// `atomicrmw`: gives what stood there.
    pub(super) fn update(&mut self, op: &str, p: &Val, v: &Val, ty: &Ty) -> Flow<Val> {
        let old = self.load(p, ty)?;
        let new = match op {
            "xchg" => v.clone(),
            _ => {
                let r = self.arith().binary(op, &old, v, ty);
                self.modelled(r)?
            }
        };
        self.store(p, &new, ty)?;
        if let Val::Ptr(Ptr {
            base: Base::Host(pointer),
            off,
        }) = p
        {
            let Some(how) = Update::named(op).filter(|_| matches!(ty, Ty::Int(8 | 16 | 32 | 64))) else {
                return self.refuse(format!(
                    "the atomic update `{op}` of {ty} in memory that other threads see"
                ));
            };
            self.updates.push(Updated {
                pointer: *pointer,
                offset: *off,
                ty: ty.clone(),
                how,
                operand: v.clone(),
                old: old.clone(),
                new,
            });
        }
        Ok(old)
    }

    /// `cmpxchg`: gives what stood there, and whether it was replaced.
    pub(super) fn exchange(&mut self, p: &Val, expected: &Val, new: &Val, ty: &Ty) -> Flow<Val> {
        if matches!(
            p,
            Val::Ptr(Ptr {
                base: Base::Host(_),
                ..
            })
        ) {
            return self.refuse(
                "a compare-and-exchange (a lock, or a cell that is filled once) of memory that other threads see; take what \
                 it protects as an argument",
            );
        }
        let old = self.load(p, ty)?;
        let same = self.arith().icmp("eq", &old, expected);
        let same = self.modelled(same)?;
        let done = self.decide_bool(&same)?;
        if done {
            self.store(p, new, ty)?;
        }
        Ok(Val::Agg(vec![old, Val::bool(done)]))
    }

    /// Does the value depend on what an update found?
    pub(super) fn is_passing(&self, v: Value) -> bool {
        !self.updates.is_empty() && self.passing().contains(&v)
    }

    /// Values that depend on what an update found.
    fn passing(&self) -> Vec<Value> {
        let old = self.updates.iter().filter_map(|u| match u.old {
            Val::Sym(v, _) => Some(v),
            _ => None,
        });
        let mut passing: Vec<Value> = old.collect();
        for inst in &self.trace.graph.insts {
            let mut depends = false;
            inst.args
                .iter()
                .for_each(|a| a.for_each_value(&mut |v| depends |= passing.contains(&v)));
            if depends {
                passing.extend(&inst.results);
            }
        }
        passing
    }

    /// Puts the updates into an image, before its stores; in their places in memory nothing else is left to store.
    pub(crate) fn leave_updates(&mut self, image: &mut Image) -> Flow<()> {
        for update in self.updates.clone() {
            let value = self.arg(&update.operand)?;
            let bytes = update.ty.size();
            image.writes.push(Write {
                base: Place::Host(update.pointer),
                offset: update.offset,
                datum: Datum::Scalar {
                    value,
                    bytes: bytes as u8,
                },
                how: How::Atomic(update.how),
            });
            let Some(object) = self.host.get(&update.pointer).copied() else {
                continue;
            };
            let at = Val::Ptr(Ptr {
                base: Base::Host(update.pointer),
                off: update.offset,
            });
            if self.load(&at, &update.ty)? == update.new {
                let cleared = self.objects[object].clear(update.offset as u64, bytes);
                self.plain(cleared)?;
            }
        }
        Ok(())
    }

    /// Refuses what depends on what an update found: tensors and floats, and what is left in memory.
    pub(crate) fn check_updates(&mut self, image: &Image) -> Flow<()> {
        if self.updates.is_empty() {
            return Ok(());
        }
        let passing = self.passing();
        let from = |arg: &Arg| {
            let mut found = false;
            arg.for_each_value(&mut |v| found |= passing.contains(&v));
            found
        };
        let scalar = |name: &str| name.starts_with("scalar.");
        let used = self
            .trace
            .graph
            .insts
            .iter()
            .any(|i| !scalar(i.op.name) && i.args.iter().any(from));
        let left = image.writes.iter().any(|w| match &w.datum {
            Datum::Scalar { value, .. } => from(value),
            _ => false,
        });
        match used || left {
            true => self.refuse(OLD_VALUE),
            false => Ok(()),
        }
    }
}
