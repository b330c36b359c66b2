//! Whole modules: owned ones, copies of part of one, linking, passes, errors of the compiler's own.

use super::function::Function;
use super::types::{Type, ty};
use super::value::{Block, Mod, Value, c_string, message};
use llvm_sys::core as c;
use llvm_sys::prelude::*;
use std::ffi::CStr;
use std::marker::PhantomData;

unsafe extern "C" {
    fn ct_copy_module(module: LLVMModuleRef, keep: *const LLVMValueRef, count: usize) -> LLVMModuleRef;
    fn ct_aliasee(value: LLVMValueRef) -> LLVMValueRef;
    fn ct_is_interposable(global: LLVMValueRef) -> bool;
    fn ct_delete_body(global: LLVMValueRef);
    fn ct_drop_named_metadata(module: LLVMModuleRef);
    fn ct_is_address_taken(function: LLVMValueRef) -> bool;
    fn ct_number_labels(function: LLVMValueRef);
    fn ct_keep_alive(module: LLVMModuleRef, functions: *const LLVMValueRef, count: usize);
    fn ct_split_before(instruction: LLVMValueRef) -> LLVMBasicBlockRef;
    fn ct_invoke_to_call(invoke: LLVMValueRef);
    fn ct_unwind_by_resume(function: LLVMValueRef, calls: *const LLVMValueRef, count: usize);
    fn ct_replace_predecessor(block: LLVMBasicBlockRef, before: LLVMBasicBlockRef, after: LLVMBasicBlockRef);
    fn ct_metadata_text(value: LLVMValueRef, length: *mut usize) -> *const libc::c_char;
    fn ct_report_error(
        function: LLVMValueRef,
        directory: *const libc::c_char,
        file: *const libc::c_char,
        line: u32,
        column: u32,
        message: *const libc::c_char,
    );
    fn ct_constant_pointer(global: LLVMValueRef, offset: u64) -> LLVMValueRef;
    fn ct_run_passes(
        module: LLVMModuleRef,
        pipeline: *const libc::c_char,
        limits: *const Limit,
        count: usize,
    ) -> *mut libc::c_char;
    fn ct_demangle(name: *const libc::c_char) -> *mut libc::c_char;
}

/// A module as another program holds it: a reference of the C API.
pub type RawModule = LLVMModuleRef;

/// A pass by the name of its class, and the blocks of the largest function on which it runs.
#[repr(C)]
pub struct Limit {
    pass: *const libc::c_char,
    blocks: u64,
}

impl Limit {
    /// That pass in functions of at most so many blocks.
    pub const fn new(pass: &'static CStr, blocks: u64) -> Self {
        Self {
            pass: pass.as_ptr(),
            blocks,
        }
    }
}

/// A module of our own, in a context that outlives it.
pub struct OwnedMod<'c>(LLVMModuleRef, PhantomData<&'c ()>);

impl Drop for OwnedMod<'_> {
    fn drop(&mut self) {
        // SAFETY: owned, and disposed of once.
        unsafe { c::LLVMDisposeModule(self.0) }
    }
}

impl<'c> OwnedMod<'c> {
    /// The module, to work on.
    pub fn module(&self) -> Mod<'_> {
        Mod(self.0, PhantomData)
    }

    /// Links the module into another one of the same context: its definitions move there, and its declarations become
    /// what the other one has of these names.
    ///
    /// # Errors
    /// If the two do not fit; LLVM tells the context why.
    pub fn link_into(self, program: Mod<'c>) -> Result<(), String> {
        let own = std::mem::ManuallyDrop::new(self);
        // SAFETY: both modules are live and of one context; LLVM disposes of the second.
        match unsafe { llvm_sys::linker::LLVMLinkModules2(program.0, own.0) } {
            0 => Ok(()),
            _ => Err("the derivatives do not fit into the program".into()),
        }
    }
}

