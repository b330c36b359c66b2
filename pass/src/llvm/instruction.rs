//! Queries of instructions.

use super::function::Function;
use super::types::{Type, ty};
use super::value::{Block, IntPredicate, Opcode, RealPredicate, RmwOp, Value, wrap};
use llvm_sys::core as c;
use llvm_sys::{LLVMAtomicOrdering, LLVMAttributeFunctionIndex, debuginfo as d};
use std::marker::PhantomData;

wrap! { Value:
    /// Operation of an instruction.
    c::LLVMGetInstructionOpcode as opcode() -> Opcode = |r| r;
    /// The block that an instruction is in.
    c::LLVMGetInstructionParent as block() -> Block<'m> = |r| Block(r, PhantomData);
    /// The next instruction of the block.
    c::LLVMGetNextInstruction as next() -> Option<Value<'m>> = |r| Value::new(r);
    /// The instruction before it in the block.
    c::LLVMGetPreviousInstruction as previous() -> Option<Value<'m>> = |r| Value::new(r);
    /// Comparison of an `icmp`.
    c::LLVMGetICmpPredicate as int_predicate() -> IntPredicate = |r| r;
    /// Comparison of an `fcmp`.
    c::LLVMGetFCmpPredicate as real_predicate() -> RealPredicate = |r| r;
    /// Operation of an `atomicrmw`.
    c::LLVMGetAtomicRMWBinOp as rmw_op() -> RmwOp = |r| r;
    /// Is the access volatile?
    c::LLVMGetVolatile as is_volatile() -> bool = |r| r != 0;
    /// Is the access atomic?
    c::LLVMIsAtomic as is_atomic() -> bool = |r| r != 0;
    /// Ordering of an atomic access.
    c::LLVMGetOrdering as ordering() -> LLVMAtomicOrdering = |r| r;
    /// Alignment of an access, alloca or global, in bytes.
    c::LLVMGetAlignment as alignment() -> u32 = |r| r;
    /// Type that an `alloca` allocates.
    c::LLVMGetAllocatedType as allocated_type() -> Type<'m> = |r| ty(r);
    /// Type that a `getelementptr` counts in.
    c::LLVMGetGEPSourceElementType as gep_type() -> Type<'m> = |r| ty(r);
    /// Number of successors of a terminator.
    c::LLVMGetNumSuccessors as successor_count() -> u32 = |r| r;
    /// A successor of a terminator.
    c::LLVMGetSuccessor as successor(i: u32) -> Block<'m> = |r| Block(r, PhantomData);
    /// Value of a case of a `switch`; the default is successor 0, cases begin at 1.
    c::LLVMGetSwitchCaseValue as case_value(i: u32) -> Value<'m> = |r| Value(r, PhantomData);
    /// Number of predecessors of a `phi`.
    c::LLVMCountIncoming as incoming_count() -> u32 = |r| r;
    /// Value of a `phi` from a predecessor.
    c::LLVMGetIncomingValue as incoming_value(i: u32) -> Value<'m> = |r| Value(r, PhantomData);
    /// Predecessor of a `phi`.
    c::LLVMGetIncomingBlock as incoming_block(i: u32) -> Block<'m> = |r| Block(r, PhantomData);
    /// What a call calls: a function, or a pointer.
    c::LLVMGetCalledValue as called() -> Value<'m> = |r| Value(r, PhantomData);
    /// Type of the function that a call calls.
    c::LLVMGetCalledFunctionType as called_type() -> Type<'m> = |r| ty(r);
    /// Number of arguments of a call.
    c::LLVMGetNumArgOperands as argument_count() -> u32 = |r| r;
    /// Where an invoke goes on.
    c::LLVMGetNormalDest as normal_destination() -> Block<'m> = |r| Block(r, PhantomData);
    /// Where an invoke unwinds to.
    c::LLVMGetUnwindDest as unwind_destination() -> Block<'m> = |r| Block(r, PhantomData);
    /// Number of clauses of a landing pad.
    c::LLVMGetNumClauses as clause_count() -> u32 = |r| r;
    /// A clause of a landing pad.
    c::LLVMGetClause as clause(i: u32) -> Value<'m> = |r| Value(r, PhantomData);
    /// Is the landing pad a clean-up?
    c::LLVMIsCleanup as is_cleanup() -> bool = |r| r != 0;
    /// Calling convention of a call.
    c::LLVMGetInstructionCallConv as call_convention() -> u32 = |r| r;
    /// A copy of an instruction, without a place.
    c::LLVMInstructionClone as duplicate() -> Value<'m> = |r| Value(r, PhantomData);
}

impl<'m> Value<'m> {
    /// Is it an instruction with this operation?
    pub fn is(self, op: Opcode) -> bool {
        self.is_instruction() && self.opcode() == op
    }

