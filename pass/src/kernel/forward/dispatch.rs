//! Calls of pointers: a dispatcher per type compares the pointer with every function of the module that it may be.
//!
//!     if pointer == f: return fwd_f(args.., shadows.., arena)        for every f
//!     stop with a message

use super::{Forward, Signature, call, type_of};
use crate::kernel::Refusal;
use crate::kernel::pointers::leads_to;
use crate::kernel::rules;
use crate::llvm::{Builder, Function, Linkage, Type};

/// The dispatcher for pointers to functions of one type.
pub(super) struct Dispatch<'m> {
    /// As of a function of the type; its `function` is a declaration that stands for all.
    pub(super) signature: Signature<'m>,
    /// Takes the pointer first.
    pub(super) function: Function<'m>,
    ty: Type<'m>,
}

impl<'m> Forward<'_, 'm> {
    pub(super) fn dispatch(&self, at: usize) -> &Dispatch<'m> {
        &self.dispatches[at]
    }

    /// The dispatcher for pointers to functions of a type.
    ///
    /// # Errors
    /// None: a function without a derivative is an error of the run that calls it.
    pub(super) fn dispatcher(&mut self, ty: Type<'m>, frozen: bool) -> Result<usize, Vec<Refusal>> {
        if let Some(at) = self
            .dispatches
            .iter()
            .position(|d| d.ty == ty && d.signature.frozen == frozen)
        {
            return Ok(at);
        }
        let (module, context) = (self.module(), self.module().context());
        let taken = |f: &Function<'m>| f.ty() == ty && f.is_address_taken();
        let candidates: Vec<_> = module.functions().filter(taken).collect();
        let (arguments, result) = call::of_type(ty);
        let signature = Signature {
            function: module.add_function("cotangent.any", ty),
            arguments,
            result,
            frozen,
        };
        let tangent = type_of(&signature, self.width, module);
        let params: Vec<_> = std::iter::once(context.ptr()).chain(tangent.params()).collect();
        let function = module.add_function("cotangent.dispatch.fwd", context.function(tangent.result(), &params));
        function.set_linkage(Linkage::LLVMInternalLinkage);
        self.dispatches.push(Dispatch {
            signature: signature.clone(),
            function,
            ty,
        });
        let at = self.dispatches.len() - 1;
        let mut cases = vec![];
        for pointer in candidates {
            let body = if pointer.is_declaration() {
                rules::known_body(pointer)
            } else {
                Some(self.engine.body(pointer))
            };
            let Some(body) = body else { continue };
            let signature = Signature {
                function: body,
                ..signature.clone()
            };
            if let Ok(tangent) = self.derive(signature) {
                cases.push((pointer, tangent));
            }
        }
        self.fill(function, &cases);
        Ok(at)
    }

    fn fill(&self, f: Function<'m>, cases: &[(Function<'m>, Function<'m>)]) {
        let b = Builder::new(self.module().context());
        let params = f.params();
        let mut at = f.append_block("entry");
        for (pointer, tangent) in cases {
            let (yes, no) = (f.append_block("is"), f.append_block("next"));
            b.at_end(at);
            let same = leads_to(&b, params[0], *pointer);
            b.cond_br(same, yes, no);
            b.at_end(yes);
            let given = b.call(*tangent, &params[1..]);
            b.ret(Some(given).filter(|v| !v.ty().is_void()));
            at = no;
        }
        b.at_end(at);
        b.call(self.engine.support("cotangent.no.derivative"), &[params[0]]);
        b.unreachable();
    }
}
