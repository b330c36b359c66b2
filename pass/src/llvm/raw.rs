//! The C API, value by value. References are `Copy` and stay valid as long as the context that made them.

use llvm_sys::core as c;
use llvm_sys::debuginfo as d;
use llvm_sys::prelude::*;
use llvm_sys::target as t;
use llvm_sys::{
    LLVMAtomicRMWBinOp, LLVMIntPredicate, LLVMLinkage, LLVMOpcode, LLVMRealPredicate, LLVMTypeKind, LLVMValueKind,
};
use std::ffi::CStr;
use std::marker::PhantomData;

macro_rules! reference {
    ($(#[$doc:meta])* $name:ident, $raw:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        pub(crate) struct $name<'c>(pub(super) $raw, PhantomData<&'c ()>);
    };
}
/// A reference that some C functions give as null.
macro_rules! nullable {
    ($($name:ident, $raw:ty;)*) => {$(
        impl<'c> $name<'c> {
            /// Wraps a reference; null is `None`.
            pub(super) fn new(raw: $raw) -> Option<Self> {
                (!raw.is_null()).then_some(Self(raw, PhantomData))
            }
        }
    )*};
}
reference!(/// A value: constant, function, instruction.
    V, LLVMValueRef);
reference!(/// A type.
    T, LLVMTypeRef);
reference!(/// A basic block.
    B, LLVMBasicBlockRef);
reference!(/// Metadata.
    M, LLVMMetadataRef);
nullable!(V, LLVMValueRef; B, LLVMBasicBlockRef; M, LLVMMetadataRef;);

/// One method per C function that takes a reference first and numbers after it.
macro_rules! wrap {
    ($self:ident: $($path:ident::$c:ident as $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty = |$r:ident| $map:expr;)*) => {
        impl<'c> $self<'c> {
            $(pub(super) fn $name(self $(, $arg: $ty)*) -> $ret {
                // SAFETY: the reference is live as long as `'c`, and callers apply the function only to the kinds of
                // value that LLVM documents for it.
                let $r = unsafe { $path::$c(self.0 $(, $arg)*) };
                $map
            })*
        }
    };
}

wrap! { V:
    c::LLVMGetValueKind as kind() -> LLVMValueKind = |r| r;
    c::LLVMTypeOf as ty() -> T<'c> = |r| T(r, PhantomData);
    c::LLVMGetInstructionOpcode as opcode() -> LLVMOpcode = |r| r;
    c::LLVMGetConstOpcode as const_opcode() -> LLVMOpcode = |r| r;
    c::LLVMGetNumOperands as operands() -> i32 = |r| r;
    c::LLVMGetOperand as operand(i: u32) -> V<'c> = |r| V(r, PhantomData);
    c::LLVMGetAggregateElement as element(i: u32) -> Option<V<'c>> = |r| V::new(r);
    c::LLVMIsAFunction as as_function() -> Option<V<'c>> = |r| V::new(r);
    c::LLVMIsAInlineAsm as as_asm() -> Option<V<'c>> = |r| V::new(r);
    c::LLVMIsAGlobalAlias as as_alias() -> Option<V<'c>> = |r| V::new(r);
    c::LLVMIsAGlobalVariable as as_global() -> Option<V<'c>> = |r| V::new(r);
    c::LLVMIsConstantString as is_string() -> bool = |r| r != 0;
    c::LLVMAliasGetAliasee as aliasee() -> V<'c> = |r| V(r, PhantomData);
    c::LLVMGetInitializer as initializer() -> Option<V<'c>> = |r| V::new(r);
    c::LLVMIsGlobalConstant as is_constant() -> bool = |r| r != 0;
    c::LLVMIsThreadLocal as is_thread_local() -> bool = |r| r != 0;
    c::LLVMIsDeclaration as is_declaration() -> bool = |r| r != 0;
    c::LLVMGlobalGetValueType as value_type() -> T<'c> = |r| T(r, PhantomData);
    c::LLVMGetLinkage as linkage() -> LLVMLinkage = |r| r;
    c::LLVMConstIntGetZExtValue as zext_value() -> u64 = |r| r;
    c::LLVMGetGEPSourceElementType as gep_type() -> T<'c> = |r| T(r, PhantomData);
    c::LLVMGetAllocatedType as allocated_type() -> T<'c> = |r| T(r, PhantomData);
    c::LLVMGetAlignment as alignment() -> u32 = |r| r;
    c::LLVMGetICmpPredicate as icmp() -> LLVMIntPredicate = |r| r;
    c::LLVMGetFCmpPredicate as fcmp() -> LLVMRealPredicate = |r| r;
    c::LLVMGetAtomicRMWBinOp as rmw() -> LLVMAtomicRMWBinOp = |r| r;
    c::LLVMGetCalledValue as called() -> V<'c> = |r| V(r, PhantomData);
    c::LLVMGetNumArgOperands as arg_operands() -> u32 = |r| r;
    c::LLVMGetNormalDest as normal_dest() -> B<'c> = |r| B(r, PhantomData);
    c::LLVMGetNumSuccessors as successors() -> u32 = |r| r;
    c::LLVMGetSuccessor as successor(i: u32) -> B<'c> = |r| B(r, PhantomData);
    c::LLVMGetSwitchCaseValue as case_value(i: u32) -> V<'c> = |r| V(r, PhantomData);
    c::LLVMCountIncoming as incoming() -> u32 = |r| r;
    c::LLVMGetIncomingValue as incoming_value(i: u32) -> V<'c> = |r| V(r, PhantomData);
    c::LLVMGetIncomingBlock as incoming_block(i: u32) -> B<'c> = |r| B(r, PhantomData);
    c::LLVMCountParams as params() -> u32 = |r| r;
    c::LLVMGetParam as param(i: u32) -> V<'c> = |r| V(r, PhantomData);
    c::LLVMGetFirstBasicBlock as first_block() -> Option<B<'c>> = |r| B::new(r);
    c::LLVMGetNextInstruction as next_instruction() -> Option<V<'c>> = |r| V::new(r);
    c::LLVMGetNextFunction as next_function() -> Option<V<'c>> = |r| V::new(r);
    c::LLVMGetNextGlobal as next_global() -> Option<V<'c>> = |r| V::new(r);
    c::LLVMGetNumIndices as index_count() -> u32 = |r| r;
    d::LLVMInstructionGetDebugLoc as debug_loc() -> Option<M<'c>> = |r| M::new(r);
}

wrap! { T:
    c::LLVMGetTypeKind as kind() -> LLVMTypeKind = |r| r;
    c::LLVMGetIntTypeWidth as width() -> u32 = |r| r;
    c::LLVMGetElementType as element() -> T<'c> = |r| T(r, PhantomData);
    c::LLVMGetArrayLength2 as length() -> u64 = |r| r;
    c::LLVMCountStructElementTypes as fields() -> u32 = |r| r;
    c::LLVMStructGetTypeAtIndex as field(i: u32) -> T<'c> = |r| T(r, PhantomData);
    c::LLVMTypeIsSized as is_sized() -> bool = |r| r != 0;
}

wrap! { B:
    c::LLVMGetFirstInstruction as first() -> Option<V<'c>> = |r| V::new(r);
    c::LLVMGetNextBasicBlock as next() -> Option<B<'c>> = |r| B::new(r);
}

wrap! { M:
    d::LLVMDILocationGetLine as line() -> u32 = |r| r;
    d::LLVMDILocationGetColumn as column() -> u32 = |r| r;
    d::LLVMDILocationGetScope as scope() -> Option<M<'c>> = |r| M::new(r);
    d::LLVMDILocationGetInlinedAt as inlined_at() -> Option<M<'c>> = |r| M::new(r);
    d::LLVMDIScopeGetFile as file() -> Option<M<'c>> = |r| M::new(r);
}

impl<'c> V<'c> {
    /// Name of a global.
    pub(super) fn name(self) -> String {
        let mut len = 0;
        // SAFETY: the reference is live; LLVM returns a pointer to `len` bytes that it owns.
        let bytes = unsafe { std::slice::from_raw_parts(c::LLVMGetValueName2(self.0, &mut len).cast::<u8>(), len) };
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// Bytes of a constant array of `i8`.
    pub(super) fn string(self) -> Vec<u8> {
        let mut len = 0;
        // SAFETY: callers checked `is_string`; LLVM returns a pointer to `len` bytes that it owns.
        unsafe { std::slice::from_raw_parts(c::LLVMGetAsString(self.0, &mut len).cast::<u8>(), len) }.to_vec()
    }

    /// Value of a constant float, as a double.
    pub(super) fn real(self) -> f64 {
        let mut lossy = 0;
        // SAFETY: callers checked that the value is a constant float.
        unsafe { c::LLVMConstRealGetDouble(self.0, &mut lossy) }
    }

    /// LLVM's text of the value.
    pub(super) fn text(self) -> String {
        // SAFETY: the reference is live; the string is LLVM's to free, which is done after it is copied.
        unsafe {
            let s = c::LLVMPrintValueToString(self.0);
            let text = CStr::from_ptr(s).to_string_lossy().into_owned();
            c::LLVMDisposeMessage(s);
            text
        }
    }

    /// Indices of `extractvalue` and `insertvalue`.
    pub(super) fn indices(self) -> Vec<u32> {
        let n = self.index_count() as usize;
        // SAFETY: callers apply it to these two instructions, which have `n` indices.
        unsafe { std::slice::from_raw_parts(c::LLVMGetIndices(self.0), n) }.to_vec()
    }

    /// Text of inline assembly.
    pub(super) fn asm(self) -> String {
        let mut len = 0;
        // SAFETY: callers checked that the value is inline assembly; LLVM owns the bytes.
        let bytes =
            unsafe { std::slice::from_raw_parts(c::LLVMGetInlineAsmAsmString(self.0, &mut len).cast::<u8>(), len) };
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// Value of an enum attribute of a function, by attribute name.
    pub(super) fn function_attribute(self, name: &str) -> Option<u64> {
        // SAFETY: callers apply it to functions; a null attribute means that there is none.
        unsafe {
            let kind = c::LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len());
            let a = c::LLVMGetEnumAttributeAtIndex(self.0, llvm_sys::LLVMAttributeFunctionIndex, kind);
            (!a.is_null()).then(|| c::LLVMGetEnumAttributeValue(a))
        }
    }

    /// Has the call site an enum attribute of that name?
    pub(super) fn call_attribute(self, name: &str) -> bool {
        // SAFETY: callers apply it to calls; a null attribute means that there is none.
        unsafe {
            let kind = c::LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len());
            !c::LLVMGetCallSiteEnumAttribute(self.0, llvm_sys::LLVMAttributeFunctionIndex, kind).is_null()
        }
    }
}

impl M<'_> {
    /// Directory and name of a file.
    pub(super) fn path(self) -> (String, String) {
        let text = |get: unsafe extern "C" fn(LLVMMetadataRef, *mut u32) -> *const libc::c_char| {
            let mut len = 0;
            // SAFETY: callers apply it to files; LLVM owns the `len` bytes. An absent string is null with length zero.
            unsafe {
                let p = get(self.0, &mut len).cast::<u8>();
                if p.is_null() {
                    String::new()
                } else {
                    String::from_utf8_lossy(std::slice::from_raw_parts(p, len as usize)).into_owned()
                }
            }
        };
        (text(d::LLVMDIFileGetDirectory), text(d::LLVMDIFileGetFilename))
    }
}

/// Sizes and offsets of types in a module.
#[derive(Clone, Copy)]
pub(crate) struct Layout(pub(super) t::LLVMTargetDataRef);

impl Layout {
    /// Distance between elements of an array of the type.
    pub(super) fn abi_size(self, ty: T<'_>) -> u64 {
        // SAFETY: the layout belongs to the module of the type; callers ask for sized types.
        unsafe { t::LLVMABISizeOfType(self.0, ty.0) }
    }

    /// Offset of a field.
    pub(super) fn offset(self, ty: T<'_>, field: u32) -> u64 {
        // SAFETY: as above; the type is a structure with that field.
        unsafe { t::LLVMOffsetOfElement(self.0, ty.0, field) }
    }
}
