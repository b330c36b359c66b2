//! What the language says of indices: an array within a structure ends where the next field begins.
//!
//! The address `s->stack[s->top]` could be that of `top` itself, as far as its numbers tell; then the integer would share
//! a cell of memory with floats, and arithmetic on it would be arithmetic on their bits. C, C++ and Rust all say that it
//! is not. Front ends write such addresses with the type of the array, and optimisation rewrites them without it: so
//! before it, an `assume` keeps what the type says.
//!
//! Arrays at the end of a structure may go on behind it, and of arrays of arrays only the whole bounds an index, because
//! programs walk through them as one.

use crate::llvm::{Builder, Function, IntPredicate, Mod, Opcode, Type, Value};

/// Notes the bounds in all functions of a module.
pub(super) fn note(module: Mod<'_>) {
    let Some(assume) = module.intrinsic("llvm.assume", &[]) else {
        return;
    };
    let bodies = module.functions().filter(|f| !f.is_declaration());
    let instructions = bodies.flat_map(|f| f.instructions());
    let addresses: Vec<_> = instructions
        .filter(|i| i.is(Opcode::LLVMGetElementPtr) && !i.ty().is_vector())
        .collect();
    for gep in addresses {
        note_in(module, assume, gep);
    }
}

fn note_in<'m>(module: Mod<'m>, assume: Function<'m>, gep: Value<'m>) {
    let base = gep.operand(0);
    if gep.operand_count() > 2 {
        for (index, elements) in indices(module, gep) {
            bound(module, assume, gep, index, elements);
        }
    } else if base.is(Opcode::LLVMGetElementPtr) && base.gep_type().is_array() && base.operands().skip(1).all(is_zero) {
        // From a pointer to the first element of the array.
        let bytes = field(module, base.operand(0), base.gep_type());
        let elements = bytes.map(|b| b / module.size(gep.gep_type()).max(1));
        bound(module, assume, gep, gep.operand(1), elements.unwrap_or(0));
    }
}

fn is_zero(v: Value<'_>) -> bool {
    v.is_const_int() && v.zext_value() == 0
}

/// Bytes of the array, within a structure and not at its end, that an address is the field of.
fn field<'m>(module: Mod<'m>, address: Value<'m>, array: Type<'m>) -> Option<u64> {
    let fields = address.is(Opcode::LLVMGetElementPtr) && address.gep_type().is_struct();
    if !fields || address.operand_count() != 3 {
        return None;
    }
    let (ty, k) = (address.gep_type(), address.operand(2).zext_value() as u32);
    (k + 1 < ty.fields() && ty.field(k) == array).then(|| module.size(array))
}

/// The indices into arrays within structures, with the number of elements that the whole array has.
fn indices<'m>(module: Mod<'m>, gep: Value<'m>) -> Vec<(Value<'m>, u64)> {
    let (mut ty, mut found) = (gep.gep_type(), vec![]);
    let mut bytes = match ty.is_array() && is_zero(gep.operand(1)) {
        true => field(module, gep.operand(0), ty),
        false => None,
    };
    for k in 2..gep.operand_count() as u32 {
        let index = gep.operand(k);
        if ty.is_struct() {
            let field = index.zext_value() as u32;
            let inner = ty.field(field);
            bytes = (inner.is_array() && field + 1 < ty.fields()).then(|| module.size(inner));
            ty = inner;
        } else {
            ty = ty.element();
            found.extend(bytes.map(|b| (index, b / module.size(ty).max(1))));
            if !ty.is_array() {
                bytes = None;
            }
        }
    }
    found
}

/// Is the address one that is read or written, and not the end of the array?
fn is_accessed(gep: Value<'_>) -> bool {
    gep.users().next().is_some()
        && gep.users().all(|u| match u.opcode() {
            Opcode::LLVMLoad => true,
            Opcode::LLVMStore => u.operand(1) == gep && u.operand(0) != gep,
            _ => false,
        })
}

fn bound<'m>(module: Mod<'m>, assume: Function<'m>, gep: Value<'m>, index: Value<'m>, elements: u64) {
    if index.is_constant() || elements < 2 {
        return;
    }
    let b = Builder::new(module.context());
    b.before(gep);
    b.set_location(gep.location());
    let last = elements - u64::from(is_accessed(gep));
    let within = b.icmp(IntPredicate::LLVMIntULE, index, index.ty().int(last));
    b.call(assume, &[within]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llvm::OwnedModule;

    #[test]
    fn indices_within_structures_are_bounded_and_others_are_not() {
        let text = "
            %stack = type { [8 x double], i32, [4 x double] }
            define void @f(ptr %s, ptr %a, i64 %i) {
              %in = getelementptr inbounds %stack, ptr %s, i64 0, i32 0, i64 %i
              store double 0.0, ptr %in
              %array = getelementptr inbounds %stack, ptr %s, i64 0, i32 0
              %start = getelementptr inbounds [8 x double], ptr %array, i64 0, i64 0
              %end = getelementptr inbounds double, ptr %start, i64 %i
              call void @f(ptr %end, ptr %a, i64 0)
              %split = getelementptr inbounds [8 x double], ptr %array, i64 0, i64 %i
              store double 0.0, ptr %split
              %last = getelementptr inbounds %stack, ptr %s, i64 0, i32 2, i64 %i
              store double 0.0, ptr %last
              %alone = getelementptr inbounds [8 x double], ptr %a, i64 0, i64 %i
              store double 0.0, ptr %alone
              ret void
            }";
        let module = OwnedModule::read(text.as_bytes()).unwrap();
        note(module.get());
        module.get().verify().unwrap();
        let f = module.get().function("f").unwrap();
        let bounds = f.instructions().filter(|i| i.is(Opcode::LLVMICmp));
        let bounds: Vec<_> = bounds.map(|i| i.operand(1).zext_value()).collect();
        assert_eq!(bounds, [7, 8, 7]);
    }
}
