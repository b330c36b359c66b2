//! Emits one tangent function: walks the primal, and adds to its copy what the shadows take.

use super::{Forward, Given, Signature, arithmetic, bits, call, can_carry, custom, memory, name_of, reach};
use crate::kernel::Refusal;
use crate::kernel::callee::{Callee, classify, is_thread_local, refuse_second_return};
use crate::kernel::reverse::edges::split_invokes;
use crate::kernel::reverse::leaves::{UNKNOWN, inactive_shadow};
use crate::kernel::reverse::plan::Target;
use crate::kernel::rules::rule_of;
use crate::llvm::{Builder, Function, Linkage, Mod, Opcode, Type, Value};
use std::collections::{HashMap, HashSet};

/// The tangent function being emitted.
pub(super) struct Sweep<'a, 'e, 'm> {
    pub(super) forward: &'a mut Forward<'e, 'm>,
    pub(super) signature: &'a Signature<'m>,
    pub(super) b: &'a Builder<'m>,
    pub(super) function: Function<'m>,
    pub(super) arena: Value<'m>,
    copies: HashMap<Value<'m>, Value<'m>>,
    /// By value and direction.
    shadows: HashMap<(Value<'m>, u32), Value<'m>>,
    /// The direction that is dealt with.
    lane: u32,
    tangible: HashSet<Value<'m>>,
    targets: HashMap<Value<'m>, Target>,
    /// Integers that were computed from the bits of a float.
    broken: HashSet<Value<'m>>,
}

/// Emits the tangent function of a signature.
pub(super) fn emit<'m>(
    forward: &mut Forward<'_, 'm>,
    signature: &Signature<'m>,
    ty: Type<'m>,
) -> Result<Function<'m>, Vec<Refusal>> {
    let primal = signature.function;
    split_invokes(primal);
    let blocks = reach::live_blocks(primal);
    let tangible = reach::tangible(signature, &blocks, forward.engine.globals(), &forward.engine.activity());
    let (function, pairs) = primal.clone_as(ty, &name_of(primal));
    function.set_linkage(Linkage::LLVMInternalLinkage);
    let b = Builder::new(function.module().context());
    let params = function.params();
    let mut s = Sweep {
        forward,
        signature,
        b: &b,
        function,
        arena: params[params.len() - 1],
        copies: pairs.into_iter().collect(),
        shadows: HashMap::new(),
        lane: 0,
        tangible,
        targets: HashMap::new(),
        broken: HashSet::new(),
    };
    let mut refusals = vec![];
    s.arguments(primal, &params);
    for block in &blocks {
        for i in block.instructions() {
            if let Err(more) = s.instruction(i) {
                refusals.extend(more);
            }
        }
    }
    if refusals.is_empty() {
        s.close_phis();
        return Ok(function);
    }
    function.delete();
    Err(refusals)
}

