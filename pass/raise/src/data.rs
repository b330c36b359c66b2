//! Tensors made of data in memory, and elements read into it.

use crate::code::Ty;
use crate::eval::{Eval, Flow, Stop};
use crate::value::Val;
use cotangent_graph::ir::{Arg, Kind, Value};
use cotangent_graph::ops::Op;

/// Longest constant tensor that is written into a graph element by element.
const MAX_LITERAL: i64 = 256;

impl Eval<'_> {
    /// A tensor made of data in memory: `(data, dims, ndims, element size, kind)`.
    pub(crate) fn literal(&mut self, args: &[Val]) -> Flow<Val> {
        let dims = match self.numbers(&args[1], &args[2], &Ty::Int(64), Arg::Ints)? {
            Arg::Ints(d) => d,
            _ => vec![],
        };
        let mut shape = vec![];
        for d in &dims {
            match d {
                Arg::Int(i) => shape.push(*i),
                // One graph for each length.
                Arg::Value(v) => shape.push(self.decide_value(*v, &Ty::Int(64))?),
                _ => return self.refuse("a tensor made of data, with a size that is not an integer"),
            }
        }
        let numel: i64 = shape.iter().product();
        let number = self.number(&args[4])?;
        let Some(kind) = Kind::from_number(number) else {
            return self.refuse("a tensor of an element type that is not supported");
        };
        let Some(ty) = element(kind) else {
            return self.refuse(format!("a tensor of {} made of data", kind.name()));
        };
        if numel > MAX_LITERAL {
            return self
                .refuse("a large tensor is made of data in memory; make it outside of the differentiable function");
        }
        let mut items = vec![];
        for i in 0..numel {
            let at = self.offset(args[0].clone(), i * ty.size() as i64)?;
            let x = self.load(&at, &ty)?;
            let fill = self.arg(&x)?;
            let scalar = vec![Arg::Ints(vec![]), fill, Arg::Kind(kind), Arg::Device(-1)];
            items.push(self.emit(Op::named("full"), scalar, 1)?[0]);
        }
        let flat = match items.as_slice() {
            [] => self.emit(
                Op::named("zeros"),
                vec![Arg::ints(&shape), Arg::Kind(kind), Arg::Device(-1)],
                1,
            )?[0],
            [one] if shape.is_empty() => *one,
            _ => {
                let list = Arg::List(items.into_iter().map(Some).collect());
                let flat = self.emit(Op::named("stack"), vec![list, Arg::Int(0)], 1)?[0];
                self.emit(Op::named("view"), vec![Arg::Value(flat), Arg::ints(&shape)], 1)?[0]
            }
        };
        Ok(self.handle(flat))
    }

    /// The elements of a tensor, copied to memory: `(tensor, address, how many, element size)`.
    pub(crate) fn elements(&mut self, args: &[Val]) -> Flow<Val> {
        let t = self.tensor(&args[0])?;
        let (count, size) = (self.number(&args[2])?, self.number(&args[3])?);
        if count > MAX_LITERAL {
            return self.refuse("a large tensor is read into memory; read it outside of the differentiable function");
        }
        let kind = self.metadata("kind", &args[0], &Ty::Int(32))?;
        let Some(kind) = Kind::from_number(self.number(&kind)?) else {
            return self.refuse("a tensor of an element type that is not supported is read into memory");
        };
        let Some(ty) = element(kind) else {
            return self.refuse(format!("a tensor of {} is read into memory", kind.name()));
        };
        if ty.size() as i64 != size {
            return Err(Stop::Replay); // LibTorch says what is wrong.
        }
        let flat = self.emit(Op::named("reshape"), vec![Arg::Value(t), Arg::ints(&[-1])], 1)?[0];
        for i in 0..count {
            let one = vec![Arg::Value(flat), Arg::Int(0), Arg::Int(i)];
            let one = self.emit(Op::named("select"), one, 1)?[0];
            let x = match &ty {
                Ty::F32 | Ty::F64 => self.item(one, &Ty::F64, "fptrunc", &ty)?,
                _ => self.item(one, &Ty::Int(64), "trunc", &ty)?,
            };
            let at = self.offset(args[1].clone(), i * size)?;
            self.store(&at, &x, &ty)?;
        }
        Ok(Val::Undef)
    }

    /// The one element of a tensor, read as a wide number and made one of the element's type.
    fn item(&mut self, t: Value, wide: &Ty, how: &'static str, ty: &Ty) -> Flow<Val> {
        let t = self.emit(Op::named("detach"), vec![Arg::Value(t)], 1)?[0];
        let r = self.arith().emit("item", vec![Arg::Value(t)], wide);
        let x = self.modelled(r)?;
        if wide == ty {
            return Ok(x);
        }
        let r = self.arith().cast(how, &x, wide, ty);
        self.modelled(r)
    }

    /// An element of a tensor as a number: a constant for the derivative.
    pub(crate) fn read_element(&mut self, args: &[Val], ret: &Ty) -> Flow<Val> {
        let mut t = self.tensor(&args[0])?;
        let indexes = match self.numbers(&args[1], &args[2], &Ty::Int(64), Arg::Ints)? {
            Arg::Ints(d) => d,
            _ => vec![],
        };
        for i in indexes {
            t = self.emit(Op::named("select"), vec![Arg::Value(t), Arg::Int(0), i], 1)?[0];
        }
        self.item(t, ret, "", ret)
    }
}

/// The type in memory of an element, where Rust has one.
fn element(kind: Kind) -> Option<Ty> {
    Some(match kind {
        Kind::F32 => Ty::F32,
        Kind::F64 => Ty::F64,
        Kind::U8 | Kind::I8 | Kind::Bool => Ty::Int(8),
        Kind::I16 => Ty::Int(16),
        Kind::I32 => Ty::Int(32),
        Kind::I64 => Ty::Int(64),
        _ => return None,
    })
}
