//! What the reverse of a function needs of the forward sweep, and where it gets it: the plan of both sweeps.
//!
//! Every needed value is a constant, a field of a frame, or is computed again from such. The choice is made by cost:
//! bytes in frames, weighted by how many loops are around them.

use super::choice::Choices;
use super::construct::{Construct, Signature};
use super::control::{Decision, Decisions};
use super::counted::{Counted, Induction, induction};
use super::cut::{Costs, choose};
use super::frame::{Frames, Slot};
use super::leaves::{Carries, Leaves};
use super::shape::Shape;
use super::varied;
use crate::kernel::analysis::Content;
use crate::kernel::analysis::activity::Activity;
use crate::kernel::analysis::unwritten::Unwritten;
use crate::kernel::analysis::words::Words;
use crate::kernel::callee::is_thread_local;
use crate::kernel::globals::Globals;
use crate::kernel::{Refusal, engine::Engine};
use crate::llvm::{Block, Function, Mod, Opcode, Value};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Something of the forward sweep that the reverse reads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Need<'m> {
    /// A value of the primal.
    Primal(Value<'m>),
    /// The shadow of a value, in every direction.
    Shadow(Value<'m>),
    /// How far a pointer, and its shadow, is from the object that it leads into: see [`Plan::object_of`].
    Offset(Value<'m>),
}

impl<'m> Need<'m> {
    /// The value that is meant.
    pub fn value(self) -> Value<'m> {
        match self {
            Self::Primal(v) | Self::Shadow(v) | Self::Offset(v) => v,
        }
    }
}

/// Where the reverse gets what it needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// From a field of a frame.
    Field,
    /// It is the address of shadow memory in a frame.
    Memory,
    /// Computed again from the operands.
    Recompute,
}

/// The slot of something stored.
fn slot<'m>(need: Need<'m>, direction: u32) -> Slot<'m> {
    match need {
        Need::Primal(v) => Slot::Primal(v),
        Need::Shadow(v) => Slot::Shadow(v, direction),
        Need::Offset(v) => Slot::Offset(v),
    }
}

/// Is it known where a shadow points?
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Target {
    /// Nowhere: there is no shadow.
    Inactive,
    /// To a shadow.
    Active,
    /// Only at run time.
    Unknown,
}

/// The plan of a function's derivative.
pub struct Plan<'m> {
    /// The primal.
    pub function: Function<'m>,
    /// Which arguments have shadows and cotangents.
    pub signature: Signature<'m>,
    /// Its blocks and regions.
    pub shape: Shape<'m>,
    /// What every instruction of a live block is.
    pub constructs: HashMap<Value<'m>, Construct<'m>>,
    /// Fields of frames.
    pub frames: Frames<'m>,
    /// How merges were reached, of which no record is kept.
    pub decisions: HashMap<Block<'m>, Decision<'m>>,
    places: HashMap<Need<'m>, Place>,
    targets: HashMap<Value<'m>, Target>,
    boxed: HashSet<Value<'m>>,
    /// Values that can depend on what is differentiated, as this signature has it.
    varied: HashSet<Value<'m>>,
    globals: Rc<Globals<'m>>,
    words: Rc<Words<'m>>,
    /// What has a part in derivatives.
    pub activity: Rc<Activity<'m>>,
    /// What memory holds.
    pub content: Rc<Content<'m, 'm>>,
    /// Which operands ops give.
    pub choices: Rc<Choices<'m>>,
    /// Memory of the caller that nothing writes to.
    pub unwritten: Rc<Unwritten>,
    module: Mod<'m>,
}

impl<'m> Plan<'m> {
    /// Plans a function.
    ///
    /// # Errors
    /// All constructs that have no derivative.
    pub fn new(engine: &mut Engine<'m>, signature: Signature<'m>) -> Result<Self, Vec<Refusal>> {
        let function = signature.function;
        let shape = Shape::new(function, engine.analyses(), |header| engine.counted(header));
        let frames = Frames::new(shape.regions.len());
        let mut plan = Self {
            module: engine.module(),
            function,
            signature,
            shape,
            constructs: HashMap::new(),
            frames,
            decisions: HashMap::new(),
            places: HashMap::new(),
            targets: HashMap::new(),
            boxed: HashSet::new(),
            varied: HashSet::new(),
            globals: engine.globals().clone(),
            words: engine.words(),
            activity: engine.activity(),
            content: engine.content(),
            choices: engine.choices(),
            unwritten: engine.unwritten(),
        };
        let live: Vec<_> = plan
            .shape
            .blocks
            .iter()
            .copied()
            .filter(|b| plan.shape.is_live(*b))
            .collect();
        plan.varied = varied::varied(&mut plan, &live);
        // Which calls allocate is known only with the constructs.
        plan.targets.clear();
        let mut refusals = vec![];
        for i in live.iter().flat_map(|b| b.instructions()) {
            let counts = match i.is(Opcode::LLVMStore) {
                // Of a word in memory that may be a float or an integer, run time tells (see `memory.rs`).
                true => plan.activity.writes(i) && !i.operand(0).ty().scalar().is_int(),
                false => i.ty().scalar().is_float(),
            };
            if counts && plan.is_laundered(i) {
                let help = "compute on the float, not on its bits";
                refusals.push(Refusal::at(
                    i,
                    "arithmetic on the bits of a float that become a float again",
                    help,
                ));
            }
            match Construct::of(i, &mut plan, engine) {
                Ok(construct) => drop(plan.constructs.insert(i, construct)),
                Err(more) => refusals.extend(more),
            }
        }
        if !refusals.is_empty() {
            return Err(refusals);
        }
        let mut wanted = vec![];
        plan.reserve_control(&live, engine, &mut wanted);
        for i in live.iter().flat_map(|b| b.instructions()) {
            let construct = plan.constructs[&i];
            construct.reserve(i, &mut plan, engine);
            wanted.extend(construct.needs(i, &plan));
        }
        plan.places = choose(&plan, wanted);
        plan.reserve_fields();
        plan.reserve_addresses();
        Ok(plan)
    }

