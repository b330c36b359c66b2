//! Memory that the evaluator models: objects of bytes, with cells for what is not bytes.
//!
//! An object keeps concrete data as bytes and everything else (addresses, run-time scalars, copies of host memory) as
//! cells beside them. Cells never overlap, and no byte under a cell counts as initialised.

use crate::code::Ty;
use crate::value::{Base, Ptr, Val};
use cotangent_graph::ir::Value;
use std::collections::BTreeMap;

/// A block of memory.
#[derive(Clone, Debug, Default)]
pub struct Object {
    /// Size, where it is known.
    pub size: Option<u64>,
    /// Alignment of its start.
    pub align: u64,
    /// Came from the allocator (and not from the stack or a constant).
    pub heap: bool,
    /// A constant or a global of the program.
    pub global: bool,
    /// Not freed, and its frame not left.
    pub live: bool,
    /// Bytes never written read as zero.
    pub zeroed: bool,
    bytes: Vec<u8>,
    init: Vec<bool>,
    cells: BTreeMap<u64, (u64, Cell)>,
}

/// What stands in memory where bytes do not tell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// An address or a run-time scalar.
    Val(Val),
    /// A copy of host memory at a pointer value plus offset, of unknown type.
    Host(Value, i64),
    /// The sizes of a tensor, as 64-bit integers.
    Sizes(Value),
}

/// A piece of memory on its way from one place to another.
#[derive(Clone, Debug)]
pub enum Piece {
    /// Bytes.
    Bytes(Vec<u8>),
    /// A cell of that length.
    Cell(u64, Cell),
}

/// Why an access cannot be modelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Odd(pub &'static str);

/// What a typed read finds.
#[derive(Clone, Debug, PartialEq)]
pub enum Read {
    /// A value.
    Val(Val),
    /// Part of a copy of host memory: read it there.
    Host(Value, i64),
    /// Dimension `i` of a tensor.
    Size(Value, i64),
    /// An integer put together from parts: (byte offset, bytes, value).
    Parts(Vec<(u64, u64, Val)>),
    /// Bytes `offset..` of a wider value.
    Within(Val, u64),
}

impl Object {
    /// A fresh block.
    pub fn new(size: Option<u64>, align: u64) -> Self {
        Self {
            size,
            align,
            live: true,
            ..Self::default()
        }
    }

