//! Arguments of a kernel, read by position.

use super::{EvalArg, InterpError, Tensor, Value};
use crate::ir::Kind;
use crate::ops::Op;

/// A number argument: LibTorch keeps apart what it was written as.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Float(f64),
    Int(i64),
    Bool(bool),
}

impl Number {
    pub(super) fn f64(self) -> f64 {
        match self {
            Self::Float(x) => x,
            Self::Int(i) => i as f64,
            Self::Bool(b) => f64::from(b),
        }
    }

    /// A 0-dim tensor of the kind that LibTorch wraps such a number in.
    pub(super) fn tensor(self) -> Tensor {
        match self {
            Self::Float(x) => Tensor::from_f64(Kind::F64, &[], vec![x]),
            Self::Int(i) => Tensor::from_i64(Kind::I64, &[], vec![i]),
            Self::Bool(b) => Tensor::from_bool(&[], [b]),
        }
    }

    /// A tensor filled with the number.
    pub(super) fn fill(self, kind: Kind, shape: &[i64]) -> Result<Tensor, InterpError> {
        self.tensor().cast(kind).expand(shape)
    }
}

/// An operand of an elementwise op: a tensor, or a number wrapped in one.
#[derive(Clone, Debug)]
pub(super) struct Operand {
    pub(super) tensor: Tensor,
    pub(super) wrapped: bool,
}

/// The arguments of one call.
pub(super) struct Args<'a> {
    pub(super) op: Op,
    pub(super) args: &'a [EvalArg],
}

pub(super) type Out<T> = Result<T, InterpError>;

