//! Folding: rewrites that give the same bits, NaNs and signs of zero included, with less work.
//!
//! So `x * 1` is `x`, but `x * 0` is not `0` (infinities, NaNs) and `x + 0` is not `x` (where `x` is `-0`).

use super::filled::{Fills, is_plain};
use super::{Known, Replaced, Storage};
use crate::ir::{Arg, Graph, Inst, Kind, Type, Value};
use crate::ops::{Op, constant_ints};

/// Folds what can be folded in a closed graph, for which `also` are outputs too. Folded instructions stay, unused.
pub fn fold(graph: &mut Graph, also: &[Value], known: &Known) -> Replaced {
    let storage = Storage::of(graph, also);
    let makers = graph.definitions();
    let mut fills = Fills::of_inputs(graph, known);
    let mut replaced = Replaced::default();
    for i in 0..graph.insts.len() {
        let inst = &mut graph.insts[i];
        inst.args.iter_mut().for_each(|a| *a = replaced.arg(a));
        let cx = Context {
            graph,
            makers: &makers,
            fills: &fills,
            storage: &storage,
            inst: &graph.insts[i],
        };
        let [y] = cx.inst.results[..] else { continue };
        match cx.rewrite() {
            Some(Rewrite::By(x)) if storage.may_replace(y, x) && graph.ty(x) == graph.ty(y) => {
                replaced.insert(y, x.into());
            }
            Some(Rewrite::Constant(c)) if !graph.outputs.contains(&y) && !also.contains(&y) => {
                replaced.insert(y, Arg::Float(c));
            }
            Some(Rewrite::Args(args)) if !storage.is_observable(y) => graph.insts[i].args = args,
            Some(Rewrite::Op(op, args)) => {
                graph.insts[i].op = op;
                graph.insts[i].args = args;
            }
            _ => {}
        }
        fills.note(graph, &graph.insts[i]);
    }
    for v in &mut graph.outputs {
        *v = replaced.value(*v);
    }
    replaced
}

/// What an instruction can be replaced by.
enum Rewrite {
    By(Value),
    Constant(f64),
    Args(Vec<Arg>),
    /// By another op that makes a new tensor, which lies in memory in the same way.
    Op(Op, Vec<Arg>),
}

struct Context<'a> {
    graph: &'a Graph,
    makers: &'a [Option<usize>],
    fills: &'a Fills,
    storage: &'a Storage,
    inst: &'a Inst,
}

