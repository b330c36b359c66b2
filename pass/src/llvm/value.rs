//! Values of LLVM as one untyped `Copy` handle with queries; blocks, functions and the module likewise.
//!
//! A handle is valid as long as its module and until what it names is erased. Queries that apply to some kinds of
//! value only say so.

use super::types::{Type, ty};
use llvm_sys::core as c;
use llvm_sys::prelude::*;
pub use llvm_sys::{
    LLVMAtomicRMWBinOp as RmwOp, LLVMIntPredicate as IntPredicate, LLVMLinkage as Linkage, LLVMOpcode as Opcode,
    LLVMRealPredicate as RealPredicate, LLVMValueKind as ValueKind,
};
use std::ffi::{CStr, CString};
use std::marker::PhantomData;

/// One method per C function that takes a reference first and plain data after it.
macro_rules! wrap {
    ($self:ident: $($(#[$doc:meta])* $path:ident::$c:ident as $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty = |$r:ident| $map:expr;)*) => {
        impl<'m> $self<'m> {
            $($(#[$doc])*
            pub fn $name(self $(, $arg: $ty)*) -> $ret {
                // SAFETY: the reference is live as long as `'m`, and callers apply the function only to the kinds of
                // value that LLVM documents for it.
                let $r = unsafe { $path::$c(self.0 $(, $arg)*) };
                $map
            })*
        }
    };
}
pub(super) use wrap;

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident, $raw:ty;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        pub struct $name<'m>(pub(super) $raw, pub(super) PhantomData<&'m ()>);

        impl<'m> $name<'m> {
            /// Wraps a reference of the C API; null is `None`.
            #[allow(dead_code, reason = "contexts and modules are never null")]
            pub(super) fn new(raw: $raw) -> Option<Self> {
                (!raw.is_null()).then_some(Self(raw, PhantomData))
            }

            /// The reference of the C API.
            pub fn raw(self) -> $raw {
                self.0
            }
        }
    )*};
}
handles! {
    /// A value: constant, argument, function, instruction.
    Value, LLVMValueRef;
    /// A basic block.
    Block, LLVMBasicBlockRef;
    /// A module, owned elsewhere.
    Mod, LLVMModuleRef;
    /// A context, owned elsewhere.
    Context, LLVMContextRef;
}

/// A name for the C API; a zero byte, which no name of ours has, ends it.
pub(super) fn c_string(text: &str) -> CString {
    CString::new(text.split('\0').next().unwrap_or("")).unwrap_or_default()
}

/// Copies and frees a message of LLVM's.
///
/// # Safety
/// The message must come from LLVM and not have been freed.
pub(super) unsafe fn message(raw: *mut libc::c_char) -> String {
    // SAFETY: by contract.
    unsafe {
        let text = CStr::from_ptr(raw).to_string_lossy().into_owned();
        c::LLVMDisposeMessage(raw);
        text
    }
}

wrap! { Value:
    /// What sort of value it is.
    c::LLVMGetValueKind as kind() -> ValueKind = |r| r;
    /// Its type; `ptr` for functions and globals.
    c::LLVMTypeOf as ty() -> Type<'m> = |r| ty(r);
    /// Number of operands.
    c::LLVMGetNumOperands as operand_count() -> i32 = |r| r;
    /// An operand; of calls, arguments come first.
    c::LLVMGetOperand as operand(i: u32) -> Value<'m> = |r| Value(r, PhantomData);
    /// Part of a constant aggregate or vector.
    c::LLVMGetAggregateElement as element(i: u32) -> Option<Value<'m>> = |r| Value::new(r);
    /// Is it a constant (functions and globals included)?
    c::LLVMIsConstant as is_constant() -> bool = |r| r != 0;
    /// Is it the zero of its type?
    c::LLVMIsNull as is_null() -> bool = |r| r != 0;
    /// Is it `undef` or `poison`?
    c::LLVMIsUndef as is_undef() -> bool = |r| r != 0;
    /// Value of a constant integer of up to 64 bits.
    c::LLVMConstIntGetZExtValue as zext_value() -> u64 = |r| r;
    /// Value of a constant integer of up to 64 bits, with sign.
    c::LLVMConstIntGetSExtValue as sext_value() -> i64 = |r| r;
    /// Operation of a constant expression.
    c::LLVMGetConstOpcode as const_opcode() -> Opcode = |r| r;
}

