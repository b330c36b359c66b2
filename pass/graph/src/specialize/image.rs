//! The image: every scalar known, or traced to a slot of the prologue or an output of the graph.

use super::eval::{Closer, Stop};
use super::nodes::Scalar;
use super::outcome::{ClosedBase, ClosedDatum, ClosedImage, ClosedWrite, Pointer};
use crate::ir::{Arg, Graph, Value};
use crate::program::{Base, Datum, Image};
use crate::scalar::{Number, ScalarType};

impl Closer<'_> {
    /// Closes an image. Floats that it mentions become outputs of the graph.
    pub(super) fn close_image(&mut self, image: &Image, open: &Graph) -> Result<ClosedImage, Stop> {
        let mut closed = ClosedImage {
            allocations: image.allocations.clone(),
            ..ClosedImage::default()
        };
        for write in &image.writes {
            let datum = match &write.datum {
                Datum::Bytes(bytes) => ClosedDatum::Bytes(bytes.clone()),
                Datum::Tensor(k) => ClosedDatum::Tensor(*k),
                Datum::Address(base, offset) => ClosedDatum::Address(self.base(*base, open)?, *offset),
                Datum::Scalar { value, bytes } => self.scalar_datum(value, *bytes, open)?,
            };
            closed.writes.push(ClosedWrite {
                base: self.base(write.base, open)?,
                offset: write.offset,
                datum,
                how: write.how,
            });
        }
        for v in &image.dropped {
            closed.dropped.push(self.pointer(*v, open)?);
        }
        for (v, size, align) in &image.freed {
            closed.freed.push((self.pointer(*v, open)?, *size, *align));
        }
        Ok(closed)
    }

    fn base(&mut self, base: Base, open: &Graph) -> Result<ClosedBase, Stop> {
        Ok(match base {
            Base::Out => ClosedBase::Out,
            Base::Allocation(i) => ClosedBase::Allocation(i),
            Base::Host(v) => ClosedBase::Host(self.pointer(v, open)?),
            Base::Symbol(i) => ClosedBase::Symbol(i),
        })
    }

    /// Where the prologue has an address.
    fn pointer(&mut self, v: Value, open: &Graph) -> Result<Pointer, Stop> {
        match self.scalar(v, open)? {
            Scalar::Node { id, plus, .. } => Ok(Pointer {
                slot: self.slot_of(id),
                offset: plus,
            }),
            other => Err(self.error(format!(
                "internal error, please report it: the image mentions {other:?} as an address"
            ))),
        }
    }

    fn scalar_datum(&mut self, value: &Arg, bytes: u8, open: &Graph) -> Result<ClosedDatum, Stop> {
        let width = bytes.saturating_mul(8);
        let hint = match value {
            Arg::Float(_) => ScalarType::Float(width),
            _ => ScalarType::Int(width.clamp(1, 64)),
        };
        let scalar = self.scalar_arg(value, hint, open)?;
        Ok(match (scalar, scalar.ty()) {
            (Scalar::Constant(n), _) => ClosedDatum::Bytes(low_bytes(n, bytes)),
            (Scalar::Node { id, plus, .. }, ScalarType::Int(_)) => ClosedDatum::Word {
                from: Pointer {
                    slot: self.slot_of(id),
                    offset: plus,
                },
                bytes,
            },
            (scalar, ScalarType::Float(_)) => match self.float_arg(scalar) {
                Arg::Value(v) => {
                    self.state.graph.outputs.push(v);
                    let output = self.state.graph.outputs.len() - 1;
                    ClosedDatum::Float { output, bytes }
                }
                Arg::Float(x) => ClosedDatum::Bytes(low_bytes(Number::float(x, scalar.ty()), bytes)),
                other => unreachable!("a float is {other:?}"),
            },
            (Scalar::Graph(..), ScalarType::Int(_)) => unreachable!("the graph has no integers"),
        })
    }
}

fn low_bytes(n: Number, bytes: u8) -> Vec<u8> {
    let mut all = n.bits.to_le_bytes().to_vec();
    all.resize(usize::from(bytes), 0);
    all
}
