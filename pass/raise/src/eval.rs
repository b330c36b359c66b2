//! The evaluator's loop: frames, blocks, instructions.

use crate::code::{BlockId, Callee, Code, Const, Func, Inst, Loader, Operand, Symbol, Ty};
use crate::explore::Request;
use crate::memory::{Cell, Object, Odd, Piece, Read};
use crate::scalar::{Scalars, Unmodelled};
use crate::trace::Trace;
use crate::value::{Base, Ptr, Val};
use cotangent_graph::ir::{Arg, Loc, Type, Value};
use cotangent_graph::program::Refusal;
use std::collections::HashMap;
use std::rc::Rc;

/// A way taken at a decision: the value that the scalar has, or `None` if it has none of those with a way of their own.
pub type Choice = Option<i64>;

/// Why an evaluation ended before the function returned.
#[derive(Clone, Debug)]
pub(crate) enum Stop {
    /// The function panics or exits here.
    Replay,
    /// A decision is open.
    Undecided {
        /// The scalar that decides.
        on: Value,
        /// Its values with a way of their own; `None` if every value has one.
        ways: Option<Vec<i64>>,
    },
    /// Something cannot be raised (recorded in `Eval::refusals`).
    Refused,
}

/// Result of a step.
pub(crate) type Flow<T> = Result<T, Stop>;

/// A C tensor that the function made.
#[derive(Clone, Debug)]
pub(crate) struct Handle {
    /// The tensor.
    pub value: Value,
    /// Freed already.
    pub freed: bool,
}

/// A place in the code.
#[derive(Clone, Debug, Default)]
struct Frame {
    /// Number of its location.
    at: u32,
    /// The innermost place in the user's own code on the way here.
    user: Option<Rc<Loc>>,
}

/// The crate of the shims, as it stands in mangled names.
const OWN_CRATE: &str = "cotangent_runtime";
/// Deepest chain of calls.
const MAX_DEPTH: usize = 1500;
/// Most instructions of one evaluation.
const MAX_STEPS: u64 = 5_000_000;

/// One evaluation of a function.
pub(crate) struct Eval<'a> {
    pub(crate) loader: &'a dyn Loader,
    pub(crate) trace: Trace,
    pub(crate) objects: Vec<Object>,
    /// What the function wrote to host memory, by pointer value.
    pub(crate) host: HashMap<Value, usize>,
    pub(crate) handles: Vec<Handle>,
    pub(crate) scalars: Vec<Arg>,
    pub(crate) lists: Vec<Value>,
    pub(crate) list_items: HashMap<(usize, i64), usize>,
    pub(crate) dropped: Vec<Value>,
    pub(crate) freed: Vec<(Value, u64, u64)>,
    pub(crate) grad_enabled: bool,
    pub(crate) refusals: Vec<Refusal>,
    /// The evaluation looks for a request and ends at the marker.
    pub(crate) seeks_request: bool,
    pub(crate) request: Option<Request>,
    globals: HashMap<Symbol, usize>,
    prefix: &'a [Choice],
    /// How many decisions were taken so far.
    taken: usize,
    /// Call sites, outermost first.
    stack: Vec<Frame>,
    /// Where the evaluation is.
    here: Frame,
    /// Innermost place in the user's own code, by number of location.
    places: HashMap<u32, Option<Rc<Loc>>>,
    /// The instruction that is evaluated, and how often each asked for a decision.
    site: usize,
    pub(crate) asked: HashMap<usize, u32>,
    steps: u64,
}

impl<'a> Eval<'a> {
    /// An evaluation that follows `prefix` and then asks.
    pub(crate) fn new(name: &str, loader: &'a dyn Loader, prefix: &'a [Choice]) -> Self {
        Self {
            loader,
            trace: Trace::new(name),
            objects: vec![],
            host: HashMap::new(),
            handles: vec![],
            scalars: vec![],
            lists: vec![],
            list_items: HashMap::new(),
            dropped: vec![],
            freed: vec![],
            grad_enabled: true,
            refusals: vec![],
            seeks_request: false,
            request: None,
            globals: HashMap::new(),
            prefix,
            taken: 0,
            stack: vec![],
            here: Frame::default(),
            places: HashMap::new(),
            site: 0,
            asked: HashMap::new(),
            steps: 0,
        }
    }

