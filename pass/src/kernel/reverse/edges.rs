//! Blocks of their own for the edges by which invokes go on, so that there is a place after every call.

use crate::llvm::{Block, Builder, Function, Opcode, Value};

/// Gives the normal edge of every invoke a block that nothing else leads to.
pub fn split_invokes(f: Function<'_>) {
    let ends: Vec<_> = f.blocks().filter_map(|b| b.terminator()).collect();
    for invoke in ends.into_iter().filter(|t| t.is(Opcode::LLVMInvoke)) {
        let to = invoke.normal_destination();
        let alone = to.predecessors().len() == 1 && !to.first().is_some_and(|i| i.is(Opcode::LLVMPHI));
        if !alone {
            split(invoke, to);
        }
    }
}

fn split<'m>(invoke: Value<'m>, to: Block<'m>) {
    let from = invoke.block();
    let f = from.parent();
    let b = Builder::new(f.module().context());
    let between = f.append_block("called");
    between.move_after(from);
    b.at_end(between);
    b.br(to);
    invoke.set_normal_destination(between);
    // A `phi` cannot change where a side comes from: it is written anew.
    let phis: Vec<_> = to.instructions().take_while(|i| i.is(Opcode::LLVMPHI)).collect();
    for phi in phis {
        b.before(phi);
        let new = b.phi(phi.ty());
        let sides: Vec<_> = phi
            .incoming()
            .into_iter()
            .map(|(p, v)| (if p == from { between } else { p }, v))
            .collect();
        new.add_incoming(&sides);
        phi.replace_with(new);
        phi.erase();
    }
}
