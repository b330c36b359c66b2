//! Functions made by hand: an ordinary Rust function, its shim, and the program that the pass would make of it.

use cotangent_graph::ir::{Arg, Graph, Type, Value};
use cotangent_graph::ops::{Op, Results};
use cotangent_graph::program::{Base, Datum, How, Image, Leaf as Path, Program, Tree, Write};
use cotangent_runtime::Error;
use cotangent_runtime::differentiable::{Leaf, LeafKind, Number, Place};
use cotangent_runtime::engine::{Description, Function, Param, Run};
use cotangent_runtime::entry::Shim;
use std::mem::MaybeUninit;
use tch::{Kind, Tensor};

/// An open graph under construction.
pub struct Open {
    pub graph: Graph,
    pub image: Image,
}

impl Open {
    pub fn new() -> Self {
        Self {
            graph: Graph::new("f"),
            image: Image::default(),
        }
    }

    fn push(&mut self, name: &str, args: impl Into<Vec<Arg>>, ty: Type) -> Vec<Value> {
        let mut args = args.into();
        let op = Op::named(name);
        args.resize(op.params.len(), Arg::None);
        let count = match op.results {
            Results::Count(n) => n,
            Results::List => 1,
        };
        self.graph.push(op, args, vec![ty; count], None)
    }

    /// A scalar or pointer op.
    pub fn scalar(&mut self, name: &str, args: impl Into<Vec<Arg>>, ty: Type) -> Value {
        self.push(name, args, ty)[0]
    }

    /// An op on tensors with one result.
    pub fn op(&mut self, name: &str, args: impl Into<Vec<Arg>>) -> Value {
        self.push(name, args, Type::Tensor(None))[0]
    }

    /// Address of argument `i`.
    pub fn arg(&mut self, i: i64) -> Value {
        self.scalar("host.arg", [Arg::Int(i)], Type::Ptr)
    }

    pub fn load(&mut self, p: Value, offset: i64, ty: Type) -> Value {
        self.scalar("host.load", [p.into(), Arg::Int(offset)], ty)
    }

    /// The tensor that argument `i`, a `&Tensor`, refers to.
    pub fn tensor(&mut self, i: i64) -> Value {
        let p = self.arg(i);
        let tensor = self.load(p, 0, Type::Ptr);
        let handle = self.load(tensor, 0, Type::Ptr);
        self.scalar("host.tensor", [handle.into()], Type::Tensor(None))
    }

    /// The float that argument `i` is.
    pub fn float(&mut self, i: i64) -> Value {
        let p = self.arg(i);
        self.load(p, 0, Type::Float(64))
    }

    /// Returns a tensor, at an offset in the result.
    pub fn give(&mut self, offset: i64, v: Value) {
        self.graph.outputs.push(v);
        let k = self.graph.outputs.len() - 1;
        self.write(Base::Out, offset, Datum::Tensor(k));
    }

    pub fn write(&mut self, base: Base, offset: i64, datum: Datum) {
        self.image.writes.push(Write {
            base,
            offset,
            datum,
            how: How::Store,
        });
    }

