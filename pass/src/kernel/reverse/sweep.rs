//! The reverse sweep: blocks backwards, from the return that was taken to the entry.
//!
//!     rev_f(cotangent of R, frame, arena) -> cotangents of the arguments
//!
//! Of several directions at once every value has as many cotangents. What is read of the forward sweep, and the way, is had
//! again once for all of them.
//!
//! Every value with a cotangent has a place for it (LLVM makes registers of them), zero until a use adds to it (from where
//! on, `spine.rs` tells). The
//! reverse of a block runs its instructions backwards; each takes the cotangent of its result, leaves zero, and adds to
//! those of its operands. Then the block is left along the edge by which the forward sweep came:
//!
//!     block:  .. reverse of the instructions ..
//!             t.. = take(phi..)
//!             switch frame.predecessor { k -> edge k: side k of each phi += t; on to the reverse of predecessor k }
//!
//! An edge that went out of a loop now goes into it: the loop's current frame becomes the last one. The edge by which an
//! iteration was entered from the one before leads to the previous frame.

use super::augment::{at, element};
use super::control::{Decision, Step};
use super::counted::Counted;
use super::directions::Directions;
mod cotangents;

use super::frame::Slot;
use super::leaves::{UNKNOWN, inactive_shadow};
use super::plan::{Need, Place, Plan};
use super::shape::Region;
use super::spine::Spine;
use crate::kernel::Refusal;
use crate::kernel::engine::{Derivative, Engine};
use crate::llvm::{Block, Builder, Function, IntPredicate, Opcode, Type, Value};
use cotangents::Summed;
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
    /// The direction that is dealt with.
    pub direction: u32,
    function: Function<'m>,
    /// Emits places, in the entry block.
    places: Builder<'m>,
    /// One for each direction, or none.
    seeds: Vec<Value<'m>>,
    starts: HashMap<Block<'m>, Block<'m>>,
    cotangents: HashMap<Summed<'m>, Value<'m>>,
    spine: Spine<'m>,
    /// Cotangents of values that are used in the block that is reversed alone.
    sums: HashMap<Summed<'m>, Value<'m>>,
    local: HashMap<Value<'m>, bool>,
    frames: Vec<Value<'m>>,
    /// Number of the iteration, of counted loops.
    counters: Vec<Option<Value<'m>>>,
    region: usize,
    /// What was computed in this block; of shadows, in a direction.
    known: HashMap<(Need<'m>, u32), Value<'m>>,
    frames_here: HashMap<usize, Value<'m>>,
}

impl Directions for Sweep<'_, '_> {
    fn width(&self) -> u32 {
        self.plan.signature.width
    }

