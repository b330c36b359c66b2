//! A bitcode module in memory, and the names of what it defines.

use super::debug::Locations;
use super::raw::{Layout, V};
use cotangent_raise::code::{Global, Symbol};
use llvm_sys::bit_reader::LLVMParseBitcodeInContext2;
use llvm_sys::core as c;
use llvm_sys::prelude::*;
use llvm_sys::target::LLVMGetModuleDataLayout;
use llvm_sys::{LLVMLinkage, LLVMValueKind};
use std::collections::HashMap;
use std::marker::PhantomData;
use std::rc::Rc;

/// An LLVM context: owns everything that is parsed in it.
pub(crate) struct Context(LLVMContextRef);

extern "C" fn ignore(_: LLVMDiagnosticInfoRef, _: *mut std::ffi::c_void) {}

impl Context {
    /// A new context. LLVM's remarks (about debug info of another version, say) are dropped; failures to parse are
    /// errors of [`Module::parse`].
    pub(crate) fn new() -> Self {
        // SAFETY: no preconditions; the handler touches nothing.
        unsafe {
            let context = c::LLVMContextCreate();
            c::LLVMContextSetDiagnosticHandler(context, Some(ignore), std::ptr::null_mut());
            Self(context)
        }
    }
}

impl Context {
    /// The context, for modules that are worked on in place.
    pub(crate) fn handle(&self) -> super::value::Context<'_> {
        super::value::Context(self.0, PhantomData)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: made by `new`; modules borrow the context and so are gone.
        unsafe { c::LLVMContextDispose(self.0) }
    }
}

/// A parsed module.
pub(crate) struct Module<'c> {
    raw: LLVMModuleRef,
    number: usize,
    pub(super) layout: Layout,
    pub(super) locations: Rc<Locations<'c>>,
    by_name: HashMap<String, V<'c>>,
    context: PhantomData<&'c Context>,
}

impl<'c> Module<'c> {
    /// Parses bitcode. `number` tells the module's own symbols from those of other modules.
    ///
    /// # Errors
    /// If the bytes are not bitcode that this LLVM reads.
    pub(crate) fn parse(
        context: &'c Context,
        locations: Rc<Locations<'c>>,
        number: usize,
        bytes: &[u8],
    ) -> Result<Self, String> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: the buffer is a copy that LLVM owns, disposed of after parsing; the context is live.
        let failed = unsafe {
            let name = c"bitcode".as_ptr();
            let buffer = c::LLVMCreateMemoryBufferWithMemoryRangeCopy(bytes.as_ptr().cast(), bytes.len(), name);
            let failed = LLVMParseBitcodeInContext2(context.0, buffer, &mut raw);
            c::LLVMDisposeMemoryBuffer(buffer);
            failed
        };
        if failed != 0 {
            return Err("it is not bitcode that LLVM 22 can read".into());
        }
        let mut module = Self {
            raw,
            number,
            // SAFETY: the module was just parsed and owns its layout.
            layout: Layout(unsafe { LLVMGetModuleDataLayout(raw) }),
            locations,
            by_name: HashMap::new(),
            context: PhantomData,
        };
        for v in module.functions().chain(module.globals()).collect::<Vec<_>>() {
            module.by_name.insert(v.name(), v);
        }
        Ok(module)
    }

    fn functions(&self) -> impl Iterator<Item = V<'c>> + use<'c> {
        // SAFETY: the module is live.
        std::iter::successors(V::new(unsafe { c::LLVMGetFirstFunction(self.raw) }), |v| {
            v.next_function()
        })
    }

    fn globals(&self) -> impl Iterator<Item = V<'c>> + use<'c> {
        // SAFETY: the module is live.
        std::iter::successors(V::new(unsafe { c::LLVMGetFirstGlobal(self.raw) }), |v| v.next_global())
    }

    /// Functions and globals that the module defines for others.
    pub(crate) fn exports(&self) -> Vec<String> {
        let defined = |v: &V<'c>| !v.is_declaration() && !is_local(*v);
        self.by_name
            .iter()
            .filter(|(_, v)| defined(v))
            .map(|(n, _)| n.clone())
            .collect()
    }

    /// Functions with a body that call `callee`, with the number of their parameters.
    pub(crate) fn callers(&self, callee: &str) -> Vec<(Symbol, u32)> {
        let Some(callee) = self.by_name.get(callee) else {
            return vec![];
        };
        let calls = |f: V<'c>| {
            let blocks = std::iter::successors(f.first_block(), |b| b.next());
            let mut insts = blocks.flat_map(|b| std::iter::successors(b.first(), |i| i.next_instruction()));
            insts.any(|i| super::decode::is_call(i) && i.called() == *callee)
        };
        let bodies = self.functions().filter(|f| !f.is_declaration() && calls(*f));
        bodies.map(|f| (self.symbol(f), f.params())).collect()
    }

    /// The symbol of a function or global: with the module's number if it is local to the module.
    pub(super) fn symbol(&self, v: V<'c>) -> Symbol {
        let name = v.name();
        if is_local(v) {
            format!("{}!{name}", self.number).into()
        } else {
            name.into()
        }
    }

    /// The function or global of that name.
    pub(super) fn find(&self, name: &str) -> Option<V<'c>> {
        self.by_name.get(name).copied()
    }

    /// A global that the module defines.
    pub(crate) fn global(&self, name: &str) -> Option<Rc<Global>> {
        let v = self.find(name)?.as_global()?;
        let init = v.initializer()?;
        let ty = self.ty(v.value_type());
        Some(Rc::new(Global {
            size: ty.size(),
            init: self.constant(init),
            ty,
            constant: v.is_constant(),
            thread_local: v.is_thread_local(),
        }))
    }

    /// Looks through aliases: the name that a name stands for in this module.
    pub(crate) fn target(&self, name: &str) -> Option<Symbol> {
        // SAFETY: the module is live; the name is passed with its length.
        let alias = unsafe { c::LLVMGetNamedGlobalAlias(self.raw, name.as_ptr().cast(), name.len()) };
        let aliasee = V::new(alias)?.aliasee();
        (aliasee.kind() == LLVMValueKind::LLVMFunctionValueKind).then(|| self.symbol(aliasee))
    }
}

impl Drop for Module<'_> {
    fn drop(&mut self) {
        // SAFETY: parsed by `parse`, disposed of once, before its context.
        unsafe { c::LLVMDisposeModule(self.raw) }
    }
}

fn is_local(v: V<'_>) -> bool {
    matches!(
        v.linkage(),
        LLVMLinkage::LLVMInternalLinkage | LLVMLinkage::LLVMPrivateLinkage
    )
}
