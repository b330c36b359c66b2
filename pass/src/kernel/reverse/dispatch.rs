//! Calls of pointers: a dispatcher per type compares the pointer with every function of the module that it may be.
//!
//!     aug   if pointer == f: slot = alloc(frame of f); return aug_f(args.., shadows.., slot, arena)   for every f
//!           stop with a message
//!     rev   if pointer == f: return rev_f(cotangent.., frame, arena)                                  for every f

use super::construct::Signature;
use crate::kernel::Refusal;
use crate::kernel::engine::{Engine, types};
use crate::kernel::lost::refusal;
use crate::kernel::pointers::leads_to;
use crate::llvm::{Builder, Function, Linkage, Mod, Type};

/// The dispatcher for pointers to functions of one type.
pub struct Dispatch<'m> {
    /// As of a function of the type; its `function` is a declaration that stands for all.
    pub signature: Signature<'m>,
    /// Takes the pointer first; the frame argument is the place for the frame's address.
    pub augmented: Function<'m>,
    /// Takes the pointer first.
    pub reverse: Function<'m>,
    ty: Type<'m>,
}

impl<'m> Dispatch<'m> {
    /// Declares a dispatcher for such calls.
    pub fn declare(module: Mod<'m>, ty: Type<'m>, call: &Signature<'m>) -> Self {
        let context = module.context();
        let any = module.add_function("cotangent.any", ty);
        let signature = Signature {
            function: any,
            ..call.clone()
        };
        let (forward, back) = types(&signature, module);
        let with_pointer = |ty: Type<'m>| {
            let params: Vec<_> = std::iter::once(context.ptr()).chain(ty.params()).collect();
            context.function(ty.result(), &params)
        };
        let augmented = module.add_function("cotangent.dispatch.aug", with_pointer(forward));
        let reverse = module.add_function("cotangent.dispatch.rev", with_pointer(back));
        for f in [augmented, reverse] {
            f.set_linkage(Linkage::LLVMInternalLinkage);
        }
        Self {
            signature,
            augmented,
            reverse,
            ty,
        }
    }

    /// Is it the dispatcher for such calls?
    pub fn serves(&self, ty: Type<'m>, call: &Signature<'m>) -> bool {
        let function = self.signature.function;
        let same = Signature {
            function,
            ..call.clone()
        };
        self.ty == ty && self.signature == same
    }

    /// Emits both ways, with functions and their derivatives.
    pub fn emit(&self, engine: &Engine<'m>, cases: &[(Function<'m>, usize)], refused: &[(Function<'m>, Vec<Refusal>)]) {
        let context = engine.module().context();
        let b = Builder::new(context);
        for forward in [true, false] {
            let f = if forward { self.augmented } else { self.reverse };
            let params = f.params();
            let (pointer, own) = (params[0], &params[1..]);
            let mut at = f.append_block("entry");
            for (function, id) in cases {
                let d = engine.derivative(*id);
                let (yes, no) = (f.append_block("is"), f.append_block("next"));
                b.at_end(at);
                let same = leads_to(&b, pointer, *function);
                b.cond_br(same, yes, no);
                b.at_end(yes);
                let mut arguments = own.to_vec();
                if forward {
                    let (place, arena) = (own[own.len() - 2], own[own.len() - 1]);
                    let size = b.load(context.int(64), d.size_global);
                    let frame = b.call(engine.support("cotangent.alloc"), &[arena, size]);
                    b.store(frame, place);
                    arguments[own.len() - 2] = frame;
                }
                let callee = if forward { d.augmented } else { d.reverse };
                let given = b.call(callee, &arguments);
                b.ret(Some(given).filter(|v| !v.ty().is_void()));
                at = no;
            }
            for (function, why) in refused.iter().filter(|_| forward) {
                let (yes, no) = (f.append_block("refused"), f.append_block("next"));
                b.at_end(at);
                let same = leads_to(&b, pointer, *function);
                b.cond_br(same, yes, no);
                b.at_end(yes);
                b.call(
                    engine.support("cotangent.lost"),
                    &[refusal(engine.module(), *function, why)],
                );
                b.unreachable();
                at = no;
            }
            b.at_end(at);
            b.call(engine.support("cotangent.no.derivative"), &[pointer]);
            b.unreachable();
        }
    }
}
