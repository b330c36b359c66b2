//! Calls of functions with a derivative of their own: host code between two regions.

use super::code::Datum;
use super::pass::RELEASED;
use super::request;
use super::route::Bars;
use crate::differentiable::{LeafKind, Number};
use crate::entry::{Ran, Rule};
use crate::error::Error;
use crate::torch::{Handle, Raw, facts};
use cotangent_graph::ir::TensorType;
use cotangent_graph::specialize::{Inputs, Passed, RuleCall, Slot};
use serde::Deserialize;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError, RwLock};

/// A rule that was called, for the pullback.
pub(super) struct Called {
    name: String,
    ran: RwLock<Option<Arc<Ran>>>,
    /// What the rule gives a cotangent for: the slot, if it varies, and its type.
    params: Vec<(Option<Slot>, Param)>,
    results: Vec<(Slot, LeafKind)>,
}

/// The type of a parameter.
enum Param {
    Tensor(TensorType),
    Float(LeafKind),
}

#[derive(Deserialize)]
struct Description {
    name: String,
}

/// Memory of one call: arguments by address, and a place for the result.
struct Arguments {
    /// The argument values, a word each.
    words: Vec<u64>,
    /// What references among them point at.
    behind: Vec<u64>,
}

/// Runs the forward half of a rule; gives what it returned, by slot.
///
/// # Safety
/// The handles in the table are alive.
pub(super) unsafe fn call(
    call: &RuleCall,
    table: &Inputs,
    varying: &HashSet<Slot>,
) -> Result<(Called, Vec<(Slot, Datum)>), Error> {
    let at = call.at.as_ref().map(|l| format!(" (at {l})")).unwrap_or_default();
    let rule = request::rule(&call.rule).ok_or_else(|| {
        Error::new(format!(
            "a function with a rule of its own cannot be found in this program{at}; rebuild it with `cargo cotangent build`"
        ))
    })?;
    let name = serde_json::from_str::<Description>(rule.description()).map_or_else(|_| "a rule".into(), |d| d.name);
    // SAFETY: the caller's promise.
    let arguments = unsafe { Arguments::new(call, table) };
    let result = Place::new(rule);
    // SAFETY: the arguments are of the types that the pass read from the rule's description.
    let ran = unsafe { arguments.run(rule, result.0) }?;
    let results = call.results.iter().map(|r| {
        // SAFETY: the rule wrote a tensor or float there, as its layout says; it is moved out once.
        let datum = unsafe {
            let at = result.0.byte_offset(r.offset as isize);
            match r.float {
                None => Datum::Tensor(detached(
                    Handle::own(at.cast::<Raw>().read()).expect("a tensor has a handle"),
                )),
                Some(32) => Datum::Float(at.cast::<f32>().read().into()),
                Some(_) => Datum::Float(at.cast::<f64>().read()),
            }
        };
        (r.slot, datum)
    });
    let results: Vec<(Slot, Datum)> = results.collect();
    let mut params = vec![];
    for argument in &call.arguments {
        let varies = |slot: &Slot| varying.contains(slot).then_some(*slot);
        match argument {
            Passed::Tensor { slot, wrt: true, .. } => {
                // SAFETY: the caller's promise.
                let facts = unsafe { facts::all(table.word(*slot) as Raw) }.map_err(Error::new)?;
                let facts = facts.ok_or_else(|| Error::new(format!("`{name}` is given an undefined tensor{at}")))?;
                params.push((varies(slot), Param::Tensor(facts.ty)));
            }
            Passed::Float {
                slot, bytes, wrt: true, ..
            } => {
                let kind = if *bytes == 4 { LeafKind::F32 } else { LeafKind::F64 };
                params.push((slot.as_ref().and_then(varies), Param::Float(kind)));
            }
            _ => {}
        }
    }
    let kind = |float: Option<u8>| match float {
        None => LeafKind::Tensor,
        Some(32) => LeafKind::F32,
        Some(_) => LeafKind::F64,
    };
    let called = Called {
        name,
        ran: RwLock::new(Some(Arc::new(ran))),
        params,
        results: call.results.iter().map(|r| (r.slot, kind(r.float))).collect(),
    };
    Ok((called, results))
}

/// A rule's result, without a place in LibTorch's graph: it may be one of the arguments.
fn detached(handle: Handle) -> Handle {
    match handle.defined() {
        true => handle.plain(),
        false => handle,
    }
}

impl Arguments {
    /// # Safety
    /// The handles in the table are alive.
    unsafe fn new(call: &RuleCall, table: &Inputs) -> Self {
        let mut behind: Vec<u64> = Vec::with_capacity(call.arguments.len());
        let words = call.arguments.iter().map(|argument| match *argument {
            Passed::Tensor { slot, borrowed, .. } => {
                let raw = table.word(slot) as Raw;
                match borrowed {
                    true => {
                        behind.push(raw as u64);
                        std::ptr::from_ref(behind.last().expect("just pushed")) as u64
                    }
                    // SAFETY: the caller's promise; the callee frees the handle.
                    false => unsafe { Handle::share_raw(raw) }.into_raw() as u64,
                }
            }
            Passed::Float { slot, bits, .. } => slot.map_or(bits, |slot| table.word(slot)),
            Passed::Integer { bits } => bits,
        });
        Self {
            words: words.collect(),
            behind,
        }
    }

