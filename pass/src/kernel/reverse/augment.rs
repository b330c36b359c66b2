//! The forward sweep: a copy of the primal that also computes shadows and leaves frames.
//!
//!     aug_f(args.., shadows.., frame, arena) -> R, or {R, shadow of R}
//!
//! Of several directions at once (a *width*) each argument has as many shadows, one after the other, and so has the
//! result. The primal runs once; what is done to shadows is done for every direction.
//!
//! At the head of a loop every iteration gets a frame from the arena, linked to the one before:
//!
//!     head: frame = alloc; frame.previous = parent.last; parent.last = frame

use super::construct::Construct;
use super::directions::Directions;
use super::frame::Slot;
use super::leaves::{UNKNOWN, inactive_shadow};
use super::plan::{Need, Plan, Target};
use crate::kernel::Refusal;
use crate::kernel::engine::{Derivative, Engine};
use crate::llvm::{Block, Builder, Function, Linkage, Opcode, Type, Value};
use std::collections::HashMap;

/// The forward sweep being emitted.
pub struct Augment<'a, 'm> {
    /// The plan.
    pub plan: &'a Plan<'m>,
    /// Emits.
    pub b: &'a Builder<'m>,
    /// The engine.
    pub engine: &'a Engine<'m>,
    /// The copy.
    pub function: Function<'m>,
    /// The arena.
    pub arena: Value<'m>,
    /// The direction that is dealt with.
    pub direction: u32,
    copies: HashMap<Value<'m>, Value<'m>>,
    /// By value and direction.
    shadows: HashMap<(Value<'m>, u32), Value<'m>>,
    frames: Vec<Option<Value<'m>>>,
    /// Iterations of counted loops.
    trips: HashMap<usize, Value<'m>>,
}

/// An address in a frame.
pub(super) fn at<'m>(b: &Builder<'m>, frame: Value<'m>, offset: u64) -> Value<'m> {
    if offset == 0 {
        return frame;
    }
    let context = frame.ty().context();
    b.gep_inbounds(context.int(8), frame, &[context.int(64).int(offset)])
}

/// Address of a field of one iteration, where frames of a counted loop are arrays.
pub(super) fn element<'m>(
    b: &Builder<'m>,
    frames: Value<'m>,
    (offset, size): (u64, u64),
    trips: Value<'m>,
    index: Value<'m>,
) -> Value<'m> {
    let byte = frames.ty().context().int(8);
    let word = trips.ty();
    let array = match offset {
        0 => frames,
        _ => b.gep_inbounds(byte, frames, &[b.mul_nuw(trips, word.int(offset))]),
    };
    b.gep_inbounds(byte, array, &[b.mul_nuw(index, word.int(size))])
}

/// The first instruction of a block that is no `phi` and no landing pad: every block has a terminator.
fn rest<'m>(block: Block<'m>) -> Option<Value<'m>> {
    let begins = |i: &Value<'m>| i.is(Opcode::LLVMPHI) || i.is(Opcode::LLVMLandingPad);
    block.instructions().find(|i| !begins(i))
}

impl Directions for Augment<'_, '_> {
    fn width(&self) -> u32 {
        self.plan.signature.width
    }

    fn turn_to(&mut self, direction: u32) {
        self.direction = direction;
    }
}

