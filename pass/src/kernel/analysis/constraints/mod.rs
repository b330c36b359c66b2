//! From instructions to constraints on regions and words: one pass over the module.
//!
//! Flow-insensitive, and without contexts: a parameter stands for what any call passes. Per function the instructions
//! are visited once; `regions` then solves.

mod calls;
mod constants;
mod integers;
mod memory;

use super::kinds::Kinds;
use super::regions::{Origin, Regions};
use super::shape::{Leaf, Shape, Shapes, Sort, part_kind};
use super::span::Span;
use crate::kernel::attributes::TOLD;
use crate::kernel::caught;
use crate::llvm::{Analyses, Function, Mod, Opcode, Type, Value};
use std::collections::HashMap;
use std::rc::Rc;

/// Four bytes of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lane {
    /// In a slot.
    Slot(u32),
    /// Part of a float, or the tail of a pointer.
    Fixed(Kinds),
    /// Nothing that is copied.
    Nothing,
}

/// How an integer flows from one lane to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flow {
    /// Bit by bit, except perhaps for the sign of a float.
    Copy,
    /// Changed: what were the bits of a float are those of another number.
    Change,
}

/// What the constraints were made from, and of.
pub(crate) struct Constraints<'a, 'm> {
    pub(crate) module: Mod<'m>,
    pub(crate) llvm: &'a Analyses<'m>,
    pub(crate) regions: Regions,
    pub(crate) shapes: Shapes<'m>,
    /// First slot of each argument, instruction and constant that has slots.
    pub(crate) values: HashMap<Value<'m>, u32>,
    /// First slot of what a load, store or copy of a small block touches in memory.
    pub(crate) accesses: HashMap<Value<'m>, u32>,
    /// The object of each global, function, stack slot and allocation.
    pub(crate) objects: HashMap<Value<'m>, u32>,
    /// First slot of each function's result.
    pub(crate) results: HashMap<Function<'m>, u32>,
    /// Parameters and result of the indirect calls of a type.
    pub(crate) signatures: HashMap<Type<'m>, (Vec<Option<u32>>, Option<u32>)>,
    /// How integers flow in registers.
    pub(crate) flows: Vec<(u32, u32, Flow)>,
    /// Lanes that were loaded (from where), came from outside, or are bits of a float or pointer.
    pub(crate) sources: Vec<(u32, Option<Value<'m>>)>,
    /// Lanes that are stored, or become a float or pointer; by which instruction.
    pub(crate) sinks: Vec<(u32, Value<'m>)>,
    /// Loads and stores (`true`) of less than four bytes: the lane, and the pointer.
    pub(crate) bytes: Vec<(u32, Value<'m>, bool)>,
    /// Does run time tell what memory from outside holds ([`TOLD`])?
    pub(crate) told: bool,
    /// Where what is thrown leads, if anything is caught.
    pub(crate) thrown: Option<u32>,
    /// Lanes whose sign may be changed, cleared or set on the way to another lane.
    pub(crate) signs: Vec<(u32, Value<'m>)>,
}

impl<'a, 'm> Constraints<'a, 'm> {
    /// The constraints of all functions of a module, solved. `roots` are called from outside; integers among their
    /// arguments that are `constant` carry nothing.
    pub(crate) fn solve(
        module: Mod<'m>,
        llvm: &'a Analyses<'m>,
        roots: &[Function<'m>],
        constant: &dyn Fn(Value<'m>) -> bool,
    ) -> Self {
        let mut c = Self {
            module,
            llvm,
            regions: Regions::default(),
            shapes: Shapes::new(module),
            values: HashMap::new(),
            accesses: HashMap::new(),
            objects: HashMap::new(),
            results: HashMap::new(),
            signatures: HashMap::new(),
            flows: vec![],
            sources: vec![],
            bytes: vec![],
            sinks: vec![],
            signs: vec![],
            thrown: None,
            told: !roots.is_empty() && roots.iter().all(|f| f.string_attribute(TOLD).is_some()),
        };
        if caught::is_any(module) {
            c.thrown = Some(c.allot(1));
        }
        for g in module.globals() {
            c.global(g);
        }
        for f in roots {
            c.root(*f, constant);
        }
        for f in module.functions().filter(|f| !f.is_declaration()) {
            if f.is_address_taken() {
                c.candidate(f);
            }
            for i in f.instructions() {
                c.instruction(f, i);
            }
        }
        c.regions.solve();
        c
    }

    /// What is in memory that code outside knows and that no code of the module touches. Where run time does not tell,
    /// pointers are left as they are: nobody here follows them.
    pub(crate) fn foreign(&self) -> Kinds {
        if self.told { Kinds::UNKNOWN } else { Kinds::PART }
    }

    /// A function that is called from outside: its arguments point to memory that is.
    fn root(&mut self, f: Function<'m>, constant: &dyn Fn(Value<'m>) -> bool) {
        for p in f.params() {
            let shape = self.shapes.of(p.ty());
            for leaf in &shape.leaves {
                let slot = self.slot_of(p, leaf);
                match leaf.sort {
                    Sort::Pointer => {
                        let node = self.regions.node(Origin {
                            open: true,
                            given: true,
                            ..Origin::default()
                        });
                        self.regions.point(slot, node, Span::exact(0));
                    }
                    Sort::Word if !constant(p) => self.sources.extend((slot..slot + leaf.slots).map(|s| (s, None))),
                    _ => {}
                }
            }
        }
    }

    /// The first slot of a value; allotted when first asked for.
    pub(crate) fn slots_of(&mut self, v: Value<'m>) -> u32 {
        if let Some(s) = self.values.get(&v) {
            return *s;
        }
        let shape = self.shapes.of(v.ty());
        let first = self.allot(shape.slots);
        // Constants that are not addresses are nowhere shared: they must not tie together what uses them.
        if !v.is_constant() || self.constant(v, &shape, first) {
            self.values.insert(v, first);
        }
        first
    }

    pub(crate) fn allot(&mut self, n: u32) -> u32 {
        let first = self.regions.slot();
        for _ in 1..n {
            self.regions.slot();
        }
        first
    }

    fn slot_of(&mut self, v: Value<'m>, leaf: &Leaf) -> u32 {
        self.slots_of(v) + leaf.slot
    }

    /// The nodes that the pointers in a value lead to.
    pub(crate) fn targets(&mut self, v: Value<'m>) -> Vec<u32> {
        let first = self.slots_of(v);
        let slots = first..first + self.shape(v).slots;
        slots.filter_map(|s| Some(self.regions.target(s)?.node)).collect()
    }

    /// May code outside of the module read or write where the pointer leads?
    pub(crate) fn is_open(&mut self, pointer: Value<'m>) -> bool {
        let slot = self.slots_of(pointer);
        let target = self.regions.target(slot);
        target.is_none_or(|t| self.regions.origin(t.node).open)
    }

    pub(crate) fn shape(&mut self, v: Value<'m>) -> Rc<Shape> {
        self.shapes.of(v.ty())
    }

    /// The lanes of a value, by four bytes of its layout.
    pub(crate) fn lanes(&mut self, v: Value<'m>) -> Vec<Lane> {
        let shape = self.shape(v);
        let Some(last) = shape.leaves.last() else {
            return vec![];
        };
        let mut lanes = vec![Lane::Nothing; ((last.offset + last.size).max(0) as usize).div_ceil(4)];
        let first = self.slots_of(v);
        for leaf in &shape.leaves {
            for i in 0..(leaf.size as u32).div_ceil(4) {
                let at = leaf.offset as usize / 4 + i as usize;
                lanes[at] = match leaf.sort {
                    Sort::Float(k) => Lane::Fixed(part_kind(k, i)),
                    Sort::Pointer if i == 0 => Lane::Slot(first + leaf.slot),
                    Sort::Pointer => Lane::Fixed(Kinds::PTR_TAIL),
                    _ => Lane::Slot(first + leaf.slot + i),
                };
            }
        }
        lanes
    }

    /// Copies lanes one to one.
    fn copy_lane(&mut self, from: Lane, to: Lane, at: Value<'m>) {
        match (from, to) {
            (Lane::Slot(a), Lane::Slot(b)) => {
                self.regions.copy(a, b);
                self.flows.push((a, b, Flow::Copy));
            }
            (Lane::Fixed(k), Lane::Slot(b)) => {
                self.regions.note(b, k);
                self.sources.push((b, None));
            }
            (Lane::Slot(a), Lane::Fixed(k)) => {
                self.regions.note(a, k);
                self.sinks.push((a, at));
            }
            _ => {}
        }
    }

    /// Copies a value of the same type, leaf by leaf. Floats in registers have no slots of their own to share.
    pub(crate) fn copy_value(&mut self, from: Value<'m>, to_first: u32) {
        if from.is_undef() {
            return;
        }
        let shape = self.shape(from);
        if from.is_constant() {
            self.constant(from, &shape, to_first);
            return;
        }
        let first = self.slots_of(from);
        self.copy_slots(&shape.leaves, first, to_first);
    }

    pub(crate) fn copy_slots(&mut self, leaves: &[Leaf], from: u32, to: u32) {
        for leaf in leaves.iter().filter(|l| !matches!(l.sort, Sort::Float(_))) {
            for i in leaf.slot..leaf.slot + leaf.slots {
                // A pointer is one: only where it points is to be known, and that goes one way.
                if leaf.sort == Sort::Pointer {
                    self.regions.flow(from + i, to + i, Span::exact(0));
                } else {
                    self.regions.copy(from + i, to + i);
                    self.flows.push((from + i, to + i, Flow::Copy));
                }
            }
        }
    }

    fn instruction(&mut self, f: Function<'m>, i: Value<'m>) {
        use Opcode::*;
        match i.opcode() {
            LLVMAlloca => {
                let stack = Origin {
                    stack: true,
                    ..Origin::default()
                };
                self.object(i, stack);
            }
            LLVMLoad => self.load(i),
            LLVMStore => self.store(i),
            LLVMAtomicRMW | LLVMAtomicCmpXchg => self.atomic(i),
            LLVMGetElementPtr => self.gep(i),
            LLVMPHI => {
                let to = self.slots_of(i);
                for (_, v) in i.incoming() {
                    self.copy_value(v, to);
                }
            }
            LLVMSelect => {
                let to = self.slots_of(i);
                self.copy_value(i.operand(1), to);
                self.copy_value(i.operand(2), to);
            }
            LLVMFreeze => {
                let to = self.slots_of(i);
                self.copy_value(i.operand(0), to);
            }
            LLVMExtractValue => self.extract_value(i),
            LLVMInsertValue => self.insert_value(i),
            LLVMRet => {
                if i.operand_count() > 0 {
                    let to = self.result_of(f);
                    self.copy_value(i.operand(0), to);
                }
            }
            LLVMCall | LLVMInvoke => self.call(f, i),
            LLVMLandingPad => self.caught(i),
            _ => self.integer(i),
        }
    }

    /// First slot of a function's result.
    pub(crate) fn result_of(&mut self, f: Function<'m>) -> u32 {
        if let Some(s) = self.results.get(&f) {
            return *s;
        }
        let n = self.shapes.of(f.result()).slots;
        let first = self.allot(n);
        self.results.insert(f, first);
        first
    }

    /// A new object that the value points to.
    pub(crate) fn object(&mut self, v: Value<'m>, origin: Origin) -> u32 {
        let node = self.regions.node(origin);
        let slot = self.slots_of(v);
        self.regions.point(slot, node, Span::exact(0));
        self.objects.insert(v, node);
        node
    }

    /// Leaves of an aggregate below a path, with the number of slots before them.
    fn below(shape: &Shape, path: &[u32]) -> (Vec<Leaf>, u32) {
        let leaves: Vec<Leaf> = shape
            .leaves
            .iter()
            .filter(|l| l.path.starts_with(path))
            .cloned()
            .collect();
        let first = leaves.first().map_or(0, |l| l.slot);
        (leaves, first)
    }

    fn extract_value(&mut self, i: Value<'m>) {
        let aggregate = i.operand(0);
        if aggregate.is_constant() {
            return;
        }
        let (from, to) = (self.slots_of(aggregate), self.slots_of(i));
        let (_, first) = Self::below(&self.shape(aggregate), &i.indices());
        let shape = self.shape(i);
        self.copy_slots(&shape.leaves, from + first, to);
    }

    fn insert_value(&mut self, i: Value<'m>) {
        let to = self.slots_of(i);
        let shape = self.shape(i);
        let path = i.indices();
        let (aggregate, part) = (i.operand(0), i.operand(1));
        if aggregate.is_constant() {
            self.constant(aggregate, &shape, to);
        } else {
            let from = self.slots_of(aggregate);
            let rest: Vec<Leaf> = shape
                .leaves
                .iter()
                .filter(|l| !l.path.starts_with(&path))
                .cloned()
                .collect();
            self.copy_slots(&rest, from, to);
        }
        let (_, first) = Self::below(&shape, &path);
        self.copy_value(part, to + first);
    }
}