impl<'m> Mod<'m> {
    /// A copy with the definitions of `keep` alone. All others become declarations with external linkage; what stands
    /// for the whole program is left out; aliases give way to what they stand for.
    pub fn copy_of(self, keep: &[Value<'m>]) -> OwnedMod<'m> {
        let raw: Vec<_> = keep.iter().map(|v| v.0).collect();
        // SAFETY: the values are globals of the module, passed with their number.
        OwnedMod(unsafe { ct_copy_module(self.0, raw.as_ptr(), raw.len()) }, PhantomData)
    }

    /// Takes over target and layout of another module: modules of different ones are not linked.
    pub fn adopt_target(self, of: Mod<'_>) {
        // SAFETY: both modules are live; LLVM copies the texts.
        unsafe {
            c::LLVMSetTarget(self.0, c::LLVMGetTarget(of.0));
            c::LLVMSetDataLayout(self.0, c::LLVMGetDataLayoutStr(of.0));
        }
    }

    /// Runs passes, in the words of `opt -passes`.
    ///
    /// # Errors
    /// If the words are no pipeline.
    pub fn run_passes(self, pipeline: &str) -> Result<(), String> {
        self.run_passes_within(pipeline, &[])
    }

    /// Runs passes within limits.
    ///
    /// # Errors
    /// If the words are no pipeline.
    pub fn run_passes_within(self, pipeline: &str, limits: &[Limit]) -> Result<(), String> {
        let pipeline = c_string(pipeline);
        // SAFETY: the module is live; the words and the names end in a zero; the limits are passed with their number; what
        // comes back is null or a message that is ours.
        unsafe {
            let wrong = ct_run_passes(self.0, pipeline.as_ptr(), limits.as_ptr(), limits.len());
            if wrong.is_null() { Ok(()) } else { Err(message(wrong)) }
        }
    }

    /// The module as bitcode.
    pub fn bitcode(self) -> Vec<u8> {
        // SAFETY: the module is live.
        unsafe { super::export::written(self.0) }
    }

    /// Takes away debug information and what else is said of the module as a whole.
    pub fn strip_metadata(self) {
        // SAFETY: the module is live.
        unsafe {
            llvm_sys::debuginfo::LLVMStripModuleDebugInfo(self.0);
            ct_drop_named_metadata(self.0);
        }
    }

    /// Keeps functions from being removed as unused.
    pub fn keep_alive(self, functions: &[Function<'m>]) {
        let raw: Vec<_> = functions.iter().map(|f| f.value().0).collect();
        // SAFETY: the functions are of the module, passed with their number.
        unsafe { ct_keep_alive(self.0, raw.as_ptr(), raw.len()) }
    }
}

impl<'m> Function<'m> {
    /// Has the function a use other than being called?
    pub fn is_address_taken(self) -> bool {
        // SAFETY: the value is a function.
        unsafe { ct_is_address_taken(self.value().0) }
    }

    /// Makes jumps to computed labels switches over numbers, which stand for the labels in all of the module.
    pub fn number_labels(self) {
        // SAFETY: the value is a function.
        unsafe { ct_number_labels(self.value().0) }
    }

    /// Lets exceptions leave the function by a block of its own, in which `resume` ends: the calls become invokes. The
    /// function must have a personality.
    pub fn unwind_by_resume(self, calls: &[Value<'m>]) {
        let raw: Vec<_> = calls.iter().map(|v| v.0).collect();
        // SAFETY: callers give calls of the function, passed with their number.
        unsafe { ct_unwind_by_resume(self.value().0, raw.as_ptr(), raw.len()) }
    }

    /// Copies attributes of another function, where it has them.
    pub fn copy_attributes(self, from: Function<'_>, names: &[&str]) {
        let at = llvm_sys::LLVMAttributeFunctionIndex;
        for name in names {
            // SAFETY: both are functions of one context; names are passed with their length; null means that there is
            // no such attribute.
            unsafe {
                let (text, length) = (name.as_ptr().cast(), name.len());
                let a = match c::LLVMGetEnumAttributeKindForName(text, length) {
                    0 => c::LLVMGetStringAttributeAtIndex(from.value().0, at, text, length as u32),
                    kind => c::LLVMGetEnumAttributeAtIndex(from.value().0, at, kind),
                };
                if !a.is_null() {
                    c::LLVMAddAttributeAtIndex(self.value().0, at, a);
                }
            }
        }
    }
}

impl<'m> Value<'m> {
    /// The pointer that a global constant holds at an offset, if that is known.
    pub fn constant_pointer(self, offset: u64) -> Option<Value<'m>> {
        // SAFETY: any value may be asked; null says that it is not known.
        Value::new(unsafe { ct_constant_pointer(self.0, offset) })
    }

    /// What an alias stands for, if it is one that nothing can replace.
    pub fn aliasee(self) -> Option<Value<'m>> {
        // SAFETY: any value may be asked.
        Value::new(unsafe { ct_aliasee(self.0) })
    }

    /// May another definition of the global take the place of this one when the program is linked or loaded?
    pub fn is_interposable(self) -> bool {
        // SAFETY: callers apply it to globals.
        unsafe { ct_is_interposable(self.0) }
    }

    /// Turns the definition of a global into a declaration.
    pub fn delete_body(self) {
        // SAFETY: callers apply it to functions and global variables.
        unsafe { ct_delete_body(self.0) }
    }

    /// Removes a global variable that nothing uses.
    pub fn delete_global(self) {
        // SAFETY: callers apply it to global variables without users.
        unsafe { c::LLVMDeleteGlobal(self.0) }
    }

    /// The string that an operand of metadata is.
    pub fn metadata_text(self) -> Option<String> {
        let mut length = 0;
        // SAFETY: any value may be asked; LLVM owns the text.
        unsafe {
            let text = ct_metadata_text(self.0, &mut length).cast::<u8>();
            if text.is_null() {
                return None;
            }
            Some(String::from_utf8_lossy(std::slice::from_raw_parts(text, length)).into_owned())
        }
    }

    /// Type of a type attribute (`byval`, `sret`) of an argument, at the call or of the function that it calls.
    pub fn argument_type_attribute(self, i: u32, name: &str) -> Option<Type<'m>> {
        // SAFETY: callers apply it to calls; a null attribute means that there is none.
        let own = unsafe {
            let kind = c::LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len());
            let a = c::LLVMGetCallSiteEnumAttribute(self.0, i + 1, kind);
            (!a.is_null()).then(|| ty(c::LLVMGetTypeAttributeValue(a)))
        };
        own.or_else(|| self.callee().and_then(|f| f.param_type_attribute(i, name)))
    }

