//! Library functions that leave results in memory: they become intrinsics that give all results, and stores. A rule then
//! knows nothing of memory.
//!
//!     sincos(x, s, c)      {a, b} = llvm.sincos(x); store a, s; store b, c
//!     y = modf(x, p)       {y, b} = llvm.modf(x); store b, p
//!     y = frexp(x, p)      {y, n} = llvm.frexp(x); store n, p

use super::table::{Form, form_of};
use crate::llvm::{Builder, Mod, Opcode, Value};

/// Rewrites all such calls of a module.
pub(crate) fn lower_outputs(module: Mod<'_>) {
    let calls = module
        .functions()
        .flat_map(|f| f.instructions())
        .filter(|i| i.is(Opcode::LLVMCall));
    for call in calls.collect::<Vec<_>>() {
        let name = call.callee().filter(|f| f.is_declaration()).map(|f| f.name());
        let known = name.and_then(|n| {
            ["sincos", "modf", "frexp"]
                .into_iter()
                .find_map(|k| Some((k, form_of(&n, k)?)))
        });
        if let Some((name, form)) = known {
            lower(module, call, name, form);
        }
    }
}

fn lower<'m>(module: Mod<'m>, call: Value<'m>, name: &str, form: Form) {
    let operands = call.arguments();
    let count = if name == "sincos" { 3 } else { 2 };
    if operands.len() != count || !form.fits(operands[0].ty()) || !operands[1..].iter().all(|p| p.ty().is_pointer()) {
        return;
    }
    let x = operands[0];
    let int = module.context().int(32);
    let types = if name == "frexp" {
        vec![x.ty(), int]
    } else {
        vec![x.ty()]
    };
    let Some(intrinsic) = module.intrinsic(&format!("llvm.{name}"), &types) else {
        return;
    };
    let b = Builder::new(module.context());
    b.before(call);
    b.set_location(call.location());
    let all = b.call(intrinsic, &[x]);
    all.set_fast_math(call.fast_math());
    let part = |i| b.extract(all, i);
    if name == "sincos" {
        b.store(part(0), operands[1]);
        b.store(part(1), operands[2]);
    } else {
        b.store(part(1), operands[1]);
        call.replace_with(part(0));
    }
    call.erase();
}

#[cfg(test)]
mod tests {
    use crate::llvm::OwnedModule;

    #[test]
    fn results_in_memory_become_results_and_stores() {
        let text = "
            declare void @sincosf(float, ptr, ptr)
            declare double @modf(double, ptr)
            declare x86_fp80 @frexpl(x86_fp80, ptr)
            define double @f(float %a, double %b, x86_fp80 %c, ptr %p, ptr %q) {
              call void @sincosf(float %a, ptr %p, ptr %q)
              %x = call double @modf(double %b, ptr %p)
              %y = call x86_fp80 @frexpl(x86_fp80 %c, ptr %q)
              ret double %x
            }";
        let module = OwnedModule::read(text.as_bytes()).unwrap();
        super::lower_outputs(module.get());
        module.get().verify().unwrap();
        let f = module.get().function("f").unwrap();
        let called: Vec<_> = f.instructions().filter_map(|i| i.intrinsic()).collect();
        assert_eq!(called, ["llvm.sincos.f32", "llvm.modf.f64", "llvm.frexp.f80.i32"]);
        assert_eq!(
            f.instructions()
                .filter(|i| i.is(crate::llvm::Opcode::LLVMStore))
                .count(),
            4
        );
    }
}
