//! What the reverse of a function needs of the forward sweep, and where it gets it: the plan of both sweeps.
//!
//! Every needed value is a constant, a field of a frame, or is computed again from such. The choice is made by cost:
//! bytes in frames, weighted by how many loops are around them.

use super::construct::{Construct, Signature};
use super::control::{Decision, Decisions};
use super::counted::{Counted, Induction, induction};
use super::frame::{Frames, Slot};
use super::leaves::{Carries, Leaves};
use super::shape::Shape;
use super::varied;
use crate::kernel::analysis::Content;
use crate::kernel::analysis::activity::Activity;
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
    /// The shadow of a value.
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
    module: Mod<'m>,
}

/// How much dearer memory is with every loop around it.
const LOOP: f64 = 16.0;
/// How much dearer a pointer is if nobody sees any more where it came from.
const LOST: f64 = 1.5;
/// How long a chain of operations may be computed again.
const CHAIN: u32 = 12;

impl<'m> Plan<'m> {
    /// Plans a function.
    ///
    /// # Errors
    /// All constructs that have no derivative.
    pub fn new(engine: &mut Engine<'m>, signature: Signature<'m>) -> Result<Self, Vec<Refusal>> {
        let function = signature.function;
        let shape = Shape::new(function, engine.analyses(), |header| engine.counted(header)).map_err(|r| vec![r])?;
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
                true => plan.activity.writes(i),
                false => i.ty().scalar().is_float(),
            };
            if counts && plan.words.laundered(i) {
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
        plan.reserve_control(&live, engine);
        for i in live.iter().flat_map(|b| b.instructions()) {
            let construct = plan.constructs[&i];
            construct.reserve(i, &mut plan, engine);
            for need in construct.needs(i, &plan) {
                plan.need(need);
            }
        }
        plan.reserve_addresses();
        Ok(plan)
    }