    fn reach(&mut self, end: u64) {
        let end = usize::try_from(end).expect("a modelled object fits memory");
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
            self.init.resize(end, false);
        }
    }

    /// Is `[off, off + len)` inside?
    pub fn holds(&self, off: i64, len: u64) -> bool {
        off >= 0 && self.size.is_none_or(|s| (off as u64).saturating_add(len) <= s)
    }

    /// Forgets what stands in a range; cells that stick out keep their other part where that part can be told.
    pub fn clear(&mut self, off: u64, len: u64) -> Result<(), Odd> {
        let end = off + len;
        let hit: Vec<u64> = self.overlapping(off, end);
        for at in hit {
            let (n, cell) = self.cells.remove(&at).expect("just found");
            if at < off {
                self.cells.insert(at, (off - at, part(&cell, n, 0, off - at)?));
            }
            if at + n > end {
                self.cells
                    .insert(end, (at + n - end, part(&cell, n, end - at, at + n - end)?));
            }
        }
        if len != 0 {
            let stop = (end as usize).min(self.init.len());
            if (off as usize) < stop {
                self.init[off as usize..stop].fill(false);
            }
        }
        Ok(())
    }

    fn overlapping(&self, off: u64, end: u64) -> Vec<u64> {
        let before = self
            .cells
            .range(..off)
            .next_back()
            .filter(|(at, (n, _))| **at + n > off)
            .map(|(at, _)| *at);
        before
            .into_iter()
            .chain(self.cells.range(off..end).map(|(at, _)| *at))
            .collect()
    }

    /// Writes bytes.
    pub fn write_bytes(&mut self, off: u64, data: &[u8]) -> Result<(), Odd> {
        self.clear(off, data.len() as u64)?;
        self.reach(off + data.len() as u64);
        let at = off as usize;
        self.bytes[at..at + data.len()].copy_from_slice(data);
        self.init[at..at + data.len()].fill(true);
        Ok(())
    }

    /// Writes a cell.
    pub fn write_cell(&mut self, off: u64, len: u64, cell: Cell) -> Result<(), Odd> {
        self.clear(off, len)?;
        self.cells.insert(off, (len, cell));
        Ok(())
    }

    /// Writes a value that is not an aggregate.
    pub fn write(&mut self, off: u64, v: &Val, ty: &Ty) -> Result<(), Odd> {
        let n = ty.size();
        match v {
            Val::Undef => {
                self.clear(off, n)?;
                if self.zeroed {
                    return self.write_bytes(off, &vec![0; n as usize]);
                }
                Ok(())
            }
            Val::Int(x, _) => self.write_bytes(off, &x.to_le_bytes()[..n as usize]),
            Val::F32(x) => self.write_bytes(off, &x.to_le_bytes()),
            Val::F64(x) => self.write_bytes(off, &x.to_le_bytes()),
            Val::Ptr(Ptr {
                base: Base::Absolute,
                off: a,
            }) => self.write_bytes(off, &a.to_le_bytes()[..n as usize]),
            Val::Sym(..) | Val::Ptr(_) => self.write_cell(off, n, Cell::Val(v.clone())),
            Val::Agg(_) => Err(Odd("an aggregate where a scalar is stored")),
        }
    }

    /// Reads a value that is not an aggregate.
    pub fn read(&self, off: u64, ty: &Ty) -> Result<Read, Odd> {
        let n = ty.size();
        let end = off + n;
        let hit = self.overlapping(off, end);
        match hit.as_slice() {
            [] => Ok(Read::Val(
                self.read_bytes(off, n).map_or(Val::Undef, |b| decode(&b, ty)),
            )),
            [at] if *at <= off && at + self.cells[at].0 >= end => {
                let (len, cell) = &self.cells[at];
                Ok(match cell {
                    Cell::Host(v, o) => Read::Host(*v, o + (off - at) as i64),
                    Cell::Sizes(v) if (off - at).is_multiple_of(8) && n == 8 => Read::Size(*v, (off - at) as i64 / 8),
                    Cell::Sizes(_) => return Err(Odd("part of a size")),
                    Cell::Val(v) if *at == off && *len == n => Read::Val(v.clone()),
                    Cell::Val(v) => Read::Within(v.clone(), off - at),
                })
            }
            _ => self.read_parts(off, n, &hit),
        }
    }

    fn read_parts(&self, off: u64, n: u64, hit: &[u64]) -> Result<Read, Odd> {
        let mut parts = vec![];
        let mut at = off;
        for h in hit {
            let (len, cell) = &self.cells[h];
            let Cell::Val(v) = cell else {
                return Err(Odd("a read across host memory and other data"));
            };
            if *h < off || h + len > off + n {
                return Err(Odd("a read across the edge of a run-time value"));
            }
            if at < *h {
                parts.push((at - off, h - at, self.raw(at, h - at)));
            }
            parts.push((h - off, *len, v.clone()));
            at = h + len;
        }
        if at < off + n {
            parts.push((at - off, off + n - at, self.raw(at, off + n - at)));
        }
        Ok(Read::Parts(parts))
    }

    fn raw(&self, off: u64, n: u64) -> Val {
        let mut b = [0u8; 16];
        if let Some(bytes) = self.read_bytes(off, n) {
            b[..n as usize].copy_from_slice(&bytes);
        }
        Val::Int(u128::from_le_bytes(b), 8 * n as u32)
    }

    /// Bytes of a range without cells; `None` if none of them was ever written. Single bytes never written (padding)
    /// read as zero.
    fn read_bytes(&self, off: u64, n: u64) -> Option<Vec<u8>> {
        let mut any = self.zeroed || n == 0;
        let bytes = (off..off + n)
            .map(|i| match self.init.get(i as usize) {
                Some(true) => {
                    any = true;
                    self.bytes[i as usize]
                }
                _ => 0,
            })
            .collect();
        any.then_some(bytes)
    }

    /// The contents of a range: offset in the range and piece; gaps were never written.
    pub fn pieces(&self, off: u64, len: u64) -> Result<Vec<(u64, Piece)>, Odd> {
        let end = off + len;
        let mut out = vec![];
        let mut at = off;
        for h in self.overlapping(off, end) {
            let (n, cell) = &self.cells[&h];
            self.byte_pieces(off, at, h.max(off), &mut out);
            let (from, to) = (h.max(off), (h + n).min(end));
            out.push((from - off, Piece::Cell(to - from, part(cell, *n, from - h, to - from)?)));
            at = to;
        }
        self.byte_pieces(off, at, end, &mut out);
        Ok(out)
    }

    fn byte_pieces(&self, origin: u64, from: u64, to: u64, out: &mut Vec<(u64, Piece)>) {
        let mut i = from;
        while i < to {
            let known = |i: u64| self.zeroed || self.init.get(i as usize).copied().unwrap_or(false);
            if !known(i) {
                i += 1;
                continue;
            }
            let start = i;
            while i < to && known(i) {
                i += 1;
            }
            let bytes = (start..i)
                .map(|i| self.bytes.get(i as usize).copied().unwrap_or(0))
                .collect();
            out.push((start - origin, Piece::Bytes(bytes)));
        }
    }

    /// End of what was written.
    pub fn extent(&self) -> u64 {
        let cells = self.cells.iter().next_back().map_or(0, |(at, (n, _))| at + n);
        cells.max(self.bytes.len() as u64)
    }
}

