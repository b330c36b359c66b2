//! What a forward leaves for its backward.

use super::code::{Datum, Operand};
use super::counters::Bytes;
use super::derivative::{Derivative, Source};
use crate::torch::Handle;

/// The saved values of one call, one for each of the derivative's residuals.
#[derive(Debug)]
pub(super) struct Saved {
    pub(super) data: Vec<Datum>,
    watched: Vec<Watch>,
    _bytes: Bytes,
}

/// How often a tensor in whose storage a saved value lies had been written to.
#[derive(Debug)]
struct Watch {
    residual: usize,
    /// The tensor, where it is not the saved one itself.
    other: Option<Handle>,
    version: u64,
}

impl Saved {
    /// Keeps what the backward reads, of what the forward was given and made. Takes out of `made` what only the
    /// backward needs.
    ///
    /// # Safety
    /// The handles among `given` are valid.
    pub(super) unsafe fn keep(derivative: &Derivative, given: &[Operand<'_>], made: &mut [Option<Datum>]) -> Self {
        let mut data = Vec::with_capacity(derivative.residuals.len());
        let mut watched = vec![];
        let mut bytes = 0;
        for (i, residual) in derivative.residuals.iter().enumerate() {
            // SAFETY: the caller's promise.
            let kept = unsafe { take(residual.source, residual.escapes, given, made) };
            if let Datum::Tensor(tensor) = &kept {
                let given = matches!(residual.source, Source::Given(_));
                if !given {
                    bytes += tensor.bytes();
                }
                if (given || residual.escapes)
                    && let Some(version) = tensor.version()
                {
                    watched.push(Watch {
                        residual: i,
                        other: None,
                        version,
                    });
                }
            }
            data.push(kept);
        }
        for (i, residual) in derivative.residuals.iter().enumerate() {
            let Datum::Tensor(tensor) = &data[i] else { continue };
            for other in &residual.shares {
                // SAFETY: the caller's promise.
                let other = match unsafe { look(*other, given, made) } {
                    Some(other) if other.storage() == tensor.storage() && tensor.storage() != 0 => other,
                    _ => continue,
                };
                let other = other.plain();
                if let Some(version) = other.version() {
                    watched.push(Watch {
                        residual: i,
                        other: Some(other),
                        version,
                    });
                }
            }
        }
        Self {
            data,
            watched,
            _bytes: Bytes::count(bytes),
        }
    }

    /// Gives every saved value in that storage a storage of its own: its tensor is about to be written to.
    pub(super) fn part_from(&mut self, storage: u64) -> Result<(), String> {
        for (i, datum) in self.data.iter_mut().enumerate() {
            if let Datum::Tensor(tensor) = datum
                && tensor.storage() == storage
            {
                *tensor = tensor
                    .copy()
                    .ok_or("not enough memory to keep a tensor before it is written to")?;
                self.watched.retain(|w| w.residual != i);
            }
        }
        Ok(())
    }

    /// Calls `with` with the saved values, for good.
    pub(super) fn spend<T>(self, with: impl FnOnce(Vec<Datum>) -> T) -> T {
        drop(self.watched);
        with(self.data)
    }

    /// LibTorch's complaint if a saved tensor that a backward reads was written to since.
    pub(super) fn check(&self, name: &str, reads: &dyn Fn(usize) -> bool) -> Result<(), String> {
        for watch in self.watched.iter().filter(|w| reads(w.residual)) {
            let tensor = match (&watch.other, &self.data[watch.residual]) {
                (Some(other), _) => other,
                (None, Datum::Tensor(saved)) => saved,
                (None, _) => continue,
            };
            let now = tensor.version().unwrap_or(watch.version);
            if now != watch.version {
                return Err(format!(
                    "one of the variables needed for gradient computation has been modified by an inplace operation: \
                     [{}], which was saved for the backward of `{name}`, is at version {now}; expected version {} \
                     instead.",
                    tensor.describe(),
                    watch.version
                ));
            }
        }
        Ok(())
    }
}

/// # Safety
/// The handles among `given` are valid.
unsafe fn take(source: Source, escapes: bool, given: &[Operand<'_>], made: &mut [Option<Datum>]) -> Datum {
    match source {
        // SAFETY: the caller's promise.
        Source::Given(i) => unsafe { given[i].keep() },
        // An output is a place in LibTorch's graph, which must not be kept by what that place refers to.
        Source::Made(i) if escapes => match made[i].as_ref().expect("an output stays among what was made") {
            Datum::Tensor(tensor) => Datum::Tensor(tensor.plain()),
            Datum::Float(x) => Datum::Float(*x),
            Datum::Tape(_) => unreachable!("a tape is no output"),
        },
        Source::Made(i) => made[i].take().expect("each residual is listed once"),
    }
}

/// # Safety
/// The handles among `given` are valid.
unsafe fn look(source: Source, given: &[Operand<'_>], made: &[Option<Datum>]) -> Option<Handle> {
    match source {
        // SAFETY: the caller's promise.
        Source::Given(i) => match unsafe { given[i].keep() } {
            Datum::Tensor(tensor) => Some(tensor),
            _ => None,
        },
        Source::Made(i) => match made[i].as_ref()? {
            Datum::Tensor(tensor) => Some(tensor.share()),
            _ => None,
        },
    }
}
