//! Addresses that went through integers become pointers again.
//!
//! A value that is a pointer on one way and a number on another (the payload of `Result`, where an error holds sizes) lies
//! in memory as an integer. What is left of it once the other ways are known to be errors is
//!
//! ```text
//! n = phi [ptrtoint p], [8]       p' = phi [p], [inttoptr 8]
//! .. inttoptr n ..                .. p' ..
//! ```
//!
//! of which nothing would say any more that it leads into the memory of `p`.

use crate::llvm::{Builder, Mod, Opcode, Type, Value};
use std::collections::HashMap;

/// Numbers that are followed for one address.
const MOST: usize = 64;

/// Rewrites all functions of a module.
pub(super) fn as_pointers(module: Mod<'_>) {
    let bodies = module.functions().filter(|f| !f.is_declaration());
    let casts = bodies
        .flat_map(|f| f.instructions())
        .filter(|i| i.is(Opcode::LLVMIntToPtr));
    let mut known = HashMap::new();
    for cast in casts.collect::<Vec<_>>() {
        let (from, ty) = (cast.operand(0), cast.ty());
        if ty.is_pointer() && from.is(Opcode::LLVMPHI) && is_address(module, from) {
            cast.replace_with(pointer(module, from, ty, &mut known));
            cast.erase();
        }
    }
}

/// Is the number an address or a constant, on whatever way?
fn is_address<'m>(module: Mod<'m>, number: Value<'m>) -> bool {
    let word = 8 * module.size(module.context().ptr());
    let (mut work, mut seen, mut any) = (vec![number], vec![], false);
    while let Some(v) = work.pop() {
        if seen.contains(&v) {
            continue;
        }
        if seen.len() == MOST || u64::from(v.ty().int_width()) != word {
            return false;
        }
        seen.push(v);
        match v.opcode() {
            _ if v.is_const_int() || v.is_undef() => {}
            Opcode::LLVMPHI => work.extend(v.incoming().into_iter().map(|(_, x)| x)),
            Opcode::LLVMSelect => work.extend(v.operands().skip(1)),
            Opcode::LLVMPtrToInt if v.operand(0).ty() == module.context().ptr() => any = true,
            _ => return false,
        }
    }
    any
}

/// The pointer that a number is.
fn pointer<'m>(
    module: Mod<'m>,
    number: Value<'m>,
    ty: Type<'m>,
    known: &mut HashMap<Value<'m>, Value<'m>>,
) -> Value<'m> {
    if let Some(pointer) = known.get(&number) {
        return *pointer;
    }
    let b = Builder::new(module.context());
    match number.opcode() {
        // LLVM folds it.
        _ if number.is_constant() => b.inttoptr(number, ty),
        Opcode::LLVMPHI => {
            b.before(number);
            let phi = b.phi(ty);
            known.insert(number, phi);
            for (from, x) in number.incoming() {
                phi.add_incoming(&[(from, pointer(module, x, ty, known))]);
            }
            phi
        }
        Opcode::LLVMSelect => {
            let (yes, no) = (number.operand(1), number.operand(2));
            let (yes, no) = (pointer(module, yes, ty, known), pointer(module, no, ty, known));
            b.before(number);
            let select = b.select(number.operand(0), yes, no);
            known.insert(number, select);
            select
        }
        _ => number.operand(0),
    }
}

#[cfg(test)]
mod tests {
    use crate::llvm::{Opcode, OwnedModule};

    /// How many casts from integers are left in `f`, whose number `n` is `phi [%n, one way], [8, the other]`.
    fn left(n: &str) -> usize {
        let text = format!(
            "declare ptr @alloc()
            define ptr @f(i1 %c, i64 %x) {{
             entry: br i1 %c, label %some, label %end
             some: %p = call ptr @alloc() {n} br label %end
             end: %m = phi i64 [%n, %some], [8, %entry] %q = inttoptr i64 %m to ptr ret ptr %q }}"
        );
        let module = OwnedModule::read(text.as_bytes()).unwrap();
        super::as_pointers(module.get());
        module.get().verify().unwrap();
        let f = module.get().function("f").unwrap();
        f.instructions().filter(|i| i.is(Opcode::LLVMIntToPtr)).count()
    }

    #[test]
    fn a_number_that_is_an_address_or_a_constant_is_a_pointer() {
        assert_eq!(left("%n = ptrtoint ptr %p to i64"), 0);
        assert_eq!(left("%k = ptrtoint ptr %p to i64 %n = select i1 %c, i64 %k, i64 16"), 0);
    }

    #[test]
    fn other_numbers_stay() {
        assert_eq!(left("%k = ptrtoint ptr %p to i64 %n = add i64 %k, 8"), 1);
        assert_eq!(left("%n = mul i64 %x, 8"), 1);
    }
}
