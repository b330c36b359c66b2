//! The functions that the tests call, each with the program that the pass would make of it.

use crate::support::{Open, Two};
use cotangent_graph::ir::Arg;
use cotangent_runtime::engine::Function;
use tch::{Kind, Tensor};

/// `tanh(x w) v + 1`.
pub fn net(x: &Tensor, w: &Tensor, v: &Tensor) -> Tensor {
    x.matmul(w).tanh().matmul(v) + 1.0
}

pub fn compiled_net() -> &'static Function {
    let mut f = Open::new();
    let (x, w, v) = (f.tensor(0), f.tensor(1), f.tensor(2));
    let h = f.op("matmul", [x.into(), w.into()]);
    let h = f.op("tanh", [h.into()]);
    let y = f.op("matmul", [h.into(), v.into()]);
    let y = f.op("add_scalar", [y.into(), Arg::Float(1.0)]);
    f.give(0, y);
    let shim = shim!(net, 0: &Tensor, 1: &Tensor, 2: &Tensor);
    f.function(&[("x", true), ("w", true), ("v", true)], "Tensor", shim)
}

/// Two outputs: `exp(x) w`, and `x` summed, which does not depend on `w`.
pub fn pair(x: &Tensor, w: &Tensor) -> Two {
    Two(x.exp() * w, x.sum(Kind::Double))
}

pub fn compiled_pair() -> &'static Function {
    let mut f = Open::new();
    let (x, w) = (f.tensor(0), f.tensor(1));
    let e = f.op("exp", [x.into()]);
    let y = f.op("mul", [e.into(), w.into()]);
    let s = f.op("sum", [x.into(), Arg::Kind(cotangent_graph::ir::Kind::F64)]);
    f.give(0, y);
    f.give(8, s);
    let shim = shim!(pair, 0: &Tensor, 1: &Tensor);
    f.function(&[("x", true), ("w", true)], "(Tensor, Tensor)", shim)
}

/// `x sin(buffer)` summed; not differentiated for the buffer.
pub fn with_buffer(x: &Tensor, buffer: &Tensor) -> Tensor {
    (x * buffer.sin()).sum(Kind::Double)
}

pub fn compiled_with_buffer() -> &'static Function {
    let mut f = Open::new();
    let (x, buffer) = (f.tensor(0), f.tensor(1));
    let s = f.op("sin", [buffer.into()]);
    let y = f.op("mul", [x.into(), s.into()]);
    let y = f.op("sum", [y.into(), Arg::Kind(cotangent_graph::ir::Kind::F64)]);
    f.give(0, y);
    let shim = shim!(with_buffer, 0: &Tensor, 1: &Tensor);
    f.function(&[("x", true), ("buffer", false)], "Tensor", shim)
}

/// `k x²`.
pub fn scaled(x: &Tensor, k: f64) -> Tensor {
    x * x * k
}

pub fn compiled_scaled() -> &'static Function {
    let mut f = Open::new();
    let (x, k) = (f.tensor(0), f.float(1));
    let y = f.op("mul", [x.into(), x.into()]);
    let y = f.op("mul_scalar", [y.into(), k.into()]);
    f.give(0, y);
    let shim = shim!(scaled, 0: &Tensor, 1: f64);
    f.function(&[("x", true), ("k", true)], "Tensor", shim)
}

/// `Σ exp(x² w) + tanh(x w) / 2`.
pub fn energy(x: &Tensor, w: &Tensor) -> Tensor {
    ((x * x * w).exp() + x.matmul(w).tanh() * 0.5).sum(Kind::Double)
}

pub fn compiled_energy() -> &'static Function {
    let mut f = Open::new();
    let (x, w) = (f.tensor(0), f.tensor(1));
    let a = f.op("mul", [x.into(), x.into()]);
    let a = f.op("mul", [a.into(), w.into()]);
    let a = f.op("exp", [a.into()]);
    let b = f.op("matmul", [x.into(), w.into()]);
    let b = f.op("tanh", [b.into()]);
    let b = f.op("mul_scalar", [b.into(), Arg::Float(0.5)]);
    let y = f.op("add", [a.into(), b.into()]);
    let y = f.op("sum", [y.into(), Arg::Kind(cotangent_graph::ir::Kind::F64)]);
    f.give(0, y);
    let shim = shim!(energy, 0: &Tensor, 1: &Tensor);
    f.function(&[("x", true), ("w", true)], "Tensor", shim)
}

/// A view of the first argument, and a product.
pub fn window(x: &Tensor, k: &Tensor) -> Two {
    Two(x.narrow(0, 1, 2), x * k)
}

