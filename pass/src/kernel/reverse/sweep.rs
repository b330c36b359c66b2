//! The reverse sweep: blocks backwards, from the return that was taken to the entry.
//!
//!     rev_f(cotangent of R, frame, arena) -> cotangents of the arguments
//!
//! Every value with a cotangent has a place for it (LLVM makes registers of them), zero until a use adds to it. The
//! reverse of a block runs its instructions backwards; each takes the cotangent of its result, leaves zero, and adds to
//! those of its operands. Then the block is left along the edge by which the forward sweep came:
//!
//!     block:  .. reverse of the instructions ..
//!             t.. = take(phi..)
//!             switch frame.predecessor { k -> edge k: side k of each phi += t; on to the reverse of predecessor k }
//!
//! An edge that went out of a loop now goes into it: the loop's current frame becomes the last one. The edge by which an
//! iteration was entered from the one before leads to the previous frame.

use super::frame::Slot;
use super::leaves::{UNKNOWN, inactive_shadow};
use super::plan::{Need, Place, Plan};
use crate::kernel::Refusal;
use crate::kernel::engine::{Derivative, Engine};
use crate::llvm::{Block, Builder, Function, Opcode, Type, Value};
use std::collections::HashMap;

/// The reverse sweep being emitted.
pub struct Sweep<'a, 'm> {
    /// The plan.
    pub plan: &'a Plan<'m>,
    /// Emits; stands at the end of a block.
    pub b: &'a Builder<'m>,
    /// The engine.
    pub engine: &'a Engine<'m>,
    /// The arena.
    pub arena: Value<'m>,
    function: Function<'m>,
    /// Emits places, in the entry block.
    places: Builder<'m>,
    seed: Option<Value<'m>>,
    starts: HashMap<Block<'m>, Block<'m>>,
    cotangents: HashMap<Value<'m>, Value<'m>>,
    frames: Vec<Value<'m>>,
    region: usize,
    /// What was computed in this block.
    known: HashMap<Need<'m>, Value<'m>>,
    frames_here: HashMap<usize, Value<'m>>,
}

impl<'a, 'm> Sweep<'a, 'm> {
    /// Emits the reverse sweep of a plan.
    ///
    /// # Errors
    /// If something in it cannot be emitted.
    pub fn emit(engine: &'a Engine<'m>, plan: &'a Plan<'m>, derivative: &Derivative<'m>) -> Result<(), Refusal> {
        let function = derivative.reverse;
        let params = function.params();
        let (frame, arena) = (params[params.len() - 2], params[params.len() - 1]);
        for k in [params.len() - 1, params.len() - 2] {
            function.add_param_attribute(k as u32, "noalias");
        }
        let context = engine.module().context();
        let (b, places) = (Builder::new(context), Builder::new(context));
        let entry = function.append_block("entry");
        places.at_end(entry);
        let frames = plan
            .shape
            .regions
            .iter()
            .map(|_| places.alloca(context.ptr()))
            .collect();
        let mut s = Sweep {
            plan,
            b: &b,
            engine,
            arena,
            function,
            places,
            seed: (params.len() > 2).then(|| params[0]),
            starts: HashMap::new(),
            cotangents: HashMap::new(),
            frames,
            region: 0,
            known: HashMap::new(),
            frames_here: HashMap::new(),
        };
        s.places.store(frame, s.frames[0]);
        let live: Vec<_> = plan
            .shape
            .blocks
            .iter()
            .copied()
            .filter(|b| plan.shape.is_live(*b))
            .collect();
        for block in live.iter().rev() {
            s.starts.insert(*block, function.append_block(&block.name()));
        }
        for block in live.iter().rev() {
            s.block(*block)?;
        }
        s.begin();
        Ok(())
    }

    /// From the entry to the return that was taken.
    fn begin(&mut self) {
        let first = self.function.append_block("begin");
        self.places.br(first);
        self.b.at_end(first);
        let returns = &self.plan.shape.returns;
        let starts: Vec<_> = returns.iter().map(|r| self.starts[r]).collect();
        match starts.as_slice() {
            // A function that never returns is not reversed.
            [] => drop(self.b.unreachable()),
            [start] => drop(self.b.br(*start)),
            _ => {
                let number = self.engine.module().context().int(32);
                self.region = 0;
                self.forget();
                let taken = self.load_field(0, Slot::Exit, number);
                self.enter_regions(0, &[]);
                self.dispatch(taken, &starts);
            }
        }
    }

    fn forget(&mut self) {
        self.known.clear();
        self.frames_here.clear();
    }