/// Bytes `from..from + len` of a cell of length `n`.
fn part(cell: &Cell, n: u64, from: u64, len: u64) -> Result<Cell, Odd> {
    if from == 0 && len == n {
        return Ok(cell.clone());
    }
    match cell {
        Cell::Host(v, o) => Ok(Cell::Host(*v, o + from as i64)),
        Cell::Sizes(_) | Cell::Val(_) => Err(Odd("part of a run-time value is copied or overwritten")),
    }
}

/// The value of type `ty` that those bytes are.
fn decode(b: &[u8], ty: &Ty) -> Val {
    let mut wide = [0u8; 16];
    wide[..b.len()].copy_from_slice(b);
    let x = u128::from_le_bytes(wide);
    match ty {
        Ty::Int(bits) => Val::int(x, *bits),
        Ty::F32 => Val::F32(f32::from_bits(x as u32)),
        Ty::F64 => Val::F64(f64::from_bits(x as u64)),
        Ty::Ptr => Val::Ptr(Ptr {
            base: Base::Absolute,
            off: x as i64,
        }),
        _ => Val::Undef,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block() -> Object {
        Object::new(Some(16), 8)
    }

    #[test]
    fn bytes_never_written_are_undefined_and_zeroed_ones_are_zero() {
        let mut o = block();
        assert_eq!(o.read(0, &Ty::Int(32)), Ok(Read::Val(Val::Undef)));
        o.zeroed = true;
        assert_eq!(o.read(0, &Ty::Int(32)), Ok(Read::Val(Val::int(0, 32))));
    }

    #[test]
    fn a_number_reads_back_at_another_width() {
        let mut o = block();
        o.write(0, &Val::int(0x0102_0304, 32), &Ty::Int(32)).unwrap();
        assert_eq!(o.read(1, &Ty::Int(8)), Ok(Read::Val(Val::int(3, 8))));
    }

    #[test]
    fn host_memory_keeps_its_other_part_when_part_of_it_is_overwritten() {
        let mut o = block();
        o.write_cell(0, 16, Cell::Host(Value(7), 100)).unwrap();
        o.write(4, &Val::int(9, 32), &Ty::Int(32)).unwrap();
        assert_eq!(o.read(0, &Ty::Int(32)), Ok(Read::Host(Value(7), 100)));
        assert_eq!(o.read(4, &Ty::Int(32)), Ok(Read::Val(Val::int(9, 32))));
        assert_eq!(o.read(8, &Ty::Ptr), Ok(Read::Host(Value(7), 108)));
    }

    #[test]
    fn a_run_time_value_that_is_partly_overwritten_is_refused() {
        let mut o = block();
        let v = Val::Sym(Value(1), Ty::Int(64));
        o.write(0, &v, &Ty::Int(64)).unwrap();
        assert!(o.write(4, &Val::int(1, 8), &Ty::Int(8)).is_err());
    }

    #[test]
    fn a_read_across_numbers_and_run_time_values_gives_its_parts() {
        let mut o = block();
        let v = Val::Sym(Value(1), Ty::Int(32));
        o.write(0, &v, &Ty::Int(32)).unwrap();
        o.write(4, &Val::int(5, 32), &Ty::Int(32)).unwrap();
        let parts = vec![(0, 4, v), (4, 4, Val::int(5, 32))];
        assert_eq!(o.read(0, &Ty::Int(64)), Ok(Read::Parts(parts)));
    }

    #[test]
    fn an_access_outside_is_not_inside() {
        let o = block();
        assert!(o.holds(8, 8) && !o.holds(9, 8) && !o.holds(-1, 1));
    }
}
