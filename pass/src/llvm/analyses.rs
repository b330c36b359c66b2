//! LLVM's own analyses, and cloning with a value map: what the C API lacks, through `shim.cc`.

use super::function::Function;
use super::types::Type;
use super::value::{Block, Mod, Value};
use libc::{c_char, c_int, c_void};
use llvm_sys::prelude::*;
use std::cell::Cell;
use std::marker::PhantomData;

type Pair = unsafe extern "C" fn(*mut c_void, LLVMValueRef, LLVMValueRef);
type OneValue = unsafe extern "C" fn(*mut c_void, LLVMValueRef);
type OneBlock = unsafe extern "C" fn(*mut c_void, LLVMBasicBlockRef);

// SAFETY: the functions of `shim.cc`, with its signatures.
unsafe extern "C" {
    fn ct_clone_function(
        f: LLVMValueRef,
        ty: LLVMTypeRef,
        name: *const c_char,
        len: usize,
        report: Pair,
        context: *mut c_void,
    ) -> LLVMValueRef;
    fn ct_analyses_new() -> *mut c_void;
    fn ct_analyses_free(a: *mut c_void);
    fn ct_analyses_clear(a: *mut c_void);
    fn ct_analyses_forget(a: *mut c_void, f: LLVMValueRef);
    fn ct_dominates(a: *mut c_void, above: LLVMBasicBlockRef, below: LLVMBasicBlockRef) -> bool;
    fn ct_post_dominates(a: *mut c_void, later: LLVMBasicBlockRef, earlier: LLVMBasicBlockRef) -> bool;
    fn ct_dominates_instruction(a: *mut c_void, definition: LLVMValueRef, user: LLVMValueRef) -> bool;
    fn ct_immediate_dominator(a: *mut c_void, block: LLVMBasicBlockRef) -> LLVMBasicBlockRef;
    fn ct_reachable(a: *mut c_void, block: LLVMBasicBlockRef) -> bool;
    fn ct_cycle_of(a: *mut c_void, block: LLVMBasicBlockRef) -> *const c_void;
    fn ct_cycle_parent(cycle: *const c_void) -> *const c_void;
    fn ct_cycle_entries(cycle: *const c_void, report: OneBlock, context: *mut c_void);
    fn ct_backedge_count(a: *mut c_void, header: LLVMBasicBlockRef, count: *mut u64) -> c_int;
    fn ct_expand_backedge_count(a: *mut c_void, header: LLVMBasicBlockRef, ty: LLVMTypeRef) -> LLVMValueRef;
    fn ct_integer_facts(a: *mut c_void, at: LLVMValueRef, v: LLVMValueRef, facts: *mut i64) -> bool;
    fn ct_alias(a: *mut c_void, f: LLVMValueRef, p: LLVMValueRef, p_size: u64, q: LLVMValueRef, q_size: u64) -> c_int;
    fn ct_mod_ref(a: *mut c_void, i: LLVMValueRef, p: LLVMValueRef, size: u64) -> c_int;
    fn ct_live_on_entry(a: *mut c_void, load: LLVMValueRef) -> bool;
    fn ct_memory_effects(call: LLVMValueRef) -> u32;
    fn ct_argument_effects(call: LLVMValueRef, argument: u32) -> u32;
    fn ct_underlying_object(p: LLVMValueRef) -> LLVMValueRef;
    fn ct_underlying_objects(p: LLVMValueRef, report: OneValue, context: *mut c_void);
}