    /// Fields for the way that control took.
    fn reserve_control(&mut self, live: &[Block<'m>], engine: &Engine<'m>) {
        if self.shape.returns.len() > 1 {
            self.frames.reserve(0, Slot::Exit, 4, 4);
        }
        for region in 1..self.shape.regions.len() {
            if !self.is_live_region(region) {
                continue;
            }
            match self.counted(region) {
                Some(Counted { count, .. }) => self.need(Need::Primal(count)),
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
        let mut found: Vec<_> = merges.into_iter().map(|b| (b, decisions.of(b))).collect();
        for (block, decision) in &mut found {
            let region = self.shape.region(*block);
            let (size, depth) = (self.number_size(*block), self.shape.regions[region].depth);
            let record = size as f64 * LOOP.powi(depth as i32);
            let Some(decision) = decision.take().filter(|d| {
                let conditions = d.asked.values().map(|(c, ..)| self.cost(Need::Primal(*c), CHAIN).0);
                conditions.sum::<f64>() <= record
            }) else {
                self.frames.reserve(region, Slot::Predecessor(*block), size, size);
                continue;
            };
            for (condition, ..) in decision.asked.values() {
                self.need(Need::Primal(*condition));
            }
            self.decisions.insert(*block, decision);
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

    /// Where a pointer leads if all objects that it may point into agree. Null is no address to access, so it may be
    /// anything.
    fn common_target(&mut self, v: Value<'m>) -> Target {
        let objects = v.underlying_objects();
        let mut objects = objects.into_iter().filter(|x| *x != v && !x.is_null());
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

    /// The field of something stored: region and slot.
    pub fn field(&self, need: Need<'m>) -> Option<(usize, Slot<'m>)> {
        let slot = match (self.place(need)?, need) {
            (Place::Memory, _) => Slot::Memory(need.value()),
            (_, Need::Primal(v)) => Slot::Primal(v),
            (_, Need::Shadow(v)) => Slot::Shadow(v),
            (_, Need::Offset(v)) => Slot::Offset(v),
        };
        Some((self.shape.region_of_value(need.value()), slot))
    }

    /// Values that the forward sweep stores.
    pub fn is_stored(&self, need: Need<'m>) -> bool {
        self.place(need) == Some(Place::Field)
    }

    /// Plans where something comes from.
    fn need(&mut self, need: Need<'m>) {
        self.place_at_cost(need, CHAIN);
    }

    /// Operands from which it can be computed again.
    fn recipe(&self, need: Need<'m>) -> Option<Vec<Need<'m>>> {
        let v = need.value();
        if !v.is_instruction() {
            return None;
        }
        let operands = || v.operands();
        if self.is_index(v) {
            return matches!(need, Need::Primal(_)).then(Vec::new);
        }
        if let Some((Induction { start, step, unit, .. }, _)) = self.induction(v) {
            return match need {
                Need::Primal(_) => Some(vec![Need::Primal(start), Need::Primal(step)]),
                Need::Shadow(_) if unit.is_some() => Some(vec![Need::Shadow(start), Need::Primal(step)]),
                Need::Shadow(_) | Need::Offset(_) => None,
            };
        }
        match (need, v.opcode()) {
            (Need::Primal(_), Opcode::LLVMLoad) if self.is_stable(v) => Some(vec![Need::Primal(v.operand(0))]),
            (Need::Shadow(_), Opcode::LLVMGetElementPtr | Opcode::LLVMBitCast | Opcode::LLVMFreeze) => {
                let indices = operands().skip(1).map(Need::Primal);
                Some(std::iter::once(Need::Shadow(v.operand(0))).chain(indices).collect())
            }
            (Need::Offset(_), _) => None,
            (Need::Shadow(_), Opcode::LLVMPHI | Opcode::LLVMSelect) => {
                Some(vec![Need::Shadow(self.object_of(v)?), Need::Offset(v)])
            }
            (Need::Primal(_), Opcode::LLVMPHI) if v.ty().is_pointer() => {
                Some(vec![Need::Primal(self.object_of(v)?), Need::Offset(v)])
            }
            (Need::Primal(_), op) if is_cheap(op) => Some(operands().map(Need::Primal).collect()),
            _ => None,
        }
    }

    /// Reads the load what is still there in the reverse?
    fn is_stable(&self, load: Value<'m>) -> bool {
        if load.is_volatile() || load.is_atomic() {
            return false;
        }
        self.is_stable_memory(load.operand(0))
    }

    /// Does nothing write where the pointer leads, from the call on until its reverse is done?
    pub fn is_stable_memory(&self, pointer: Value<'m>) -> bool {
        let stable = |object: &Value<'m>| {
            if object.is_global() {
                return object.is_global_constant();
            }
            object.is_argument() && self.signature.argument_of(*object).is_some_and(|a| a.stable)
        };
        let objects = pointer.underlying_objects();
        !objects.is_empty() && objects.iter().all(stable)
    }

    /// The one object into whose memory a pointer leads that moves: it and its shadow are as far from this and its shadow.
    /// So one number does for both, and LLVM sees where they lead.
    pub fn object_of(&self, v: Value<'m>) -> Option<Value<'m>> {
        let objects = v.underlying_objects();
        let [object] = objects[..] else { return None };
        let around = || {
            let (inner, outer) = (self.shape.region_of_value(v), self.shape.region_of_value(object));
            self.shape.within(inner, outer)
        };
        let found = object != v && object.ty().is_pointer() && (object.is_argument() || object.is_instruction());
        (found && around()).then_some(object)
    }

    /// Is it the counter of a loop?
    pub fn is_index(&self, v: Value<'m>) -> bool {
        v.is(Opcode::LLVMPHI)
            && self
                .counted(self.shape.region_of_value(v))
                .is_some_and(|c| c.index == v)
    }

    /// Decides where something comes from, and gives what that costs.
    fn place_at_cost(&mut self, need: Need<'m>, chain: u32) {
        let v = need.value();
        if v.is_constant() || self.places.contains_key(&need) {
            return;
        }
        if let Need::Shadow(v) = need
            && self.frames.has(self.shape.region_of_value(v), Slot::Memory(v))
        {
            self.places.insert(need, Place::Memory);
            return;
        }
        let (_, again) = self.cost(need, chain);
        if again {
            self.places.insert(need, Place::Recompute);
            for operand in self.recipe(need).unwrap_or_default() {
                self.place_at_cost(operand, chain - 1);
            }
        } else {
            self.store(need);
        }
    }

    /// The cheapest way to have something, and whether that is to compute it again.
    fn cost(&self, need: Need<'m>, chain: u32) -> (f64, bool) {
        let v = need.value();
        if v.is_constant() || self.places.contains_key(&need) {
            return (0.0, false);
        }
        let region = self.shape.region_of_value(v);
        if let Need::Shadow(v) = need
            && self.frames.has(region, Slot::Memory(v))
        {
            return (0.0, false);
        }
        let mut bytes = self.module.size(v.ty()) as f64;
        if v.is(Opcode::LLVMPHI)
            && v.ty().is_pointer()
            && !matches!(need, Need::Offset(_))
            && self.object_of(v).is_some()
        {
            bytes *= LOST;
        }
        let stored = bytes * LOOP.powi(self.shape.regions[region].depth as i32);
        if chain == 0 {
            return (stored, false);
        }
        let Some(recipe) = self.recipe(need) else {
            return (stored, false);
        };
        let mut again = 0.0;
        for operand in recipe {
            again += self.cost(operand, chain - 1).0;
            if again > stored {
                return (stored, false);
            }
        }
        (again, true)
    }

    fn store(&mut self, need: Need<'m>) {
        let v = need.value();
        let slot = match need {
            Need::Primal(v) => Slot::Primal(v),
            Need::Shadow(v) => Slot::Shadow(v),
            Need::Offset(v) => Slot::Offset(v),
        };
        let (size, alignment) = match need {
            Need::Offset(_) => (8, 8),
            _ => (self.module.size(v.ty()), self.module.alignment(v.ty())),
        };
        self.frames
            .reserve(self.shape.region_of_value(v), slot, size, alignment.into());
        self.places.insert(need, Place::Field);
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

    /// The module.
    pub fn module(&self) -> Mod<'m> {
        self.module
    }
}

/// Operations that are cheaper to repeat than to store: no access to memory, no call.
fn is_cheap(op: Opcode) -> bool {
    use Opcode::*;
    matches!(
        op,
        LLVMAdd
            | LLVMSub
            | LLVMMul
            | LLVMShl
            | LLVMLShr
            | LLVMAShr
            | LLVMAnd
            | LLVMOr
            | LLVMXor
            | LLVMTrunc
            | LLVMZExt
            | LLVMSExt
            | LLVMPtrToInt
            | LLVMIntToPtr
            | LLVMBitCast
            | LLVMGetElementPtr
            | LLVMICmp
            | LLVMFCmp
            | LLVMSelect
            | LLVMFNeg
            | LLVMFAdd
            | LLVMFSub
            | LLVMFMul
            | LLVMFPExt
            | LLVMFPTrunc
            | LLVMSIToFP
            | LLVMUIToFP
            | LLVMExtractElement
            | LLVMInsertElement
            | LLVMShuffleVector
            | LLVMExtractValue
            | LLVMInsertValue
    )
}
