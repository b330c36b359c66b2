//! What a call checks and fetches before it reuses a specialization.

use super::host::Host;
use crate::ir::{Arg, TensorType, Type};
use crate::scalar::{Function, Number, ScalarType};
use std::fmt;

/// Position in the table of what a prologue has read so far.
pub type Slot = u32;

/// Steps in order; each is safe once those before it held (an `Option`'s discriminant is checked before its payload
/// is read), because that is the order in which the function itself reads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prologue {
    /// The steps.
    pub steps: Vec<Step>,
    /// Length of the table.
    pub slots: usize,
}

/// One step of a [`Prologue`].
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Address of an argument.
    Argument {
        /// Which.
        index: usize,
        /// Where to put it.
        slot: Slot,
    },
    /// Reads memory.
    Load {
        /// Address: this slot …
        base: Slot,
        /// … plus this.
        offset: i64,
        /// How many bytes.
        bytes: u8,
        /// Where to put them.
        slot: Slot,
    },
    /// Fetches the address of a static, or of this thread's copy of a thread-local.
    Global {
        /// Its symbol.
        symbol: String,
        /// Where to put it.
        slot: Slot,
    },
    /// Computes a scalar from others.
    Compute {
        /// What to compute.
        function: Function,
        /// From what: up to three operands.
        operands: [Operand; 3],
        /// How many operands there are.
        count: u8,
        /// Type of the result.
        ty: ScalarType,
        /// Where to put it.
        slot: Slot,
    },
    /// The specialization holds only for this value.
    Expect {
        /// Where the value is.
        slot: Slot,
        /// Its bits.
        bits: u64,
    },
    /// The tensor of a handle has this type.
    Tensor {
        /// Where the handle is.
        slot: Slot,
        /// Kind and shape.
        ty: TensorType,
        /// Device.
        device: i32,
    },
    /// The tensor of a handle is undefined.
    Undefined {
        /// Where the handle is.
        slot: Slot,
    },
    /// The tensor of a handle requires grad, or does not.
    RequiresGrad {
        /// Where the handle is.
        slot: Slot,
        /// What it must be.
        expect: bool,
    },
    /// The tensor of a handle has these strides.
    Strides {
        /// Where the handle is.
        slot: Slot,
        /// The strides.
        strides: Vec<i64>,
    },
    /// Two handles share a tensor or storage, or do not.
    Sharing {
        /// One handle.
        a: Slot,
        /// The other.
        b: Slot,
        /// Are both handles of one `TensorImpl`?
        same_tensor: bool,
        /// Are both on one storage?
        same_storage: bool,
    },
}

/// An operand of [`Step::Compute`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A constant.
    Constant(Number),
    /// A slot, plus a constant (integers and pointers).
    Slot(Slot, i64, ScalarType),
}

/// What a prologue has read: one word per [`Slot`]. Addresses, handles and integers as they are (zero-extended),
/// floats by their bits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inputs(pub Vec<u64>);

impl Inputs {
    /// The word in a slot.
    pub fn word(&self, slot: Slot) -> u64 {
        self.0[slot as usize]
    }
}

impl Prologue {
    /// Reads what a specialization needs; `None` if it does not hold for this call. Allocates the result only.
    pub fn run(&self, host: &dyn Host) -> Option<Inputs> {
        self.run_on(&Inputs::default(), host)
    }

    /// The same for a later region: `before` is what the call knows so far.
    pub fn run_on(&self, before: &Inputs, host: &dyn Host) -> Option<Inputs> {
        let mut table = vec![0u64; self.slots.max(before.0.len())];
        table[..before.0.len()].copy_from_slice(&before.0);
        for step in &self.steps {
            match step {
                Step::Argument { index, slot } => table[*slot as usize] = host.argument(*index),
                Step::Global { symbol, slot } => table[*slot as usize] = host.global(symbol)?,
                Step::Load {
                    base,
                    offset,
                    bytes,
                    slot,
                } => {
                    let address = table[*base as usize].wrapping_add_signed(*offset);
                    table[*slot as usize] = host.load(address, *bytes);
                }
                Step::Compute {
                    function,
                    operands,
                    count,
                    ty,
                    slot,
                } => {
                    let values = operands.map(|o| o.value(&table));
                    table[*slot as usize] = function.evaluate(&values[..usize::from(*count)], *ty)?.bits;
                }
                step => {
                    if !holds(step, &table, host) {
                        return None;
                    }
                }
            }
        }
        Some(Inputs(table))
    }

