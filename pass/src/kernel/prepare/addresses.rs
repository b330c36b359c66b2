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
//! of which nothing would say any more that it leads into the memory of `p`. The same goes for constants.

use crate::llvm::{Builder, Function, Mod, Opcode, Type, Value, ValueKind};
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

/// Has a function's constants that are addresses in variables, by way of an integer, say so: `inttoptr (ptrtoint g + 8)` is
/// what LLVM puts in the place of a pointer that was found to be equal.
pub(crate) fn name_variables(f: Function<'_>) {
    let b = Builder::new(f.module().context());
    for i in f.instructions() {
        for (k, x) in i.operands().enumerate() {
            if let Some(p) = in_variable(&b, x) {
                i.set_operand(k as u32, p);
            }
        }
    }
}

/// A constant address that comes from an integer, as one with a distance from the variable.
fn in_variable<'m>(b: &Builder<'m>, address: Value<'m>) -> Option<Value<'m>> {
    if address.kind() != ValueKind::LLVMConstantExprValueKind || !address.ty().is_pointer() {
        return None;
    }
    let first = address.operand(0);
    match address.const_opcode() {
        Opcode::LLVMIntToPtr => {
            let (base, distance) = distance(b, first)?;
            Some(b.offset(base, first.ty().int(distance as u64)))
        }
        Opcode::LLVMGetElementPtr => {
            let base = in_variable(b, first)?;
            let indices: Vec<_> = address.operands().skip(1).collect();
            Some(b.gep(address.gep_type(), base, &indices))
        }
        _ => None,
    }
}

/// A constant integer as the distance from an address.
fn distance<'m>(b: &Builder<'m>, number: Value<'m>) -> Option<(Value<'m>, i64)> {
    if number.kind() != ValueKind::LLVMConstantExprValueKind {
        return None;
    }
    let by = |n: Value<'m>| n.is_const_int().then(|| n.zext_value() as i64);
    let first = number.operand(0);
    match number.const_opcode() {
        Opcode::LLVMPtrToInt => Some((in_variable(b, first).unwrap_or(first), 0)),
        Opcode::LLVMAdd => {
            let (x, n) = match by(number.operand(1)) {
                Some(n) => (first, n),
                None => (number.operand(1), by(first)?),
            };
            let (base, far) = distance(b, x)?;
            Some((base, far.wrapping_add(n)))
        }
        Opcode::LLVMSub => {
            let (base, far) = distance(b, first)?;
            Some((base, far.wrapping_sub(by(number.operand(1))?)))
        }
        _ => None,
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
    fn a_constant_address_names_its_variable() {
        let text = "@g = global [8 x double] zeroinitializer
            define void @f(ptr %p) {
             %same = icmp eq ptr %p, inttoptr (i64 add (i64 ptrtoint (ptr @g to i64), i64 16) to ptr)
             store double 1.0, ptr getelementptr (i8, ptr inttoptr (i64 sub (i64 ptrtoint (ptr @g to i64), i64 -8) to ptr), i64 8)
             ret void }";
        let module = OwnedModule::read(text.as_bytes()).unwrap();
        let (f, g) = (module.get().function("f").unwrap(), module.get().global("g").unwrap());
        super::name_variables(f);
        module.get().verify().unwrap();
        let addresses: Vec<_> = f.instructions().take(2).map(|i| i.operand(1)).collect();
        assert!(
            addresses.iter().all(|p| p.underlying_object() == g),
            "{}",
            module.get().text()
        );
    }

    #[test]
    fn other_numbers_stay() {
        assert_eq!(left("%k = ptrtoint ptr %p to i64 %n = add i64 %k, 8"), 1);
        assert_eq!(left("%n = mul i64 %x, 8"), 1);
    }
}
