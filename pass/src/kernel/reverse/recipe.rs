//! From what the reverse can have a value again, and what a field for it costs.

use super::counted::Induction;
use super::frame::Slot;
use super::plan::{Need, Plan};
use crate::llvm::{Opcode, Value};

/// How much dearer memory is with every loop around it of which nobody knows how often it runs.
const LOOP: u64 = 16;
/// The same if it is known, at most.
const MANY: u64 = 64;
/// Costs are counted in parts of a byte.
const PARTS: u64 = 4;

impl<'m> Plan<'m> {
    /// Operands from which it can be computed again.
    pub(super) fn recipe(&self, need: Need<'m>) -> Option<Vec<Need<'m>>> {
        let v = need.value();
        if !v.is_instruction() {
            return None;
        }
        let operands = || v.operands();
        if self.is_index(v) {
            return matches!(need, Need::Primal(_)).then(Vec::new);
        }
        if let Some((Induction { start, step, unit, .. }, _)) = self.induction(v) {
            return match need {
                Need::Primal(_) => Some(vec![Need::Primal(start), Need::Primal(step)]),
                Need::Shadow(_) if unit.is_some() => Some(vec![Need::Shadow(start), Need::Primal(step)]),
                Need::Shadow(_) | Need::Offset(_) => None,
            };
        }
        match (need, v.opcode()) {
            (Need::Primal(_), Opcode::LLVMLoad) if self.is_stable(v) => Some(vec![Need::Primal(v.operand(0))]),
            (Need::Shadow(_), Opcode::LLVMGetElementPtr | Opcode::LLVMBitCast | Opcode::LLVMFreeze) => {
                let indices = operands().skip(1).map(Need::Primal);
                Some(std::iter::once(Need::Shadow(v.operand(0))).chain(indices).collect())
            }
            (Need::Offset(_), _) => None,
            (Need::Shadow(_), Opcode::LLVMPHI | Opcode::LLVMSelect) => {
                Some(vec![Need::Shadow(self.object_of(v)?), Need::Offset(v)])
            }
            (Need::Primal(_), Opcode::LLVMPHI) if v.ty().is_pointer() => {
                Some(vec![Need::Primal(self.object_of(v)?), Need::Offset(v)])
            }
            (Need::Primal(_), op) if is_cheap(op) => Some(operands().map(Need::Primal).collect()),
            _ => None,
        }
    }

    /// Reads the load what is still there in the reverse?
    pub(super) fn is_stable(&self, load: Value<'m>) -> bool {
        if load.is_volatile() || load.is_atomic() {
            return false;
        }
        self.is_stable_memory(load.operand(0))
    }

    /// Does nothing write where the pointer leads, from the call on until its reverse is done?
    pub fn is_stable_memory(&self, pointer: Value<'m>) -> bool {
        let stable = |object: &Value<'m>| {
            if object.is_global() {
                return object.is_global_constant();
            }
            object.is_argument() && self.signature.argument_of(*object).is_some_and(|a| a.stable)
        };
        let objects = pointer.underlying_objects();
        let told = !objects.is_empty() && objects.iter().all(stable);
        told || self.signature.whole && self.unwritten.has(&self.content, pointer)
    }

    /// The one object into whose memory a pointer leads that moves: it and its shadow are as far from this and its shadow.
    /// So one number does for both, and LLVM sees where they lead.
    pub fn object_of(&self, v: Value<'m>) -> Option<Value<'m>> {
        let objects = v.underlying_objects();
        let [object] = objects[..] else { return None };
        let around = || {
            let (inner, outer) = (self.shape.region_of_value(v), self.shape.region_of_value(object));
            self.shape.within(inner, outer)
        };
        let found = object != v && object.ty().is_pointer() && (object.is_argument() || object.is_instruction());
        (found && around()).then_some(object)
    }

    /// Is it the counter of a loop?
    pub fn is_index(&self, v: Value<'m>) -> bool {
        v.is(Opcode::LLVMPHI)
            && self
                .counted(self.shape.region_of_value(v))
                .is_some_and(|c| c.index == v)
    }

    /// What a field costs, in parts of bytes of a call: an iteration of a loop counts as many.
    pub(super) fn cost_of_field(&self, need: Need<'m>) -> u64 {
        let v = need.value();
        let (bytes, _) = self.size_of_field(need);
        let bytes = bytes * u64::from(self.fields(need));
        let unseen = v.is(Opcode::LLVMPHI) && !matches!(need, Need::Offset(_)) && v.ty().is_pointer();
        // A pointer is dearer than a number if nobody sees any more where it came from.
        let dear = u64::from(unseen && self.object_of(v).is_some());
        (PARTS * bytes + dear).saturating_mul(self.weight(self.shape.region_of_value(v)))
    }

    /// What the number of a predecessor costs, or what else has so many bytes.
    pub(super) fn cost_of_bytes(&self, bytes: u64, region: usize) -> u64 {
        PARTS * bytes * self.weight(region)
    }

    /// Bytes and alignment of a field, of a shadow in one direction.
    pub(super) fn size_of_field(&self, need: Need<'m>) -> (u64, u64) {
        let ty = need.value().ty();
        match need {
            Need::Offset(_) => (8, 8),
            _ => (self.module().size(ty), self.module().alignment(ty).into()),
        }
    }

    /// How often a region is assumed to run in a call.
    fn weight(&self, mut region: usize) -> u64 {
        let mut weight: u64 = 1;
        while region != 0 {
            let times = match self.counted(region) {
                Some(counted) if counted.count.is_const_int() => counted.count.zext_value().clamp(1, MANY),
                _ => LOOP,
            };
            // However deep: products of costs must not overflow.
            weight = weight.saturating_mul(times).min(1 << 40);
            region = self.shape.regions[region].parent;
        }
        weight
    }

    /// Is it shadow memory in a frame, of which the address is known?
    pub(super) fn is_memory(&self, need: Need<'m>) -> bool {
        matches!(need, Need::Shadow(v) if self.frames.has(self.shape.region_of_value(v), Slot::Memory(v, 0)))
    }
}

/// Operations that are cheaper to repeat than to store: no access to memory, no call.
fn is_cheap(op: Opcode) -> bool {
    use Opcode::*;
    matches!(
        op,
        LLVMAdd
            | LLVMSub
            | LLVMMul
            | LLVMShl
            | LLVMLShr
            | LLVMAShr
            | LLVMAnd
            | LLVMOr
            | LLVMXor
            | LLVMTrunc
            | LLVMZExt
            | LLVMSExt
            | LLVMPtrToInt
            | LLVMIntToPtr
            | LLVMBitCast
            | LLVMGetElementPtr
            | LLVMICmp
            | LLVMFCmp
            | LLVMSelect
            | LLVMFNeg
            | LLVMFAdd
            | LLVMFSub
            | LLVMFMul
            | LLVMFPExt
            | LLVMFPTrunc
            | LLVMSIToFP
            | LLVMUIToFP
            | LLVMExtractElement
            | LLVMInsertElement
            | LLVMShuffleVector
            | LLVMExtractValue
            | LLVMInsertValue
    )
}