impl std::fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text().trim())
    }
}

impl std::fmt::Debug for Block<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "%{}", self.name())
    }
}

impl<'m> Value<'m> {
    /// Wraps a reference that is not null.
    ///
    /// # Safety
    /// The reference must be live as long as `'m`.
    pub unsafe fn from_raw(raw: LLVMValueRef) -> Self {
        Self(raw, PhantomData)
    }

    /// Its operands.
    pub fn operands(self) -> impl Iterator<Item = Value<'m>> {
        (0..self.operand_count() as u32).map(move |i| self.operand(i))
    }

    /// Replaces an operand.
    pub fn set_operand(self, i: u32, by: Value<'m>) {
        // SAFETY: callers give an operand of the same type.
        unsafe { c::LLVMSetOperand(self.0, i, by.0) }
    }

    /// The users of the value, once per use.
    pub fn users(self) -> impl Iterator<Item = Value<'m>> {
        // SAFETY: the chain of uses is live as long as nothing is changed during the iteration.
        let first = unsafe { c::LLVMGetFirstUse(self.0) };
        let some = |u: LLVMUseRef| (!u.is_null()).then_some(u);
        std::iter::successors(some(first), move |u| {
            // SAFETY: as above.
            some(unsafe { c::LLVMGetNextUse(*u) })
        })
        // SAFETY: as above.
        .map(|u| Value(unsafe { c::LLVMGetUser(u) }, PhantomData))
    }

    /// Lets every user use `by` instead.
    pub fn replace_with(self, by: Value<'m>) {
        // SAFETY: callers give a value of the same type.
        unsafe { c::LLVMReplaceAllUsesWith(self.0, by.0) }
    }

    /// Is it an instruction?
    pub fn is_instruction(self) -> bool {
        self.kind() == ValueKind::LLVMInstructionValueKind
    }

    /// Is it a parameter of a function?
    pub fn is_argument(self) -> bool {
        self.kind() == ValueKind::LLVMArgumentValueKind
    }

    /// Is it a constant integer?
    pub fn is_const_int(self) -> bool {
        self.kind() == ValueKind::LLVMConstantIntValueKind
    }

    /// Is it a constant float?
    pub fn is_const_real(self) -> bool {
        self.kind() == ValueKind::LLVMConstantFPValueKind
    }

    /// Is it a constant expression?
    pub fn is_const_expression(self) -> bool {
        self.kind() == ValueKind::LLVMConstantExprValueKind
    }

    /// Is it a pointer to no memory: null, or a number on the first page, which stands where nothing is allocated?
    pub fn is_nowhere(self) -> bool {
        let number = self.is_const_expression() && self.const_opcode() == Opcode::LLVMIntToPtr;
        let on_first_page = |n: Value<'m>| n.is_const_int() && n.zext_value() < 4096;
        self.is_null() || number && on_first_page(self.operand(0))
    }

    /// Is it a global variable?
    pub fn is_global(self) -> bool {
        self.kind() == ValueKind::LLVMGlobalVariableValueKind
    }

    /// The function, if it is one.
    pub fn as_function(self) -> Option<super::function::Function<'m>> {
        (self.kind() == ValueKind::LLVMFunctionValueKind).then_some(super::function::Function(self))
    }

    /// The block, if it is one.
    pub fn as_block(self) -> Option<Block<'m>> {
        // SAFETY: the kind was checked.
        (self.kind() == ValueKind::LLVMBasicBlockValueKind)
            .then(|| Block(unsafe { c::LLVMValueAsBasicBlock(self.0) }, PhantomData))
    }

    /// What an alias stands for.
    pub fn alias_target(self) -> Option<Value<'m>> {
        // SAFETY: callers apply it to aliases.
        Value::new(unsafe { c::LLVMAliasGetAliasee(self.0) })
    }

    /// The function behind aliases, if it is one.
    pub fn as_function_or_alias(self) -> Option<super::function::Function<'m>> {
        if self.kind() == ValueKind::LLVMGlobalAliasValueKind {
            // SAFETY: the value is an alias.
            let aliasee = unsafe { c::LLVMAliasGetAliasee(self.0) };
            return Value::new(aliasee)?.as_function_or_alias();
        }
        self.as_function()
    }

    /// Value of a constant float, as a double.
    pub fn real_value(self) -> f64 {
        let mut lossy = 0;
        // SAFETY: callers apply it to constant floats.
        unsafe { c::LLVMConstRealGetDouble(self.0, &mut lossy) }
    }

    /// Name of a value; empty if it has none.
    pub fn name(self) -> String {
        let mut len = 0;
        // SAFETY: LLVM returns a pointer to `len` bytes that it owns.
        let bytes = unsafe { std::slice::from_raw_parts(c::LLVMGetValueName2(self.0, &mut len).cast::<u8>(), len) };
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// Names a value; LLVM appends a number if the name is taken.
    pub fn set_name(self, name: &str) {
        // SAFETY: the name is passed with its length.
        unsafe { c::LLVMSetValueName2(self.0, name.as_ptr().cast(), name.len()) }
    }

    /// LLVM's text of the value.
    pub fn text(self) -> String {
        // SAFETY: the message is LLVM's and freed once.
        unsafe { message(c::LLVMPrintValueToString(self.0)) }
    }
}