    /// Calls a function of the program.
    pub(crate) fn call(&mut self, func: &Rc<Func>, args: Vec<Val>) -> Flow<Val> {
        if self.stack.len() >= MAX_DEPTH {
            return self.refuse("calls nest too deeply to follow: recursion whose depth is known at run time only");
        }
        // What Cotangent's own runtime does is no place in the user's program.
        let silent = func.symbol.contains(OWN_CRATE);
        let mut locals = vec![Val::Undef; func.locals as usize];
        for (slot, arg) in locals.iter_mut().zip(args) {
            *slot = arg;
        }
        let first_object = self.objects.len();
        let (mut block, mut from): (BlockId, BlockId) = (0, 0);
        loop {
            let insts = &func.blocks[block as usize];
            let phis = insts.iter().take_while(|i| matches!(i.code, Code::Phi { .. })).count();
            let incoming: Vec<(u32, Val)> = insts[..phis]
                .iter()
                .map(|i| self.phi(i, from, &locals).map(|v| (i.dst, v)))
                .collect::<Flow<_>>()?;
            for (dst, v) in incoming {
                locals[dst as usize] = v;
            }
            let mut next = None;
            for inst in &insts[phis..] {
                self.steps += 1;
                if self.steps > MAX_STEPS {
                    return self
                        .refuse("the function does too much for a compiled region: a loop that is too long to unroll");
                }
                self.site = std::ptr::from_ref(inst) as usize;
                if inst.at != 0 && inst.at != self.here.at && !silent {
                    self.enter(inst.at);
                }
                match &inst.code {
                    Code::Ret(v) => {
                        let v = match v {
                            Some(v) => self.operand(v, &locals)?,
                            None => Val::Undef,
                        };
                        for o in &mut self.objects[first_object..] {
                            if !o.heap && !o.global {
                                o.live = false;
                            }
                        }
                        return Ok(v);
                    }
                    Code::Br(to) => next = Some(*to),
                    Code::CondBr { cond, yes, no } => {
                        let cond = self.operand(cond, &locals)?;
                        next = Some(if self.decide_bool(&cond)? { *yes } else { *no });
                    }
                    Code::Switch { on, cases, default } => {
                        let on = self.operand(on, &locals)?;
                        next = Some(self.switch(&on, cases, *default)?);
                    }
                    Code::Unreachable => return Err(Stop::Replay),
                    Code::Call {
                        callee,
                        args,
                        normal,
                        noreturn,
                    } => {
                        let args = args
                            .iter()
                            .map(|a| self.operand(a, &locals))
                            .collect::<Flow<Vec<_>>>()?;
                        let callee = match callee {
                            Callee::Pointer(p) => Callee::Pointer(Operand::Const(self.callee(p, &locals)?, Ty::Ptr)),
                            other => other.clone(),
                        };
                        let v = self.call_site(inst, &callee, args, *noreturn)?;
                        locals[inst.dst as usize] = v;
                        next = *normal;
                    }
                    _ => locals[inst.dst as usize] = self.simple(inst, &locals)?,
                }
                if next.is_some() {
                    break;
                }
            }
            from = block;
            block = match next {
                Some(b) => b,
                None => return self.refuse("a block without an end"),
            };
        }
    }

    fn callee(&mut self, p: &Operand, locals: &[Val]) -> Flow<Const> {
        match self.operand(p, locals)? {
            Val::Ptr(Ptr {
                base: Base::Func(f),
                off: 0,
            }) => Ok(Const::Func(f)),
            _ => self.refuse(
                "a call whose target is known at run time only (a function pointer or trait object from outside)",
            ),
        }
    }

    fn call_site(&mut self, inst: &Inst, callee: &Callee, args: Vec<Val>, noreturn: bool) -> Flow<Val> {
        let symbol = match callee {
            Callee::Symbol(s) | Callee::Pointer(Operand::Const(Const::Func(s), _)) => s.clone(),
            Callee::Asm(text) if text.is_empty() => return Ok(Val::Undef),
            _ => return self.refuse("inline assembly"),
        };
        self.stack.push(self.here.clone());
        let result = self.dispatch(&symbol, args, &inst.ty, noreturn);
        self.here = self.stack.pop().expect("pushed above");
        result
    }

    fn phi(&mut self, inst: &Inst, from: BlockId, locals: &[Val]) -> Flow<Val> {
        let Code::Phi { from: ways } = &inst.code else {
            unreachable!("phis come first");
        };
        match ways.iter().find(|(b, _)| *b == from) {
            Some((_, v)) => self.operand(v, locals),
            None => self.refuse("a phi without a value for the block before"),
        }
    }

