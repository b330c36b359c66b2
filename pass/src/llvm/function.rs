//! Functions, and the module that they are in.

use super::types::{Type, ty};
use super::value::{Block, Context, Linkage, Mod, Value, c_string, message};
use llvm_sys::core as c;
use llvm_sys::prelude::*;
use llvm_sys::{LLVMAttributeFunctionIndex, target as t};
use std::marker::PhantomData;

/// A function.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Function<'m>(pub(super) Value<'m>);

impl std::fmt::Debug for Function<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "@{}", self.name())
    }
}

impl<'m> Function<'m> {
    /// The function as a value: its address.
    pub fn value(self) -> Value<'m> {
        self.0
    }

    /// Its name.
    pub fn name(self) -> String {
        self.0.name()
    }

    /// Its type.
    pub fn ty(self) -> Type<'m> {
        // SAFETY: the value is a function.
        ty(unsafe { c::LLVMGlobalGetValueType(self.0.0) })
    }

    /// Its result.
    pub fn result(self) -> Type<'m> {
        self.ty().result()
    }

    /// Its parameters.
    pub fn params(self) -> Vec<Value<'m>> {
        // SAFETY: the value is a function; indices are below the number of parameters.
        unsafe {
            (0..c::LLVMCountParams(self.0.0))
                .map(|i| Value(c::LLVMGetParam(self.0.0, i), PhantomData))
                .collect()
        }
    }

    /// Its blocks; the first is the entry.
    pub fn blocks(self) -> impl Iterator<Item = Block<'m>> {
        // SAFETY: the value is a function.
        let first = Block::new(unsafe { c::LLVMGetFirstBasicBlock(self.0.0) });
        std::iter::successors(first, |b| b.next())
    }

    /// Its instructions.
    pub fn instructions(self) -> impl Iterator<Item = Value<'m>> {
        self.blocks().flat_map(Block::instructions)
    }

    /// The entry block of a function with a body.
    pub fn entry(self) -> Option<Block<'m>> {
        self.blocks().next()
    }

    /// Adds a block at the end.
    pub fn append_block(self, name: &str) -> Block<'m> {
        let name = c_string(name);
        let context = self.module().context();
        // SAFETY: the value is a function; the name is a C string.
        Block(
            unsafe { c::LLVMAppendBasicBlockInContext(context.0, self.0.0, name.as_ptr()) },
            PhantomData,
        )
    }

    /// Has it no body?
    pub fn is_declaration(self) -> bool {
        // SAFETY: the value is a function.
        unsafe { c::LLVMIsDeclaration(self.0.0) != 0 }
    }

    /// Its linkage.
    pub fn linkage(self) -> Linkage {
        // SAFETY: the value is a function.
        unsafe { c::LLVMGetLinkage(self.0.0) }
    }

    /// Sets its linkage.
    pub fn set_linkage(self, linkage: Linkage) {
        // SAFETY: the value is a function.
        unsafe { c::LLVMSetLinkage(self.0.0, linkage) }
    }

    /// Its calling convention.
    pub fn call_convention(self) -> u32 {
        // SAFETY: the value is a function.
        unsafe { c::LLVMGetFunctionCallConv(self.0.0) }
    }

    /// Value of an enum attribute of the function; 0 for one without a value.
    pub fn attribute(self, name: &str) -> Option<u64> {
        self.attribute_at(LLVMAttributeFunctionIndex, name)
    }

    /// Value of an enum attribute of a parameter.
    pub fn param_attribute(self, param: u32, name: &str) -> Option<u64> {
        self.attribute_at(param + 1, name)
    }

    /// Value of an enum attribute of the result.
    pub fn result_attribute(self, name: &str) -> Option<u64> {
        self.attribute_at(0, name)
    }

    fn attribute_at(self, index: u32, name: &str) -> Option<u64> {
        // SAFETY: the value is a function; a null attribute means that there is none.
        unsafe {
            let kind = c::LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len());
            let a = c::LLVMGetEnumAttributeAtIndex(self.0.0, index, kind);
            (!a.is_null()).then(|| c::LLVMGetEnumAttributeValue(a))
        }
    }

    /// Type of a type attribute (`byval`, `sret`) of a parameter.
    pub fn param_type_attribute(self, param: u32, name: &str) -> Option<Type<'m>> {
        // SAFETY: the value is a function; a null attribute means that there is none.
        unsafe {
            let kind = c::LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len());
            let a = c::LLVMGetEnumAttributeAtIndex(self.0.0, param + 1, kind);
            (!a.is_null()).then(|| ty(c::LLVMGetTypeAttributeValue(a)))
        }
    }

    /// Text of a string attribute of the function.
    pub fn string_attribute(self, name: &str) -> Option<String> {
        // SAFETY: the value is a function; a null attribute means that there is none; LLVM owns the text.
        unsafe {
            let at = LLVMAttributeFunctionIndex;
            let a = c::LLVMGetStringAttributeAtIndex(self.0.0, at, name.as_ptr().cast(), name.len() as u32);
            if a.is_null() {
                return None;
            }
            let mut len = 0;
            let text = c::LLVMGetStringAttributeValue(a, &mut len).cast::<u8>();
            Some(String::from_utf8_lossy(std::slice::from_raw_parts(text, len as usize)).into_owned())
        }
    }

    /// Adds an enum attribute without a value (or with value 0) to the function.
    pub fn add_attribute(self, name: &str) {
        self.add_attribute_at(LLVMAttributeFunctionIndex, name, 0);
    }

    /// Adds an enum attribute with a value.
    pub fn add_attribute_of(self, name: &str, value: u64) {
        self.add_attribute_at(LLVMAttributeFunctionIndex, name, value);
    }

    /// Adds an enum attribute without a value to a parameter.
    pub fn add_param_attribute(self, param: u32, name: &str) {
        self.add_attribute_at(param + 1, name, 0);
    }

    fn add_attribute_at(self, index: u32, name: &str, value: u64) {
        let context = self.module().context();
        // SAFETY: the value is a function; the name is one of LLVM's.
        unsafe {
            let kind = c::LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len());
            c::LLVMAddAttributeAtIndex(self.0.0, index, c::LLVMCreateEnumAttribute(context.0, kind, value));
        }
    }

    /// Adds a string attribute to the function.
    pub fn add_string_attribute(self, name: &str, value: &str) {
        let context = self.module().context();
        // SAFETY: the value is a function; texts are passed with their lengths.
        unsafe {
            let (n, v) = (name.as_ptr().cast(), value.as_ptr().cast());
            let a = c::LLVMCreateStringAttribute(context.0, n, name.len() as u32, v, value.len() as u32);
            c::LLVMAddAttributeAtIndex(self.0.0, LLVMAttributeFunctionIndex, a);
        }
    }

    /// Removes an enum attribute of the function.
    pub fn remove_attribute(self, name: &str) {
        // SAFETY: the value is a function.
        unsafe {
            let kind = c::LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len());
            c::LLVMRemoveEnumAttributeAtIndex(self.0.0, LLVMAttributeFunctionIndex, kind);
        }
    }

    /// Its personality: what decides about landing pads.
    pub fn personality(self) -> Option<Value<'m>> {
        // SAFETY: the value is a function; asked only if there is one.
        unsafe {
            if c::LLVMHasPersonalityFn(self.0.0) == 0 {
                return None;
            }
            Value::new(c::LLVMGetPersonalityFn(self.0.0))
        }
    }

    /// Sets its personality.
    pub fn set_personality(self, f: Value<'m>) {
        // SAFETY: both are functions of the module.
        unsafe { c::LLVMSetPersonalityFn(self.0.0, f.0) }
    }

    /// Runs passes on the function, in the words of `opt -passes`.
    ///
    /// # Errors
    /// If the words are no pipeline of function passes.
    pub fn run_passes(self, pipeline: &str) -> Result<(), String> {
        use llvm_sys::transforms::pass_builder as p;
        let pipeline = c_string(pipeline);
        // SAFETY: the function has a body; options are made and disposed of here; an error's message is freed once.
        unsafe {
            let options = p::LLVMCreatePassBuilderOptions();
            let error = p::LLVMRunPassesOnFunction(self.0.0, pipeline.as_ptr(), std::ptr::null_mut(), options);
            p::LLVMDisposePassBuilderOptions(options);
            if error.is_null() {
                return Ok(());
            }
            let raw = llvm_sys::error::LLVMGetErrorMessage(error);
            let text = std::ffi::CStr::from_ptr(raw).to_string_lossy().into_owned();
            llvm_sys::error::LLVMDisposeErrorMessage(raw);
            Err(text)
        }
    }

    /// Takes the debug information of the function away: locations inside then say nothing of it.
    pub fn erase_subprogram(self) {
        // SAFETY: the value is a function; kind 0 is `dbg` in every context.
        unsafe { c::LLVMGlobalEraseMetadata(self.0.0, 0) }
    }

    /// The module that it is in.
    pub fn module(self) -> Mod<'m> {
        // SAFETY: the function is in a module.
        Mod(unsafe { c::LLVMGetGlobalParent(self.0.0) }, PhantomData)
    }

    /// Deletes the function.
    pub fn delete(self) {
        // SAFETY: callers have removed all uses.
        unsafe { c::LLVMDeleteFunction(self.0.0) }
    }
}