impl<'m> Sweep<'_, '_, 'm> {
    pub(super) fn module(&self) -> Mod<'m> {
        self.function.module()
    }

    /// Directions at once.
    pub(super) fn width(&self) -> u32 {
        self.forward.width
    }

    /// The same for each direction.
    pub(super) fn each_lane<E>(&mut self, mut emit: impl FnMut(&mut Self) -> Result<(), E>) -> Result<(), E> {
        for lane in 0..self.width() {
            self.lane = lane;
            emit(self)?;
        }
        self.lane = 0;
        Ok(())
    }

    /// The shadows of a value, zeros if it has none.
    pub(super) fn all_shadows(&mut self, v: Value<'m>) -> Vec<Value<'m>> {
        let mut all = vec![];
        for lane in 0..self.width() {
            self.lane = lane;
            all.push(self.shadow_or_zero(v));
        }
        self.lane = 0;
        all
    }

    /// Says what the shadows of a value are.
    pub(super) fn set_shadows(&mut self, v: Value<'m>, shadows: impl IntoIterator<Item = Value<'m>>) {
        self.shadows
            .extend((0..).zip(shadows).map(|(lane, shadow)| ((v, lane), shadow)));
    }

    /// Shadows of the arguments. What is passed by value in memory has a shadow of its own, as it has a copy.
    fn arguments(&mut self, primal: Function<'m>, params: &[Value<'m>]) {
        let count = primal.params().len();
        let mut shadows = params[count..].iter().copied();
        let first = self.function.entry().and_then(|e| e.first());
        let width = self.width() as usize;
        for (k, (p, given)) in primal.params().into_iter().zip(&self.signature.arguments).enumerate() {
            let own: Vec<_> = match given {
                Given::Constant(tag) if super::has_pointers(p.ty()) => vec![inactive_shadow(p.ty(), *tag); width],
                Given::Constant(_) => continue,
                Given::Shadow(_) => shadows.by_ref().take(width).collect(),
            };
            if self.signature.frozen && !super::has_pointers(p.ty()) {
                continue;
            }
            let own = match (primal.param_type_attribute(k as u32, "byval"), first) {
                (Some(ty), Some(first)) => {
                    self.b.before(first);
                    self.targets.insert(p, Target::Active);
                    own.into_iter().map(|shadow| self.own_copy(ty, shadow)).collect()
                }
                _ => own,
            };
            self.set_shadows(p, own);
        }
    }

    /// Shadow memory for an argument that is passed by value in memory.
    fn own_copy(&self, ty: Type<'m>, shadow: Value<'m>) -> Value<'m> {
        let own = self.b.alloca(ty);
        own.set_alignment(16);
        let size = self.module().context().int(64).int(self.module().size(ty));
        memory::clear(self, own, size);
        memory::copy(self, own, shadow, size);
        own
    }

    fn instruction(&mut self, i: Value<'m>) -> Result<(), Vec<Refusal>> {
        let copy = self.primal(i);
        self.b.set_location(copy.location());
        self.after(i);
        let one = |r: Refusal| vec![r];
        use Opcode::{LLVMCall, LLVMInvoke, LLVMRet};
        match i.opcode() {
            LLVMRet => self.leave(i).map_err(one),
            LLVMCall | LLVMInvoke => {
                self.called(i)?;
                self.each_lane(|s| {
                    bits::taint(s, i);
                    Ok(())
                })
                .map_err(one)
            }
            _ => self
                .each_lane(|s| {
                    s.in_lane(i)?;
                    bits::taint(s, i);
                    Ok(())
                })
                .map_err(one),
        }
    }

    /// What an instruction takes in one direction.
    fn in_lane(&mut self, i: Value<'m>) -> Result<(), Refusal> {
        use Opcode::*;
        match i.opcode() {
            LLVMPHI => self.phi(i),
            LLVMLoad => memory::load(self, i),
            LLVMStore => memory::store(self, i)?,
            LLVMAlloca => memory::alloca(self, i),
            LLVMLandingPad => self.set_shadow(i, inactive_shadow(i.ty(), UNKNOWN)),
            LLVMAtomicRMW | LLVMAtomicCmpXchg => memory::atomic(self, i)?,
            LLVMIndirectBr | LLVMCallBr | LLVMVAArg | LLVMCleanupPad | LLVMCatchPad | LLVMCatchSwitch => {
                let what = format!("the instruction `{}`", i.text().trim());
                return Err(Refusal::at(i, what, "write it without this construct"));
            }
            _ if rule_of(i).is_some() && !i.ty().scalar().is_int() && !i.ty().scalar().is_pointer() => {
                arithmetic::tangent(self, i)?;
            }
            _ if can_carry(i.ty()) => bits::tangent(self, i)?,
            _ => {}
        }
        Ok(())
    }

    fn called(&mut self, i: Value<'m>) -> Result<(), Vec<Refusal>> {
        refuse_second_return(i).map_err(|r| vec![r])?;
        if custom::replace(self, i)? {
            return Ok(());
        }
        if rule_of(i).is_some() {
            let of_rule = self.each_lane(|s| arithmetic::tangent(s, i));
            return of_rule.map_err(|r| vec![r]);
        }
        let kind = classify(i, self.forward.engine);
        if matches!(kind, Err(_) | Ok(Callee::Pointer))
            && (kind.is_err() && self.signature.frozen || self.forward.engine.activity().is_inactive_call(i))
        {
            // What nobody knows is constant where everything is, and harmless where it meets nothing active.
            return self.each_lane(|s| {
                s.inactive(i);
                Ok(())
            });
        }
        let kind = kind.map_err(|r| vec![r])?;
        match kind {
            Callee::Defined(f) => return call::direct(self, i, f, self.signature.frozen),
            Callee::Pointer => return call::indirect(self, i),
            _ => {}
        }
        self.each_lane(|s| {
            match kind {
                Callee::Move => bits::duplicate(s, i),
                Callee::Copy => memory::copied(s, i),
                Callee::Fill => memory::filled(s, i),
                Callee::Allocate(bytes, count) => memory::allocated(s, i, None, bytes, count),
                Callee::Reallocate(old, bytes, count) => memory::allocated(s, i, Some(old), bytes, count),
                Callee::Inactive | Callee::Defined(_) | Callee::Pointer => s.inactive(i),
            }
            Ok(())
        })
    }

    /// A value without pointers has no tangent; what pointers from elsewhere point to has no shadow.
    fn inactive(&mut self, i: Value<'m>) {
        if super::has_pointers(i.ty()) {
            self.set_shadow(i, inactive_shadow(i.ty(), UNKNOWN));
        }
    }

    /// Stands after the copy of an instruction: before a return, where an invoke goes on, after a block's `phi`s.
    pub(super) fn after(&mut self, i: Value<'m>) {
        let copy = self.primal(i);
        let at = match copy.opcode() {
            Opcode::LLVMInvoke => copy
                .normal_destination()
                .instructions()
                .find(|i| !i.is(Opcode::LLVMPHI)),
            Opcode::LLVMPHI => copy.block().first(),
            _ if copy.is_terminator() => Some(copy),
            _ => copy.next(),
        };
        at.into_iter().for_each(|at| self.b.before(at));
    }

    fn phi(&mut self, i: Value<'m>) {
        if self.is_tangible(i) {
            let shadow = self.b.phi(i.ty());
            self.set_shadow(i, shadow);
        }
    }

    /// The sides of the shadows of `phi`s, when all are known.
    fn close_phis(&mut self) {
        let phis: Vec<_> = self
            .shadows
            .iter()
            .filter(|((i, _), _)| i.is(Opcode::LLVMPHI))
            .map(|(key, s)| (*key, *s))
            .collect();
        for ((i, lane), shadow) in phis {
            self.lane = lane;
            let copy = self.primal(i);
            // Blocks are those of the copy, once per edge.
            let sides: Vec<_> = copy.incoming().into_iter().zip(i.incoming()).collect();
            for ((from, _), (_, value)) in sides {
                let side = self.shadow_or_zero(value);
                shadow.add_incoming(&[(from, side)]);
            }
        }
    }

    fn leave(&mut self, ret: Value<'m>) -> Result<(), Refusal> {
        if !self.signature.result {
            return Ok(());
        }
        let value = ret.operand(0);
        let all = self
            .b
            .insert_value(self.function.result().poison(), self.primal(value), 0);
        let shadows = self.all_shadows(value).into_iter().zip(1..);
        let all = shadows.fold(all, |all, (shadow, k)| self.b.insert_value(all, shadow, k));
        self.b.ret(Some(all));
        self.primal(ret).erase();
        Ok(())
    }

    /// The copy of a value.
    pub(super) fn primal(&self, v: Value<'m>) -> Value<'m> {
        self.copies.get(&v).copied().unwrap_or(v)
    }

    /// Lets another value stand for the copy of `v`.
    pub(super) fn set_primal(&mut self, v: Value<'m>, by: Value<'m>) {
        self.copies.insert(v, by);
    }

    pub(super) fn is_tangible(&self, v: Value<'m>) -> bool {
        self.tangible.contains(&v)
    }

    /// The shadow of a value; `None` if it is constant and has no pointers.
    pub(super) fn shadow(&self, v: Value<'m>) -> Option<Value<'m>> {
        match self.shadows.get(&(v, self.lane)) {
            Some(shadow) => Some(*shadow),
            None if v.is_constant() && super::has_pointers(v.ty()) => {
                let engine = &self.forward.engine;
                Some(engine.shadow_of_constant(self.function, self.arena, v, self.lane))
            }
            None => super::has_pointers(v.ty()).then(|| inactive_shadow(v.ty(), UNKNOWN)),
        }
    }

    /// The shadow of a pointer that is loaded or made, from the word that was found for it.
    pub(super) fn found(&self, i: Value<'m>, word: Value<'m>) -> Value<'m> {
        let engine = &self.forward.engine;
        engine.found(self.b, self.arena, self.primal(i), word, self.lane)
    }

    pub(super) fn shadow_or_zero(&self, v: Value<'m>) -> Value<'m> {
        self.shadow(v).unwrap_or_else(|| v.ty().zero())
    }

    pub(super) fn set_shadow(&mut self, v: Value<'m>, shadow: Value<'m>) {
        self.shadows.insert((v, self.lane), shadow);
    }

    pub(super) fn set_broken(&mut self, v: Value<'m>) {
        self.broken.insert(v);
    }

    pub(super) fn is_broken(&self, v: Value<'m>) -> bool {
        self.broken.contains(&v)
    }

    /// Where the shadow of an address is known to point.
    pub(super) fn target(&mut self, v: Value<'m>) -> Target {
        if let Some(known) = self.targets.get(&v) {
            return *known;
        }
        // A loop that meets itself knows nothing.
        self.targets.insert(v, Target::Unknown);
        let found = self.find_target(v);
        self.targets.insert(v, found);
        found
    }

    fn find_target(&mut self, v: Value<'m>) -> Target {
        if v.is_constant() {
            return match self.forward.engine.globals().has(v) {
                true => Target::Active,
                false => Target::Inactive,
            };
        }
        if v.is_argument() {
            let at = self.signature.function.params().iter().position(|p| *p == v);
            return match at.map(|at| self.signature.arguments[at]) {
                Some(Given::Shadow(target)) => target,
                _ => Target::Inactive,
            };
        }
        match v.opcode() {
            Opcode::LLVMAlloca => Target::Active,
            Opcode::LLVMGetElementPtr | Opcode::LLVMBitCast | Opcode::LLVMFreeze => self.target(v.operand(0)),
            Opcode::LLVMSelect => {
                let (yes, no) = (self.target(v.operand(1)), self.target(v.operand(2)));
                if yes == no { yes } else { Target::Unknown }
            }
            Opcode::LLVMPHI => {
                let sides = v.incoming().into_iter().filter(|(_, x)| *x != v && !x.is_nowhere());
                let mut targets = sides.map(|(_, x)| self.target(x)).collect::<Vec<_>>().into_iter();
                let first = targets.next().unwrap_or(Target::Unknown);
                if targets.all(|t| t == first) {
                    first
                } else {
                    Target::Unknown
                }
            }
            Opcode::LLVMCall if is_thread_local(v) => self.target(v.operand(0)),
            Opcode::LLVMCall | Opcode::LLVMInvoke => match classify(v, self.forward.engine) {
                Ok(Callee::Allocate(..) | Callee::Reallocate(..)) => Target::Active,
                _ => Target::Unknown,
            },
            _ => Target::Unknown,
        }
    }
}
