//! A graph as code, on the engine's own handles.

use super::counters;
use crate::error::Error;
use crate::exec::{CompiledGraph, Given, Handle as Borrowed, Input, Output, Tape};
use crate::torch::{Handle, Raw, facts};
use cotangent_graph::ir::Graph;
use cotangent_graph::partition::Ownership;
use cotangent_graph::plan::{Options, plan_once};
use std::sync::{PoisonError, RwLock};

/// A value that the engine owns.
#[derive(Debug)]
pub(super) enum Datum {
    /// A tensor.
    Tensor(Handle),
    /// A float.
    Float(f64),
    /// LibTorch's record of an opaque op.
    Tape(Tape),
}

/// A value that a call borrows.
#[derive(Clone, Copy)]
pub(super) enum Operand<'a> {
    /// A tensor.
    Tensor(Raw),
    /// A float.
    Float(f64),
    /// LibTorch's record of an opaque op.
    Tape(&'a Tape),
}

impl Datum {
    /// The value, for a call.
    pub(super) fn lend(&self) -> Operand<'_> {
        match self {
            Self::Tensor(t) => Operand::Tensor(t.raw()),
            Self::Float(x) => Operand::Float(*x),
            Self::Tape(t) => Operand::Tape(t),
        }
    }

    /// The value, once more.
    pub(super) fn share(&self) -> Self {
        match self {
            Self::Tensor(t) => Self::Tensor(t.share()),
            Self::Float(x) => Self::Float(*x),
            Self::Tape(_) => unreachable!("a tape has one owner"),
        }
    }

    /// The tensor, if it is one.
    pub(super) fn into_tensor(self) -> Option<Handle> {
        match self {
            Self::Tensor(t) => Some(t),
            _ => None,
        }
    }
}

impl Operand<'_> {
    /// The value, kept beyond the call.
    ///
    /// # Safety
    /// A handle is valid.
    pub(super) unsafe fn keep(self) -> Datum {
        match self {
            // SAFETY: the caller's promise.
            Self::Tensor(raw) => Datum::Tensor(unsafe { Handle::share_raw(raw) }),
            Self::Float(x) => Datum::Float(x),
            Self::Tape(_) => unreachable!("a forward is given no tape to keep"),
        }
    }
}

/// Compiled code of a closed graph.
pub(super) struct Code(CompiledGraph);

/// What plans made from now on may use.
static OPTIONS: RwLock<Option<Options>> = RwLock::new(None);

/// Sets what plans made from now on may use. For measurements: code that exists already stays as it is.
pub fn set_plan_options(options: Options) {
    *OPTIONS.write().unwrap_or_else(PoisonError::into_inner) = Some(options);
}

impl Code {
    /// Compiles a forward or a backward that may run many times.
    pub(super) fn compile(graph: &Graph) -> Result<Self, Error> {
        Self::compile_once(graph, &[])
    }

    /// Compiles a backward that may use up its inputs as `owners` allow.
    pub(super) fn compile_once(graph: &Graph, owners: &[Ownership]) -> Result<Self, Error> {
        let options = OPTIONS
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .unwrap_or_default();
        Self::planned(graph, options, owners)
    }

    /// Compiles a graph of views, to be replayed.
    pub(super) fn compile_views(graph: &Graph) -> Result<Self, Error> {
        let keep = Options {
            early_release: true,
            ..Options::NONE
        };
        Self::planned(graph, keep, &[])
    }

    fn planned(graph: &Graph, options: Options, owners: &[Ownership]) -> Result<Self, Error> {
        let code = CompiledGraph::compile(&plan_once(graph, options, owners));
        let code = code.map_err(|e| Error::new(format!("`{}`: {e}", graph.name)))?;
        if !code.is_loaded() {
            counters::materialized();
        }
        Ok(Self(code))
    }

    /// Runs it below autograd.
    pub(super) fn run(&self, operands: &[Operand<'_>]) -> Result<Vec<Datum>, String> {
        facts::refuse_autocast()?;
        let outputs = self.0.run(&inputs(operands)).map_err(|e| e.to_string())?;
        Ok(outputs.into_iter().map(datum).collect())
    }

    /// Runs it below autograd on values that it may use up.
    pub(super) fn run_once(&self, data: impl IntoIterator<Item = Datum>) -> Result<Vec<Datum>, String> {
        let outputs = self
            .0
            .run_once(data.into_iter().map(given))
            .map_err(|e| e.to_string())?;
        Ok(outputs.into_iter().map(datum).collect())
    }

    /// Runs it as the program itself would run its ops: with LibTorch's records of views, and of gradients if
    /// `recorded`.
    pub(super) fn replay(&self, operands: &[Operand<'_>], recorded: bool) -> Result<Vec<Datum>, String> {
        let outputs = self.0.replay(&inputs(operands), recorded).map_err(|e| e.to_string())?;
        Ok(outputs.into_iter().map(datum).collect())
    }
}

fn inputs<'a>(operands: &[Operand<'a>]) -> Vec<Input<'a>> {
    let input = |operand: &Operand<'a>| match operand {
        // SAFETY: whoever lends a handle keeps it alive during the call.
        Operand::Tensor(raw) => Input::Tensor(unsafe { Borrowed::from_raw(*raw) }),
        Operand::Float(x) => Input::Float(*x),
        Operand::Tape(t) => Input::Tape(t),
    };
    operands.iter().map(input).collect()
}

fn given<'a>(datum: Datum) -> Given<'a> {
    Given::Own(match datum {
        Datum::Tensor(t) => Output::Tensor(t.into_tensor()),
        Datum::Float(x) => Output::Float(x),
        Datum::Tape(t) => Output::Tape(t),
    })
}

fn datum(output: Output) -> Datum {
    match output {
        Output::Tensor(t) => Datum::Tensor(Handle::take(t)),
        Output::Float(x) => Datum::Float(x),
        Output::Tape(t) => Datum::Tape(t),
    }
}
