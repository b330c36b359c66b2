//! The evaluator's loop: frames, blocks, instructions.

mod access;
mod atomic;
mod decide;
mod inactive;
mod place;

use inactive::Inactive;
pub use place::is_user;

use self::atomic::Updated;
use crate::code::{BlockId, Callee, Code, Const, Func, Inst, Loader, Operand, Symbol, Ty};
use crate::explore::Request;
use crate::memory::{Object, Odd};
use crate::scalar::{Scalars, Unmodelled};
use crate::trace::Trace;
use crate::value::{Base, Ptr, Val};
use cotangent_graph::ir::{Arg, Loc, Value};
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
    /// Unfreed handles of each tensor.
    pub(crate) held: HashMap<Value, u32>,
    /// The inactive functions that the evaluation is in.
    pub(crate) inactive: Vec<Inactive>,
    /// The marker of an inactive function was called just now.
    pub(crate) marked_inactive: bool,
    /// Tensors and floats of the result whose layout is asked for, with their offsets.
    pub(crate) leaves: Vec<(&'static str, i64)>,
    pub(crate) refusals: Vec<Refusal>,
    /// The evaluation looks for a request and ends at the marker.
    pub(crate) seeks_request: bool,
    pub(crate) request: Option<Request>,
    globals: HashMap<Symbol, usize>,
    /// Atomic updates of memory that other threads see, in order.
    updates: Vec<Updated>,
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
    pub(crate) site: usize,
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
            held: HashMap::new(),
            inactive: vec![],
            marked_inactive: false,
            leaves: vec![],
            refusals: vec![],
            seeks_request: false,
            request: None,
            globals: HashMap::new(),
            updates: vec![],
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
        let mut inactive = false;
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
                        let v = self.returned(v, inactive)?;
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
                        if self.marked_inactive && !silent {
                            inactive = true;
                            self.enter_inactive(first_object);
                        }
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
                self.update(op, &p, &v, ty)
            }
            Code::CmpXchg { ptr, expected, new, ty } => {
                let p = self.operand(ptr, locals)?;
                let (e, n) = (self.operand(expected, locals)?, self.operand(new, locals)?);
                self.exchange(&p, &e, &n, ty)
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