    /// Fields for the way that control took.
    fn reserve_control(&mut self, live: &[Block<'m>], engine: &Engine<'m>, wanted: &mut Vec<Need<'m>>) {
        if self.shape.returns.len() > 1 {
            self.frames.reserve(0, Slot::Exit, 4, 4);
        }
        for region in 1..self.shape.regions.len() {
            if !self.is_live_region(region) {
                continue;
            }
            match self.counted(region) {
                Some(Counted { count, .. }) => wanted.push(Need::Primal(count)),
                None => self.frames.reserve(region, Slot::Previous, 8, 8),
            }
        }
        let merges: Vec<_> = live
            .iter()
            .copied()
            .filter(|b| {
                let counted = self.shape.is_header(*b) && self.counted(self.shape.region(*b)).is_some();
                self.shape.predecessors(*b).len() > 1 && !counted
            })
            .collect();
        let decisions = Decisions::new(&self.shape, engine.analyses());
        let found: Vec<_> = merges.into_iter().map(|b| (b, decisions.of(b))).collect();
        let mut costs = Costs::default();
        for (block, decision) in found {
            let (region, size) = (self.shape.region(block), self.number_size(block));
            let record = self.cost_of_bytes(size, region);
            let conditions = |d: &Decision<'m>| d.asked.iter().map(|a| Need::Primal(a.condition)).collect::<Vec<_>>();
            let cheaper = |d: &Decision<'m>| {
                let asked = conditions(d);
                asked.into_iter().map(|c| costs.least(self, c)).sum::<u64>() <= record
            };
            let Some(decision) = decision.filter(cheaper) else {
                self.frames.reserve(region, Slot::Predecessor(block), size, size);
                continue;
            };
            wanted.extend(conditions(&decision));
            self.decisions.insert(block, decision);
        }
    }

    /// Bytes for the number of a predecessor.
    pub fn number_size(&self, block: Block<'m>) -> u64 {
        if self.shape.predecessors(block).len() <= 256 {
            1
        } else {
            4
        }
    }

    fn is_live_region(&self, region: usize) -> bool {
        self.shape.regions[region].header.is_some_and(|h| self.shape.is_live(h))
    }

    /// Fields for what is to be stored, in the order of the code.
    fn reserve_fields(&mut self) {
        let arguments = self.function.params();
        let blocks = self.shape.blocks.clone();
        for v in arguments
            .into_iter()
            .chain(blocks.iter().flat_map(|b| b.instructions()))
        {
            let region = self.shape.region_of_value(v);
            for need in [Need::Primal(v), Need::Shadow(v), Need::Offset(v)] {
                if !self.is_stored(need) {
                    continue;
                }
                let (size, alignment) = self.size_of_field(need);
                for direction in 0..self.fields(need) {
                    self.frames.reserve(region, slot(need, direction), size, alignment);
                }
            }
        }
    }

    /// Every frame that holds something has its address in the frame around it.
    fn reserve_addresses(&mut self) {
        for region in (1..self.shape.regions.len()).rev() {
            if self.is_live_region(region) && self.frames.size(region) > 0 {
                let parent = self.shape.regions[region].parent;
                self.frames.reserve(parent, Slot::Last(region), 8, 8);
            }
        }
        self.frames.lay_out();
    }