    /// Is it a call or an invoke?
    pub fn is_call(self) -> bool {
        self.is_instruction() && matches!(self.opcode(), Opcode::LLVMCall | Opcode::LLVMInvoke)
    }

    /// Is it a terminator?
    pub fn is_terminator(self) -> bool {
        // SAFETY: any value may be asked; null says no.
        self.is_instruction() && unsafe { !c::LLVMIsATerminatorInst(self.0).is_null() }
    }

    /// Successors of a terminator, once per edge.
    pub fn successors(self) -> Vec<Block<'m>> {
        (0..self.successor_count()).map(|i| self.successor(i)).collect()
    }

    /// The function that a call names, behind aliases; `None` for an indirect call and for inline assembly.
    pub fn callee(self) -> Option<Function<'m>> {
        self.called().as_function_or_alias()
    }

    /// Name of the intrinsic (`llvm.sqrt.f64`) that a call calls.
    pub fn intrinsic(self) -> Option<String> {
        let name = self.is_call().then(|| self.callee())??.value().name();
        name.starts_with("llvm.").then_some(name)
    }

    /// Arguments of a call.
    pub fn arguments(self) -> Vec<Value<'m>> {
        (0..self.argument_count()).map(|i| self.operand(i)).collect()
    }

    /// Predecessors and values of a `phi`.
    pub fn incoming(self) -> Vec<(Block<'m>, Value<'m>)> {
        let n = self.incoming_count();
        (0..n)
            .map(|i| (self.incoming_block(i), self.incoming_value(i)))
            .collect()
    }

    /// Adds predecessors to a `phi`.
    pub fn add_incoming(self, incoming: &[(Block<'m>, Value<'m>)]) {
        let mut blocks: Vec<_> = incoming.iter().map(|(b, _)| b.0).collect();
        let mut values: Vec<_> = incoming.iter().map(|(_, v)| v.0).collect();
        // SAFETY: the value is a `phi`; the arrays have the same length.
        unsafe { c::LLVMAddIncoming(self.0, values.as_mut_ptr(), blocks.as_mut_ptr(), incoming.len() as u32) }
    }

    /// Adds a case to a `switch`.
    pub fn add_case(self, value: Value<'m>, to: Block<'m>) {
        // SAFETY: the value is a `switch`, `value` a constant of its type.
        unsafe { c::LLVMAddCase(self.0, value.0, to.0) }
    }

    /// Indices of `extractvalue` and `insertvalue`.
    pub fn indices(self) -> Vec<u32> {
        // SAFETY: callers apply it to these two instructions; LLVM gives the address of as many indices as it counts.
        unsafe { std::slice::from_raw_parts(c::LLVMGetIndices(self.0), c::LLVMGetNumIndices(self.0) as usize) }.to_vec()
    }

    /// Mask of a `shufflevector`; `None` where the element may be anything.
    pub fn shuffle_mask(self) -> Vec<Option<u32>> {
        // SAFETY: callers apply it to this instruction and indices are below the number of elements.
        unsafe {
            let n = c::LLVMGetNumMaskElements(self.0);
            (0..n)
                .map(|i| u32::try_from(c::LLVMGetMaskValue(self.0, i)).ok())
                .collect()
        }
    }

    /// Never leads a `getelementptr` below the pointer that it starts from (`nuw`)?
    pub fn gep_never_wraps(self) -> bool {
        // SAFETY: callers apply it to `getelementptr`, instruction or expression.
        unsafe { c::LLVMGEPGetNoWrapFlags(self.0) & llvm_sys::LLVMGEPFlagNUW != 0 }
    }

    /// Fast-math flags of an instruction, as bits; 0 if it cannot have any.
    pub fn fast_math(self) -> u32 {
        // SAFETY: asked only if the instruction can have flags.
        unsafe {
            if self.is_instruction() && c::LLVMCanValueUseFastMathFlags(self.0) != 0 {
                c::LLVMGetFastMathFlags(self.0)
            } else {
                0
            }
        }
    }

    /// Sets fast-math flags where the value can have them.
    pub fn set_fast_math(self, flags: u32) {
        // SAFETY: as above.
        unsafe {
            if self.is_instruction() && c::LLVMCanValueUseFastMathFlags(self.0) != 0 {
                c::LLVMSetFastMathFlags(self.0, flags);
            }
        }
    }

    /// Sets the alignment of an access, alloca or global.
    pub fn set_alignment(self, bytes: u32) {
        // SAFETY: the value is one of these; the number is a power of two.
        unsafe { c::LLVMSetAlignment(self.0, bytes) }
    }

    /// Sets the calling convention of a call.
    pub fn set_call_convention(self, convention: u32) {
        // SAFETY: the value is a call.
        unsafe { c::LLVMSetInstructionCallConv(self.0, convention) }
    }

    /// Has the call site, or the function that it calls, an enum attribute of that name on the function?
    pub fn call_has(self, name: &str) -> bool {
        self.call_attribute(LLVMAttributeFunctionIndex, name).is_some()
            || self.callee().is_some_and(|f| f.attribute(name).is_some())
    }

    /// Has argument `i` of the call, or the parameter of the function that it calls, an enum attribute of that name?
    pub fn argument_has(self, i: u32, name: &str) -> bool {
        self.call_attribute(i + 1, name).is_some()
            || self.callee().is_some_and(|f| f.param_attribute(i, name).is_some())
    }

    /// To what a pointer that a call takes is aligned, if the call says so.
    pub fn argument_alignment(self, i: u32) -> Option<u64> {
        self.call_attribute(i + 1, "align")
    }

    /// Value of an enum attribute at a call site.
    fn call_attribute(self, index: u32, name: &str) -> Option<u64> {
        // SAFETY: the value is a call; a null attribute means that there is none.
        unsafe {
            let kind = c::LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len());
            let a = c::LLVMGetCallSiteEnumAttribute(self.0, index, kind);
            (!a.is_null()).then(|| c::LLVMGetEnumAttributeValue(a))
        }
    }

    /// Takes the place in the source from an instruction.
    pub fn erase_location(self) {
        // SAFETY: the value is an instruction; null takes the location away.
        unsafe { d::LLVMInstructionSetDebugLoc(self.0, std::ptr::null_mut()) }
    }

    /// Sets where an invoke goes on.
    pub fn set_normal_destination(self, to: Block<'m>) {
        // SAFETY: the value is an invoke.
        unsafe { c::LLVMSetNormalDest(self.0, to.0) }
    }

    /// Copies what an argument of a call says of how it is passed to an argument of another call.
    pub fn copy_passing(self, from: u32, call: Value<'m>, to: u32) {
        for name in ["byval", "signext", "zeroext", "inreg"] {
            // SAFETY: both are calls; a null attribute means that there is none.
            unsafe {
                let kind = c::LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len());
                let a = c::LLVMGetCallSiteEnumAttribute(self.0, from + 1, kind);
                if !a.is_null() {
                    c::LLVMAddCallSiteAttribute(call.0, to + 1, a);
                }
            }
        }
    }

    /// Is what a call calls inline assembly?
    pub fn is_inline_assembly(self) -> bool {
        self.called().kind() == super::value::ValueKind::LLVMInlineAsmValueKind
    }

    /// The place in the source that an instruction comes from.
    pub fn location(self) -> Option<Location<'m>> {
        if !self.is_instruction() {
            return None;
        }
        // SAFETY: the value is an instruction; null means that it has no location.
        let raw = unsafe { d::LLVMInstructionGetDebugLoc(self.0) };
        (!raw.is_null()).then_some(Location(raw, PhantomData))
    }

    /// Takes an instruction out of its block and deletes it.
    pub fn erase(self) {
        // SAFETY: callers have removed all uses.
        unsafe { c::LLVMInstructionEraseFromParent(self.0) }
    }
}