wrap! { Block:
    /// First instruction.
    c::LLVMGetFirstInstruction as first() -> Option<Value<'m>> = |r| Value::new(r);
    /// Last instruction.
    c::LLVMGetLastInstruction as last() -> Option<Value<'m>> = |r| Value::new(r);
    /// The next block of the function.
    c::LLVMGetNextBasicBlock as next() -> Option<Block<'m>> = |r| Block::new(r);
    /// The terminator.
    c::LLVMGetBasicBlockTerminator as terminator() -> Option<Value<'m>> = |r| Value::new(r);
    /// The block as a value, as terminators use it.
    c::LLVMBasicBlockAsValue as as_value() -> Value<'m> = |r| Value(r, PhantomData);
}

impl<'m> Block<'m> {
    /// The function it is in.
    pub fn parent(self) -> super::function::Function<'m> {
        // SAFETY: the block is in a function.
        super::function::Function(Value(unsafe { c::LLVMGetBasicBlockParent(self.0) }, PhantomData))
    }

    /// Its instructions. The next is looked up before one is given out, so that that one may be erased.
    pub fn instructions(self) -> impl Iterator<Item = Value<'m>> {
        let mut next = self.first();
        std::iter::from_fn(move || {
            let i = next?;
            next = i.next();
            Some(i)
        })
    }

    /// Blocks that the terminator leads to, once per edge.
    pub fn successors(self) -> Vec<Block<'m>> {
        self.terminator().map(Value::successors).unwrap_or_default()
    }

    /// Blocks that lead here, once per edge.
    pub fn predecessors(self) -> Vec<Block<'m>> {
        let users = self.as_value().users();
        let mut blocks: Vec<_> = users.filter(|u| u.is_terminator()).map(|u| u.block()).collect();
        blocks.reverse();
        blocks
    }

    /// Its name; empty if it has none.
    pub fn name(self) -> String {
        self.as_value().name()
    }

    /// Places the block after another.
    pub fn move_after(self, other: Block<'m>) {
        // SAFETY: both blocks are live and in one function.
        unsafe { c::LLVMMoveBasicBlockAfter(self.0, other.0) }
    }

    /// Deletes the block and what is in it.
    pub fn delete(self) {
        // SAFETY: callers have removed all uses from outside.
        unsafe { c::LLVMDeleteBasicBlock(self.0) }
    }
}
