//! What a finished evaluation leaves in memory, as the recipe that the runtime follows.

use crate::eval::{Eval, Flow};
use crate::memory::{Cell, Piece};
use crate::value::{Base, Ptr, Val};
use cotangent_graph::ir::Value;
use cotangent_graph::program::{Allocation, Base as Place, Datum, How, Image, Write};
use std::collections::HashMap;

impl Eval<'_> {
    /// The image, given the object that stands for the place of the result; also lists the graph's outputs.
    pub(crate) fn image(&mut self, out: usize) -> Flow<(Image, Vec<Value>)> {
        let mut image = Image {
            dropped: self.dropped.clone(),
            freed: self.freed.clone(),
            ..Image::default()
        };
        self.leave_updates(&mut image)?;
        let mut tensors = vec![];
        let mut blocks: HashMap<usize, usize> = HashMap::new();
        let mut pending = vec![(Place::Out, out)];
        let mut hosts: Vec<(Value, usize)> = self.host.iter().map(|(v, o)| (*v, *o)).collect();
        hosts.sort_unstable();
        pending.extend(hosts.into_iter().map(|(v, o)| (Place::Host(v), o)));
        let mut next = 0;
        while let Some((place, object)) = pending.get(next).copied() {
            next += 1;
            let extent = self.objects[object].extent();
            let pieces = self.objects[object].pieces(0, extent);
            for (off, piece) in self.plain(pieces)? {
                let datum = match piece {
                    Piece::Bytes(b) => Datum::Bytes(b),
                    Piece::Cell(len, Cell::Val(v)) => {
                        self.datum(&v, len, &mut image, &mut blocks, &mut pending, &mut tensors)?
                    }
                    Piece::Cell(..) => {
                        return self.refuse(
                            "it returns or stores a by-value copy of memory of the caller; take the argument by reference \
                             and return `shallow_clone()`",
                        );
                    }
                };
                image.writes.push(Write {
                    base: place,
                    offset: off as i64,
                    datum,
                    how: How::Store,
                });
            }
        }
        self.check_updates(&image)?;
        Ok((image, tensors))
    }

    fn datum(
        &mut self,
        v: &Val,
        len: u64,
        image: &mut Image,
        blocks: &mut HashMap<usize, usize>,
        pending: &mut Vec<(Place, usize)>,
        tensors: &mut Vec<Value>,
    ) -> Flow<Datum> {
        Ok(match v {
            Val::Sym(..) => Datum::Scalar {
                value: self.arg(v)?,
                bytes: len as u8,
            },
            Val::Ptr(Ptr {
                base: Base::Handle(_),
                off: 0,
            }) => {
                tensors.push(self.tensor(v)?);
                Datum::Tensor(tensors.len() - 1)
            }
            Val::Ptr(Ptr {
                base: Base::Object(o),
                off,
            }) => {
                let (o, off) = (*o, *off);
                if self.objects[o].global {
                    return self.refuse("it returns the address of a constant; return an owned value");
                }
                if !self.objects[o].live || !self.objects[o].heap {
                    return self.refuse("it returns the address of memory that is gone");
                }
                let block = *blocks.entry(o).or_insert_with(|| {
                    image.allocations.push(Allocation {
                        size: self.objects[o].size.unwrap_or_else(|| self.objects[o].extent()),
                        align: self.objects[o].align,
                    });
                    pending.push((Place::Allocation(image.allocations.len() - 1), o));
                    image.allocations.len() - 1
                });
                Datum::Address(Place::Allocation(block), off)
            }
            Val::Ptr(Ptr {
                base: Base::Host(h),
                off,
            }) => {
                // The handle of a tensor argument, moved: the function gives a handle of its own and drops the old.
                let moved = *off == 0
                    && self
                        .trace
                        .graph
                        .insts
                        .iter()
                        .any(|i| i.op.name == "host.tensor" && i.args == [(*h).into()]);
                if moved {
                    let h = *h;
                    let t = self.tensor(v)?;
                    image.dropped.push(h);
                    tensors.push(t);
                    Datum::Tensor(tensors.len() - 1)
                } else {
                    Datum::Address(Place::Host(*h), *off)
                }
            }
            other => return self.refuse(format!("it returns {other}")),
        })
    }
}
