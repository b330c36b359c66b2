//! The operators that allocate and free in C++ get the attributes of allocation functions, which LLVM gives to those of C
//! alone: so one answer serves all who ask what a call does to the heap.

use crate::llvm::{Function, Mod};

/// `alloc,uninitialized` and `free`, as bits of `allockind`.
const ALLOCATES: u64 = 1 | 8;
const FREES: u64 = 4;
/// The size is the first argument, and there is no count.
const SIZE_FIRST: u64 = u32::MAX as u64;

/// Marks the operators that a module declares. Those that it defines are functions like others.
pub(super) fn mark(module: Mod<'_>) {
    for f in module.functions().filter(|f| f.is_declaration()) {
        let name = f.name();
        if is_operator(&name, &["_Znwm", "_Znam"]) && f.ty().params().len() <= 3 {
            f.add_attribute_of("allockind", ALLOCATES);
            f.add_attribute_of("allocsize", SIZE_FIRST);
        } else if is_operator(&name, &["_ZdlPv", "_ZdaPv"]) {
            mark_free(f);
        }
    }
}

fn mark_free(f: Function<'_>) {
    f.add_attribute_of("allockind", FREES);
    f.add_param_attribute(0, "allocptr");
}

/// Is it one of the operators, perhaps told the size or alignment, or not to throw?
fn is_operator(name: &str, operators: &[&str]) -> bool {
    let rest = operators.iter().find_map(|o| name.strip_prefix(o));
    rest.is_some_and(|rest| {
        let rest = rest.strip_prefix('m').unwrap_or(rest);
        let rest = rest.strip_prefix("St11align_val_t").unwrap_or(rest);
        rest.is_empty() || rest == "RKSt9nothrow_t"
    })
}

#[cfg(test)]
mod tests {
    use super::is_operator;
    use crate::kernel::analysis::allocations::{Allocation, Size, allocation};
    use crate::llvm::OwnedModule;

    #[test]
    fn operators_are_told_from_their_relatives() {
        let allocates = |name| is_operator(name, &["_Znwm", "_Znam"]);
        assert!(allocates("_Znwm") && allocates("_ZnamSt11align_val_t") && allocates("_ZnwmRKSt9nothrow_t"));
        assert!(!allocates("_ZnwmPv") && !allocates("_Znwmx"));
        assert!(is_operator("_ZdlPvmSt11align_val_t", &["_ZdlPv"]));
    }

    #[test]
    fn a_call_of_an_operator_is_an_allocation() {
        let text = "
            declare ptr @_Znwm(i64)
            declare void @_ZdlPvm(ptr, i64)
            define void @f() { %p = call ptr @_Znwm(i64 8) call void @_ZdlPvm(ptr %p, i64 8) ret void }";
        let module = OwnedModule::read(text.as_bytes()).unwrap();
        super::mark(module.get());
        let f = module.get().function("f").unwrap();
        let found: Vec<_> = f
            .instructions()
            .filter(|i| i.is_call())
            .filter_map(allocation)
            .collect();
        let size = Size::Argument(0);
        let zeroed = false;
        assert_eq!(found, [Allocation::New { size, zeroed }, Allocation::Free { block: 0 }]);
    }
}
