//! Execution: a plan, compiled on its first call, and run below autograd.

mod call;
mod frame;
mod machine;
mod meta;
mod tape;

pub use call::call_op;
pub use machine::MachineError;
pub use meta::Meta;
pub use tape::Tape;

use crate::lower::{LowerError, Lowered, Scalar, lower};
use crate::torch::kind::to_tch;
use crate::torch::{shim, take_error};
use cotangent_graph::ir::Loc;
use cotangent_graph::ops::Op;
use cotangent_graph::plan::Plan;
use frame::Frame;
use machine::Machine;
use std::marker::PhantomData;
use std::sync::Arc;
use tch::Tensor;
use torch_sys::C_tensor;

/// An input of a graph, borrowed for the call.
#[derive(Clone, Copy)]
pub enum Input<'a> {
    /// A tensor.
    Tensor(Handle<'a>),
    /// A float.
    Float(f64),
    /// A tape that an earlier call left.
    Tape(&'a Tape),
}

impl<'a> From<&'a Tensor> for Input<'a> {
    fn from(x: &'a Tensor) -> Self {
        Self::Tensor(x.into())
    }
}

impl From<f64> for Input<'_> {
    fn from(x: f64) -> Self {
        Self::Float(x)
    }
}

/// A borrowed C handle.
#[derive(Clone, Copy)]
pub struct Handle<'a>(*mut C_tensor, PhantomData<&'a C_tensor>);

impl Handle<'_> {
    /// A handle that the caller knows by address.
    ///
    /// # Safety
    /// It must point at a `torch::Tensor` that lives for the lifetime of the result.
    pub unsafe fn from_raw(raw: *mut C_tensor) -> Self {
        Self(raw, PhantomData)
    }

    /// The address.
    pub fn as_raw(self) -> *mut C_tensor {
        self.0
    }
}

impl<'a> From<&'a Tensor> for Handle<'a> {
    fn from(x: &'a Tensor) -> Self {
        Self(x.as_ptr().cast_mut(), PhantomData)
    }
}

/// An output of a graph.
#[derive(Debug)]
pub enum Output {
    /// A tensor; undefined where LibTorch has none.
    Tensor(Tensor),
    /// A float.
    Float(f64),
    /// A tape, for the graph that reads it.
    Tape(Tape),
}

impl Output {
    /// The tensor, if it is one.
    pub fn into_tensor(self) -> Option<Tensor> {
        match self {
            Self::Tensor(x) => Some(x),
            _ => None,
        }
    }

    /// The output as an input of another graph.
    pub fn as_input(&self) -> Input<'_> {
        match self {
            Self::Tensor(x) => x.into(),
            Self::Float(x) => Input::Float(*x),
            Self::Tape(t) => Input::Tape(t),
        }
    }
}

/// An input of a call that may use it up.
pub enum Given<'a> {
    /// The caller keeps it.
    Lent(Input<'a>),
    /// The call takes it.
    Own(Output),
}

/// A LibTorch function refused its arguments.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct KernelError {
    /// Which instruction of the graph.
    pub step: usize,
    /// Its op.
    pub op: &'static str,
    /// Where the user wrote it.
    pub loc: Option<Loc>,
    /// LibTorch's message.
    pub message: String,
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// In LibTorch.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// There is no machine code.
    #[error(transparent)]
    Machine(#[from] MachineError),
}