/// A place in the source: metadata.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Location<'m>(pub(super) llvm_sys::prelude::LLVMMetadataRef, PhantomData<&'m ()>);

impl<'m> Location<'m> {
    /// The call that this place was inlined into.
    pub fn inlined_at(self) -> Option<Location<'m>> {
        // SAFETY: the metadata is a location.
        let raw = unsafe { d::LLVMDILocationGetInlinedAt(self.0) };
        (!raw.is_null()).then_some(Location(raw, PhantomData))
    }

    /// Line, column.
    pub fn position(self) -> (u32, u32) {
        // SAFETY: the metadata is a location.
        unsafe { (d::LLVMDILocationGetLine(self.0), d::LLVMDILocationGetColumn(self.0)) }
    }

    /// Directory and name of the file.
    pub fn file(self) -> (String, String) {
        // SAFETY: the metadata is a location, whose scope has a file or null.
        unsafe {
            let file = d::LLVMDIScopeGetFile(d::LLVMDILocationGetScope(self.0));
            if file.is_null() {
                return (String::new(), String::new());
            }
            let text = |get: unsafe extern "C" fn(_, *mut u32) -> *const libc::c_char| {
                let mut len = 0;
                let p = get(file, &mut len).cast::<u8>();
                if p.is_null() {
                    return String::new();
                }
                String::from_utf8_lossy(std::slice::from_raw_parts(p, len as usize)).into_owned()
            };
            (text(d::LLVMDIFileGetDirectory), text(d::LLVMDIFileGetFilename))
        }
    }
}
