//! What a call calls, as far as derivatives care: by attributes where LLVM has one, by name where it has none.

use super::Refusal;
use super::analysis::allocations::{Allocation, Size, allocation};
use super::engine::Engine;
use super::reverse::leaves::carries;
use crate::llvm::{Function, Value};

/// A sort of callee without a rule of its own.
#[derive(Clone, Copy, Debug)]
pub enum Callee<'m> {
    /// Has no part in derivatives.
    Inactive,
    /// Gives its first argument.
    Move,
    /// `memcpy` or `memmove`.
    Copy,
    /// `memset`.
    Fill,
    /// Gives fresh memory: argument (or two, whose product counts) with its size.
    Allocate(u32, Option<u32>),
    /// Moves a block of memory: argument with the block, and the size as above.
    Reallocate(u32, u32, Option<u32>),
    /// A function with a body.
    Defined(Function<'m>),
    /// A pointer.
    Pointer,
}

/// Tells what a call calls.
///
/// # Errors
/// If it is a function without a body about which nothing is known.
pub fn classify<'m>(call: Value<'m>, engine: &Engine<'m>) -> Result<Callee<'m>, Refusal> {
    let Some(callee) = call.callee() else {
        if call.is_inline_assembly() {
            return match touches_nothing(call) {
                true => Ok(Callee::Inactive),
                false => Err(Refusal::at(call, "inline assembly", "write it without assembly")),
            };
        }
        return Ok(Callee::Pointer);
    };
    refuse_second_return(call)?;
    let name = callee.name();
    if let Some(intrinsic) = name.strip_prefix("llvm.") {
        return of_intrinsic(call, intrinsic);
    }
    if let Some(allocation) = allocation(call).and_then(of_allocation) {
        return Ok(allocation);
    }
    if callee.string_attribute("cotangent-inactive").is_some() || callee.attribute("noreturn").is_some() {
        return Ok(Callee::Inactive);
    }
    if !callee.is_declaration() && callee.ty().is_variadic() {
        let help = "pass the values as an array, or by parameters of their own";
        return Err(Refusal::at(
            call,
            format!("a call of `{name}`, which has variable arguments"),
            help,
        ));
    }
    if !callee.is_declaration() {
        return Ok(Callee::Defined(engine.body(callee)));
    }
    if touches_nothing(call) || only_looks(call) || does_output(&name) {
        return Ok(Callee::Inactive);
    }
    if EXCEPTIONS.contains(&&*name) {
        return Err(active_exception(call));
    }
    let help =
        "its code is not part of the program that the pass sees: give it a custom derivative, or declare it inactive";
    Err(Refusal::at(call, format!("a call of `{name}`"), help))
}

/// What compiled C++ makes and finds exceptions with.
const EXCEPTIONS: [&str; 4] = [
    "__cxa_allocate_exception",
    "__cxa_begin_catch",
    "__cxa_free_exception",
    "__cxa_get_exception_ptr",
];

/// Memory of exceptions has no shadow.
pub fn active_exception(i: Value<'_>) -> Refusal {
    let help = "throw what has no derivative (a text, the number of a case), and keep the values outside of it";
    Refusal::at(i, "an exception that carries values with derivatives", help)
}

/// Functions that can return twice (`setjmp`) are beyond what a reverse can follow.
///
/// # Errors
/// If it is a call of one.
pub fn refuse_second_return(call: Value<'_>) -> Result<(), Refusal> {
    match call.call_has("returns_twice") {
        true => {
            let help = "leave the function in another way: by its result, or by an exception that nobody in it catches";
            let name = call
                .callee()
                .map_or_else(String::new, |f| format!(" of `{}`", f.name()));
            Err(Refusal::at(
                call,
                format!("a call{name}, which can return a second time"),
                help,
            ))
        }
        false => Ok(()),
    }
}

/// Does the call give the address of a thread's own variable?
pub fn is_thread_local(call: Value<'_>) -> bool {
    call.intrinsic()
        .is_some_and(|n| n.starts_with("llvm.threadlocal.address"))
}

/// Intrinsics that neither write nor give anything that carries a derivative.
const SILENT: [&str; 23] = [
    "lifetime.start",
    "lifetime.end",
    "invariant.start",
    "invariant.end",
    "assume",
    "dbg.value",
    "dbg.declare",
    "dbg.label",
    "dbg.assign",
    "experimental.noalias.scope.decl",
    "donothing",
    "trap",
    "debugtrap",
    "ubsantrap",
    "stacksave",
    "stackrestore",
    "prefetch",
    "sideeffect",
    "pseudoprobe",
    "var.annotation",
    "is.constant",
    "objectsize",
    "eh.typeid.for",
];