    /// Appends a step.
    pub(super) fn push(&mut self, step: Step) {
        self.steps.push(step);
    }

    /// A new slot.
    pub(super) fn slot(&mut self) -> Slot {
        self.slots += 1;
        Slot::try_from(self.slots - 1).expect("fewer than 2^32 slots")
    }
}

impl fmt::Display for Prologue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps.iter().try_for_each(|s| writeln!(f, "{s}"))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Argument { index, slot } => write!(f, "#{slot} = argument {index}"),
            Self::Global { symbol, slot } => write!(f, "#{slot} = address of {symbol}"),
            Self::Load {
                base,
                offset,
                bytes,
                slot,
            } => write!(f, "#{slot} = load {bytes} bytes at #{base}{offset:+}"),
            Self::Compute {
                function,
                operands,
                count,
                slot,
                ..
            } => {
                write!(f, "#{slot} = {function:?}")?;
                operands[..usize::from(*count)].iter().try_for_each(|o| match o {
                    Operand::Constant(n) => match n.ty {
                        ScalarType::Int(_) => write!(f, " {}", n.as_int()),
                        ScalarType::Float(_) => write!(f, " {:?}", n.as_float()),
                    },
                    Operand::Slot(slot, 0, _) => write!(f, " #{slot}"),
                    Operand::Slot(slot, plus, _) => write!(f, " #{slot}{plus:+}"),
                })
            }
            Self::Expect { slot, bits } => write!(f, "#{slot} is {:#x}", bits),
            Self::Tensor { slot, ty, device } => {
                let ty = Type::Tensor(Some(ty.clone()));
                write!(f, "#{slot} is a tensor {ty} on {}", Arg::Device(*device))
            }
            Self::Undefined { slot } => write!(f, "#{slot} is the undefined tensor"),
            Self::RequiresGrad { slot, expect: true } => write!(f, "#{slot} requires grad"),
            Self::RequiresGrad { slot, expect: false } => write!(f, "#{slot} does not require grad"),
            Self::Strides { slot, strides } => write!(f, "#{slot} has strides {strides:?}"),
            Self::Sharing {
                a,
                b,
                same_tensor,
                same_storage,
            } => match (same_tensor, same_storage) {
                (true, _) => write!(f, "#{a} and #{b} are one tensor"),
                (false, true) => write!(f, "#{a} and #{b} share storage"),
                (false, false) => write!(f, "#{a} and #{b} share nothing"),
            },
        }
    }
}

/// Is a checking step satisfied?
fn holds(step: &Step, table: &[u64], host: &dyn Host) -> bool {
    let word = |slot: &Slot| table[*slot as usize];
    match step {
        Step::Expect { slot, bits } => word(slot) == *bits,
        Step::Tensor { slot, ty, device } => host.matches(word(slot), ty, *device),
        Step::Undefined { slot } => !host.defined(word(slot)),
        Step::RequiresGrad { slot, expect } => host.requires_grad(word(slot)) == *expect,
        Step::Strides { slot, strides } => host.has_strides(word(slot), strides),
        Step::Sharing {
            a,
            b,
            same_tensor,
            same_storage,
        } => {
            let (a, b) = (word(a), word(b));
            (host.identity(a) == host.identity(b)) == *same_tensor
                && (host.storage(a) == host.storage(b)) == *same_storage
        }
        Step::Argument { .. } | Step::Global { .. } | Step::Load { .. } | Step::Compute { .. } => true,
    }
}

impl Operand {
    fn value(self, table: &[u64]) -> Number {
        match self {
            Self::Constant(n) => n,
            Self::Slot(slot, plus, ty) => Number::new(table[slot as usize].wrapping_add_signed(plus), ty),
        }
    }
}