    fn simple(&mut self, inst: &Inst, locals: &[Val]) -> Flow<Val> {
        let ty = &inst.ty;
        match &inst.code {
            Code::Alloca { size, align } => {
                self.objects.push(Object::new(Some(*size), *align));
                Ok(Val::Ptr(Ptr::to(Base::Object(self.objects.len() - 1))))
            }
            Code::Load { ptr } => {
                let p = self.operand(ptr, locals)?;
                self.load(&p, ty)
            }
            Code::Store { value, ty, ptr } => {
                let v = self.operand(value, locals)?;
                let p = self.operand(ptr, locals)?;
                self.store(&p, &v, ty)?;
                Ok(Val::Undef)
            }
            Code::Gep { base, offset, dynamic } => {
                let mut p = self.operand(base, locals)?;
                p = self.offset(p, *offset)?;
                for (index, stride) in dynamic {
                    let i = self.operand(index, locals)?;
                    p = self.index(p, &i, *stride)?;
                }
                Ok(p)
            }
            Code::Binary { op, a, b } => {
                let (a, b) = (self.operand(a, locals)?, self.operand(b, locals)?);
                let r = self.arith().binary(op, &a, &b, ty);
                self.modelled(r)
            }
            Code::FNeg { a } => {
                let a = self.operand(a, locals)?;
                let r = self.arith().fneg(&a, ty);
                self.modelled(r)
            }
            Code::ICmp { pred, a, b, .. } => {
                let (a, b) = (self.operand(a, locals)?, self.operand(b, locals)?);
                let r = self.arith().icmp(pred, &a, &b);
                self.modelled(r)
            }
            Code::FCmp { pred, a, b } => {
                let (a, b) = (self.operand(a, locals)?, self.operand(b, locals)?);
                let r = self.arith().fcmp(pred, &a, &b);
                self.modelled(r)
            }
            Code::Cast { op, a, from } => {
                let a = self.operand(a, locals)?;
                let r = self.arith().cast(op, &a, from, ty);
                self.modelled(r)
            }
            Code::Select { cond, a, b } => {
                let (c, a, b) = (
                    self.operand(cond, locals)?,
                    self.operand(a, locals)?,
                    self.operand(b, locals)?,
                );
                if a == b {
                    return Ok(a);
                }
                if !matches!(c, Val::Int(..)) && (a.as_arg().is_none() || b.as_arg().is_none() || matches!(ty, Ty::Ptr))
                {
                    return Ok(if self.decide_bool(&c)? { a } else { b });
                }
                let r = self.arith().select(&c, &a, &b, ty);
                self.modelled(r)
            }
            Code::Extract { a, path } => {
                let mut v = self.operand(a, locals)?;
                for i in path {
                    v = match v {
                        Val::Agg(mut items) => items.swap_remove(*i as usize),
                        _ => Val::Undef,
                    };
                }
                Ok(v)
            }
            Code::Insert { a, v, path, .. } => {
                let (mut a, v) = (self.operand(a, locals)?, self.operand(v, locals)?);
                insert(&mut a, ty, path, v);
                Ok(a)
            }
            Code::Same { a } => self.operand(a, locals),
            Code::AtomicRmw { op, ptr, value } => {
                let (p, v) = (self.operand(ptr, locals)?, self.operand(value, locals)?);
                let old = self.load(&p, ty)?;
                let new = match op.as_str() {
                    "xchg" => v,
                    _ => {
                        let r = self.arith().binary(op, &old, &v, ty);
                        self.modelled(r)?
                    }
                };
                self.store(&p, &new, ty)?;
                Ok(old)
            }
            Code::CmpXchg { ptr, expected, new, ty } => {
                let (p, e, n) = (
                    self.operand(ptr, locals)?,
                    self.operand(expected, locals)?,
                    self.operand(new, locals)?,
                );
                let old = self.load(&p, ty)?;
                let same = self.arith().icmp("eq", &old, &e);
                let same = self.modelled(same)?;
                let done = self.decide_bool(&same)?;
                if done {
                    self.store(&p, &n, ty)?;
                }
                Ok(Val::Agg(vec![old, Val::bool(done)]))
            }
            Code::Nop => Ok(Val::Undef),
            Code::Other(name) => self.refuse(format!(
                "the instruction `{name}` is not supported in a tensor function"
            )),
            Code::Ret(_)
            | Code::Br(_)
            | Code::CondBr { .. }
            | Code::Switch { .. }
            | Code::Unreachable
            | Code::Call { .. }
            | Code::Phi { .. } => unreachable!("handled by the loop"),
        }
    }

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
                let object = self.global(s)?;
                Val::Ptr(Ptr {
                    base: Base::Object(object),
                    off: *off,
                })
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