    fn turn_to(&mut self, direction: u32) {
        self.direction = direction;
    }
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
        // The frame holds shadow memory that callees reach through pointers of their own: it is not without alias.
        function.add_param_attribute(params.len() as u32 - 1, "noalias");
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
        let counter = |r: &Region<'m>| r.counted.map(|_| places.alloca(context.int(64)));
        let counters = plan.shape.regions.iter().map(counter).collect();
        let mut s = Sweep {
            plan,
            b: &b,
            engine,
            arena,
            direction: 0,
            function,
            places,
            seeds: params[..params.len() - 2].to_vec(),
            starts: HashMap::new(),
            cotangents: HashMap::new(),
            spine: Spine::new(&plan.shape),
            sums: HashMap::new(),
            local: HashMap::new(),
            frames,
            counters,
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
            [start] => {
                self.enter_regions(&self.plan.shape.path(0, self.plan.shape.region(returns[0])));
                self.b.br(*start);
            }
            _ => {
                let number = self.engine.module().context().int(32);
                self.region = 0;
                self.forget();
                let taken = self.load_field(0, Slot::Exit, number);
                let from = self.b.block();
                let mut ways = vec![];
                for (r, start) in returns.clone().iter().zip(starts) {
                    let way = self.function.append_block("return");
                    self.b.at_end(way);
                    self.enter_regions(&self.plan.shape.path(0, self.plan.shape.region(*r)));
                    self.b.br(start);
                    ways.push(way);
                }
                self.b.at_end(from);
                self.dispatch(taken, &ways);
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
            .map(|i| (i, self.each_direction(|s| s.take(i))))
            .collect();
        let predecessors = self.plan.shape.predecessors(block).to_vec();
        if predecessors.is_empty() {
            self.end();
            return Ok(());
        }
        let counted = self
            .plan
            .counted(self.region)
            .filter(|_| self.plan.shape.is_header(block));
        let plan = self.plan;
        let decision = plan.decisions.get(&block).filter(|_| predecessors.len() > 1);
        let taken = match (predecessors.len(), counted, decision) {
            (1, _, _) | (_, _, Some(_)) => None,
            (_, None, _) => {
                let number = self.engine.module().context().int(8 * plan.number_size(block) as u32);
                Some(self.load_field(self.region, Slot::Predecessor(block), number))
            }
            (_, Some(counted), _) => {
                // In the first iteration the loop was entered.
                let index = self.index(self.region, counted);
                let first = self.b.icmp(IntPredicate::LLVMIntEQ, index, index.ty().zero());
                let entered = predecessors[0] == counted.preheader;
                Some(if entered {
                    self.b.xor(first, first.ty().all_ones())
                } else {
                    first
                })
            }
        };
        let from = self.b.block();
        let mut edges = vec![];
        for p in predecessors {
            let edge = if taken.is_some() || decision.is_some() {
                self.function.append_block("edge")
            } else {
                from
            };
            self.b.at_end(edge);
            self.forget();
            self.cross(block, p);
            for (phi, cotangents) in &phis {
                if let Some((_, side)) = phi.incoming().into_iter().find(|(b, _)| *b == p) {
                    self.each_direction(|s| s.accumulate(side, cotangents[s.direction as usize]));
                }
            }
            self.b.br(self.starts[&p]);
            edges.push(edge);
        }
        if let Some(taken) = taken {
            self.b.at_end(from);
            self.dispatch(taken, &edges);
        }
        if let Some(decision) = decision {
            self.region = plan.shape.region(block);
            self.decide(decision, from, &edges)?;
        }
        Ok(())
    }

    /// Asks the conditions that led to a merge, each in a block of its own, and goes on to the edges.
    fn decide(&mut self, decision: &Decision<'m>, from: Block<'m>, edges: &[Block<'m>]) -> Result<(), Refusal> {
        let block = |_| self.function.append_block("asked");
        let blocks: Vec<_> = decision.asked.iter().map(block).collect();
        let places: HashMap<_, _> = decision.asked.iter().map(|a| a.at).zip(blocks).collect();
        let place = |step: Step<'m>| match step {
            Step::Edge(k) => edges[k],
            Step::Ask(block) => places[&block],
            // Not reached, so it does not matter.
            Step::Elsewhere => edges[0],
        };
        self.b.at_end(from);
        self.b.br(place(decision.first));
        for asked in &decision.asked {
            self.b.at_end(places[&asked.at]);
            self.forget();
            let condition = self.primal(asked.condition)?;
            self.b.cond_br(condition, place(asked.yes), place(asked.no));
        }
        Ok(())
    }

    fn dispatch(&self, taken: Value<'m>, to: &[Block<'m>]) {
        if let [one, zero] = [to[to.len() - 1], to[0]]
            && to.len() == 2
        {
            let first = self.b.icmp(IntPredicate::LLVMIntEQ, taken, taken.ty().zero());
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
            match self.counters[here] {
                Some(counter) => {
                    let word = self.engine.module().context().int(64);
                    let index = self.b.load(word, counter);
                    self.b.store(self.b.add(index, word.all_ones()), counter);
                }
                None => {
                    let pointer = self.engine.module().context().ptr();
                    let before = self.load_field(here, Slot::Previous, pointer);
                    self.b.store(before, self.frames[here]);
                }
            }
            self.forget();
        }
        self.enter_regions(&shape.path(here, there));
        self.region = here;
        self.forget();
    }

    /// Current frames of loops that are entered from behind, the outermost first: those of their last iterations.
    fn enter_regions(&mut self, path: &[usize]) {
        let pointer = self.engine.module().context().ptr();
        for region in path {
            let parent = self.plan.shape.regions[*region].parent;
            self.region = parent;
            self.forget();
            if self.plan.frames.size(*region) > 0 {
                let last = self.load_field(parent, Slot::Last(*region), pointer);
                self.b.store(last, self.frames[*region]);
            }
            if let (Some(counter), Some(counted)) = (self.counters[*region], self.plan.counted(*region)) {
                let count = self.count(counted);
                self.b.store(count, counter);
            }
        }
    }