    /// The counter of a loop.
    pub fn counted(&self, region: usize) -> Option<Counted<'m>> {
        self.shape.regions[region].counted
    }

    /// How a value at the head of a counted loop steps with the counter.
    pub fn induction(&self, v: Value<'m>) -> Option<(Induction<'m>, usize)> {
        let region = self.shape.region_of_value(v);
        let counted = self.counted(region)?;
        if !v.is(Opcode::LLVMPHI) || self.shape.regions[region].header != Some(v.block()) {
            return None;
        }
        let inside = |x: Value<'m>| x.is_instruction() && self.shape.within(self.shape.region(x.block()), region);
        Some((induction(v, &counted, inside)?, region))
    }

    /// What a value carries.
    pub fn carries(&self, v: Value<'m>) -> Carries {
        self.leaves(v).carries(v.ty())
    }

    /// The leaves of a value.
    pub fn leaves(&self, v: Value<'m>) -> Leaves<'_, 'm> {
        Leaves {
            module: self.module,
            lanes: self.words.of(v),
        }
    }

    /// May the value depend on what is differentiated, so that it has a cotangent?
    pub fn active(&self, v: Value<'m>) -> bool {
        if self.signature.frozen || v.is_constant() || !self.activity.is_active(v) {
            return false;
        }
        if v.is_argument() {
            return self.signature.argument_of(v).is_some_and(|a| a.cotangent);
        }
        v.is_instruction() && self.varied.contains(&v) && self.carries(v).floats
    }

    /// Must the value have a shadow?
    pub fn needs_shadow(&self, v: Value<'m>) -> bool {
        match v.is_constant() {
            true => self.globals.reaches(v),
            false => self.activity.needs_shadow(v) && self.carries(v).pointers,
        }
    }

    /// Is it known where the shadow of a pointer points?
    pub fn target(&mut self, v: Value<'m>) -> Target {
        if let Some(target) = self.targets.get(&v) {
            return *target;
        }
        // What is found to lead to itself knows nothing.
        self.targets.insert(v, Target::Unknown);
        let target = self.find_target(v);
        self.targets.insert(v, target);
        target
    }

    fn find_target(&mut self, v: Value<'m>) -> Target {
        if v.is_constant() {
            return match self.globals.has(v) {
                true => Target::Active,
                false => Target::Inactive,
            };
        }
        if !self.activity.needs_shadow(v) {
            return Target::Inactive;
        }
        if v.is_argument() {
            return self.signature.argument_of(v).map_or(Target::Inactive, |a| a.target);
        }
        match v.opcode() {
            Opcode::LLVMAlloca => Target::Active,
            Opcode::LLVMGetElementPtr
            | Opcode::LLVMBitCast
            | Opcode::LLVMFreeze
            | Opcode::LLVMSelect
            | Opcode::LLVMPHI
                if v.ty().is_pointer() =>
            {
                self.common_target(v)
            }
            Opcode::LLVMCall if is_thread_local(v) => self.target(v.operand(0)),
            Opcode::LLVMCall | Opcode::LLVMInvoke => match self.constructs.get(&v) {
                Some(Construct::Allocate { .. } | Construct::Reallocate { .. }) => Target::Active,
                _ => Target::Unknown,
            },
            _ => Target::Unknown,
        }
    }

    /// Where a pointer leads if all objects that it may point into agree. Null, and where an empty `Vec` points, are no
    /// addresses to access, so they may be anything.
    fn common_target(&mut self, v: Value<'m>) -> Target {
        let objects = v.underlying_objects();
        let mut objects = objects.into_iter().filter(|x| *x != v && !x.is_nowhere());
        let Some(first) = objects.next() else {
            return Target::Unknown;
        };
        let first = self.target(first);
        match objects.all(|x| self.target(x) == first) {
            true => first,
            false => Target::Unknown,
        }
    }

    /// The known target, after [`Plan::target`] or for what has been planned.
    pub fn known_target(&self, v: Value<'m>) -> Target {
        match self.targets.get(&v) {
            Some(target) => *target,
            None if self.globals.has(v) => Target::Active,
            None if v.is_constant() || !self.activity.needs_shadow(v) => Target::Inactive,
            None => Target::Unknown,
        }
    }

    /// Where the reverse gets it; `None` for constants and for what was not planned.
    pub fn place(&self, need: Need<'m>) -> Option<Place> {
        self.places.get(&need).copied()
    }

    /// The field of something stored, in a direction: region and slot.
    pub fn field(&self, need: Need<'m>, direction: u32) -> Option<(usize, Slot<'m>)> {
        let slot = match (self.place(need)?, need) {
            (Place::Memory, _) => Slot::Memory(need.value(), direction),
            _ => slot(need, direction),
        };
        Some((self.shape.region_of_value(need.value()), slot))
    }

    /// How many fields something takes that is stored: a shadow one for each direction.
    pub fn fields(&self, need: Need<'m>) -> u32 {
        match need {
            Need::Shadow(_) => self.signature.width,
            Need::Primal(_) | Need::Offset(_) => 1,
        }
    }

    /// Values that the forward sweep stores.
    pub fn is_stored(&self, need: Need<'m>) -> bool {
        self.place(need) == Some(Place::Field)
    }

    /// Says whether the frame of a call is a block of its own.
    pub fn set_boxed(&mut self, call: Value<'m>, boxed: bool) {
        if boxed {
            self.boxed.insert(call);
        }
    }

    /// Is the frame of a call a block of its own?
    pub fn is_boxed(&self, call: Value<'m>) -> bool {
        self.boxed.contains(&call)
    }

    /// Does a store take for a float what may be changed bits of another?
    pub fn is_laundered(&self, store: Value<'m>) -> bool {
        self.words.laundered(store) || self.activity.is_laundered(store)
    }

    /// The module.
    pub fn module(&self) -> Mod<'m> {
        self.module
    }
}