    /// The object of a global, made on first use.
    fn global(&mut self, symbol: &Symbol) -> Flow<usize> {
        if let Some(o) = self.globals.get(symbol) {
            return Ok(*o);
        }
        let Some(g) = self.loader.global(symbol) else {
            return self.refuse(format!(
                "it uses the global `{symbol}`, which is defined outside of the program's Rust code"
            ));
        };
        if !g.constant {
            return self.refuse(format!(
                "it uses the mutable {} `{symbol}`: a compiled region cannot share it yet; pass the value as an argument",
                if g.thread_local { "thread-local" } else { "static" }
            ));
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
        Ok(index)
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
            other => return self.refuse(format!("address arithmetic on {other:?}")),
        })
    }

    fn index(&mut self, p: Val, i: &Val, stride: i64) -> Flow<Val> {
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

    /// Arithmetic at the current place.
    pub(crate) fn arith(&mut self) -> Scalars<'_> {
        let loc = self.loc();
        Scalars {
            trace: &mut self.trace,
            loc,
        }
    }

    /// A value as the argument of a scalar instruction.
    pub(crate) fn arg(&mut self, v: &Val) -> Flow<Arg> {
        let r = self.arith().arg(v);
        match r {
            Ok(a) => Ok(a),
            Err(Unmodelled(what)) => self.refuse(what),
        }
    }

    pub(crate) fn modelled(&mut self, r: Result<Val, Unmodelled>) -> Flow<Val> {
        match r {
            Ok(v) => Ok(v),
            Err(Unmodelled(what)) => self.refuse(what),
        }
    }

    pub(crate) fn plain<T>(&mut self, r: Result<T, Odd>) -> Flow<T> {
        match r {
            Ok(v) => Ok(v),
            Err(Odd(what)) => self.refuse(what),
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
            return self.refuse(format!("a read through {p:?}"));
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

    fn load_object(&mut self, o: usize, off: i64, ty: &Ty) -> Flow<Val> {
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
    fn retype(&mut self, v: Val, ty: &Ty) -> Flow<Val> {
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
            return self.refuse(format!("a read of {ty:?} from memory of the caller"));
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
        let done = self.objects[o].write(off, v, ty);
        self.plain(done)
    }

    /// The object and offset of a write of `n` bytes.
    pub(crate) fn writable(&mut self, p: &Val, n: u64) -> Flow<(usize, u64)> {
        let Val::Ptr(ptr) = p else {
            return self.refuse(format!("a write through {p:?}"));
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
            return self.refuse(format!("a copy from {from:?}"));
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

    /// A length or size that must be a number to go on.
    pub(crate) fn number(&mut self, v: &Val) -> Flow<i64> {
        match v {
            Val::Int(x, n) => Ok(crate::value::sign_extend(*x, *n) as i64),
            Val::Sym(s, ty) => self.decide_value(*s, &ty.clone()),
            Val::Ptr(Ptr {
                base: Base::Absolute,
                off,
            }) => Ok(*off),
            other => self.refuse(format!("{other:?} where a number is needed")),
        }
    }

    /// Is a condition true? Asks for a decision if only run time knows.
    pub(crate) fn decide_bool(&mut self, cond: &Val) -> Flow<bool> {
        match cond {
            Val::Int(c, _) => Ok(*c != 0),
            Val::Sym(v, _) => {
                let choice = self.decide(*v, Some(&[1]))?;
                let taken = choice == Some(1);
                self.trace.known.insert(*v, i64::from(taken));
                Ok(taken)
            }
            Val::Undef => self.refuse("a branch on a value that was never set"),
            other => self.refuse(format!("a branch on {other:?}")),
        }
    }

    fn switch(&mut self, on: &Val, cases: &[(u128, BlockId)], default: BlockId) -> Flow<BlockId> {
        let find = |x: u128| cases.iter().find(|(c, _)| *c == x).map_or(default, |(_, b)| *b);
        match on {
            Val::Int(x, _) => Ok(find(*x)),
            Val::Ptr(Ptr {
                base: Base::Absolute,
                off,
            }) => Ok(find(*off as u64 as u128)),
            Val::Sym(v, ty) => {
                let Ty::Int(n) = ty else {
                    return self.refuse("a switch on a float");
                };
                let ways: Vec<i64> = cases
                    .iter()
                    .map(|(c, _)| crate::value::sign_extend(*c, *n) as i64)
                    .collect();
                Ok(match self.decide(*v, Some(&ways))? {
                    Some(x) => {
                        self.trace.known.insert(*v, x);
                        find(crate::value::mask(x as u128, *n))
                    }
                    None => default,
                })
            }
            other => self.refuse(format!("a switch on {other:?}")),
        }
    }

    /// The value of a scalar that must be concrete.
    pub(crate) fn decide_value(&mut self, v: Value, _ty: &Ty) -> Flow<i64> {
        match self.decide(v, None)? {
            Some(x) => {
                self.trace.known.insert(v, x);
                Ok(x)
            }
            None => self.refuse("a number that no decision fixes"),
        }
    }

    fn decide(&mut self, on: Value, ways: Option<&[i64]>) -> Flow<Choice> {
        if let Some(x) = self.trace.known.get(&on) {
            let listed = ways.is_none_or(|w| w.contains(x));
            return Ok(listed.then_some(*x));
        }
        if self.trace.depends_on_data(on) {
            return self.refuse(
                "control flow depends on the elements of a tensor; keep the decision in tensor ops (`where_self`, \
                 `maximum`, masks) or make it outside of the differentiable function",
            );
        }
        *self.asked.entry(self.site).or_default() += 1;
        match self.prefix.get(self.taken) {
            Some(choice) => {
                self.taken += 1;
                Ok(*choice)
            }
            None => Err(Stop::Undecided {
                on,
                ways: ways.map(<[i64]>::to_vec),
            }),
        }
    }

    /// Moves to a place of the current function.
    fn enter(&mut self, at: u32) {
        let loader = self.loader;
        let own = self.places.entry(at).or_insert_with(|| {
            let locs = loader.locations(at);
            locs.iter()
                .find(|l| is_user(l))
                .or(locs.first())
                .map(|l| Rc::new(l.clone()))
        });
        let user = own.clone().filter(|l| is_user(l));
        let outer = self.stack.last().and_then(|f| f.user.clone());
        self.here = Frame {
            at,
            user: user.or(outer).or_else(|| own.clone()),
        };
    }

    /// The current place in the user's own source: the innermost frame that is not a library's.
    pub(crate) fn loc(&self) -> Option<Rc<Loc>> {
        self.here.user.clone()
    }

    fn frames(&self) -> Vec<Loc> {
        let numbers = std::iter::once(&self.here).chain(self.stack.iter().rev()).map(|f| f.at);
        numbers.flat_map(|n| self.loader.locations(n).to_vec()).collect()
    }

    /// Records that something cannot be raised, and stops.
    pub(crate) fn refuse<T>(&mut self, message: impl Into<String>) -> Flow<T> {
        let at: Vec<Loc> = self.frames().into_iter().filter(is_user).take(8).collect();
        let refusal = Refusal {
            message: message.into(),
            at,
        };
        if !self.refusals.contains(&refusal) {
            self.refusals.push(refusal);
        }
        Err(Stop::Refused)
    }
}

/// Is the file part of the user's own code (and not of a registry crate or the standard library)?
pub(crate) fn is_user(loc: &Loc) -> bool {
    !(loc.file.contains("/registry/src/") || loc.file.starts_with("/rustc/") || loc.file.starts_with("library/"))
        && loc.line > 0
}

/// Zero of a type.
pub(crate) fn zero(ty: &Ty) -> Val {
    match ty {
        Ty::Int(n) => Val::int(0, *n),
        Ty::F32 => Val::F32(0.0),
        Ty::F64 => Val::F64(0.0),
        Ty::Ptr => Val::null(),
        Ty::Struct(..) | Ty::Array(..) => Val::Agg(
            (0..ty.elements())
                .map(|i| zero(ty.element(i).expect("in range").1))
                .collect(),
        ),
        Ty::Void | Ty::Other(..) => Val::Undef,
    }
}

/// Replaces one element of an aggregate.
fn insert(a: &mut Val, ty: &Ty, path: &[u32], v: Val) {
    let Some((first, rest)) = path.split_first() else {
        *a = v;
        return;
    };
    if !matches!(a, Val::Agg(_)) {
        *a = Val::Agg(vec![Val::Undef; ty.elements()]);
    }
    if let Val::Agg(items) = a {
        let element = ty.element(*first as usize).map_or(Ty::Void, |(_, t)| t.clone());
        insert(&mut items[*first as usize], &element, rest, v);
    }
}