    /// # Safety
    /// The arguments have the types of the rule's parameters, and `out` is a place for its result.
    unsafe fn run(&self, rule: &'static Rule, out: *mut ()) -> Result<Ran, Error> {
        debug_assert!(self.behind.len() <= self.words.len());
        let addresses: Vec<*const ()> = self.words.iter().map(|w| std::ptr::from_ref(w).cast()).collect();
        let work = || {
            let _off = tch::no_grad_guard();
            // SAFETY: the caller's promise.
            unsafe { rule.run(addresses.as_ptr(), out) }
        };
        catch_unwind(AssertUnwindSafe(work)).map_err(Error::panicked)
    }
}

/// A place for a result. What is in it is moved out before it is given back.
struct Place(*mut (), std::alloc::Layout);

impl Place {
    fn new(rule: &Rule) -> Self {
        let layout = rule.result();
        let layout = std::alloc::Layout::from_size_align(layout.size().max(1), layout.align()).unwrap_or(layout);
        // SAFETY: the size is not zero.
        let at = unsafe { std::alloc::alloc(layout) };
        if at.is_null() {
            std::alloc::handle_alloc_error(layout);
        }
        Self(at.cast(), layout)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // SAFETY: it came from the allocator with this layout.
        unsafe { std::alloc::dealloc(self.0.cast(), self.1) };
    }
}

impl Called {
    /// Does the result vary with what the call is differentiated for?
    pub(super) fn varies(&self) -> bool {
        self.params.iter().any(|(slot, _)| slot.is_some())
    }

    /// Is that result an `f32`?
    pub(super) fn is_single(&self, slot: Slot) -> bool {
        self.results.contains(&(slot, LeafKind::F32))
    }

    /// Forward mode: a rule for the way back has none for the way forward, so nothing that it reads may move.
    pub(super) fn refuse_tangents(&self, moves: &dyn Fn(Slot) -> bool) -> Result<(), Error> {
        match self.params.iter().any(|(slot, _)| slot.is_some_and(moves)) {
            false => Ok(()),
            true => Err(Error::new(format!(
                "forward mode stops at `{}`: its own rule (`custom_vjp`) is for the pullback; use `vjp`",
                self.name
            ))),
        }
    }

    /// Pulls the cotangents of the results back to the arguments.
    pub(super) fn pull(&self, bars: &mut Bars<'_>) -> Result<(), Error> {
        let mut any = false;
        let seeds = self.results.iter().map(|(slot, kind)| match bars.take(*slot) {
            None => Number::none(*kind),
            Some(bar) => {
                any = true;
                match (bar, kind) {
                    (Datum::Tensor(t), _) => Number::Tensor(t.into_tensor()),
                    (Datum::Float(x), LeafKind::F32) => Number::F32(x as f32),
                    (Datum::Float(x), _) => Number::F64(x),
                    (Datum::Tape(_), _) => unreachable!("a tape is no cotangent"),
                }
            }
        });
        let seeds: Vec<Number> = seeds.collect();
        if !any {
            return Ok(());
        }
        let ran = self.ran.read().unwrap_or_else(PoisonError::into_inner).clone();
        let ran = ran.ok_or_else(|| Error::new(RELEASED))?;
        let work = || {
            let _off = tch::no_grad_guard();
            ran.pullback(seeds)
        };
        let made = catch_unwind(AssertUnwindSafe(work)).map_err(Error::panicked)?;
        if made.len() != self.params.len() {
            return Err(self.odd(&format!(
                "{} cotangents for {} parameters",
                made.len(),
                self.params.len()
            )));
        }
        for (k, ((slot, param), number)) in self.params.iter().zip(made).enumerate() {
            let bar = match (number, param) {
                (Number::Tensor(t), Param::Tensor(ty)) => {
                    let handle = Handle::take(t);
                    if !handle.defined() {
                        continue;
                    }
                    if !handle.is_like(ty) {
                        return Err(self.odd(&format!(
                            "[{}] for parameter {} (of those it is differentiated for), which is of kind {} and shape {:?}",
                            handle.describe(),
                            k + 1,
                            ty.kind.name(),
                            ty.shape
                        )));
                    }
                    // It may be a seed, or what the rule keeps.
                    let own = handle.copy();
                    Datum::Tensor(own.ok_or_else(|| Error::new("not enough memory for a cotangent"))?)
                }
                (Number::F64(x), Param::Float(LeafKind::F64)) => Datum::Float(x),
                (Number::F32(x), Param::Float(LeafKind::F32)) => Datum::Float(x.into()),
                (number, _) => return Err(self.odd(&format!("{number:?} for parameter {}", k + 1))),
            };
            if let Some(slot) = slot {
                bars.add(*slot, bar)?;
            }
        }
        Ok(())
    }

    fn odd(&self, what: &str) -> Error {
        Error::new(format!("the backward half of the rule of `{}` gives {what}", self.name))
    }

    /// Frees what the rule keeps.
    pub(super) fn release(&self) {
        let ran = self.ran.write().unwrap_or_else(PoisonError::into_inner).take();
        drop(ran);
    }
}