impl<'m> Function<'m> {
    /// A copy of the body in the same module, as an internal function of type `ty`, whose first parameters are those of
    /// this one. Gives the pairs of original and copy: arguments, then each block followed by its instructions, in
    /// order.
    ///
    /// If the result differs, the copied `ret`s are the caller's to replace. Attributes that bound what the function
    /// does to memory (`memory`, `nofree`, `captures`, `speculatable`), or that speak of a result of another type, are
    /// left out. The calling convention is C's.
    pub fn clone_as(self, ty: Type<'m>, name: &str) -> (Function<'m>, Vec<(Value<'m>, Value<'m>)>) {
        unsafe extern "C" fn report(context: *mut c_void, old: LLVMValueRef, new: LLVMValueRef) {
            // SAFETY: the context is the vector that `clone_as` passes; the values are live.
            unsafe {
                let pairs = &mut *context.cast::<Vec<(Value<'_>, Value<'_>)>>();
                pairs.push((Value::from_raw(old), Value::from_raw(new)));
            }
        }
        let mut pairs = vec![];
        let context = (&raw mut pairs).cast();
        // SAFETY: the function has a body and the type begins with its parameters; the name is passed with its length.
        let raw = unsafe {
            let name = (name.as_ptr().cast(), name.len());
            ct_clone_function(self.0.raw(), ty.0, name.0, name.1, report, context)
        };
        // SAFETY: the shim gives a new function of the module.
        (Function(unsafe { Value::from_raw(raw) }), pairs)
    }
}

/// LLVM's analyses of the functions of a module, computed when first asked for.
///
/// After a change of a function, [`Analyses::forget`] it before the next question about it.
pub struct Analyses<'m> {
    raw: *mut c_void,
    module: PhantomData<Mod<'m>>,
    // The managers are not shared between threads.
    local: PhantomData<Cell<()>>,
}

impl Drop for Analyses<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `new`, freed once.
        unsafe { ct_analyses_free(self.raw) }
    }
}

/// A cycle of the control flow graph: a natural loop, or an irreducible region.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CycleRef<'m>(*const c_void, PhantomData<&'m ()>);

/// How often the backedge of a loop is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backedges {
    /// Not known before the loop runs.
    Unknown,
    /// Known when the loop is entered: [`Analyses::expand_backedges`] computes it there.
    Computable,
    /// Always this often.
    Constant(u64),
}

/// What is known of an integer at all its executions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IntegerFacts {
    /// It is a multiple of this (0: it is zero).
    pub multiple: i64,
    /// It is not less, with sign.
    pub least: i64,
    /// It is not more, with sign.
    pub greatest: i64,
}

/// How two ranges of memory lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Alias {
    /// They never overlap.
    No,
    /// Nothing is known.
    May,
    /// They overlap and differ.
    Partial,
    /// They begin at the same place.
    Must,
}

/// What a piece of code does to memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ModRef {
    /// It may read it.
    pub reads: bool,
    /// It may write it.
    pub writes: bool,
}

impl ModRef {
    fn from_bits(bits: u32) -> Self {
        Self {
            reads: bits & 1 != 0,
            writes: bits & 2 != 0,
        }
    }

    /// Does it leave the memory alone?
    pub fn is_none(self) -> bool {
        !self.reads && !self.writes
    }
}

/// Memory effects of a call or function, by where the memory is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Effects {
    /// Memory that pointer arguments point to.
    pub arguments: ModRef,
    /// Memory that no code of the module can reach.
    pub inaccessible: ModRef,
    /// `errno`.
    pub errno: ModRef,
    /// All other memory.
    pub other: ModRef,
}

impl<'m> Analyses<'m> {
    /// Analyses of functions of a module, which the caller keeps alive.
    pub fn new(_: Mod<'m>) -> Self {
        Self {
            // SAFETY: no precondition.
            raw: unsafe { ct_analyses_new() },
            module: PhantomData,
            local: PhantomData,
        }
    }

    /// Forgets everything: functions were removed.
    pub fn forget_all(&self) {
        // SAFETY: the manager is live.
        unsafe { ct_analyses_clear(self.raw) }
    }

    /// Forgets what is known of a function.
    pub fn forget(&self, f: Function<'m>) {
        // SAFETY: the manager and the function are live.
        unsafe { ct_analyses_forget(self.raw, f.0.raw()) }
    }

