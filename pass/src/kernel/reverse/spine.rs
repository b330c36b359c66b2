//! Where the place of a cotangent begins: at a block that every way from the value and its uses passes.
//!
//! The place of a cotangent must hold zero before anything is added. If all places began where the reverse begins, each
//! would live through all of the function up to there, and LLVM would take time for every block of every place. So a
//! place begins at the *spine*: a block of a region that every way through the region passes. Before the reverse adds to
//! the cotangent, it has come through the spine's first block after the uses; and it does not come there again before the
//! cotangent was taken.
//!
//! Blocks are in reverse postorder. One of a region's own (not of a loop in it) is of the spine if all edges from blocks
//! before it lead no further than to it, and none of them ends the iteration.

use super::shape::Shape;
use crate::llvm::{Block, Opcode, Value};
use std::collections::HashMap;

/// The spines of all regions.
pub(super) struct Spine<'m> {
    positions: HashMap<Block<'m>, usize>,
    /// Of each region, the position of its last block.
    last: Vec<usize>,
    /// Of each region, positions and blocks.
    own: Vec<Vec<(usize, Block<'m>)>>,
}

/// How far edges from the blocks of a region lead that were seen so far.
#[derive(Clone, Copy, Default)]
struct Reach {
    furthest: usize,
    ended: bool,
}

impl<'m> Spine<'m> {
    /// Finds them.
    pub(super) fn new(shape: &Shape<'m>) -> Self {
        let live: Vec<_> = shape.blocks.iter().copied().filter(|b| shape.is_live(*b)).collect();
        let positions: HashMap<_, _> = live.iter().enumerate().map(|(at, b)| (*b, at)).collect();
        let regions = shape.regions.len();
        let (mut last, mut own) = (vec![0; regions], vec![vec![]; regions]);
        let mut reach = vec![Reach::default(); regions];
        for (at, block) in live.into_iter().enumerate() {
            let region = shape.region(block);
            if !reach[region].ended && reach[region].furthest <= at {
                own[region].push((at, block));
            }
            let mut around = region;
            loop {
                last[around] = at;
                let reach = &mut reach[around];
                reach.ended |= block.terminator().is_some_and(|t| t.is(Opcode::LLVMRet));
                for next in block.successors() {
                    let Some(to) = positions.get(&next) else { continue };
                    reach.ended |= !shape.within(shape.region(next), around);
                    reach.ended |= shape.regions[around].header == Some(next);
                    reach.furthest = reach.furthest.max(*to);
                }
                if around == 0 {
                    break;
                }
                around = shape.regions[around].parent;
            }
        }
        Self { positions, last, own }
    }

    /// The block at which the place of a value's cotangent begins; `None`: it begins with the reverse.
    pub(super) fn start(&self, shape: &Shape<'m>, v: Value<'m>) -> Option<Block<'m>> {
        let defined = if v.is_instruction() {
            *self.positions.get(&v.block())?
        } else {
            0
        };
        let mut region = shape.region_of_value(v);
        let mut after = defined;
        loop {
            if let Some(uses) = self.last_use(shape, v, region) {
                let from = after.max(uses);
                let own = &self.own[region];
                let at = own.partition_point(|(at, _)| *at < from);
                if let Some((_, block)) = own.get(at) {
                    return Some(*block);
                }
            }
            if region == 0 {
                return None;
            }
            // Further out the whole loop counts.
            after = self.last[region];
            region = shape.regions[region].parent;
        }
    }

    /// Position of the last block in which the reverse adds to the cotangent; `None` if one is not in this iteration of the
    /// region. To that of an operand of a `phi` it adds after the reverse of the block of the `phi`.
    fn last_use(&self, shape: &Shape<'m>, v: Value<'m>, region: usize) -> Option<usize> {
        let mut last = 0;
        for user in v.users() {
            let block = user.block();
            let Some(at) = self.positions.get(&block) else { continue };
            let comes_again = user.is(Opcode::LLVMPHI) && region != 0 && shape.regions[region].header == Some(block);
            if comes_again || !shape.within(shape.region(block), region) {
                return None;
            }
            last = last.max(*at);
        }
        Some(last)
    }
}