pub fn compiled_window() -> &'static Function {
    let mut f = Open::new();
    let (x, k) = (f.tensor(0), f.tensor(1));
    let view = f.op("narrow", [x.into(), Arg::Int(0), Arg::Int(1), Arg::Int(2)]);
    let y = f.op("mul", [x.into(), k.into()]);
    f.give(0, view);
    f.give(8, y);
    let shim = shim!(window, 0: &Tensor, 1: &Tensor);
    f.function(&[("x", true), ("k", true)], "(Tensor, Tensor)", shim)
}

/// One value returned twice, and then its transpose.
pub fn doubled(x: &Tensor) -> Two {
    let y = x.exp();
    Two(y.transpose(0, 1), y)
}

pub fn compiled_doubled() -> &'static Function {
    let mut f = Open::new();
    let x = f.tensor(0);
    let y = f.op("exp", [x.into()]);
    let t = f.op("transpose", [y.into(), Arg::Int(0), Arg::Int(1)]);
    f.give(0, t);
    f.give(8, y);
    f.function(&[("x", true)], "(Tensor, Tensor)", shim!(doubled, 0: &Tensor))
}

/// The argument itself.
pub fn unchanged(x: &Tensor) -> Tensor {
    x.shallow_clone()
}

pub fn compiled_unchanged() -> &'static Function {
    let mut f = Open::new();
    let x = f.tensor(0);
    f.give(0, x);
    f.function(&[("x", true)], "Tensor", shim!(unchanged, 0: &Tensor))
}

/// Updates `state` in place, and sums its product with `x`.
pub fn decay(state: &mut Tensor, x: &Tensor) -> Tensor {
    let _ = state.g_mul_scalar_(0.9);
    let _ = state.g_mul_(&x.cos());
    let _ = state.g_add_(x);
    (&*state * x).sum(Kind::Double)
}

pub fn compiled_decay() -> &'static Function {
    let mut f = Open::new();
    let (state, x) = (f.tensor(0), f.tensor(1));
    let _ = f.op("mul_scalar_", [state.into(), Arg::Float(0.9)]);
    let c = f.op("cos", [x.into()]);
    let _ = f.op("mul_", [state.into(), c.into()]);
    let _ = f.op("add_", [state.into(), x.into()]);
    let y = f.op("mul", [state.into(), x.into()]);
    let y = f.op("sum", [y.into(), Arg::Kind(cotangent_graph::ir::Kind::F64)]);
    f.give(0, y);
    let shim = shim!(decay, 0: &mut Tensor, 1: &Tensor);
    f.function(&[("mut state", true), ("x", true)], "Tensor", shim)
}

/// Multiplies, after it has moved a buffer towards the product; the buffer is behind a shared reference.
pub fn counted(x: &Tensor, w: &Tensor, mean: &Tensor) -> Tensor {
    let y = x * w;
    let mut buffer = mean.shallow_clone();
    let _ = buffer.g_mul_scalar_(0.9);
    let _ = buffer.g_add_(&y.detach());
    y - &buffer
}

pub fn compiled_counted() -> &'static Function {
    let mut f = Open::new();
    let (x, w, mean) = (f.tensor(0), f.tensor(1), f.tensor(2));
    let y = f.op("mul", [x.into(), w.into()]);
    let _ = f.op("mul_scalar_", [mean.into(), Arg::Float(0.9)]);
    let d = f.op("detach", [y.into()]);
    let _ = f.op("add_", [mean.into(), d.into()]);
    let out = f.op("sub", [y.into(), mean.into()]);
    f.give(0, out);
    let shim = shim!(counted, 0: &Tensor, 1: &Tensor, 2: &Tensor);
    f.function(&[("x", true), ("w", true), ("mean", false)], "Tensor", shim)
}

/// Multiplies `state` by its exponential in place and returns a view of it.
pub fn swollen(state: &mut Tensor) -> Tensor {
    let e = state.exp();
    let _ = state.g_mul_(&e);
    state.narrow(0, 0, 1)
}

pub fn compiled_swollen() -> &'static Function {
    let mut f = Open::new();
    let state = f.tensor(0);
    let e = f.op("exp", [state.into()]);
    let _ = f.op("mul_", [state.into(), e.into()]);
    let view = f.op("narrow", [state.into(), Arg::Int(0), Arg::Int(0), Arg::Int(1)]);
    f.give(0, view);
    f.function(&[("mut state", true)], "Tensor", shim!(swollen, 0: &mut Tensor))
}

/// A function of LibTorch's for which Cotangent has no rule of its own.
pub fn bessel(x: &Tensor) -> Tensor {
    (x * 2.0).i0()
}

pub fn compiled_bessel() -> &'static Function {
    let mut f = Open::new();
    let x = f.tensor(0);
    let y = f.op("mul_scalar", [x.into(), Arg::Float(2.0)]);
    let y = f.op("i0", [y.into()]);
    f.give(0, y);
    f.function(&[("x", true)], "Tensor", shim!(bessel, 0: &Tensor))
}