    fn block(&mut self, block: Block<'m>) -> Result<(), Refusal> {
        self.b.at_end(self.starts[&block]);
        self.region = self.plan.shape.region(block);
        self.forget();
        let mut instructions: Vec<_> = block.instructions().collect();
        instructions.reverse();
        for i in &instructions {
            if !i.is(Opcode::LLVMPHI) {
                self.plan.constructs[i].reverse(*i, self)?;
            }
        }
        let phis: Vec<_> = instructions.into_iter().filter(|i| i.is(Opcode::LLVMPHI)).collect();
        let phis: Vec<_> = phis
            .into_iter()
            .filter(|i| self.plan.active(*i))
            .map(|i| (i, self.take(i)))
            .collect();
        let predecessors = self.plan.shape.predecessors(block).to_vec();
        if predecessors.is_empty() {
            self.end();
            return Ok(());
        }
        let number = self.engine.module().context().int(32);
        let taken = match predecessors.len() {
            1 => None,
            _ => Some(self.load_field(self.region, Slot::Predecessor(block), number)),
        };
        let from = self.b.block();
        let mut edges = vec![];
        for p in predecessors {
            let edge = if taken.is_some() {
                self.function.append_block("edge")
            } else {
                from
            };
            self.b.at_end(edge);
            self.forget();
            self.cross(block, p);
            for (phi, cotangent) in &phis {
                if let Some((_, side)) = phi.incoming().into_iter().find(|(b, _)| *b == p) {
                    self.accumulate(side, *cotangent);
                }
            }
            self.b.br(self.starts[&p]);
            edges.push(edge);
        }
        if let Some(taken) = taken {
            self.b.at_end(from);
            self.dispatch(taken, &edges);
        }
        Ok(())
    }

