//! What only run time can tell, and what cannot go on then: panics, which the caller of the entry point may catch.

use object::{Object, ObjectKind, ObjectSymbol};
use std::ffi::{CStr, c_void};

/// Where a derivative would be lost: a value that has one is stored to memory that has no shadow.
///
/// # Safety
/// The message is text.
#[cold]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn cotangent_kernel_lost(message: *const u8, length: usize) -> ! {
    // SAFETY: the caller's promise.
    let message = unsafe { std::str::from_utf8_unchecked(std::slice::from_raw_parts(message, length)) };
    panic!("{message}")
}

/// Where a pointer is called whose function has no derivative: it was made outside of what was differentiated.
#[cold]
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn cotangent_kernel_underived(function: *const c_void) -> ! {
    let name = name_of(function).unwrap_or_else(|| format!("the function at {function:p}"));
    panic!(
        "cotangent: {name}, which a differentiated function has called by a pointer, is not part of the code that was \
         differentiated: make the pointer (closure, trait object) within the differentiated function, let the type of a \
         parameter name it (`fn`, `dyn`), or pass a value whose type says which function is meant"
    )
}

/// The name of a function, from the symbols of the file that it was loaded from.
fn name_of(function: *const c_void) -> Option<String> {
    // SAFETY: plain addresses and numbers, which may all be zero.
    let mut place: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be asked for.
    if unsafe { libc::dladdr(function, &mut place) } == 0 {
        return None;
    }
    // SAFETY: the name of a loaded file, which stays there.
    let file = unsafe { CStr::from_ptr(place.dli_fname) }.to_str().ok()?;
    let bytes = std::fs::read(file).or_else(|_| std::fs::read("/proc/self/exe")).ok()?;
    let object = object::File::parse(bytes.as_slice()).ok()?;
    let base = match object.kind() {
        ObjectKind::Executable => 0,
        _ => place.dli_fbase.addr(),
    };
    let at = (function.addr() - base) as u64;
    let symbol = object
        .symbols()
        .find(|symbol| symbol.is_definition() && symbol.address() == at)?;
    Some(format!("`{:#}`", rustc_demangle::demangle(symbol.name().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unmistakable() {}

    #[test]
    fn a_function_of_the_program_is_called_by_its_name() {
        let name = name_of(unmistakable as *const c_void);
        assert!(name.is_some_and(|name| name.contains("unmistakable")));
        assert_eq!(name_of(std::ptr::null()), None);
    }
}