    /// A function whose only path this is. Parameters: name and whether it is differentiated; a name that starts with
    /// `mut ` is behind `&mut`.
    pub fn function(self, params: &[(&str, bool)], ret: &str, shim: Shim) -> &'static Function {
        let params: Vec<(&str, &str, bool)> = params.iter().map(|(name, wrt)| (*name, "", *wrt)).collect();
        self.described("tests::f", &params, ret, shim)
    }

    /// A function with types, whose original always fails. Parameters: name, type, and whether it is differentiated.
    pub fn typed(self, name: &str, params: &[(&str, &str, bool)], ret: &str) -> &'static Function {
        unsafe extern "C-unwind" fn none(_: *const *const (), _: *mut ()) {
            panic!("The size of tensor a must match the size of tensor b");
        }
        self.described(name, params, ret, none)
    }

    fn described(self, name: &str, params: &[(&str, &str, bool)], ret: &str, shim: Shim) -> &'static Function {
        let program = Program {
            key: name.into(),
            description: String::new(),
            shim: String::new(),
            tree: Tree::Leaf(0),
            unlowered: vec![],
            leaves: vec![Path {
                graph: self.graph,
                image: self.image,
            }],
        };
        let params = params.iter().map(|(name, ty, wrt)| Param {
            name: name.trim_start_matches("mut ").into(),
            ty: (*ty).into(),
            wrt: *wrt,
            mutable: name.starts_with("mut "),
        });
        let description = Description {
            name: name.into(),
            file: file!().into(),
            line: 1,
            params: params.collect(),
            ret: ret.into(),
        };
        Function::with_program(description, Box::leak(Box::new(program)), shim)
    }
}

/// The shim of a function over references to tensors.
macro_rules! shim {
    ($f:expr, $($i:literal: $ty:ty),+) => {{
        unsafe extern "C-unwind" fn shim(args: *const *const (), out: *mut ()) {
            // SAFETY: the engine passes the addresses of arguments of these types.
            let result = unsafe { $f($((*args.add($i)).cast::<$ty>().read()),+) };
            $crate::support::write(out, result);
        }
        shim as cotangent_runtime::entry::Shim
    }};
}

/// Leaves a result in its place.
pub fn write<R>(out: *mut (), result: R) {
    // SAFETY: shims pass on the engine's place for a result of the function's type.
    unsafe { out.cast::<R>().write(result) }
}

/// An argument of a call: where it lies, and its leaf if it is one.
pub trait Argument {
    fn address(&self) -> *const ();
    fn leaf(&self, param: usize) -> Leaf;
}

impl Argument for &Tensor {
    fn address(&self) -> *const () {
        std::ptr::from_ref(self).cast()
    }
    fn leaf(&self, param: usize) -> Leaf {
        Leaf {
            param,
            place: Place::Tensor(*self),
        }
    }
}

impl Argument for f64 {
    fn address(&self) -> *const () {
        std::ptr::from_ref(self).cast()
    }
    fn leaf(&self, param: usize) -> Leaf {
        Leaf {
            param,
            place: Place::F64(self),
        }
    }
}

fn addresses(args: &[&dyn Argument]) -> Vec<*const ()> {
    args.iter().map(|a| a.address()).collect()
}

fn wrt(function: &Function, args: &[&dyn Argument]) -> Vec<Leaf> {
    let params = function.description().params.iter().zip(args).enumerate();
    params
        .filter(|(_, (p, _))| p.wrt)
        .map(|(i, (_, a))| a.leaf(i))
        .collect()
}

/// What a function returns.
pub trait Returned: Sized {
    fn tensors(&self) -> Vec<&Tensor>;
}

impl Returned for Tensor {
    fn tensors(&self) -> Vec<&Tensor> {
        vec![self]
    }
}

/// Two tensors, one after the other.
#[repr(C)]
pub struct Two(pub Tensor, pub Tensor);

impl Returned for Two {
    fn tensors(&self) -> Vec<&Tensor> {
        vec![&self.0, &self.1]
    }
}

/// `f::try_vjp`. Final values of `&mut` parameters are outputs after the result's own.
pub fn vjp<R: Returned>(function: &'static Function, args: &[&dyn Argument]) -> Result<(R, Run), Error> {
    let mut out = MaybeUninit::<R>::uninit();
    let leaves = wrt(function, args);
    // SAFETY: the arguments and the result are those of the function.
    let mut run = unsafe { function.forward(&addresses(args), out.as_mut_ptr().cast(), &leaves) }?;
    // SAFETY: the call succeeded. Its outputs are known by where they lie now.
    let result = unsafe { out.assume_init_ref() };
    let mut outputs: Vec<Leaf> = result.tensors().iter().map(|t| t.leaf(Leaf::RETURN)).collect();
    let params = function.description().params.iter().zip(args).enumerate();
    outputs.extend(params.filter(|(_, (p, _))| p.mutable).map(|(i, (_, a))| a.leaf(i)));
    let bound = run.outputs(&outputs);
    // SAFETY: the call succeeded.
    let result = unsafe { out.assume_init() };
    bound?;
    Ok((result, run))
}

