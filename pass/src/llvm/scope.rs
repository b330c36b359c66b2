//! Memory that is told apart from all other: a scope of LLVM's alias analysis.

use super::function::Function;
use super::value::{Mod, Value};
use llvm_sys::prelude::*;
use std::marker::PhantomData;

// SAFETY: the functions of `shim.cc`, with its signatures.
unsafe extern "C" {
    fn ct_scope_new(module: LLVMModuleRef) -> LLVMMetadataRef;
    fn ct_scope_own(instruction: LLVMValueRef, scope: LLVMMetadataRef);
    fn ct_scope_close(function: LLVMValueRef, scope: LLVMMetadataRef);
}

/// Memory that only accesses which say so reach.
#[derive(Clone, Copy)]
pub struct Scope<'m>(LLVMMetadataRef, PhantomData<&'m ()>);

impl<'m> Scope<'m> {
    /// A scope, different from all others.
    pub fn new(module: Mod<'m>) -> Self {
        // SAFETY: the module is live; the metadata lives as long as its context.
        Self(unsafe { ct_scope_new(module.raw()) }, PhantomData)
    }

    /// Says of a load or store that it is of this memory.
    pub fn own(self, access: Value<'m>) -> Value<'m> {
        // SAFETY: callers give an instruction; the scope is of its context.
        unsafe { ct_scope_own(access.raw(), self.0) }
        access
    }

    /// Says of all other loads, stores, copies and fills of a function that they are not.
    pub fn close(self, f: Function<'m>) {
        // SAFETY: the function is live; the scope is of its context.
        unsafe { ct_scope_close(f.value().raw(), self.0) }
    }
}
