//! ORC: object files in, addresses out. One JIT per process; each piece of code can be removed again.
//!
//! What compiled code imports, it imports by address (see `imports`).

mod object;
mod symbols;

pub use object::{Processor, assemble};

use crate::lower::Lowered;

use inkwell::llvm_sys::error::{LLVMDisposeErrorMessage, LLVMErrorRef, LLVMGetErrorMessage};
use inkwell::llvm_sys::orc2::lljit::*;
use inkwell::llvm_sys::orc2::*;
use inkwell::memory_buffer::MemoryBuffer;
use std::ffi::{CStr, CString};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Why machine code could not be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the JIT failed to {doing}: {message}")]
pub struct JitError {
    /// What it was doing.
    pub doing: &'static str,
    /// LLVM's message.
    pub message: String,
}

/// How many pieces of code the process has materialised so far.
pub fn materialisations() -> usize {
    MATERIALISATIONS.load(Ordering::Relaxed)
}

static MATERIALISATIONS: AtomicUsize = AtomicUsize::new(0);

/// The process's JIT.
struct Jit(LLVMOrcLLJITRef);

// SAFETY: ORC's sessions, dylibs and layers take their own locks; LLVM documents them as thread-safe.
unsafe impl Sync for Jit {}
// SAFETY: as above; nothing in it belongs to the thread that made it.
unsafe impl Send for Jit {}

fn jit() -> Result<&'static Jit, JitError> {
    static JIT: OnceLock<Result<Jit, JitError>> = OnceLock::new();
    JIT.get_or_init(Jit::new).as_ref().map_err(Clone::clone)
}

impl Jit {
    fn new() -> Result<Self, JitError> {
        object::initialize()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: a null builder asks for the defaults; `raw` is written on success.
        check("start", unsafe { LLVMOrcCreateLLJIT(&mut raw, std::ptr::null_mut()) })?;
        let jit = Self(raw);
        symbols::define(&jit)?;
        Ok(jit)
    }

    fn dylib(&self) -> LLVMOrcJITDylibRef {
        // SAFETY: the JIT lives as long as the process.
        unsafe { LLVMOrcLLJITGetMainJITDylib(self.0) }
    }
}

/// A piece of code in the JIT: one function. Dropping it removes the code, so nothing may be running in it.
pub struct Code {
    tracker: LLVMOrcResourceTrackerRef,
    symbol: CString,
    address: OnceLock<Result<u64, JitError>>,
}

// SAFETY: resource trackers are thread-safe, as ORC is; the address is plain data.
unsafe impl Send for Code {}
// SAFETY: as above.
unsafe impl Sync for Code {}

impl Code {
    /// Compiles a lowered graph. It is linked when [`Code::address`] is first asked for.
    pub fn compile(lowered: &Lowered) -> Result<Self, JitError> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let symbol = format!("cotangent_graph_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        Self::add(&symbol, &assemble(&lowered.named(&symbol), &Processor::Host)?)
    }

    /// Adds an object file that defines `symbol`, which no other code of the process may define.
    fn add(symbol: &str, object: &[u8]) -> Result<Self, JitError> {
        let jit = jit()?;
        let symbol = CString::new(symbol).map_err(|e| error("name a function", e))?;
        let buffer = MemoryBuffer::create_from_memory_range_copy(object, "cotangent");
        // SAFETY: the dylib is alive. The JIT takes the buffer over, so it is not freed here.
        unsafe {
            let tracker = LLVMOrcJITDylibCreateResourceTracker(jit.dylib());
            let raw = buffer.as_mut_ptr();
            std::mem::forget(buffer);
            let code = Self {
                tracker,
                symbol,
                address: OnceLock::new(),
            };
            check("add an object", LLVMOrcLLJITAddObjectFileWithRT(jit.0, tracker, raw))?;
            Ok(code)
        }
    }

    /// Address of the function; links on the first call.
    pub fn address(&self) -> Result<u64, JitError> {
        let link = || {
            let mut address = 0;
            // SAFETY: the JIT is alive, the symbol is a C string.
            let outcome = unsafe { LLVMOrcLLJITLookup(jit()?.0, &mut address, self.symbol.as_ptr()) };
            check("link a function", outcome)?;
            MATERIALISATIONS.fetch_add(1, Ordering::Relaxed);
            Ok(address)
        };
        self.address.get_or_init(link).clone()
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        // SAFETY: the tracker is ours. A failure to remove code leaks it, which is harmless.
        unsafe {
            _ = check("remove code", LLVMOrcResourceTrackerRemove(self.tracker));
            LLVMOrcReleaseResourceTracker(self.tracker);
        }
    }
}

fn check(doing: &'static str, outcome: LLVMErrorRef) -> Result<(), JitError> {
    if outcome.is_null() {
        return Ok(());
    }
    // SAFETY: a non-null error is owned by us; its message is a C string that we free.
    unsafe {
        let text = LLVMGetErrorMessage(outcome);
        let message = CStr::from_ptr(text).to_string_lossy().into_owned();
        LLVMDisposeErrorMessage(text);
        Err(JitError { doing, message })
    }
}

fn error(doing: &'static str, e: impl std::fmt::Display) -> JitError {
    JitError {
        doing,
        message: e.to_string(),
    }
}
