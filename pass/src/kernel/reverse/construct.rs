//! What every instruction is to the two sweeps. Each sort has a file of its own, headed by what it does forward and in
//! reverse; this one tells them apart.

use super::augment::Augment;
use super::directions::Directions;
use super::leaves::Carries;
use super::leaves::{UNKNOWN, inactive_shadow};
use super::plan::{Need, Plan, Target};
use super::sweep::Sweep;
use super::{alloc, arithmetic, atomic, call, copy, custom, memory, moves, words};
use crate::kernel::callee::active_exception;
use crate::kernel::engine::Engine;
use crate::kernel::rules::{Applied, Class, rule_of};
use crate::kernel::{Refusal, caught};
use crate::llvm::{Function, Opcode, Value};

/// What a derivative is asked for: a function, and what its arguments and result bring.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Signature<'m> {
    /// The primal.
    pub function: Function<'m>,
    /// Per argument.
    pub arguments: Vec<Argument>,
    /// What the caller wants of the result: its shadow (`pointers`), and to pass its cotangent (`floats`).
    pub result: Carries,
    /// Are all floats constant, whatever the arguments are? So it is in a function that is marked inactive: what it writes
    /// is constant, and pointers keep their shadows.
    pub frozen: bool,
    /// Is the reverse done before code of the caller runs again? Then what the primal does not write to is as it was.
    pub whole: bool,
    /// Directions at once: as many shadows and cotangents has every value.
    pub width: u32,
}

/// An argument of a derivative.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Argument {
    /// Comes with a shadow.
    pub shadow: bool,
    /// Its cotangent is given back.
    pub cotangent: bool,
    /// Where the shadow is known to point.
    pub target: Target,
    /// Nothing writes to the memory behind it, from the call on until the reverse is done with it.
    pub stable: bool,
}

impl Argument {
    /// The same without a cotangent, for a call of which all floats are constant.
    pub fn frozen_if(self, frozen: bool) -> Self {
        Self {
            cotangent: self.cotangent && !frozen,
            ..self
        }
    }
}

impl<'m> Signature<'m> {
    /// The argument that a parameter of the primal is.
    pub fn argument_of(&self, v: Value<'m>) -> Option<Argument> {
        let at = self.function.params().iter().position(|p| *p == v)?;
        self.arguments.get(at).copied()
    }
}