impl Args<'_> {
    fn at(&self, i: usize) -> &EvalArg {
        self.args.get(i).unwrap_or(&EvalArg::None)
    }

    fn wrong<T>(&self, i: usize, wanted: &str) -> Out<T> {
        Err(InterpError::invalid(format!(
            "argument {i} of `{}` is {:?}, not {wanted}",
            self.op,
            self.at(i)
        )))
    }

    /// A refusal of this call.
    pub(super) fn invalid<T>(&self, why: impl AsRef<str>) -> Out<T> {
        Err(InterpError::invalid(format!("`{}`: {}", self.op, why.as_ref())))
    }

    /// Refuses a call that asks for what this interpreter does not do.
    pub(super) fn not_interpreted<T>(&self) -> Out<T> {
        Err(InterpError::NotInterpreted(self.op.name.to_string()))
    }

    pub(super) fn tensor(&self, i: usize) -> Out<&Tensor> {
        match self.at(i) {
            EvalArg::Tensor(t) => Ok(t),
            _ => self.wrong(i, "a tensor"),
        }
    }

    pub(super) fn opt_tensor(&self, i: usize) -> Out<Option<&Tensor>> {
        match self.at(i) {
            EvalArg::None => Ok(None),
            _ => self.tensor(i).map(Some),
        }
    }

    pub(super) fn opt_tensors(&self, i: usize) -> Out<&[Option<Tensor>]> {
        match self.at(i) {
            EvalArg::List(ts) => Ok(ts),
            _ => self.wrong(i, "a list of tensors"),
        }
    }

    pub(super) fn tensors(&self, i: usize) -> Out<Vec<&Tensor>> {
        self.opt_tensors(i)?
            .iter()
            .map(|t| t.as_ref())
            .collect::<Option<_>>()
            .map_or_else(|| self.wrong(i, "a list of defined tensors"), Ok)
    }

    pub(super) fn number(&self, i: usize) -> Out<Number> {
        match self.at(i) {
            EvalArg::Float(x) => Ok(Number::Float(*x)),
            EvalArg::Int(n) => Ok(Number::Int(*n)),
            EvalArg::Bool(b) => Ok(Number::Bool(*b)),
            _ => self.wrong(i, "a number"),
        }
    }

    pub(super) fn operand(&self, i: usize) -> Out<Operand> {
        Ok(match self.at(i) {
            EvalArg::Tensor(t) => Operand {
                tensor: t.clone(),
                wrapped: false,
            },
            _ => Operand {
                tensor: self.number(i)?.tensor(),
                wrapped: true,
            },
        })
    }

    pub(super) fn int(&self, i: usize) -> Out<i64> {
        match self.number(i)? {
            Number::Int(n) => Ok(n),
            Number::Bool(b) => Ok(i64::from(b)),
            Number::Float(_) => self.wrong(i, "an integer"),
        }
    }

    pub(super) fn opt_int(&self, i: usize) -> Out<Option<i64>> {
        match self.at(i) {
            EvalArg::None => Ok(None),
            _ => self.int(i).map(Some),
        }
    }

    pub(super) fn ints(&self, i: usize) -> Out<&[i64]> {
        match self.at(i) {
            EvalArg::Ints(v) => Ok(v),
            _ => self.wrong(i, "a list of integers"),
        }
    }

    pub(super) fn opt_ints(&self, i: usize) -> Out<Option<&[i64]>> {
        match self.at(i) {
            EvalArg::None => Ok(None),
            _ => self.ints(i).map(Some),
        }
    }

    pub(super) fn float(&self, i: usize) -> Out<f64> {
        self.number(i).map(Number::f64)
    }

    pub(super) fn flag(&self, i: usize) -> Out<bool> {
        Ok(self.int(i)? != 0)
    }

    pub(super) fn opt_kind(&self, i: usize) -> Out<Option<Kind>> {
        match self.at(i) {
            EvalArg::None => Ok(None),
            EvalArg::Kind(k) if k.is_complex() => self.not_interpreted(),
            EvalArg::Kind(k) => Ok(Some(*k)),
            _ => self.wrong(i, "an element type"),
        }
    }

    pub(super) fn kind(&self, i: usize) -> Out<Kind> {
        self.opt_kind(i)?.map_or_else(|| self.wrong(i, "an element type"), Ok)
    }

    pub(super) fn text(&self, i: usize) -> Out<&str> {
        match self.at(i) {
            EvalArg::Str(s) => Ok(s),
            _ => self.wrong(i, "a string"),
        }
    }

    /// The dimension in position `i` of a tensor of that rank, counted from the front. A 0-dim tensor has, for this
    /// purpose, one.
    pub(super) fn dim(&self, i: usize, rank: usize) -> Out<usize> {
        self.wrap_dim(self.int(i)?, rank)
    }

    /// The dimension `d` of a tensor of that rank, counted from the front.
    pub(super) fn wrap_dim(&self, d: i64, rank: usize) -> Out<usize> {
        let n = rank.max(1) as i64;
        let wrapped = if d < 0 { d + n } else { d };
        if (0..n).contains(&wrapped) {
            Ok(wrapped as usize)
        } else {
            self.invalid(format!("dimension {d} is out of range for rank {rank}"))
        }
    }

    /// The dimensions of a reduction: those in position `i`, or all where the list is empty or absent.
    pub(super) fn dims(&self, i: usize, rank: usize) -> Out<Vec<usize>> {
        match self.opt_ints(i)? {
            None | Some([]) => Ok((0..rank).collect()),
            Some(dims) => {
                let mut out = dims.iter().map(|d| self.wrap_dim(*d, rank)).collect::<Out<Vec<_>>>()?;
                out.sort_unstable();
                if out.windows(2).any(|w| w[0] == w[1]) {
                    return self.invalid(format!("a dimension appears twice in {dims:?}"));
                }
                out.retain(|d| *d < rank);
                Ok(out)
            }
        }
    }
}

/// A kernel: what computes an op.
#[derive(Clone, Copy)]
pub(super) enum Kernel {
    /// Gives one tensor.
    One(fn(&Args<'_>) -> Out<Tensor>),
    /// Gives any number of values.
    Many(fn(&Args<'_>) -> Out<Vec<Value>>),
}