impl<'a, 'm> Augment<'a, 'm> {
    /// Emits the forward sweep of a plan.
    ///
    /// # Errors
    /// If something in it cannot be emitted.
    pub fn emit(
        engine: &'a Engine<'m>,
        plan: &'a Plan<'m>,
        derivative: &Derivative<'m>,
    ) -> Result<Function<'m>, Refusal> {
        let primal = plan.function;
        let name = format!("cotangent.aug.{}", primal.name());
        let (function, pairs) = primal.clone_as(derivative.augmented.ty(), &name);
        // The copy took over how the original is seen from outside.
        function.set_linkage(Linkage::LLVMInternalLinkage);
        function.erase_subprogram();
        let copies: HashMap<_, _> = pairs.into_iter().collect();
        let params = function.params();
        let b = Builder::new(engine.module().context());
        let mut a = Augment {
            plan,
            b: &b,
            engine,
            function,
            arena: params[params.len() - 1],
            direction: 0,
            copies,
            shadows: HashMap::new(),
            frames: vec![None; plan.shape.regions.len()],
            trips: HashMap::new(),
        };
        let frame = params[params.len() - 2];
        a.frames[0] = Some(frame);
        // The frame holds shadow memory that callees reach through pointers of their own: it is not without alias.
        function.add_param_attribute(params.len() as u32 - 1, "noalias");
        let done = a.whole(&params);
        if done.is_err() {
            function.value().delete_body();
            function.delete();
        }
        done.map(|()| function)
    }

    fn whole(&mut self, params: &[Value<'m>]) -> Result<(), Refusal> {
        self.enter(params)?;
        for block in &self.plan.shape.blocks {
            if self.plan.shape.is_live(*block) {
                self.block(*block)?;
            }
        }
        self.close_phis()
    }

    /// Shadows of arguments, and arguments that the reverse needs.
    fn enter(&mut self, params: &[Value<'m>]) -> Result<(), Refusal> {
        let arguments = self.plan.function.params();
        let mut next = arguments.len();
        let b = self.b;
        for (v, argument) in arguments.iter().zip(&self.plan.signature.arguments) {
            self.each_direction(|a| {
                let shadow = if argument.shadow {
                    next += 1;
                    params[next - 1]
                } else {
                    inactive_shadow(v.ty(), super::leaves::CONSTANT)
                };
                a.set_shadow(*v, shadow);
            });
        }
        if let Some(first) = self.function.entry().and_then(rest) {
            b.before(first);
            for v in arguments {
                self.keep(v);
            }
        }
        Ok(())
    }

    /// Emits what belongs to a block.
    fn block(&mut self, block: Block<'m>) -> Result<(), Refusal> {
        let copy = self.copies.get(&block.as_value()).and_then(|v| v.as_block());
        let Some((copy, rest)) = copy.and_then(|c| Some((c, rest(c)?))) else {
            return Ok(());
        };
        // What belongs to the start of the block comes before its own instructions, in this order.
        let (phis, others): (Vec<Value<'m>>, Vec<_>) = block.instructions().partition(|i| i.is(Opcode::LLVMPHI));
        for i in &phis {
            self.b.before(copy.first().unwrap_or(rest));
            self.plan.constructs[i].forward(*i, self)?;
        }
        self.b.before(rest);
        if self.plan.shape.is_header(block) {
            self.open_iteration(self.plan.shape.region(block), rest);
        }
        self.record_predecessor(block, copy, rest);
        for i in phis {
            self.keep(i);
        }
        for i in others {
            let construct = self.plan.constructs[&i];
            if let Construct::Return = construct {
                self.b.before(self.primal(i));
                self.record_exit(block);
                self.leave(i)?;
                continue;
            }
            if i.is(Opcode::LLVMResume) {
                self.b.before(self.primal(i));
                self.record_exit(block);
                continue;
            }
            if i.is(Opcode::LLVMLoad) && self.plan.is_stable(i) {
                self.engine.lasting().own(self.primal(i));
            }
            self.after(i);
            construct.forward(i, self)?;
            self.keep(i);
        }
        Ok(())
    }

    /// Stands after the copy of an instruction: behind an invoke, where it goes on.
    pub fn after(&self, i: Value<'m>) {
        let copy = self.primal(i);
        // What an invoke gives is there where it goes on. (Behind one that has just been made, the old one may still stand.)
        let next = match copy.is(Opcode::LLVMInvoke) {
            true => rest(copy.normal_destination()),
            false => copy.next(),
        };
        let next = next.unwrap_or(copy);
        self.b.before(next);
    }

    /// The frame of a loop's iteration; or, of a counted loop, of all of them, before the loop.
    fn open_iteration(&mut self, region: usize, rest: Value<'m>) {
        let plan = self.plan;
        let word = self.engine.module().context().int(64);
        let parent = plan.shape.regions[region].parent;
        let size = word.int(plan.frames.size(region));
        let alloc = self.engine.support("cotangent.alloc");
        if let Some(counted) = plan.counted(region) {
            let before = self
                .primal(counted.preheader.as_value())
                .as_block()
                .and_then(|p| p.terminator());
            let Some(before) = before.filter(|_| plan.frames.size(region) > 0) else {
                return;
            };
            self.b.before(before);
            let trips = self.b.add(self.primal(counted.count), word.int(1));
            let frame = self.b.call(alloc, &[self.arena, self.b.mul(trips, size)]);
            if let Some(last) = self.field(parent, Slot::Last(region)) {
                self.engine.frames().own(self.b.store(frame, last));
            }
            self.b.before(rest);
            self.trips.insert(region, trips);
            self.frames[region] = Some(frame);
            return;
        }
        let frame = self.b.call(alloc, &[self.arena, size]);
        self.frames[region] = Some(frame);
        if let (Some(last), Some(previous)) = (
            self.field(parent, Slot::Last(region)),
            self.field(region, Slot::Previous),
        ) {
            let own = |access| self.engine.frames().own(access);
            let before = own(self.b.load(frame.ty(), last));
            own(self.b.store(before, previous));
            own(self.b.store(frame, last));
        }
    }

    fn record_predecessor(&self, block: Block<'m>, copy: Block<'m>, rest: Value<'m>) {
        let Some(field) = self.field(self.plan.shape.region(block), Slot::Predecessor(block)) else {
            return;
        };
        let number = self
            .engine
            .module()
            .context()
            .int(8 * self.plan.number_size(block) as u32);
        self.b.before(copy.first().unwrap_or(rest));
        let phi = self.b.phi(number);
        let order = self.plan.shape.predecessors(block);
        let known: HashMap<_, _> = order
            .iter()
            .enumerate()
            .map(|(k, p)| (self.primal(p.as_value()), k))
            .collect();
        // Once per edge; ways from blocks that have no reverse have no number.
        for p in copy.predecessors() {
            let at = known.get(&p.as_value()).copied().unwrap_or(0);
            phi.add_incoming(&[(p, number.int(at as u64))]);
        }
        self.b.before(rest);
        self.engine.frames().own(self.b.store(phi, field));
    }

    fn record_exit(&mut self, block: Block<'m>) {
        let Some(field) = self.field(0, Slot::Exit) else { return };
        let at = self.plan.shape.returns.iter().position(|r| *r == block).unwrap_or(0);
        let number = self.engine.module().context().int(32).int(at as u64);
        self.engine.frames().own(self.b.store(number, field));
    }

    /// Address of a field in the frame of a region that is open here.
    pub fn field(&self, region: usize, slot: Slot<'m>) -> Option<Value<'m>> {
        let (offset, size) = self.plan.frames.place(region, slot)?;
        let frame = self.frames[region]?;
        Some(match (self.plan.counted(region), self.trips.get(&region)) {
            (Some(counted), Some(trips)) => element(self.b, frame, (offset, size), *trips, self.primal(counted.index)),
            _ => at(self.b, frame, offset),
        })
    }

    /// Stores a value, or its shadow, if the reverse wants it. The builder stands after its definition.
    fn keep(&mut self, v: Value<'m>) {
        for need in [Need::Primal(v), Need::Shadow(v), Need::Offset(v)] {
            if !self.plan.is_stored(need) {
                continue;
            }
            for direction in 0..self.plan.fields(need) {
                let kept = match need {
                    Need::Primal(_) => Some(self.primal(v)),
                    Need::Shadow(_) => self.shadows.get(&(v, direction)).copied(),
                    Need::Offset(_) => self.plan.object_of(v).map(|o| self.distance(v, o)),
                };
                let field = self.plan.field(need, direction);
                let field = field.and_then(|(region, slot)| self.field(region, slot));
                if let (Some(kept), Some(field)) = (kept, field) {
                    let alignment = self.engine.module().alignment(kept.ty()).min(16);
                    self.engine.frames().own(self.b.store_aligned(kept, field, alignment));
                }
            }
        }
    }

    fn distance(&self, pointer: Value<'m>, object: Value<'m>) -> Value<'m> {
        let word = self.engine.module().context().int(64);
        let address = |v| self.b.ptrtoint(self.primal(v), word);
        self.b.sub(address(pointer), address(object))
    }

    /// `ret`, with the shadow of the result.
    fn leave(&mut self, ret: Value<'m>) -> Result<(), Refusal> {
        if !self.plan.signature.result.pointers {
            return Ok(());
        }
        let value = ret.operand(0);
        let shadows = self.all_shadows(value)?;
        let all = self.function.result().poison();
        let all = self.b.insert_value(all, self.primal(value), 0);
        let shadows = shadows.into_iter().zip(1..);
        let all = shadows.fold(all, |all, (shadow, k)| self.b.insert_value(all, shadow, k));
        self.b.ret(Some(all));
        self.primal(ret).erase();
        Ok(())
    }

    /// The sides of the shadows of `phi`s.
    fn close_phis(&mut self) -> Result<(), Refusal> {
        for block in &self.plan.shape.blocks {
            for i in block.instructions().take_while(|i| i.is(Opcode::LLVMPHI)) {
                self.each_direction(|a| a.close_phi(i))
                    .into_iter()
                    .collect::<Result<(), _>>()?;
            }
        }
        Ok(())
    }

    fn close_phi(&mut self, i: Value<'m>) -> Result<(), Refusal> {
        let Some(phi) = self.shadows.get(&(i, self.direction)).copied() else {
            return Ok(());
        };
        for (from, value) in i.incoming() {
            let Some(copy) = self.copies.get(&from.as_value()).and_then(|v| v.as_block()) else {
                continue;
            };
            let side = match self.shadows.contains_key(&(value, self.direction)) || value.is_constant() {
                // Nobody asks whether it is active, and LLVM sees that it is no object.
                true if value.is_null() && self.plan.known_target(i) == Target::Active => value,
                true => self.shadow(value)?,
                // A side from a block without a reverse.
                false => inactive_shadow(value.ty(), UNKNOWN),
            };
            phi.add_incoming(&[(copy, side)]);
        }
        Ok(())
    }

    /// The copy of a value of the primal.
    pub fn primal(&self, v: Value<'m>) -> Value<'m> {
        self.copies.get(&v).copied().unwrap_or(v)
    }

    /// Lets another value stand for the copy of `v`.
    pub fn replace_primal(&mut self, v: Value<'m>, by: Value<'m>) {
        self.copies.insert(v, by);
    }

    /// The shadows of a value, in every direction.
    ///
    /// # Errors
    /// As of one.
    pub fn all_shadows(&mut self, v: Value<'m>) -> Result<Vec<Value<'m>>, Refusal> {
        self.each_direction(|a| a.shadow(v)).into_iter().collect()
    }

    /// The shadow of a value, in the direction that is dealt with.
    ///
    /// # Errors
    /// If it has none, which is a mistake of the plan.
    pub fn shadow(&self, v: Value<'m>) -> Result<Value<'m>, Refusal> {
        if let Some(shadow) = self.shadows.get(&(v, self.direction)) {
            return Ok(*shadow);
        }
        if v.is_constant() {
            return Ok(self
                .engine
                .shadow_of_constant(self.function, self.arena, v, self.direction));
        }
        if !self.plan.needs_shadow(v) {
            return Ok(inactive_shadow(v.ty(), UNKNOWN));
        }
        if v.is_instruction() {
            return Err(Refusal::at(
                v,
                format!("the shadow of `{}`", v.text().trim()),
                "please report this",
            ));
        }
        Err(Refusal::of(
            &self.plan.function.name(),
            "a value without a shadow",
            "please report this",
        ))
    }

    /// Says what the shadow of a value is, in the direction that is dealt with.
    pub fn set_shadow(&mut self, v: Value<'m>, shadow: Value<'m>) {
        self.shadows.insert((v, self.direction), shadow);
    }

    /// A shadow word as loaded: zero stands for a pointer that the shadow memory knows nothing of.
    pub fn found(&self, i: Value<'m>, loaded: Value<'m>) -> Value<'m> {
        if !loaded.ty().is_pointer() {
            return loaded;
        }
        self.engine
            .found(self.b, self.arena, self.primal(i), loaded, self.direction)
    }

    /// The shadow of a pointer that was loaded from where there is no shadow: global variables are still found.
    pub fn found_elsewhere(&self, i: Value<'m>) -> Value<'m> {
        match i.ty().is_pointer() && !self.engine.globals().is_empty() {
            true => self.found(i, i.ty().zero()),
            false => inactive_shadow(i.ty(), UNKNOWN),
        }
    }

    /// Memory that holds shadows of nothing, to load from.
    pub fn nothing(&self, ty: Type<'m>) -> Value<'m> {
        let global = self.engine.module().add_global("cotangent.nothing", ty);
        global.set_initializer(inactive_shadow(ty, UNKNOWN));
        global.set_global_constant();
        global.set_global_linkage(Linkage::LLVMInternalLinkage);
        global
    }

    /// Memory that nobody reads, to store to.
    pub fn aside(&self, ty: Type<'m>) -> Value<'m> {
        let b = Builder::new(self.engine.module().context());
        match self.function.entry().and_then(|e| e.first()) {
            Some(first) => b.before(first),
            None => b.at_end(self.b.block()),
        }
        b.alloca(ty)
    }
}
