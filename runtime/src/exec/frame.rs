//! The memory of one call: its slots, and who owns what stands in them.

use super::{Input, Output, Tape};
use crate::lower::{Held, Lowered, Place};
use crate::torch::shim;
use tch::Tensor;
use torch_sys::C_tensor;

/// The memory of one call. Whatever the slots own when it is dropped is freed.
pub(super) struct Frame<'a> {
    lowered: &'a Lowered,
    slots: Vec<*mut ()>,
    floats: Vec<f64>,
    /// How many inputs are there.
    given: usize,
    /// Inputs that the call was given and does not use up.
    kept: Vec<Output>,
}

impl<'a> Frame<'a> {
    pub(super) fn new(lowered: &'a Lowered) -> Self {
        Self {
            lowered,
            slots: vec![std::ptr::null_mut(); lowered.slots.len()],
            floats: vec![0.0; lowered.floats],
            given: 0,
            kept: vec![],
        }
    }

    /// The next input, which the caller keeps.
    pub(super) fn lend(&mut self, input: Input<'_>) {
        match (input, self.next()) {
            (Input::Float(x), Place::Float(k)) => self.floats[k] = x,
            (input, Place::Slot(k)) => {
                assert!(self.is_lent(k), "an input that the graph uses up is only lent to it");
                self.slots[k] = match (input, self.lowered.slots[k]) {
                    (Input::Tensor(x), Held::Tensor) => x.as_raw().cast(),
                    (Input::Tape(t), Held::Tape) => t.as_raw().cast(),
                    _ => panic!("the graph's input in slot {k} has another type"),
                };
            }
            (_, place) => panic!("the graph's input at {place:?} has another type"),
        }
    }

    /// The next input, which the caller gives away.
    pub(super) fn give(&mut self, input: Output) {
        match self.lowered.inputs.get(self.given) {
            Some(Place::Slot(k)) if !self.is_lent(*k) => {
                let k = *k;
                self.given += 1;
                self.slots[k] = match (input, self.lowered.slots[k]) {
                    (Output::Tensor(mut x), Held::Tensor) => {
                        let raw = x.as_mut_ptr();
                        std::mem::forget(x);
                        raw.cast()
                    }
                    (Output::Tape(t), Held::Tape) => t.into_raw().cast(),
                    _ => panic!("the graph's input in slot {k} has another type"),
                };
            }
            _ => {
                self.lend(input.as_input());
                self.kept.push(input);
            }
        }
    }

    /// Slots and floats, for the code.
    pub(super) fn filled(&mut self) -> (*mut *mut (), *mut f64) {
        assert_eq!(
            self.given,
            self.lowered.inputs.len(),
            "the graph has another number of inputs"
        );
        (self.slots.as_mut_ptr(), self.floats.as_mut_ptr())
    }

    fn next(&mut self) -> Place {
        self.given += 1;
        let place = self.lowered.inputs.get(self.given - 1);
        *place.expect("the graph has another number of inputs")
    }

    /// Moves the outputs out. An output that is an input, or stands in two places, gets a handle of its own.
    pub(super) fn take_outputs(&mut self) -> Vec<Output> {
        let outputs = &self.lowered.outputs;
        let mut taken = vec![];
        for (i, place) in outputs.iter().enumerate() {
            taken.push(match *place {
                Place::Float(k) => Output::Float(self.floats[k]),
                Place::Slot(k) => {
                    let raw = self.slots[k];
                    let last = !outputs[i + 1..].contains(place) && !self.is_lent(k);
                    if last {
                        self.slots[k] = std::ptr::null_mut();
                    }
                    match self.lowered.slots[k] {
                        Held::Tape => {
                            assert!(last, "a tape leaves a graph once");
                            // SAFETY: the code left a tape in this slot, and the slot no longer owns it.
                            Output::Tape(unsafe { Tape::from_raw(raw.cast()) })
                        }
                        // SAFETY: the slot holds a valid handle; it either gives up its ownership or is cloned.
                        Held::Tensor => Output::Tensor(unsafe {
                            let handle: *mut C_tensor = raw.cast();
                            Tensor::from_ptr(if last {
                                handle
                            } else {
                                torch_sys::at_shallow_clone(handle)
                            })
                        }),
                    }
                }
            });
        }
        taken
    }

    fn is_lent(&self, slot: usize) -> bool {
        self.lowered.lent.get(slot) == Some(&true)
    }
}

impl Drop for Frame<'_> {
    fn drop(&mut self) {
        for (k, raw) in self.slots.iter().enumerate() {
            if raw.is_null() || self.is_lent(k) {
                continue;
            }
            // SAFETY: after a call, a slot that is not lent is null or owns what its kind says.
            unsafe {
                match self.lowered.slots[k] {
                    Held::Tensor => torch_sys::at_free(raw.cast()),
                    Held::Tape => shim::cotangent_tape_free(raw.cast()),
                }
            }
        }
    }
}