    /// How often the backedge of a counted loop was taken.
    fn count(&mut self, counted: Counted<'m>) -> Value<'m> {
        let unknown = counted.count.ty().zero();
        self.primal(counted.count).unwrap_or(unknown)
    }

    /// The iteration that is reversed; of a loop that is not around here, the last.
    fn index(&mut self, region: usize, counted: Counted<'m>) -> Value<'m> {
        match self.counters[region] {
            Some(counter) if self.plan.shape.within(self.region, region) => self.b.load(counted.index.ty(), counter),
            _ => self.count(counted),
        }
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
            self.load_field(parent, Slot::Last(region), pointer)
        };
        self.frames_here.insert(region, frame);
        frame
    }

    /// Address of a field.
    pub fn field(&mut self, region: usize, slot: Slot<'m>) -> Option<Value<'m>> {
        let place = self.plan.frames.place(region, slot)?;
        let frame = self.frame(region);
        Some(match self.plan.counted(region) {
            Some(counted) => {
                let count = self.count(counted);
                let trips = self.b.add(count, count.ty().int(1));
                let index = self.index(region, counted);
                element(self.b, frame, place, trips, index)
            }
            None => at(self.b, frame, place.0),
        })
    }

    fn load_field(&mut self, region: usize, slot: Slot<'m>, ty: Type<'m>) -> Value<'m> {
        match self.field(region, slot) {
            Some(field) => self.engine.frames().own(self.b.load(ty, field)),
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

    /// The shadow of a value, in the direction that is dealt with.
    ///
    /// # Errors
    /// If the plan did not foresee it.
    pub fn shadow(&mut self, v: Value<'m>) -> Result<Value<'m>, Refusal> {
        if v.is_constant() {
            let globals = self.engine.globals();
            Ok(globals.shadow(&self.places, self.arena, v, self.direction))
        } else {
            self.get(Need::Shadow(v))
        }
    }

    fn get(&mut self, need: Need<'m>) -> Result<Value<'m>, Refusal> {
        let key = match need {
            Need::Shadow(_) => (need, self.direction),
            Need::Primal(_) | Need::Offset(_) => (need, 0),
        };
        if let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        let v = need.value();
        let value = match self.plan.place(need) {
            Some(Place::Recompute) => self.recompute(need)?,
            Some(place) => {
                let (region, slot) = self
                    .plan
                    .field(need, self.direction)
                    .ok_or_else(|| self.unforeseen(v))?;
                let at = self.field(region, slot).ok_or_else(|| self.unforeseen(v))?;
                let ty = match need {
                    Need::Offset(_) => self.engine.module().context().int(64),
                    _ => v.ty(),
                };
                match place {
                    Place::Memory => at,
                    _ => {
                        let alignment = self.engine.module().alignment(ty).min(16);
                        self.engine.frames().own(self.b.load_aligned(ty, at, alignment))
                    }
                }
            }
            None => return Err(self.unforeseen(v)),
        };
        self.known.insert(key, value);
        Ok(value)
    }

    fn unforeseen(&self, v: Value<'m>) -> Refusal {
        let what = format!("a value that the plan did not foresee: `{}`", v.text().trim());
        Refusal::of(&self.plan.function.name(), what, "please report this")
    }

    fn recompute(&mut self, need: Need<'m>) -> Result<Value<'m>, Refusal> {
        let v = need.value();
        if self.plan.is_index(v) {
            let region = self.plan.shape.region_of_value(v);
            let counted = self.plan.counted(region).ok_or_else(|| self.unforeseen(v))?;
            return Ok(self.index(region, counted));
        }
        if let Some((induction, region)) = self.plan.induction(v) {
            let counted = self.plan.counted(region).ok_or_else(|| self.unforeseen(v))?;
            let start = match need {
                Need::Shadow(_) => self.shadow(induction.start)?,
                _ => self.primal(induction.start)?,
            };
            let step = self.primal(induction.step)?;
            let index = self.index(region, counted);
            return Ok(induction.at(self.b, index, start, step));
        }
        let moves = match need {
            Need::Shadow(_) => v.is(Opcode::LLVMPHI) || v.is(Opcode::LLVMSelect),
            _ => v.is(Opcode::LLVMPHI),
        };
        if moves
            && self.plan.is_stored(Need::Offset(v))
            && let Some(object) = self.plan.object_of(v)
        {
            let offset = self.get(Need::Offset(v))?;
            let base = match need {
                Need::Shadow(_) => self.shadow(object)?,
                _ => self.primal(object)?,
            };
            return Ok(self.b.offset(base, offset));
        }
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
        if copy.is(Opcode::LLVMLoad) {
            self.engine.lasting().own(copy);
        }
        Ok(copy)
    }

    /// The cotangent of the result goes to the value that was returned.
    ///
    /// # Errors
    /// None; as for other instructions.
    pub fn start_from(&mut self, ret: Value<'m>) -> Result<(), Refusal> {
        if let (Some(seed), Some(value)) = (self.seeds.get(self.direction as usize), ret.operands().next()) {
            self.accumulate(value, *seed);
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
        let mut cotangents = vec![];
        for v in wanted {
            cotangents.extend(self.each_direction(|s| s.take(v)));
        }
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