/// Is it the name, without `llvm.`, of an intrinsic that neither writes nor gives anything that carries a derivative?
pub fn is_silent(intrinsic: &str) -> bool {
    SILENT.into_iter().any(|known| is_intrinsic(intrinsic, known))
}

/// Is it that intrinsic, for whatever types?
fn is_intrinsic(name: &str, known: &str) -> bool {
    name == known || name.strip_prefix(known).is_some_and(|rest| rest.starts_with('.'))
}

/// What a call does with a block of memory as a whole.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Block {
    /// From its second argument to its first.
    Copy,
    /// All bytes alike, behind its first argument.
    Fill,
}

/// What a function of the name does with blocks of memory, if it is one of LLVM's or of the library's for that.
pub fn of_block(name: &str) -> Option<Block> {
    let is = |known: &str| match name.strip_prefix("llvm.") {
        Some(name) => is_intrinsic(name, known),
        None => name == known,
    };
    if is("memcpy") || is("memmove") {
        return Some(Block::Copy);
    }
    is("memset").then_some(Block::Fill)
}

fn of_intrinsic<'m>(call: Value<'m>, name: &str) -> Result<Callee<'m>, Refusal> {
    let base = |known: &str| is_intrinsic(name, known);
    if ["memcpy", "memmove", "memcpy.inline"].into_iter().any(base) {
        return Ok(Callee::Copy);
    }
    if ["memset", "memset.inline"].into_iter().any(base) {
        return Ok(Callee::Fill);
    }
    if [
        "launder.invariant.group",
        "strip.invariant.group",
        "ptrmask",
        "ssa.copy",
        "ptr.annotation",
        "threadlocal.address",
    ]
    .into_iter()
    .any(base)
    {
        return Ok(Callee::Move);
    }
    if is_silent(name) || touches_nothing(call) {
        return Ok(Callee::Inactive);
    }
    let help = "the engine has no rule for it; please report this";
    Err(Refusal::at(call, format!("the intrinsic `llvm.{name}`"), help))
}

/// Do neither arguments nor result hold floats or pointers?
fn touches_nothing(call: Value<'_>) -> bool {
    let nothing = |v: Value<'_>| !carries(v.ty()).any();
    nothing(call) && call.arguments().into_iter().all(nothing)
}

/// Does it only read memory, and give a number that is no float?
fn only_looks(call: Value<'_>) -> bool {
    let effects = call.effects();
    !carries(call.ty()).any() && !effects.arguments.writes && !effects.other.writes
}

/// What a call of an allocation function is.
fn of_allocation<'m>(allocation: Allocation) -> Option<Callee<'m>> {
    let bytes = |size| match size {
        Size::Argument(bytes) => Some((bytes, None)),
        Size::Product(bytes, count) => Some((bytes, Some(count))),
        Size::Unknown => None,
    };
    Some(match allocation {
        Allocation::Free { .. } => Callee::Inactive,
        Allocation::New { size, .. } => {
            let (bytes, count) = bytes(size)?;
            Callee::Allocate(bytes, count)
        }
        Allocation::Resize { old, size } => {
            let (bytes, count) = bytes(size)?;
            Callee::Reallocate(old, bytes, count)
        }
    })
}

/// In mangled names of Rust, those of the standard streams.
const STREAMS: &str = "3std2io5stdio";

/// Input and output, clocks, random numbers and the like of the C, C++ and Rust libraries: what they write is no function of
/// what they read that a derivative could follow. They write no float and no pointer.
pub fn does_output(name: &str) -> bool {
    const NAMES: [&str; 47] = [
        "printf",
        "fprintf",
        "sprintf",
        "snprintf",
        "dprintf",
        "vprintf",
        "vfprintf",
        "vsprintf",
        "vsnprintf",
        "__printf_chk",
        "__fprintf_chk",
        "__sprintf_chk",
        "__snprintf_chk",
        "puts",
        "fputs",
        "putchar",
        "putc",
        "fputc",
        "fwrite",
        "write",
        "fflush",
        "fopen",
        "fclose",
        "perror",
        "getenv",
        "time",
        "clock",
        "clock_gettime",
        "gettimeofday",
        "rand",
        "srand",
        "random",
        "srandom",
        "__cxa_guard_acquire",
        "__cxa_guard_release",
        "__cxa_guard_abort",
        "__cxa_atexit",
        "atexit",
        "strlen",
        "strcmp",
        "strncmp",
        "memcmp",
        "bcmp",
        "__errno_location",
        "pthread_self",
        "sched_yield",
        "syscall",
    ];
    // How a hash table grows depends on how many elements it has.
    let hashes = name.starts_with("_ZNKSt8__detail20_Prime_rehash_policy") || name.starts_with("_ZSt11_Hash_bytes");
    hashes
        || name.contains(STREAMS)
        || NAMES.contains(&name)
        || name.starts_with("_ZNSo")
        || name.starts_with("_ZStlsI")
}