/// Why a plan has no code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// It cannot be lowered.
    #[error(transparent)]
    Lower(#[from] LowerError),
    /// There is no machine code.
    #[error(transparent)]
    Machine(#[from] MachineError),
}

/// A plan as machine code. `Send + Sync`: calls may overlap.
pub struct CompiledGraph {
    lowered: Arc<Lowered>,
    scalars: Scalars,
    machine: Machine,
}

impl CompiledGraph {
    /// Lowers a plan, and looks for its machine code in the libraries that were loaded. The JIT makes it on the first
    /// call.
    ///
    /// # Errors
    /// If the plan's graph was not closed; in a program without a JIT, if no library has its code.
    pub fn compile(plan: &Plan) -> Result<Self, CompileError> {
        let lowered = Arc::new(lower(plan)?);
        Ok(Self {
            scalars: Scalars::new(&lowered.scalars),
            machine: Machine::of(&lowered)?,
            lowered,
        })
    }

    /// Is its machine code from a library?
    pub fn is_loaded(&self) -> bool {
        self.machine.is_loaded()
    }

    /// The lowered module.
    pub fn lowered(&self) -> &Lowered {
        &self.lowered
    }

    /// Runs the graph.
    ///
    /// # Errors
    /// If a LibTorch function fails: nothing of what the call made is left.
    ///
    /// # Panics
    /// If the inputs are not those of the graph in number and type, or the plan uses one up.
    pub fn run(&self, inputs: &[Input<'_>]) -> Result<Vec<Output>, RunError> {
        self.below(self.lent(inputs))
    }

    /// Runs the graph, which may use up what it is given to own.
    ///
    /// # Errors
    /// As [`CompiledGraph::run`].
    ///
    /// # Panics
    /// If the inputs are not those of the graph in number and type, or the plan uses up one that is lent.
    pub fn run_once<'a>(&'a self, inputs: impl IntoIterator<Item = Given<'a>>) -> Result<Vec<Output>, RunError> {
        let mut frame = Frame::new(&self.lowered);
        for input in inputs {
            match input {
                Given::Lent(input) => frame.lend(input),
                Given::Own(input) => frame.give(input),
            }
        }
        self.below(frame)
    }

    fn lent<'a>(&'a self, inputs: &[Input<'_>]) -> Frame<'a> {
        let mut frame = Frame::new(&self.lowered);
        inputs.iter().for_each(|input| frame.lend(*input));
        frame
    }

    /// Runs the code below autograd.
    fn below(&self, frame: Frame<'_>) -> Result<Vec<Output>, RunError> {
        self.call(frame, |code, slots, floats, scalars| {
            // SAFETY: see `call`.
            unsafe { shim::cotangent_run(code, slots, floats, scalars) }
        })
    }

    /// Runs the graph as the program itself would run its ops: LibTorch records views, and gradients if `recorded`
    /// says so and grad mode is on.
    ///
    /// # Errors
    /// As [`CompiledGraph::run`].
    ///
    /// # Panics
    /// As [`CompiledGraph::run`].
    pub fn replay(&self, inputs: &[Input<'_>], recorded: bool) -> Result<Vec<Output>, RunError> {
        self.call(self.lent(inputs), |code, slots, floats, scalars| {
            // SAFETY: see `call`.
            unsafe { shim::cotangent_replay(code, slots, floats, scalars, recorded) }
        })
    }

    /// Calls the code through `how`, which passes its arguments on. The code was lowered with this frame's layout:
    /// every slot it reads before writing is an input of the right type, and the scalars are those that it numbers.
    fn call(
        &self,
        mut frame: Frame<'_>,
        how: impl FnOnce(shim::Code, *mut *mut (), *mut f64, *const *mut ()) -> i32,
    ) -> Result<Vec<Output>, RunError> {
        let code = self.machine.code(&self.lowered)?;
        let (slots, floats) = frame.filled();
        let failed = how(code, slots, floats, self.scalars.handles.as_ptr());
        match usize::try_from(failed) {
            Ok(0) => Ok(frame.take_outputs()),
            step => {
                let step = step.unwrap_or(1) - 1;
                let (op, loc): (Op, _) = self.lowered.steps[step].clone();
                let message = take_error().unwrap_or_else(|| format!("`{}` gave no result and no message", op.name));
                Err(KernelError {
                    step,
                    op: op.name,
                    loc,
                    message,
                }
                .into())
            }
        }
    }
}

/// Constant numbers, made once for a graph.
struct Scalars {
    /// What the code is given: a C handle for each.
    handles: Vec<*mut ()>,
    numbers: Vec<Scalar>,
}

// SAFETY: the scalars and tensors are only read after they were made.
unsafe impl Send for Scalars {}
// SAFETY: as above.
unsafe impl Sync for Scalars {}

impl Scalars {
    fn new(numbers: &[Scalar]) -> Self {
        // SAFETY: these constructors have no precondition.
        let handle = |number: &Scalar| unsafe {
            match *number {
                Scalar::Int(i) => torch_sys::ats_int(i).cast(),
                Scalar::Float(x) => torch_sys::ats_float(x).cast(),
                Scalar::Tensor(x, kind) => {
                    // A copy to another kind rounds as LibTorch's own wrapping of the number does.
                    let mut x = tch::no_grad(|| Tensor::from(x).to_kind(to_tch(kind)));
                    let handle = x.as_mut_ptr();
                    std::mem::forget(x);
                    handle.cast()
                }
            }
        };
        Self {
            handles: numbers.iter().map(handle).collect(),
            numbers: numbers.to_vec(),
        }
    }
}

impl Drop for Scalars {
    fn drop(&mut self) {
        for (handle, number) in self.handles.iter().zip(&self.numbers) {
            // SAFETY: we made them, as the number says, and nothing else frees them.
            unsafe {
                match number {
                    Scalar::Int(_) | Scalar::Float(_) => torch_sys::ats_free(handle.cast()),
                    Scalar::Tensor(..) => torch_sys::at_free(handle.cast()),
                }
            }
        }
    }
}
