//! Loops of which it is known, when they are entered, how often they run.
//!
//! Such a loop gets a counter of its own in the primal, before anything is planned:
//!
//!     preheader:  count = how often the backedge is taken
//!     header:     index = phi [0, preheader], [index + 1, latch]
//!
//! Its frames are arrays in one block, one per field, `count + 1` long; the reverse counts down and no way is recorded.
//! What steps evenly with the counter, an index or a pointer that runs along an array, is computed from it again.

use crate::llvm::{Analyses, Backedges, Block, Builder, Function, Opcode, Type, Value};
use std::collections::HashMap;

/// A loop with a counter.
#[derive(Clone, Copy)]
pub struct Counted<'m> {
    /// How often the backedge is taken: an `i64`, constant or computed in the preheader.
    pub count: Value<'m>,
    /// Number of the iteration, from zero.
    pub index: Value<'m>,
    /// The block that leads into the loop.
    pub preheader: Block<'m>,
}

/// A value that starts somewhere and moves by the same step in every iteration.
#[derive(Clone, Copy)]
pub struct Induction<'m> {
    /// The first value.
    pub start: Value<'m>,
    /// The step: a constant, or defined outside of the loop.
    pub step: Value<'m>,
    /// What a pointer's step counts in.
    pub unit: Option<Type<'m>>,
    /// Is the step taken away?
    pub down: bool,
}

/// Gives the loops of a function counters where it can.
pub fn count_loops<'m>(f: Function<'m>, analyses: &Analyses<'m>, found: &mut HashMap<Block<'m>, Counted<'m>>) {
    let word = f.module().context().int(64);
    let mut loops = vec![];
    for header in f.blocks() {
        let predecessors = header.predecessors();
        let [a, b] = predecessors[..] else { continue };
        let is_loop = analyses
            .cycle_of(header)
            .is_some_and(|c| analyses.cycle_entries(c) == [header]);
        let inside = |p: Block<'m>| analyses.dominates(header, p);
        if !is_loop || inside(a) == inside(b) {
            continue;
        }
        let (preheader, latch) = if inside(a) { (b, a) } else { (a, b) };
        if preheader.successors().len() != 1 {
            continue;
        }
        let count = match analyses.backedges(header) {
            Backedges::Unknown => None,
            Backedges::Computable => analyses.expand_backedges(header, word),
            Backedges::Constant(n) => Some(word.int(n)),
        };
        loops.extend(count.map(|count| (header, preheader, latch, count)));
    }
    let b = Builder::new(f.module().context());
    for (header, preheader, latch, count) in loops {
        let (Some(first), Some(end)) = (header.first(), latch.terminator()) else {
            continue;
        };
        b.before(first);
        let index = b.phi(word);
        b.before(end);
        let next = b.add_nuw(index, word.int(1));
        index.add_incoming(&[(preheader, word.zero()), (latch, next)]);
        found.insert(
            header,
            Counted {
                count,
                index,
                preheader,
            },
        );
    }
}

/// What is known of a `phi` at the head of a counted loop. `inside` tells what is defined in the loop.
pub fn induction<'m>(
    phi: Value<'m>,
    counted: &Counted<'m>,
    inside: impl Fn(Value<'m>) -> bool,
) -> Option<Induction<'m>> {
    let ty = phi.ty();
    if !phi.is(Opcode::LLVMPHI) || phi == counted.index || !ty.is_int() && !ty.is_pointer() {
        return None;
    }
    let sides = phi.incoming();
    let start = sides.iter().find(|(p, _)| *p == counted.preheader)?.1;
    let next = sides.iter().find(|(p, _)| *p != counted.preheader)?.1;
    if sides.len() != 2 || !next.is_instruction() {
        return None;
    }
    let (a, b) = (next.operand(0), next.operands().nth(1)?);
    let (step, unit) = match next.opcode() {
        Opcode::LLVMAdd if a == phi => (b, None),
        Opcode::LLVMAdd if b == phi => (a, None),
        Opcode::LLVMSub if a == phi => (b, None),
        Opcode::LLVMGetElementPtr if a == phi && next.operand_count() == 2 => (b, Some(next.gep_type())),
        _ => return None,
    };
    (!inside(step) && step.ty().is_int()).then_some(Induction {
        start,
        step,
        unit,
        down: next.is(Opcode::LLVMSub),
    })
}

impl<'m> Induction<'m> {
    /// The value in iteration `index`, from the start and step where the builder stands.
    pub fn at(self, b: &Builder<'m>, index: Value<'m>, start: Value<'m>, step: Value<'m>) -> Value<'m> {
        match self.unit {
            Some(unit) => {
                let word = index.ty();
                let step = if step.ty().int_width() < 64 {
                    b.sext(step, word)
                } else {
                    b.cast_int(step, word)
                };
                b.gep(unit, start, &[b.mul(index, step)])
            }
            None => {
                let moved = b.mul(b.cast_int(index, start.ty()), step);
                if self.down {
                    b.sub(start, moved)
                } else {
                    b.add(start, moved)
                }
            }
        }
    }
}