impl Context<'_> {
    fn rewrite(&self) -> Option<Rewrite> {
        match self.inst.op.name {
            "reshape" | "view" | "expand" | "broadcast_to" | "totype" | "positive" | "_unsafe_view" => self.unchanged(),
            "contiguous" | "relu" | "abs" => self.twice(),
            "neg" | "t" | "mt" => self.undone(),
            "transpose" | "swapaxes" | "swapdims" => self.transposed(),
            "permute" => self.permuted(),
            "mul_scalar" | "div_scalar" | "pow_tensor_scalar" => self.scalar(1.0),
            "sub_scalar" => self.scalar(0.0),
            "add_scalar" => self.scalar(-0.0),
            "mul" => self.filled(&[1, 0], 1.0, "mul_scalar"),
            "div" => self.filled(&[1], 1.0, "div_scalar"),
            "sub" => self.filled(&[1], 0.0, "sub_scalar"),
            "add" => self.filled(&[1, 0], -0.0, "add_scalar"),
            name => self.float(name.strip_prefix("scalar.")?),
        }
    }

    fn x(&self, i: usize) -> Option<Value> {
        match self.inst.args.get(i)? {
            Arg::Value(v) => Some(*v),
            _ => None,
        }
    }

    /// The instruction that makes `v`.
    fn maker(&self, v: Value) -> Option<&Inst> {
        self.makers[v.index()].map(|i| &self.graph.insts[i])
    }

    /// Tensor arguments of the instruction that makes argument 0, if it has the same op.
    fn inner(&self) -> Option<(&Inst, Value)> {
        let maker = self.maker(self.x(0)?)?;
        match (maker.op == self.inst.op, maker.args.first()?) {
            (true, Arg::Value(x)) => Some((maker, *x)),
            _ => None,
        }
    }

    /// A view of the same shape and kind as its argument; of two reshapes the second.
    fn unchanged(&self) -> Option<Rewrite> {
        let x = self.x(0)?;
        if self.graph.ty(x) == self.graph.ty(self.inst.results[0]) {
            return Some(Rewrite::By(x));
        }
        if self.inst.op.name != "reshape" {
            return None;
        }
        let (_, base) = self.inner()?;
        let mut args = self.inst.args.clone();
        args[0] = base.into();
        Some(Rewrite::Args(args))
    }

    /// The second of two applications changes nothing.
    fn twice(&self) -> Option<Rewrite> {
        self.inner()?;
        self.x(0).map(Rewrite::By)
    }

    /// The second of two applications undoes the first.
    fn undone(&self) -> Option<Rewrite> {
        self.inner().map(|(_, x)| Rewrite::By(x))
    }

    fn transposed(&self) -> Option<Rewrite> {
        let rank = self.graph.tensor(self.x(0)?).rank() as i64;
        let dims = |inst: &Inst| {
            let dim = |a: &Arg| match a {
                Arg::Int(d) if *d < 0 => Some(d + rank),
                Arg::Int(d) => Some(*d),
                _ => None,
            };
            let (a, b) = (dim(inst.args.get(1)?)?, dim(inst.args.get(2)?)?);
            Some((a.min(b), a.max(b)))
        };
        let own = dims(self.inst)?;
        if own.0 == own.1 {
            return self.x(0).map(Rewrite::By);
        }
        let (inner, x) = self.inner()?;
        (dims(inner)? == own).then_some(Rewrite::By(x))
    }

    /// Two permutations are one; the identity is none.
    fn permuted(&self) -> Option<Rewrite> {
        let dims = |inst: &Inst| -> Option<Vec<i64>> {
            let dims = constant_ints(inst.args.get(1)?)?;
            let rank = dims.len() as i64;
            Some(dims.iter().map(|d| if *d < 0 { d + rank } else { *d }).collect())
        };
        let own = dims(self.inst)?;
        if own.iter().zip(0..).all(|(d, i)| *d == i) {
            return self.x(0).map(Rewrite::By);
        }
        let (inner, x) = self.inner()?;
        let inner = dims(inner)?;
        let both: Option<Vec<i64>> = own.iter().map(|d| inner.get(*d as usize).copied()).collect();
        Some(Rewrite::Args(vec![x.into(), Arg::ints(&both?)]))
    }

    /// A tensor that an instruction made. An input may lie in memory in any way, and a copy of it in another; some
    /// kernels treat NaNs differently then.
    fn made(&self, i: usize) -> Option<Value> {
        self.x(i).filter(|x| self.maker(*x).is_some())
    }

    /// The scalar operand is neutral.
    fn scalar(&self, neutral: f64) -> Option<Rewrite> {
        let x = self.made(0)?;
        is_neutral(self.inst.args.get(1)?, neutral, self.graph.tensor(x).kind).then_some(Rewrite::By(x))
    }

    /// The tensor in one of these positions is filled: if with what is neutral for the op, the other is the result; if
    /// all its elements are one in memory, `scalar` takes the number itself.
    fn filled(&self, places: &[usize], neutral: f64, scalar: &str) -> Option<Rewrite> {
        places.iter().find_map(|i| {
            let fill = self.fills.argument(self.inst, *i)?;
            let x = self.x(1 - i)?;
            let (ty, y) = (self.graph.tensor(x), self.inst.results[0]);
            if self.graph.tensor(y) != ty {
                return None;
            }
            let neutral = is_neutral(&Arg::Float(fill.number), neutral, ty.kind);
            if neutral && self.made(1 - i).is_some() && self.storage.may_replace(y, x) {
                return Some(Rewrite::By(x));
            }
            let plain = is_plain(ty.kind) && self.graph.tensor(self.x(*i)?).kind == ty.kind;
            let args = vec![x.into(), Arg::Float(fill.number)];
            (plain && fill.one && fill.number.is_finite()).then(|| Rewrite::Op(Op::named(scalar), args))
        })
    }

    /// Arithmetic on constant floats.
    fn float(&self, op: &str) -> Option<Rewrite> {
        let narrow = match self.graph.ty(self.inst.results[0]) {
            Type::Float(32) => true,
            Type::Float(64) => false,
            _ => return None,
        };
        let constant = |i: usize| match self.inst.args.get(i) {
            Some(Arg::Float(x)) => Some(*x),
            _ => None,
        };
        // Computed in double and rounded once: for these operations that is the single-precision result.
        let exact = match op {
            "fneg" => -constant(0)?,
            "fadd" => constant(0)? + constant(1)?,
            "fsub" => constant(0)? - constant(1)?,
            "fmul" => constant(0)? * constant(1)?,
            "fdiv" => constant(0)? / constant(1)?,
            _ => return None,
        };
        Some(Rewrite::Constant(match narrow {
            true => f64::from(exact as f32),
            false => exact,
        }))
    }
}

/// Is the constant the neutral element, so that every bit of the other operand survives?
fn is_neutral(arg: &Arg, neutral: f64, kind: Kind) -> bool {
    match arg {
        // `-0` is neutral for the addition of floats, `0` for that of integers.
        Arg::Int(i) => {
            *i as f64 == neutral && (neutral != 0.0 || neutral.is_sign_positive() || !kind.is_differentiable())
        }
        Arg::Float(x) if !kind.is_differentiable() => *x == neutral,
        Arg::Float(x) => x.to_bits() == neutral.to_bits(),
        _ => false,
    }
}