/// A sort of instruction.
#[derive(Clone, Copy, Debug)]
pub enum Construct<'m> {
    /// Has no part in derivatives: control, integers, comparisons.
    Passive,
    /// Arithmetic with a rule.
    Arithmetic(Applied<'m>),
    /// Moves lanes of words.
    Word,
    /// Moves parts of values: `phi`, `select`, aggregates, addresses.
    Move,
    /// `load` of floats or pointers.
    Load,
    /// `store` of floats or pointers.
    Store,
    /// An atomic operation on an integer, where floats or pointers may be as well.
    Atomic,
    /// `memcpy` and `memmove`.
    Copy,
    /// `memset`.
    Fill,
    /// `alloca`.
    Alloca,
    /// A call that gives fresh memory, of so many bytes: the product of one or two arguments.
    Allocate(u32, Option<u32>),
    /// A call that moves a block: the block, and the size as above.
    Reallocate(u32, u32, Option<u32>),
    /// A call of a function with a derivative of its own, by its number.
    Call(usize),
    /// An indirect call, by the number of its dispatcher.
    Indirect(usize),
    /// A call of a function with a derivative that the user wrote.
    Rule(custom::Rule<'m>),
    /// `ret`.
    Return,
}

impl<'m> Construct<'m> {
    /// Tells what an instruction is.
    ///
    /// # Errors
    /// If it has no derivative.
    pub fn of(i: Value<'m>, plan: &mut Plan<'m>, engine: &mut Engine<'m>) -> Result<Self, Vec<Refusal>> {
        use Opcode::*;
        let moved = |plan: &Plan<'m>| match plan.active(i) || plan.needs_shadow(i) {
            true => Self::Move,
            false => Self::Passive,
        };
        Ok(match i.opcode() {
            LLVMAlloca if plan.needs_shadow(i) => Self::Alloca,
            LLVMAlloca => Self::Passive,
            LLVMLoad | LLVMStore => return memory::classify(i, plan),
            LLVMRet => Self::Return,
            LLVMLandingPad if plan.needs_shadow(i) => return Err(vec![active_exception(i)]),
            LLVMLandingPad if !caught::is_cpp(plan.function) => {
                let help = "let the panic leave the differentiated function, or catch it around the call";
                return Err(vec![Refusal::at(
                    i,
                    "a caught panic that comes back to normal flow",
                    help,
                )]);
            }
            LLVMLandingPad | LLVMResume => Self::Passive,
            LLVMInvoke if plan.shape.is_live(i.unwind_destination()) => {
                let construct = call::classify(i, plan, engine)?;
                // What the others keep for the reverse is there only if they come back.
                if !matches!(
                    construct,
                    Self::Passive | Self::Arithmetic(_) | Self::Call(_) | Self::Indirect(_)
                ) {
                    let help = "catch exceptions of other calls, or let the exception leave the function";
                    return Err(vec![Refusal::at(i, "a call of which an exception is caught", help)]);
                }
                return Ok(construct);
            }
            LLVMCall | LLVMInvoke => return call::classify(i, plan, engine),
            LLVMAtomicRMW | LLVMAtomicCmpXchg if plan.carries(i.operand(1)).or(plan.carries(i)).any() => {
                if atomic::may_be_integer(i) {
                    plan.target(i.operand(0));
                    return Ok(Self::Atomic);
                }
                let help = "move the atomic operation out of the differentiated function";
                return Err(vec![Refusal::at(i, "an atomic operation on floats or pointers", help)]);
            }
            LLVMIndirectBr | LLVMCallBr | LLVMVAArg | LLVMCleanupPad | LLVMCatchPad | LLVMCatchSwitch => {
                let help = "write it without this construct";
                return Err(vec![Refusal::at(
                    i,
                    format!("the instruction `{}`", i.text().trim()),
                    help,
                )]);
            }
            LLVMPHI | LLVMSelect | LLVMExtractValue | LLVMInsertValue | LLVMFreeze | LLVMBitCast
            | LLVMAddrSpaceCast | LLVMGetElementPtr | LLVMIntToPtr | LLVMPtrToInt => moved(plan),
            LLVMExtractElement | LLVMInsertElement | LLVMShuffleVector if !i.ty().scalar().is_float() => moved(plan),
            LLVMTrunc | LLVMZExt | LLVMSExt | LLVMShl | LLVMLShr | LLVMAShr | LLVMAnd | LLVMOr | LLVMXor | LLVMAdd
            | LLVMSub | LLVMMul | LLVMUDiv | LLVMSDiv | LLVMURem | LLVMSRem => words::classify(i, plan)?,
            _ => match rule_of(i) {
                Some(rule) => arithmetic::classify(i, rule, plan)?,
                None if plan.carries(i).any() => {
                    let help = "the engine has no rule for it; write the computation in another way";
                    return Err(vec![Refusal::at(
                        i,
                        format!("the instruction `{}`", i.text().trim()),
                        help,
                    )]);
                }
                None => Self::Passive,
            },
        })
    }

    /// Reserves fields of frames that are not values.
    pub fn reserve(self, i: Value<'m>, plan: &mut Plan<'m>, engine: &Engine<'m>) {
        match self {
            Self::Alloca => alloc::reserve(i, plan),
            Self::Copy => copy::reserve(i, plan),
            Self::Call(_) | Self::Indirect(_) => call::reserve(self, i, plan, engine),
            Self::Rule(rule) => custom::reserve(rule, i, plan),
            _ => {}
        }
    }

    /// What the reverse of the instruction reads.
    pub fn needs(self, i: Value<'m>, plan: &Plan<'m>) -> Vec<Need<'m>> {
        match self {
            Self::Arithmetic(rule) => arithmetic::needs(i, rule, plan),
            Self::Move => moves::needs(i, plan),
            Self::Word => words::needs(i, plan),
            Self::Load | Self::Store => memory::needs(i, plan),
            Self::Atomic => atomic::needs(i, plan),
            Self::Copy | Self::Fill => copy::needs(i, plan),
            Self::Alloca | Self::Allocate(..) | Self::Reallocate(..) => alloc::needs(self, i, plan),
            Self::Call(_) | Self::Indirect(_) => call::needs(self, i, plan),
            Self::Rule(rule) => custom::needs(rule, i),
            Self::Passive | Self::Return => vec![],
        }
    }

    /// Emits the instruction's part of the forward sweep: what runs once, or what each direction takes.
    ///
    /// # Errors
    /// If it cannot be emitted.
    pub fn forward(self, i: Value<'m>, a: &mut Augment<'_, 'm>) -> Result<(), Refusal> {
        match self {
            Self::Call(_) | Self::Indirect(_) => call::forward(self, i, a),
            Self::Rule(rule) => custom::forward(rule, i, a),
            _ => {
                let each = a.each_direction(|a| self.forward_in_direction(i, a));
                each.into_iter().collect()
            }
        }
    }

    fn forward_in_direction(self, i: Value<'m>, a: &mut Augment<'_, 'm>) -> Result<(), Refusal> {
        match self {
            Self::Passive => {
                // What comes from elsewhere may be bits that others take for pointers: these lead nowhere.
                if i.is_call() && a.plan.needs_shadow(i) {
                    a.set_shadow(i, inactive_shadow(i.ty(), UNKNOWN));
                }
                Ok(())
            }
            Self::Arithmetic(_) | Self::Return | Self::Call(_) | Self::Indirect(_) | Self::Rule(_) => Ok(()),
            Self::Move | Self::Word => moves::forward(i, a),
            Self::Load => memory::forward_load(i, a),
            Self::Store => memory::forward_store(i, a),
            Self::Atomic => atomic::forward(i, a),
            Self::Copy => copy::forward_copy(i, a),
            Self::Fill => copy::forward_fill(i, a),
            Self::Alloca => alloc::forward_alloca(i, a),
            Self::Allocate(..) | Self::Reallocate(..) => alloc::forward_call(self, i, a),
        }
    }

    /// Emits the instruction's part of the reverse sweep: what runs once, or what each direction takes.
    ///
    /// # Errors
    /// If it cannot be emitted.
    pub fn reverse(self, i: Value<'m>, s: &mut Sweep<'_, 'm>) -> Result<(), Refusal> {
        match self {
            Self::Call(_) | Self::Indirect(_) => call::reverse(self, i, s),
            Self::Rule(rule) => custom::reverse(rule, i, s),
            _ => {
                let each = s.each_direction(|s| self.reverse_in_direction(i, s));
                each.into_iter().collect()
            }
        }
    }

    fn reverse_in_direction(self, i: Value<'m>, s: &mut Sweep<'_, 'm>) -> Result<(), Refusal> {
        match self {
            Self::Passive | Self::Call(_) | Self::Indirect(_) | Self::Rule(_) => Ok(()),
            Self::Alloca | Self::Allocate(..) => alloc::reverse(i, s),
            Self::Arithmetic(rule) => arithmetic::reverse(i, rule, s),
            Self::Move => moves::reverse(i, s),
            Self::Word => words::reverse(i, s),
            Self::Load => memory::reverse_load(i, s),
            Self::Store => memory::reverse_store(i, s),
            Self::Atomic => atomic::reverse(i, s),
            Self::Copy => copy::reverse_copy(i, s),
            Self::Fill => copy::reverse_fill(i, s),
            Self::Reallocate(..) => alloc::reverse_reallocate(self, i, s),
            Self::Return => s.start_from(i),
        }
    }
}

/// Is it arithmetic whose rule says that it has no derivative?
pub fn is_flat(rule: Applied<'_>) -> bool {
    rule.class() == Class::Zero
}
