//! What running a plan costs, told from types alone.

use super::{Plan, Slot, Step};
use crate::ir::{Arg, TensorType, Type};
use serde::{Deserialize, Serialize};

/// What one run costs. Opaque ops count as element by element, and their tapes not at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// Calls of LibTorch.
    pub calls: u64,
    /// Bytes of tensor memory allocated in all.
    pub bytes_allocated: u64,
    /// Most bytes held at once: outputs included, and inputs that are consumed, but not those that are lent.
    pub peak_bytes: u64,
    /// Floating-point operations.
    pub flops: u64,
}

/// Cost of a plan.
pub(super) fn of(plan: &Plan) -> Cost {
    let mut cost = Cost::default();
    let mut memory = Memory::default();
    memory.slots.resize(plan.slots.len(), None);
    for s in &plan.consumed {
        memory.own(plan, *s);
    }
    cost.peak_bytes = memory.live;
    for step in &plan.steps {
        cost.calls += u64::from(step.op.is_libtorch());
        cost.flops += flops(step, &plan.slots);
        if step.op.facts.mutates.is_empty() {
            step.results
                .iter()
                .for_each(|r| memory.define(plan, step, *r, &mut cost));
        } else if !step.in_place {
            step.results.iter().for_each(|r| memory.share(step, *r));
        }
        cost.peak_bytes = cost.peak_bytes.max(memory.live);
        step.release.iter().for_each(|s| memory.release(*s));
    }
    cost
}

/// Who holds which memory.
#[derive(Default)]
struct Memory {
    /// Memory of each slot, by number.
    slots: Vec<Option<usize>>,
    /// Of each memory: its bytes, and how many slots hold it.
    blocks: Vec<(u64, usize)>,
    live: u64,
}

impl Memory {
    fn define(&mut self, plan: &Plan, step: &Step, slot: Slot, cost: &mut Cost) {
        match step.op.facts.view {
            true => self.share(step, slot),
            false => cost.bytes_allocated += self.own(plan, slot),
        }
    }

    /// Gives a tensor memory of its own, and tells how much.
    fn own(&mut self, plan: &Plan, slot: Slot) -> u64 {
        let Some(ty) = tensor(&plan.slots, slot) else { return 0 };
        self.slots[slot.index()] = Some(self.blocks.len());
        self.blocks.push((ty.bytes(), 1));
        self.live += ty.bytes();
        ty.bytes()
    }

    fn share(&mut self, step: &Step, slot: Slot) {
        let base = match step.args.first() {
            Some(Arg::Value(base)) => self.slots[base.index()],
            _ => None,
        };
        if let Some(block) = base {
            self.blocks[block].1 += 1;
        }
        self.slots[slot.index()] = base;
    }

    fn release(&mut self, slot: Slot) {
        if let Some(block) = self.slots[slot.index()].take() {
            let (bytes, holders) = &mut self.blocks[block];
            *holders -= 1;
            if *holders == 0 {
                self.live -= *bytes;
            }
        }
    }
}

fn tensor(slots: &[Type], slot: Slot) -> Option<&TensorType> {
    match &slots[slot.index()] {
        Type::Tensor(t) => t.as_ref(),
        _ => None,
    }
}

/// Floating-point operations of a step: `2mnk` for products, one per element read or written otherwise, none for
/// views.
pub fn flops(step: &Step, slots: &[Type]) -> u64 {
    if step.op.facts.view || !step.op.is_libtorch() {
        return 0;
    }
    let size = |n: i64| u64::try_from(n).unwrap_or(0);
    let argument = |i: usize| match step.args.get(i) {
        Some(Arg::Value(v)) => tensor(slots, *v),
        _ => None,
    };
    let result = step
        .results
        .first()
        .and_then(|r| tensor(slots, *r))
        .map_or(0, |t| size(t.numel()));
    // How many products go into each element of the result.
    let inner = match step.op.base.trim_end_matches('_') {
        "mm" | "bmm" | "matmul" | "mv" | "dot" | "vdot" | "inner" | "linear" => {
            argument(0).map(|x| x.shape.last().copied().map_or(1, size))
        }
        "addmm" | "addmv" | "baddbmm" => argument(1).map(|x| x.shape.last().copied().map_or(1, size)),
        "addbmm" => {
            argument(1).map(|x| x.shape.first().copied().map_or(1, size) * x.shape.last().copied().map_or(1, size))
        }
        "conv1d" | "conv2d" | "conv3d" | "convolution" => {
            argument(1).map(|w| w.shape.iter().skip(1).copied().map(size).product())
        }
        _ => None,
    };
    if let Some(inner) = inner {
        return 2 * inner * result;
    }
    let mut most = result;
    for arg in &step.args {
        arg.for_each_value(&mut |v| most = most.max(tensor(slots, v).map_or(0, |t| size(t.numel()))));
    }
    most
}