    /// Text of a constant array of bytes, without the zero byte at its end.
    pub fn string_value(self) -> Option<String> {
        let mut length = 0;
        // SAFETY: asked only if the value is such an array; LLVM owns the bytes.
        let bytes = unsafe {
            if c::LLVMIsAConstantDataSequential(self.0).is_null() || c::LLVMIsConstantString(self.0) == 0 {
                return None;
            }
            std::slice::from_raw_parts(c::LLVMGetAsString(self.0, &mut length).cast::<u8>(), length)
        };
        let text = bytes.strip_suffix(b"\0").unwrap_or(bytes);
        Some(String::from_utf8_lossy(text).into_owned())
    }

    /// Makes an invoke a call, which goes on where the invoke did.
    pub fn invoke_to_call(self) {
        // SAFETY: callers apply it to invokes.
        unsafe { ct_invoke_to_call(self.0) }
    }

    /// Ends the block before an instruction. The rest is a new block, to which nothing leads yet.
    pub fn split_before(self) -> Block<'m> {
        // SAFETY: callers apply it to instructions in blocks.
        Block(unsafe { ct_split_before(self.0) }, PhantomData)
    }
}

impl<'m> Type<'m> {
    /// A constant array of elements of the type.
    pub fn const_array(self, elements: &[Value<'m>]) -> Value<'m> {
        let mut raw: Vec<_> = elements.iter().map(|v| v.0).collect();
        // SAFETY: the elements are constants of the type, passed with their number.
        let raw = unsafe { c::LLVMConstArray2(self.0, raw.as_mut_ptr(), raw.len() as u64) };
        Value(raw, PhantomData)
    }
}

impl<'m> Block<'m> {
    /// Lets the merges at the start of the block name another predecessor.
    pub fn replace_predecessor(self, before: Block<'m>, after: Block<'m>) {
        // SAFETY: the blocks are of one function.
        unsafe { ct_replace_predecessor(self.0, before.0, after.0) }
    }
}

/// Tells an error through the context of a function's module: at a place in the source (directory, file, line,
/// column), or at the function if the line is zero. The compiler shows it and fails.
pub fn report_error(function: Function<'_>, place: (&str, &str, u32, u32), text: &str) {
    let (directory, file, line, column) = place;
    let (directory, file, text) = (c_string(directory), c_string(file), c_string(text));
    // SAFETY: the value is a function; texts are C strings that LLVM copies.
    unsafe {
        ct_report_error(
            function.value().0,
            directory.as_ptr(),
            file.as_ptr(),
            line,
            column,
            text.as_ptr(),
        );
    }
}

/// Collects the errors that are told through a context during some work, in the place of what the program that owns the
/// context does with them.
pub fn collect_errors<T>(context: super::value::Context<'_>, work: impl FnOnce() -> T) -> (T, Vec<String>) {
    extern "C" fn keep(info: LLVMDiagnosticInfoRef, list: *mut libc::c_void) {
        // SAFETY: LLVM passes the list below back; the message is freed once.
        unsafe {
            if c::LLVMGetDiagInfoSeverity(info) == llvm_sys::LLVMDiagnosticSeverity::LLVMDSError {
                let list = &*list.cast::<std::cell::RefCell<Vec<String>>>();
                list.borrow_mut().push(message(c::LLVMGetDiagInfoDescription(info)));
            }
        }
    }
    let list = std::cell::RefCell::new(Vec::new());
    // SAFETY: the context is live; the list outlives the work, after which the handler before is back.
    let done = unsafe {
        let (handler, data) = (
            c::LLVMContextGetDiagnosticHandler(context.0),
            c::LLVMContextGetDiagnosticContext(context.0),
        );
        c::LLVMContextSetDiagnosticHandler(context.0, Some(keep), (&raw const list).cast_mut().cast());
        let done = work();
        c::LLVMContextSetDiagnosticHandler(context.0, handler, data);
        done
    };
    (done, list.into_inner())
}

/// The name that a programmer gave to a C++ function; other names as they are.
pub fn demangle(name: &str) -> String {
    let name = c_string(name);
    // SAFETY: the name is a C string; the result, allocated with `malloc`, is freed once.
    unsafe {
        let raw = ct_demangle(name.as_ptr());
        let text = CStr::from_ptr(raw).to_string_lossy().into_owned();
        libc::free(raw.cast());
        text
    }
}

/// Parses the text form or the bitcode of a module.
///
/// # Errors
/// What is wrong with it, in LLVM's words.
pub fn parse<'c>(context: super::value::Context<'c>, text: &[u8]) -> Result<OwnedMod<'c>, String> {
    let (mut module, mut error) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: the context is live; the buffer is a copy, disposed of after parsing; the message is freed once.
    unsafe {
        let buffer = c::LLVMCreateMemoryBufferWithMemoryRangeCopy(text.as_ptr().cast(), text.len(), c"module".as_ptr());
        // Compilers have LLVM drop the names of values; text cannot be read without them.
        let discards = c::LLVMContextShouldDiscardValueNames(context.0);
        c::LLVMContextSetDiscardValueNames(context.0, 0);
        let failed = llvm_sys::ir_reader::LLVMParseIRInContext2(context.0, buffer, &mut module, &mut error);
        c::LLVMContextSetDiscardValueNames(context.0, discards);
        c::LLVMDisposeMemoryBuffer(buffer);
        match failed {
            0 => Ok(OwnedMod(module, PhantomData)),
            _ => Err(message(error)),
        }
    }
}

/// Parses the text form of a module.
///
/// # Errors
/// What is wrong with the text, in LLVM's words.
pub fn parse_text<'c>(context: super::value::Context<'c>, text: &str) -> Result<OwnedMod<'c>, String> {
    parse(context, text.as_bytes())
}

/// An empty module like another one: the same target and layout of data.
pub fn empty_like<'c>(module: Mod<'_>, context: super::value::Context<'c>, name: &str) -> OwnedMod<'c> {
    let name = c_string(name);
    // SAFETY: the module is live; its target and layout are copied.
    unsafe {
        let new = c::LLVMModuleCreateWithNameInContext(name.as_ptr(), context.0);
        c::LLVMSetTarget(new, c::LLVMGetTarget(module.0));
        c::LLVMSetDataLayout(new, c::LLVMGetDataLayoutStr(module.0));
        OwnedMod(new, PhantomData)
    }
}
