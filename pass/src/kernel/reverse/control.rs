//! Which way a merge of control was reached: where the conditions that decided it can be had again, nothing is recorded.
//!
//!     primal                     reverse of `join`
//!     d:    br c, then, join     c ? go to the reverse of then : go to the reverse of d
//!     then: br join
//!     join:
//!
//! The conditions between a block and its immediate dominator decide; what lies in a loop inside is passed over, for that
//! has one way out, and ways that lead elsewhere (into the next iteration, out of the loop, to a panic) were not taken.

use super::shape::Shape;
use crate::llvm::{Analyses, Block, Opcode, Value};
use std::collections::HashMap;

/// Blocks looked at for one merge.
const SIZE: usize = 32;

/// What to do about a block on the way to the merge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step<'m> {
    /// The merge was entered from the predecessor with that number.
    Edge(usize),
    /// The condition at the end of the block decides; where each side leads.
    Ask(Block<'m>),
    /// The merge is not reached from here.
    Elsewhere,
}

/// How a merge was reached.
pub struct Decision<'m> {
    /// Where it begins.
    pub first: Step<'m>,
    /// What is asked at some blocks.
    pub asked: Vec<Asked<'m>>,
}

/// What is asked at the end of a block.
pub struct Asked<'m> {
    /// The block.
    pub at: Block<'m>,
    /// The condition.
    pub condition: Value<'m>,
    /// What follows if it holds.
    pub yes: Step<'m>,
    /// What follows if not.
    pub no: Step<'m>,
}

/// Finds decisions in a function.
pub struct Decisions<'a, 'm> {
    shape: &'a Shape<'m>,
    analyses: &'a Analyses<'m>,
    /// Where each region is left for good: from, to.
    exits: Vec<Vec<(Block<'m>, Block<'m>)>>,
}

impl<'a, 'm> Decisions<'a, 'm> {
    /// Looks at the loops' exits.
    pub fn new(shape: &'a Shape<'m>, analyses: &'a Analyses<'m>) -> Self {
        let mut exits = vec![vec![]; shape.regions.len()];
        for block in shape.blocks.iter().filter(|b| shape.is_live(**b)) {
            for to in block.successors().into_iter().filter(|s| shape.is_live(*s)) {
                let mut region = shape.region(*block);
                while region != 0 && !shape.within(shape.region(to), region) {
                    exits[region].push((*block, to));
                    region = shape.regions[region].parent;
                }
            }
        }
        Self { shape, analyses, exits }
    }

    /// How the merge was reached, if conditions tell it.
    pub fn of(&self, merge: Block<'m>) -> Option<Decision<'m>> {
        let from = self.analyses.immediate_dominator(merge)?;
        if self.shape.is_header(merge) || self.shape.region(from) != self.shape.region(merge) {
            return None;
        }
        let mut walk = Walk {
            all: self,
            merge,
            known: HashMap::new(),
            asked: vec![],
        };
        let first = walk.block(from)?;
        (first != Step::Elsewhere).then_some(Decision {
            first,
            asked: walk.asked,
        })
    }
}

struct Walk<'w, 'a, 'm> {
    all: &'w Decisions<'a, 'm>,
    merge: Block<'m>,
    known: HashMap<Block<'m>, Step<'m>>,
    asked: Vec<Asked<'m>>,
}

impl<'m> Walk<'_, '_, 'm> {
    /// What follows when the block is left.
    fn block(&mut self, block: Block<'m>) -> Option<Step<'m>> {
        if let Some(step) = self.known.get(&block) {
            return Some(*step);
        }
        if self.known.len() >= SIZE {
            return None;
        }
        let end = block.terminator()?;
        let mut ways = vec![];
        let (mut successors, shape) = (end.successors(), self.all.shape);
        let conditional = end.is(Opcode::LLVMBr) && successors.len() == 2;
        successors.dedup();
        for to in successors {
            let step = match shape.is_live(to) {
                true => self.edge(block, to)?,
                false => Step::Elsewhere,
            };
            ways.push(step);
        }
        let possible: Vec<_> = ways.iter().filter(|w| **w != Step::Elsewhere).collect();
        let step = match possible[..] {
            [] => Step::Elsewhere,
            [one] => *one,
            [yes, no] if yes == no => *yes,
            [yes, no] if conditional => {
                self.asked.push(Asked {
                    at: block,
                    condition: end.operand(0),
                    yes: *yes,
                    no: *no,
                });
                Step::Ask(block)
            }
            _ => return None,
        };
        self.known.insert(block, step);
        Some(step)
    }

    fn edge(&mut self, from: Block<'m>, to: Block<'m>) -> Option<Step<'m>> {
        let shape = self.all.shape;
        if to == self.merge {
            return Some(Step::Edge(shape.predecessors(to).iter().position(|p| *p == from)?));
        }
        let (own, there) = (shape.region(self.merge), shape.region(to));
        if there == own {
            // The head of the loop: the next iteration.
            return if shape.is_header(to) {
                Some(Step::Elsewhere)
            } else {
                self.block(to)
            };
        }
        if !shape.within(there, own) {
            return Some(Step::Elsewhere);
        }
        // A loop inside, passed over.
        let inner = *shape.path(own, there).first()?;
        match self.all.exits[inner][..] {
            [(last, out)] => self.edge(last, out),
            _ => None,
        }
    }
}
