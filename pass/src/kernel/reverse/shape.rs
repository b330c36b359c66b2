//! The shape of a function: which blocks can lead to a return, and the regions that frames belong to.
//!
//! Region 0 is the function, every natural loop is a region. Blocks from which no `return` is reached (panics, clean-up
//! of unwinding) have no reverse; where an exception is caught by a caller (`caught.rs`), leaving by it counts as a return.

use super::counted::Counted;
use crate::kernel::caught::ways_out;
use crate::llvm::{Analyses, Block, CycleRef, Function, Value};
use std::collections::{HashMap, HashSet};

/// The function itself, or a loop of it.
pub struct Region<'m> {
    /// The region around it; region 0 is its own.
    pub parent: usize,
    /// Where a loop is entered.
    pub header: Option<Block<'m>>,
    /// Number of loops around.
    pub depth: u32,
    /// Its counter.
    pub counted: Option<Counted<'m>>,
}

/// Blocks, regions and ways of a function.
pub struct Shape<'m> {
    /// All reachable blocks, in reverse postorder.
    pub blocks: Vec<Block<'m>>,
    /// Regions; an outer one comes before those in it.
    pub regions: Vec<Region<'m>>,
    /// Blocks that end in a return, or in `resume`, if somebody catches what is thrown.
    pub returns: Vec<Block<'m>>,
    live: HashSet<Block<'m>>,
    region_of: HashMap<Block<'m>, usize>,
    predecessors: HashMap<Block<'m>, Vec<Block<'m>>>,
}

/// Blocks in reverse postorder, without recursion.
fn reverse_postorder<'m>(f: Function<'m>) -> Vec<Block<'m>> {
    let mut order = vec![];
    let mut seen = HashSet::new();
    let mut stack = vec![];
    if let Some(entry) = f.entry() {
        seen.insert(entry);
        stack.push((entry, entry.successors()));
    }
    while let Some((block, successors)) = stack.last_mut() {
        match successors.pop() {
            Some(next) if seen.insert(next) => stack.push((next, next.successors())),
            Some(_) => {}
            None => {
                order.push(*block);
                stack.pop();
            }
        }
    }
    order.reverse();
    order
}

impl<'m> Shape<'m> {
    /// Reads a function.
    pub fn new(f: Function<'m>, analyses: &Analyses<'m>, counter: impl Fn(Block<'m>) -> Option<Counted<'m>>) -> Self {
        let blocks = reverse_postorder(f);
        let reachable: HashSet<_> = blocks.iter().copied().collect();
        let returns: Vec<_> = blocks.iter().copied().filter(ways_out(f)).collect();
        let mut live = HashSet::new();
        let mut stack = returns.clone();
        let mut predecessors: HashMap<Block<'m>, Vec<Block<'m>>> = HashMap::new();
        while let Some(block) = stack.pop() {
            if !live.insert(block) {
                continue;
            }
            let mut from: Vec<Block<'m>> = vec![];
            for p in block.predecessors() {
                if reachable.contains(&p) && !from.contains(&p) {
                    from.push(p);
                }
            }
            stack.extend(from.iter().copied());
            predecessors.insert(block, from);
        }
        let mut shape = Self {
            blocks,
            regions: vec![Region {
                parent: 0,
                header: None,
                depth: 0,
                counted: None,
            }],
            returns,
            live,
            region_of: HashMap::new(),
            predecessors,
        };
        let mut known: HashMap<CycleRef<'m>, usize> = HashMap::new();
        for block in shape.blocks.clone() {
            let region = match analyses.cycle_of(block) {
                Some(cycle) => shape.region_of_cycle(cycle, analyses, &mut known, &counter),
                None => 0,
            };
            shape.region_of.insert(block, region);
        }
        shape
    }

    fn region_of_cycle(
        &mut self,
        cycle: CycleRef<'m>,
        analyses: &Analyses<'m>,
        known: &mut HashMap<CycleRef<'m>, usize>,
        counter: &impl Fn(Block<'m>) -> Option<Counted<'m>>,
    ) -> usize {
        if let Some(region) = known.get(&cycle) {
            return *region;
        }
        let parent = match analyses.cycle_parent(cycle) {
            Some(parent) => self.region_of_cycle(parent, analyses, known, counter),
            None => 0,
        };
        let header = analyses.cycle_entries(cycle).first().copied();
        self.regions.push(Region {
            parent,
            header,
            counted: header.and_then(&counter),
            depth: self.regions[parent].depth + 1,
        });
        known.insert(cycle, self.regions.len() - 1);
        self.regions.len() - 1
    }

    /// Can the block lead to a return?
    pub fn is_live(&self, block: Block<'m>) -> bool {
        self.live.contains(&block)
    }

    /// The innermost region of a block.
    pub fn region(&self, block: Block<'m>) -> usize {
        self.region_of.get(&block).copied().unwrap_or(0)
    }

    /// The region in which a value is defined.
    pub fn region_of_value(&self, v: Value<'m>) -> usize {
        if v.is_instruction() { self.region(v.block()) } else { 0 }
    }

    /// Blocks that lead to a live block, each once.
    pub fn predecessors(&self, block: Block<'m>) -> &[Block<'m>] {
        self.predecessors.get(&block).map_or(&[], Vec::as_slice)
    }

    /// Is `inner` the region `outer` or in it?
    pub fn within(&self, mut inner: usize, outer: usize) -> bool {
        while self.regions[inner].depth > self.regions[outer].depth {
            inner = self.regions[inner].parent;
        }
        inner == outer
    }

    /// The regions around (and with) `inner` that `outer` is not in, the outermost first.
    pub fn path(&self, outer: usize, mut inner: usize) -> Vec<usize> {
        let mut path = vec![];
        while !self.within(outer, inner) {
            path.push(inner);
            inner = self.regions[inner].parent;
        }
        path.reverse();
        path
    }

    /// Is the block the header of the loop that is its region?
    pub fn is_header(&self, block: Block<'m>) -> bool {
        self.regions[self.region(block)].header == Some(block)
    }
}

/// Has the function a cycle that is entered at several blocks?
pub fn is_irreducible<'m>(f: Function<'m>, analyses: &Analyses<'m>) -> bool {
    f.blocks().any(|b| {
        let mut cycle = analyses.cycle_of(b);
        while let Some(c) = cycle {
            if analyses.cycle_entries(c).len() != 1 {
                return true;
            }
            cycle = analyses.cycle_parent(c);
        }
        false
    })
}