    /// Does every way to `below` pass `above`? A block dominates itself.
    pub fn dominates(&self, above: Block<'m>, below: Block<'m>) -> bool {
        // SAFETY: blocks of one live function.
        unsafe { ct_dominates(self.raw, above.raw(), below.raw()) }
    }

    /// Does every way from `earlier` to the function's end pass `later`?
    pub fn post_dominates(&self, later: Block<'m>, earlier: Block<'m>) -> bool {
        // SAFETY: blocks of one live function.
        unsafe { ct_post_dominates(self.raw, later.raw(), earlier.raw()) }
    }

    /// Is the instruction `definition` executed before `user` on every way to it?
    pub fn available(&self, definition: Value<'m>, user: Value<'m>) -> bool {
        // SAFETY: callers give instructions of one live function.
        unsafe { ct_dominates_instruction(self.raw, definition.raw(), user.raw()) }
    }

    /// The immediate dominator; none for the entry and for what it does not reach.
    pub fn immediate_dominator(&self, b: Block<'m>) -> Option<Block<'m>> {
        // SAFETY: the block is live.
        Block::new(unsafe { ct_immediate_dominator(self.raw, b.raw()) })
    }

    /// Can the block be reached from the entry?
    pub fn reachable(&self, b: Block<'m>) -> bool {
        // SAFETY: the block is live.
        unsafe { ct_reachable(self.raw, b.raw()) }
    }

    /// The innermost cycle that the block is in.
    pub fn cycle_of(&self, b: Block<'m>) -> Option<CycleRef<'m>> {
        // SAFETY: the block is live.
        let raw = unsafe { ct_cycle_of(self.raw, b.raw()) };
        (!raw.is_null()).then_some(CycleRef(raw, PhantomData))
    }

    /// The cycle around a cycle.
    pub fn cycle_parent(&self, c: CycleRef<'m>) -> Option<CycleRef<'m>> {
        // SAFETY: the cycle belongs to an analysis that has not been forgotten.
        let raw = unsafe { ct_cycle_parent(c.0) };
        (!raw.is_null()).then_some(CycleRef(raw, PhantomData))
    }

    /// Blocks where a cycle is entered from outside. A natural loop has one, its header.
    pub fn cycle_entries(&self, c: CycleRef<'m>) -> Vec<Block<'m>> {
        unsafe extern "C" fn report(context: *mut c_void, block: LLVMBasicBlockRef) {
            // SAFETY: the context is the vector that `cycle_entries` passes.
            unsafe { (*context.cast::<Vec<Option<Block<'_>>>>()).push(Block::new(block)) }
        }
        let mut blocks: Vec<Option<Block<'m>>> = vec![];
        // SAFETY: as above; the vector is live during the call.
        unsafe { ct_cycle_entries(c.0, report, (&raw mut blocks).cast()) };
        blocks.into_iter().flatten().collect()
    }

    /// How often the backedge of the loop with this header is taken, if no exit from which the function cannot return
    /// (a panic, unwinding, `exit`) is taken before; such an exit only makes it less.
    pub fn backedges(&self, header: Block<'m>) -> Backedges {
        let mut count = 0;
        // SAFETY: the block is live.
        match unsafe { ct_backedge_count(self.raw, header.raw(), &mut count) } {
            0 => Backedges::Unknown,
            1 => Backedges::Computable,
            _ => Backedges::Constant(count),
        }
    }

    /// Emits code before the terminator of the loop's preheader that computes that number as an integer of type `ty`.
    pub fn expand_backedges(&self, header: Block<'m>, ty: Type<'m>) -> Option<Value<'m>> {
        // SAFETY: the block and the integer type are live.
        Value::new(unsafe { ct_expand_backedge_count(self.raw, header.raw(), ty.0) })
    }

    /// What is known of an integer where an instruction uses it; `None` if it has more than 64 bits.
    pub fn integer_facts(&self, at: Value<'m>, v: Value<'m>) -> Option<IntegerFacts> {
        let mut facts = [0i64; 3];
        // SAFETY: callers give an instruction and its operand, an integer; the array has three places.
        let known = unsafe { ct_integer_facts(self.raw, at.raw(), v.raw(), facts.as_mut_ptr()) };
        let [multiple, least, greatest] = facts;
        known.then_some(IntegerFacts {
            multiple,
            least,
            greatest,
        })
    }

    /// How two ranges lie, in one execution of the definitions of the pointers; `None` is a size that is not known.
    pub fn alias(&self, f: Function<'m>, p: (Value<'m>, Option<u64>), q: (Value<'m>, Option<u64>)) -> Alias {
        let size = |s: Option<u64>| s.unwrap_or(u64::MAX);
        // SAFETY: callers give pointers of the function, or constants.
        let kind = unsafe { ct_alias(self.raw, f.0.raw(), p.0.raw(), size(p.1), q.0.raw(), size(q.1)) };
        match kind {
            0 => Alias::No,
            2 => Alias::Partial,
            3 => Alias::Must,
            _ => Alias::May,
        }
    }

    /// What an instruction may do to a range.
    pub fn mod_ref(&self, instruction: Value<'m>, pointer: Value<'m>, size: Option<u64>) -> ModRef {
        // SAFETY: callers give an instruction and a pointer of its function.
        let bits = unsafe { ct_mod_ref(self.raw, instruction.raw(), pointer.raw(), size.unwrap_or(u64::MAX)) };
        ModRef::from_bits(bits as u32)
    }

    /// Does the load read what was there when the function was entered?
    pub fn live_on_entry(&self, load: Value<'m>) -> bool {
        // SAFETY: callers give a load.
        unsafe { ct_live_on_entry(self.raw, load.raw()) }
    }
}

impl<'m> Value<'m> {
    /// Memory effects of a call (its own attributes and the callee's), or of a function.
    pub fn effects(self) -> Effects {
        // SAFETY: callers apply it to calls and functions.
        let bits = unsafe { ct_memory_effects(self.raw()) };
        Effects {
            arguments: ModRef::from_bits(bits),
            inaccessible: ModRef::from_bits(bits >> 2),
            errno: ModRef::from_bits(bits >> 4),
            other: ModRef::from_bits(bits >> 6),
        }
    }

    /// What a call does to the memory behind a pointer argument, as far as attributes tell; and may it keep the pointer?
    pub fn argument_effects(self, argument: u32) -> (ModRef, bool) {
        // SAFETY: callers apply it to calls and one of their arguments.
        let bits = unsafe { ct_argument_effects(self.raw(), argument) };
        (ModRef::from_bits(bits), bits & 4 != 0)
    }

    /// The object that a pointer points into, as far as offsets, casts and `returned` arguments tell.
    pub fn underlying_object(self) -> Value<'m> {
        // SAFETY: callers apply it to pointers; LLVM gives a value, never null.
        unsafe { Value::from_raw(ct_underlying_object(self.raw())) }
    }

    /// The objects that a pointer may point into: as [`Value::underlying_object`], through `phi` and `select` as well. What
    /// cannot be followed stands for itself.
    pub fn underlying_objects(self) -> Vec<Value<'m>> {
        unsafe extern "C" fn report(context: *mut c_void, value: LLVMValueRef) {
            // SAFETY: the context is the vector that `underlying_objects` passes; the value is live.
            unsafe { (*context.cast::<Vec<Value<'_>>>()).push(Value::from_raw(value)) }
        }
        let mut objects: Vec<Value<'m>> = vec![];
        // SAFETY: callers apply it to pointers; the vector is live during the call.
        unsafe { ct_underlying_objects(self.raw(), report, (&raw mut objects).cast()) };
        objects
    }
}