/// `f::try_autograd`.
pub fn autograd<R>(function: &'static Function, args: &[&dyn Argument]) -> Result<R, Error> {
    let mut out = MaybeUninit::<R>::uninit();
    // SAFETY: the arguments and the result are those of the function.
    unsafe { function.autograd(&addresses(args), out.as_mut_ptr().cast(), &wrt(function, args)) }?;
    // SAFETY: the call succeeded.
    Ok(unsafe { out.assume_init() })
}

/// Cotangents for seeds of tensors; undefined is none.
pub fn pull(run: &Run, seeds: &[Tensor]) -> Result<Vec<Tensor>, Error> {
    let seeds = seeds.iter().map(|t| Number::Tensor(share(t))).collect();
    let tensor = |n: Number| match n {
        Number::Tensor(t) => t,
        other => panic!("{other:?} is no tensor ({:?} wanted)", LeafKind::Tensor),
    };
    Ok(run.pullback(seeds)?.into_iter().map(tensor).collect())
}

pub fn share(t: &Tensor) -> Tensor {
    if t.defined() { t.shallow_clone() } else { Tensor::new() }
}

/// Pseudo-random doubles between -1 and 1.
pub fn random(seed: i64, shape: &[i64]) -> Tensor {
    let n: i64 = shape.iter().product();
    let values: Vec<f64> = (0..n)
        .map(|i| ((seed * 7919 + i * 104_729 + 13) as f64 * 0.618).sin())
        .collect();
    Tensor::from_slice(&values).reshape(shape)
}

/// A leaf of LibTorch's graph with those values.
pub fn leaf(t: &Tensor) -> Tensor {
    t.copy().detach().set_requires_grad(true)
}

/// LibTorch's own gradients of the outputs with these seeds.
pub fn native(outputs: &[&Tensor], seeds: &[Tensor], inputs: &[&Tensor]) -> Vec<Tensor> {
    let terms = outputs.iter().zip(seeds).map(|(y, s)| (*y * s).sum(Kind::Double));
    let total = terms.reduce(|a, b| a + b).expect("an output");
    gradients(&total, inputs, true, false)
}

/// `torch.autograd.grad` of a sum over one output.
pub fn gradients(y: &Tensor, inputs: &[&Tensor], keep: bool, create: bool) -> Vec<Tensor> {
    Tensor::run_backward(&[y], inputs, keep, create)
}

#[track_caller]
pub fn same(a: &Tensor, b: &Tensor) {
    assert_eq!(a.defined(), b.defined(), "{a:?} against {b:?}");
    if a.defined() {
        assert_eq!((a.size(), a.kind()), (b.size(), b.kind()));
        let off = f64::try_from((a.detach() - b.detach()).abs().sum(Kind::Double)).unwrap();
        assert!(off < 1e-12, "{a:?} and {b:?} differ by {off}: {} against {}", a, b);
    }
}

#[track_caller]
pub fn same_all(a: &[Tensor], b: &[Tensor]) {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).for_each(|(a, b)| same(a, b));
}

/// The first line of LibTorch's message: without the stack of C++ calls, and without what tch puts before it.
pub fn headline(text: &str) -> String {
    let text = text.strip_prefix("Internal torch error: ").unwrap_or(text);
    // Unwrapping an error shows it with its line breaks escaped.
    let text = text.split("\\n").next().unwrap_or_default();
    text.lines().next().unwrap_or_default().to_owned()
}
