//! Operands, constants, and access to memory: the evaluator's own objects and that of the caller.

use super::{Eval, Flow, Stop, zero};
use crate::IS_NESTED;
use crate::code::{Const, Operand, Symbol, Ty};
use crate::externs::demangle;
use crate::memory::{Cell, Object, Piece, Read};
use crate::value::{Base, Ptr, Val};
use cotangent_graph::ir::{Arg, Type, Value};

impl Eval<'_> {
    /// The value of an operand.
    pub(crate) fn operand(&mut self, o: &Operand, locals: &[Val]) -> Flow<Val> {
        match o {
            Operand::Local(i) => Ok(match &locals[*i as usize] {
                // A decision may have fixed a scalar since it was computed.
                Val::Sym(v, ty) => self.arith().known(*v, ty),
                v => v.clone(),
            }),
            Operand::Const(c, ty) => self.constant(c, ty),
        }
    }

    /// The value of a constant.
    pub(crate) fn constant(&mut self, c: &Const, ty: &Ty) -> Flow<Val> {
        Ok(match c {
            Const::Int(x) => match ty {
                Ty::Int(n) => Val::int(*x, *n),
                _ => Val::Undef,
            },
            Const::F32(b) => Val::F32(f32::from_bits(*b)),
            Const::F64(b) => Val::F64(f64::from_bits(*b)),
            Const::Address(a) => Val::Ptr(Ptr {
                base: Base::Absolute,
                off: *a as i64,
            }),
            Const::Global(s, off) => {
                let base = self.global(s)?;
                Val::Ptr(Ptr { base, off: *off })
            }
            Const::Func(s) => Val::Ptr(Ptr::to(Base::Func(s.clone()))),
            Const::Undef => Val::Undef,
            Const::Zero => zero(ty),
            Const::Aggregate(items) => Val::Agg(
                items
                    .iter()
                    .enumerate()
                    .map(|(i, c)| match ty.element(i) {
                        Some((_, t)) => self.constant(c, &t.clone()),
                        None => Ok(Val::Undef),
                    })
                    .collect::<Flow<_>>()?,
            ),
            Const::Bytes(b) => Val::Agg(b.iter().map(|x| Val::int(u128::from(*x), 8)).collect()),
            Const::Other(what) => {
                return self.refuse(format!("the constant `{what}` is not supported in a tensor function"));
            }
        })
    }

    /// What a global is: if it is constant, an object, made on first use, else memory of the running program.
    fn global(&mut self, symbol: &Symbol) -> Flow<Base> {
        if let Some(o) = self.globals.get(symbol) {
            return Ok(Base::Object(*o));
        }
        let Some(g) = self.loader.global(symbol) else {
            return self.refuse(format!(
                "it uses the global `{}`, which is defined outside of the program's Rust code",
                demangle(symbol)
            ));
        };
        if !g.constant && &**symbol != IS_NESTED {
            if !self.loader.has_address(symbol, g.thread_local) {
                return self.refuse(format!(
                    "it uses the static `{}` of a library that is not compiled with Cotangent; pass its value as an \
                     argument, or do without it (a `HashMap` seeds its hashes from one, a `BTreeMap` does not)",
                    demangle(symbol)
                ));
            }
            let args = vec![Arg::Str(symbol.to_string()), Arg::Int(i64::from(g.thread_local))];
            let loc = self.loc();
            return Ok(Base::Host(self.trace.scalar("host.global", args, Type::Ptr, loc)));
        }
        let mut object = Object::new(Some(g.size), 16);
        object.global = true;
        self.objects.push(object);
        let index = self.objects.len() - 1;
        self.globals.insert(symbol.clone(), index);
        let init = self.constant(&g.init, &g.ty)?;
        let p = Val::Ptr(Ptr::to(Base::Object(index)));
        self.objects[index].global = false;
        let done = self.store(&p, &init, &g.ty);
        self.objects[index].global = true;
        done?;
        Ok(Base::Object(index))
    }

    /// Is anything going to be left in a static or thread-local?
    pub(crate) fn writes_statics(&self) -> bool {
        let global = |v: &Value| {
            let insts = &self.trace.graph.insts;
            insts
                .iter()
                .any(|i| i.op.name == "host.global" && i.results.contains(v))
        };
        let written = self.host.iter().filter(|(_, o)| self.objects[**o].extent() > 0);
        written.into_iter().any(|(v, _)| global(v))
    }

    /// The symbol of a global that was used.
    pub(crate) fn symbol_of(&self, object: usize) -> Option<Symbol> {
        let found = self.globals.iter().find(|(_, o)| **o == object);
        found.map(|(symbol, _)| symbol.clone())
    }

    /// Adds a constant to an address.
    pub(crate) fn offset(&mut self, p: Val, by: i64) -> Flow<Val> {
        Ok(match p {
            Val::Ptr(Ptr { base, off }) => Val::Ptr(Ptr {
                base,
                off: off.wrapping_add(by),
            }),
            Val::Int(x, 64) => Val::Ptr(Ptr {
                base: Base::Absolute,
                off: (x as i64).wrapping_add(by),
            }),
            Val::Undef => Val::Undef,
            other if by == 0 => other,
            other => return self.refuse(format!("address arithmetic on {other}")),
        })
    }

    pub(super) fn index(&mut self, p: Val, i: &Val, stride: i64) -> Flow<Val> {
        match i {
            Val::Int(x, n) => {
                let by = crate::value::sign_extend(*x, *n) as i64;
                self.offset(p, by.wrapping_mul(stride))
            }
            Val::Sym(v, ty) => match p {
                Val::Ptr(Ptr {
                    base: Base::Host(h),
                    off,
                }) => {
                    let bytes = self
                        .arith()
                        .binary("mul", i, &Val::signed(i128::from(stride), 64), &Ty::Int(64));
                    let bytes = self.modelled(bytes)?;
                    let bytes = self.arg(&bytes)?;
                    let loc = self.loc();
                    let at = self
                        .trace
                        .scalar("scalar.add", vec![Arg::Value(h), bytes], Type::Ptr, loc);
                    Ok(Val::Ptr(Ptr {
                        base: Base::Host(at),
                        off,
                    }))
                }
                _ => {
                    let x = self.decide_value(*v, ty)?;
                    self.offset(p, x.wrapping_mul(stride))
                }
            },
            Val::Ptr(Ptr {
                base: Base::Absolute,
                off,
            }) => self.offset(p, off.wrapping_mul(stride)),
            _ => self.refuse("an address with an unknown index"),
        }
    }

    /// Reads memory.
    pub(crate) fn load(&mut self, p: &Val, ty: &Ty) -> Flow<Val> {
        if ty.elements() > 0 || matches!(ty, Ty::Struct(..) | Ty::Array(..)) {
            let mut items = vec![];
            for i in 0..ty.elements() {
                let (off, t) = ty.element(i).expect("in range");
                let t = t.clone();
                let at = self.offset(p.clone(), off as i64)?;
                items.push(self.load(&at, &t)?);
            }
            return Ok(Val::Agg(items));
        }
        let Val::Ptr(ptr) = p else {
            return self.refuse(format!("a read through {p}"));
        };
        match ptr.base.clone() {
            Base::Object(o) => self.load_object(o, ptr.off, ty),
            Base::Host(v) => {
                if let Some(o) = self.host.get(&v).copied() {
                    let off = ptr.off;
                    let n = ty.size();
                    let found = if off >= 0 {
                        self.objects[o].pieces(off as u64, n)
                    } else {
                        Ok(vec![])
                    };
                    if !self.plain(found)?.is_empty() {
                        return self.load_object(o, off, ty);
                    }
                }
                self.host_load(v, ptr.off, ty)
            }
            Base::List(l) => self.list_item(l, ptr.off / 8),
            Base::Absolute => Err(Stop::Replay), // A null or dangling read: the original crashes by itself.
            Base::Func(_) | Base::Handle(_) | Base::Scalar(_) => self.refuse("a read of the inside of a C object"),
        }
    }

    pub(super) fn load_object(&mut self, o: usize, off: i64, ty: &Ty) -> Flow<Val> {
        if ty.size() == 0 {
            return Ok(Val::Undef);
        }
        if !self.objects[o].holds(off, ty.size()) {
            return self.refuse("a read outside of a block of memory");
        }
        let read = self.objects[o].read(off as u64, ty);
        match self.plain(read)? {
            Read::Val(v) => self.retype(v, ty),
            Read::Host(v, at) => self.host_load(v, at, ty),
            Read::Size(v, i) => {
                let loc = self.loc();
                let s = self
                    .trace
                    .scalar("size", vec![Arg::Value(v), Arg::Int(i)], Type::Int(64), loc);
                Ok(self.arith().known(s, &Ty::Int(64)))
            }
            Read::Parts(parts) => {
                let r = self.arith().assemble(&parts, ty);
                self.modelled(r)
            }
            Read::Within(v, off) => {
                let from = match &v {
                    Val::Sym(_, t) => t.clone(),
                    _ => Ty::Int(64),
                };
                let wide = Ty::Int(8 * from.size() as u32);
                let v = match from {
                    Ty::Int(_) => v,
                    _ => {
                        let r = self.arith().cast("bitcast", &v, &from, &wide);
                        self.modelled(r)?
                    }
                };
                let shift = Val::int(u128::from(8 * off), 8 * from.size() as u32);
                let r = self.arith().binary("lshr", &v, &shift, &wide);
                let v = self.modelled(r)?;
                let r = self.arith().cast("trunc", &v, &wide, &Ty::Int(8 * ty.size() as u32));
                let v = self.modelled(r)?;
                self.retype(v, ty)
            }
        }
    }

    /// The same bits as another type of that size.
    pub(super) fn retype(&mut self, v: Val, ty: &Ty) -> Flow<Val> {
        match (&v, ty) {
            (Val::Sym(x, t), _) if t == ty => Ok(self.arith().known(*x, ty)),
            (Val::Sym(_, t @ Ty::Int(_)), Ty::Int(n)) if t.size() == ty.size() => {
                // An i1 stored as a byte, or the reverse.
                let op = if matches!(t, Ty::Int(m) if m > n) {
                    "trunc"
                } else {
                    "zext"
                };
                let t = t.clone();
                let r = self.arith().cast(op, &v, &t, ty);
                self.modelled(r)
            }
            (Val::Sym(x, Ty::Int(64)), Ty::Ptr) => Ok(Val::Ptr(Ptr::to(Base::Host(*x)))),
            (Val::Sym(_, t), _) => {
                let t = t.clone();
                let r = self.arith().cast("bitcast", &v, &t, ty);
                self.modelled(r)
            }
            _ => Ok(v),
        }
    }

    /// Reads host memory.
    pub(crate) fn host_load(&mut self, v: Value, off: i64, ty: &Ty) -> Flow<Val> {
        let Some(t) = crate::value::scalar_type(ty) else {
            return self.refuse(format!("a read of {ty} from memory of the caller"));
        };
        let loc = self.loc();
        let x = self
            .trace
            .scalar("host.load", vec![Arg::Value(v), Arg::Int(off)], t, loc);
        Ok(self.arith().known(x, ty))
    }

    /// Writes memory.
    pub(crate) fn store(&mut self, p: &Val, v: &Val, ty: &Ty) -> Flow<()> {
        if let (Val::Agg(items), true) = (v, matches!(ty, Ty::Struct(..) | Ty::Array(..))) {
            for (i, item) in items.clone().iter().enumerate() {
                if let Some((off, t)) = ty.element(i) {
                    let t = t.clone();
                    let at = self.offset(p.clone(), off as i64)?;
                    self.store(&at, item, &t)?;
                }
            }
            return Ok(());
        }
        if matches!(v, Val::Undef) && matches!(ty, Ty::Struct(..) | Ty::Array(..)) {
            return Ok(());
        }
        if ty.size() == 0 {
            return Ok(());
        }
        let (o, off) = self.writable(p, ty.size())?;
        let v = self.stored(v.clone(), o)?;
        let done = self.objects[o].write(off, &v, ty);
        self.plain(done)
    }

    /// The object and offset of a write of `n` bytes.
    pub(crate) fn writable(&mut self, p: &Val, n: u64) -> Flow<(usize, u64)> {
        let Val::Ptr(ptr) = p else {
            return self.refuse(format!("a write through {p}"));
        };
        let o = match ptr.base.clone() {
            Base::Object(o) => o,
            Base::Host(v) => match self.host.get(&v) {
                Some(o) => *o,
                None => {
                    self.objects.push(Object::new(None, 16));
                    let o = self.objects.len() - 1;
                    self.objects[o].heap = true;
                    self.host.insert(v, o);
                    o
                }
            },
            Base::Absolute => return Err(Stop::Replay),
            _ => return self.refuse("a write into a C object"),
        };
        if self.objects[o].global {
            return self.refuse("a write into a constant");
        }
        if !self.objects[o].holds(ptr.off, n) {
            return self.refuse("a write outside of a block of memory");
        }
        Ok((o, ptr.off as u64))
    }

    /// Copies `n` bytes (`memcpy` and `memmove` alike: the source is read first).
    pub(crate) fn copy(&mut self, to: &Val, from: &Val, n: u64) -> Flow<()> {
        if n == 0 {
            return Ok(());
        }
        let (o, off) = self.writable(to, n)?;
        let Val::Ptr(src) = from else {
            return self.refuse(format!("a copy from {from}"));
        };
        let pieces = match src.base.clone() {
            Base::Object(s) => {
                if !self.objects[s].holds(src.off, n) {
                    return self.refuse("a copy from outside of a block of memory");
                }
                let pieces = self.objects[s].pieces(src.off as u64, n);
                self.plain(pieces)?
            }
            Base::Host(v) if !self.host.contains_key(&v) => vec![(0, Piece::Cell(n, Cell::Host(v, src.off)))],
            Base::Host(_) => return self.refuse("a copy of memory of the caller that was written to before"),
            Base::Absolute => return Err(Stop::Replay),
            _ => return self.refuse("a copy from a C object"),
        };
        let cleared = self.objects[o].clear(off, n);
        self.plain(cleared)?;
        for (at, piece) in pieces {
            let done = match piece {
                Piece::Bytes(b) => self.objects[o].write_bytes(off + at, &b),
                Piece::Cell(len, cell) => self.objects[o].write_cell(off + at, len, cell),
            };
            self.plain(done)?;
        }
        Ok(())
    }
}