/// Has LLVM an intrinsic of that name, types left out?
pub fn is_intrinsic(name: &str) -> bool {
    // SAFETY: the name is passed with its length.
    unsafe { c::LLVMLookupIntrinsicID(name.as_ptr().cast(), name.len()) != 0 }
}

impl<'m> Mod<'m> {
    /// Wraps a module that is owned elsewhere.
    ///
    /// # Safety
    /// The module must be live as long as `'m`.
    pub unsafe fn from_raw(raw: LLVMModuleRef) -> Self {
        Self(raw, PhantomData)
    }

    /// Its context.
    pub fn context(self) -> Context<'m> {
        // SAFETY: the module is live.
        Context(unsafe { c::LLVMGetModuleContext(self.0) }, PhantomData)
    }

    /// Its functions, declarations included.
    pub fn functions(self) -> impl Iterator<Item = Function<'m>> {
        // SAFETY: the module is live.
        let first = unsafe { c::LLVMGetFirstFunction(self.0) };
        let next = |f: &Value<'m>| {
            // SAFETY: as above.
            Value::new(unsafe { c::LLVMGetNextFunction(f.0) })
        };
        std::iter::successors(Value::new(first), next).map(Function)
    }

    /// Its global variables.
    pub fn globals(self) -> impl Iterator<Item = Value<'m>> {
        // SAFETY: the module is live.
        let first = unsafe { c::LLVMGetFirstGlobal(self.0) };
        // SAFETY: as above.
        std::iter::successors(Value::new(first), |g| Value::new(unsafe { c::LLVMGetNextGlobal(g.0) }))
    }

    /// The function of that name.
    pub fn function(self, name: &str) -> Option<Function<'m>> {
        // SAFETY: the module is live; the name is passed with its length.
        let raw = unsafe { c::LLVMGetNamedFunctionWithLength(self.0, name.as_ptr().cast(), name.len()) };
        Value::new(raw).map(Function)
    }

    /// The global variable of that name.
    pub fn global(self, name: &str) -> Option<Value<'m>> {
        // SAFETY: the module is live; the name is passed with its length.
        Value::new(unsafe { c::LLVMGetNamedGlobalWithLength(self.0, name.as_ptr().cast(), name.len()) })
    }

    /// Declares a function. LLVM appends a number if the name is taken.
    pub fn add_function(self, name: &str, ty: Type<'m>) -> Function<'m> {
        let name = c_string(name);
        // SAFETY: the type is a function type of the module's context.
        Function(Value(
            unsafe { c::LLVMAddFunction(self.0, name.as_ptr(), ty.0) },
            PhantomData,
        ))
    }

    /// Adds a global variable.
    pub fn add_global(self, name: &str, ty: Type<'m>) -> Value<'m> {
        let name = c_string(name);
        // SAFETY: the type is a type of the module's context.
        Value(unsafe { c::LLVMAddGlobal(self.0, ty.0, name.as_ptr()) }, PhantomData)
    }

    /// The declaration of an intrinsic (`llvm.sqrt`), for the types that it is overloaded on.
    pub fn intrinsic(self, name: &str, types: &[Type<'m>]) -> Option<Function<'m>> {
        let mut raw: Vec<_> = types.iter().map(|t| t.0).collect();
        // SAFETY: the name is passed with its length, the types with their number.
        unsafe {
            let id = c::LLVMLookupIntrinsicID(name.as_ptr().cast(), name.len());
            if id == 0 {
                return None;
            }
            Value::new(c::LLVMGetIntrinsicDeclaration(self.0, id, raw.as_mut_ptr(), raw.len())).map(Function)
        }
    }

    /// Bytes of a value of the type in memory, padding at the end included: the distance of array elements.
    pub fn size(self, ty: Type<'m>) -> u64 {
        // SAFETY: the layout belongs to the module; callers ask for sized types.
        unsafe { t::LLVMABISizeOfType(t::LLVMGetModuleDataLayout(self.0), ty.0) }
    }

    /// Bytes that a store of the type writes.
    pub fn store_size(self, ty: Type<'m>) -> u64 {
        // SAFETY: as above.
        unsafe { t::LLVMStoreSizeOfType(t::LLVMGetModuleDataLayout(self.0), ty.0) }
    }

    /// Alignment of the type, in bytes.
    pub fn alignment(self, ty: Type<'m>) -> u32 {
        // SAFETY: as above.
        unsafe { t::LLVMABIAlignmentOfType(t::LLVMGetModuleDataLayout(self.0), ty.0) }
    }

    /// Offset of a field of a structure type, in bytes.
    pub fn offset(self, ty: Type<'m>, field: u32) -> u64 {
        // SAFETY: as above; the type is a structure with that field.
        unsafe { t::LLVMOffsetOfElement(t::LLVMGetModuleDataLayout(self.0), ty.0, field) }
    }

    /// LLVM's text of the module.
    pub fn text(self) -> String {
        // SAFETY: the message is LLVM's and freed once.
        unsafe { message(c::LLVMPrintModuleToString(self.0)) }
    }

    /// What LLVM's verifier finds wrong.
    ///
    /// # Errors
    /// The verifier's words.
    pub fn verify(self) -> Result<(), String> {
        use llvm_sys::analysis::*;
        let mut text = std::ptr::null_mut();
        // SAFETY: the module is live; the message, always set, is freed once.
        unsafe {
            let failed = LLVMVerifyModule(self.0, LLVMVerifierFailureAction::LLVMReturnStatusAction, &mut text);
            let text = message(text);
            if failed != 0 { Err(text) } else { Ok(()) }
        }
    }
}

impl<'m> Value<'m> {
    /// Type of what a global variable or function is.
    pub fn value_type(self) -> Type<'m> {
        // SAFETY: callers apply it to globals.
        ty(unsafe { c::LLVMGlobalGetValueType(self.0) })
    }

    /// What a global variable holds at the start.
    pub fn initializer(self) -> Option<Value<'m>> {
        // SAFETY: callers apply it to global variables.
        Value::new(unsafe { c::LLVMGetInitializer(self.0) })
    }

    /// Sets what a global variable holds at the start.
    pub fn set_initializer(self, value: Value<'m>) {
        // SAFETY: the value is a global variable, the initializer a constant of its type.
        unsafe { c::LLVMSetInitializer(self.0, value.0) }
    }

    /// Is it a global variable that is never written?
    pub fn is_global_constant(self) -> bool {
        // SAFETY: the value is live, and only of global variables LLVM is asked more.
        unsafe { !c::LLVMIsAGlobalVariable(self.0).is_null() && c::LLVMIsGlobalConstant(self.0) != 0 }
    }

    /// Has every thread a copy of the global variable?
    pub fn is_thread_local(self) -> bool {
        // SAFETY: callers apply it to global variables.
        unsafe { c::LLVMIsThreadLocal(self.0) != 0 }
    }

    /// Says that the global variable is never written.
    pub fn set_global_constant(self) {
        // SAFETY: the value is a global variable.
        unsafe { c::LLVMSetGlobalConstant(self.0, 1) }
    }

    /// Linkage of a global variable.
    pub fn global_linkage(self) -> Linkage {
        // SAFETY: callers apply it to globals.
        unsafe { c::LLVMGetLinkage(self.0) }
    }

    /// Sets the linkage of a global variable.
    pub fn set_global_linkage(self, linkage: Linkage) {
        // SAFETY: the value is a global.
        unsafe { c::LLVMSetLinkage(self.0, linkage) }
    }

    /// Is of a global: other modules of the program see it, other programs do not.
    pub fn hide(self) {
        // SAFETY: the value is a global.
        unsafe {
            c::LLVMSetLinkage(self.0, Linkage::LLVMExternalLinkage);
            c::LLVMSetVisibility(self.0, llvm_sys::LLVMVisibility::LLVMHiddenVisibility);
        }
    }
}