    fn dispatch(&self, taken: Value<'m>, to: &[Block<'m>]) {
        if let [one, zero] = [to[to.len() - 1], to[0]]
            && to.len() == 2
        {
            let first = self
                .b
                .icmp(crate::llvm::IntPredicate::LLVMIntEQ, taken, taken.ty().zero());
            self.b.cond_br(first, zero, one);
            return;
        }
        let switch = self.b.switch(taken, to[0], to.len() as u32);
        for (k, block) in to.iter().enumerate().skip(1) {
            switch.add_case(taken.ty().int(k as u64), *block);
        }
    }

    /// Current frames after going back from a block to a predecessor.
    fn cross(&mut self, block: Block<'m>, predecessor: Block<'m>) {
        let shape = &self.plan.shape;
        let (here, there) = (shape.region(block), shape.region(predecessor));
        if shape.is_header(block) && shape.within(there, here) {
            // From an iteration to the one before.
            let pointer = self.engine.module().context().ptr();
            let frame = self.b.load(pointer, self.frames[here]);
            let previous = self.plan.frames.offset(here, Slot::Previous).unwrap_or(0);
            let before = self.b.load(pointer, self.offset(frame, previous));
            self.b.store(before, self.frames[here]);
        }
        let path = shape.path(here, there);
        self.enter_regions(here, &path);
    }

    /// Current frames of loops that are entered from behind.
    fn enter_regions(&mut self, _from: usize, path: &[usize]) {
        let pointer = self.engine.module().context().ptr();
        for region in path {
            let parent = self.plan.shape.regions[*region].parent;
            let outer = self.b.load(pointer, self.frames[parent]);
            let offset = self.plan.frames.offset(parent, Slot::Last(*region)).unwrap_or(0);
            let last = self.b.load(pointer, self.offset(outer, offset));
            self.b.store(last, self.frames[*region]);
        }
    }

    fn offset(&self, base: Value<'m>, offset: u64) -> Value<'m> {
        if offset == 0 {
            return base;
        }
        self.b.offset(base, self.engine.module().context().int(64).int(offset))
    }

    /// The frame of a region: the current one, or of a loop that is not around here the last.
    fn frame(&mut self, region: usize) -> Value<'m> {
        if let Some(frame) = self.frames_here.get(&region) {
            return *frame;
        }
        let pointer = self.engine.module().context().ptr();
        let frame = if self.plan.shape.within(self.region, region) {
            self.b.load(pointer, self.frames[region])
        } else {
            let parent = self.plan.shape.regions[region].parent;
            let outer = self.frame(parent);
            let offset = self.plan.frames.offset(parent, Slot::Last(region)).unwrap_or(0);
            self.b.load(pointer, self.offset(outer, offset))
        };
        self.frames_here.insert(region, frame);
        frame
    }

    /// Address of a field.
    pub fn field(&mut self, region: usize, slot: Slot<'m>) -> Option<Value<'m>> {
        let offset = self.plan.frames.offset(region, slot)?;
        let frame = self.frame(region);
        Some(self.offset(frame, offset))
    }

    fn load_field(&mut self, region: usize, slot: Slot<'m>, ty: Type<'m>) -> Value<'m> {
        match self.field(region, slot) {
            Some(field) => self.b.load(ty, field),
            None => ty.zero(),
        }
    }

    /// A value of the forward sweep.
    ///
    /// # Errors
    /// If the plan did not foresee it.
    pub fn primal(&mut self, v: Value<'m>) -> Result<Value<'m>, Refusal> {
        if v.is_constant() {
            Ok(v)
        } else {
            self.get(Need::Primal(v))
        }
    }

    /// The shadow of a value.
    ///
    /// # Errors
    /// If the plan did not foresee it.
    pub fn shadow(&mut self, v: Value<'m>) -> Result<Value<'m>, Refusal> {
        if v.is_constant() {
            Ok(self.engine.shadow_of_constant(v))
        } else {
            self.get(Need::Shadow(v))
        }
    }

    fn get(&mut self, need: Need<'m>) -> Result<Value<'m>, Refusal> {
        if let Some(known) = self.known.get(&need) {
            return Ok(*known);
        }
        let v = need.value();
        let value = match self.plan.place(need) {
            Some(Place::Recompute) => self.recompute(need)?,
            Some(place) => {
                let field = self.plan.field(need).ok_or_else(|| self.unforeseen(v))?;
                let frame = self.frame(field.region);
                let at = self.offset(frame, field.offset);
                match place {
                    Place::Memory => at,
                    _ => {
                        let alignment = self.engine.module().alignment(v.ty()).min(16);
                        self.b.load_aligned(v.ty(), at, alignment)
                    }
                }
            }
            None => return Err(self.unforeseen(v)),
        };
        self.known.insert(need, value);
        Ok(value)
    }

    fn unforeseen(&self, v: Value<'m>) -> Refusal {
        let what = format!("a value that the plan did not foresee: `{}`", v.text().trim());
        Refusal::of(&self.plan.function.name(), what, "please report this")
    }

    fn recompute(&mut self, need: Need<'m>) -> Result<Value<'m>, Refusal> {
        let v = need.value();
        let mut operands = vec![];
        for (k, x) in v.operands().enumerate() {
            operands.push(match need {
                Need::Shadow(_) if k == 0 => self.shadow(x)?,
                _ => self.primal(x)?,
            });
        }
        let copy = v.duplicate();
        copy.erase_location();
        for (k, x) in operands.into_iter().enumerate() {
            copy.set_operand(k as u32, x);
        }
        self.b.insert(copy);
        Ok(copy)
    }

    fn cotangent_place(&mut self, v: Value<'m>) -> Value<'m> {
        if let Some(place) = self.cotangents.get(&v) {
            return *place;
        }
        let place = self.places.alloca(v.ty());
        self.places.store(v.ty().zero(), place);
        self.cotangents.insert(v, place);
        place
    }

    /// Takes the cotangent of a value, and leaves zero.
    pub fn take(&mut self, v: Value<'m>) -> Value<'m> {
        let place = self.cotangent_place(v);
        let cotangent = self.b.load(v.ty(), place);
        self.b.store(v.ty().zero(), place);
        cotangent
    }

    /// Adds to the cotangent of a value that has one.
    pub fn accumulate(&mut self, v: Value<'m>, part: Value<'m>) {
        if !self.plan.active(v) || part.is_null() {
            return;
        }
        let place = self.cotangent_place(v);
        let sum = self.plan.leaves(v).add(self.b, self.b.load(v.ty(), place), part);
        self.b.store(sum, place);
    }

    /// The cotangent of the result goes to the value that was returned.
    ///
    /// # Errors
    /// None; as for other instructions.
    pub fn start_from(&mut self, ret: Value<'m>) -> Result<(), Refusal> {
        if let (Some(seed), Some(value)) = (self.seed, ret.operands().next()) {
            self.accumulate(value, seed);
        }
        Ok(())
    }

    /// Returns the cotangents of the arguments.
    fn end(&mut self) {
        let arguments = self
            .plan
            .function
            .params()
            .into_iter()
            .zip(&self.plan.signature.arguments);
        let wanted: Vec<_> = arguments.filter(|(_, a)| a.cotangent).map(|(v, _)| v).collect();
        let cotangents: Vec<_> = wanted.into_iter().map(|v| self.take(v)).collect();
        let result = self.function.result();
        match cotangents.as_slice() {
            [] => drop(self.b.ret(None)),
            [one] => drop(self.b.ret(Some(*one))),
            many => {
                let all = many
                    .iter()
                    .enumerate()
                    .fold(result.poison(), |all, (k, c)| self.b.insert_value(all, *c, k as u32));
                self.b.ret(Some(all));
            }
        }
    }

    /// A shadow that is none.
    pub fn inactive(&self, ty: Type<'m>) -> Value<'m> {
        inactive_shadow(ty, UNKNOWN)
    }
}
