//! Modules of entry points for all kinds of signatures: they type-check in a crate that forbids unsafe code, and without
//! the pass every call says so, naming the function and the command.
#![forbid(unsafe_code)]
#![allow(
    clippy::boxed_local,
    clippy::if_same_then_else,
    reason = "the signatures are what is tested, the bodies do nothing of use"
)]

use cotangent::{Differentiable, Error, differentiable};
use tch::{Kind, Tensor};

/// Checks a call's error: the function it names, and the way out.
fn refused<T>(result: Result<T, Error>, function: &str) {
    let text = result.err().expect("the pass did not build this").to_string();
    assert!(text.contains(&format!("`{}::{function}`", module_path!())), "{text}");
    assert!(text.contains("`cargo cotangent build`"), "{text}");
}

#[derive(Differentiable)]
struct Layer {
    w: Tensor,
    b: Option<Tensor>,
    width: usize,
    #[constant]
    activation: Activation,
}

#[derive(Clone)]
enum Activation {
    Relu,
    Tanh,
}

#[derive(Differentiable)]
enum Net {
    Empty,
    One(Layer),
    Many { layers: Vec<Layer>, scale: f64 },
}

/// Named as the types of the module are.
#[derive(Differentiable)]
struct Seed(f64, [f32; 2]);

#[differentiable]
fn scaled(x: &Tensor, k: f64) -> Tensor {
    x * k
}

#[differentiable(wrt(w))]
fn masked(w: &Tensor, _: &Tensor, (p, train): (f64, bool)) -> Tensor {
    w.dropout(p, train)
}

#[differentiable]
fn slices(xs: &[Tensor], pairs: &[(&Tensor, f64)], n: usize, name: &str) -> Vec<Tensor> {
    assert!(name.len() < n + 100);
    xs.iter().zip(pairs).map(|(x, (y, k))| x * *y * *k).collect()
}

#[differentiable]
fn fallible(x: &Tensor) -> Result<Tensor, tch::TchError> {
    x.f_relu()
}

#[differentiable]
fn optional(x: f64) -> Option<f64> {
    (x > 0.0).then(|| x.ln())
}

#[differentiable]
fn updated(state: &mut Tensor, sums: &mut [f64], count: &mut usize, x: &Tensor) -> f64 {
    *state += x;
    *count += 1;
    sums[0]
}

#[differentiable]
fn written(x: &[f32; 3], out: &mut [f32]) {
    out.copy_from_slice(x);
}

/// A kernel: tensors stand for its slices and floats under `autograd`.
#[differentiable]
fn blended(x: &[f64], pair: [f64; 2], three: &[f32; 3], own: Vec<f64>, k: f64, n: usize) -> (f64, Vec<f64>) {
    (k * x[n] + pair[0] + f64::from(three[1]), own)
}

#[differentiable]
fn consumed(net: Net, own: Seed, boxed: Box<f64>) -> Seed {
    match net {
        Net::Empty => own,
        Net::One(layer) => Seed(layer.width as f64, own.1),
        Net::Many { scale, layers } => Seed(scale * *boxed * layers.len() as f64, own.1),
    }
}

#[differentiable(wrt(x))]
fn generic<'a, F, const N: usize>(x: &'a Tensor, f: F, times: [u8; N]) -> Tensor
where
    F: Fn(&Tensor) -> Tensor + 'a,
{
    times.iter().fold(x.shallow_clone(), |x, _| f(&x))
}

#[differentiable]
fn borrowed<'a>(x: &'a Tensor, y: &Tensor) -> &'a Tensor {
    if y.defined() { x } else { x }
}

#[differentiable]
impl Layer {
    #[differentiable]
    fn forward(&self, x: &Tensor) -> Tensor {
        let y = x.matmul(&self.w);
        let y = self.b.as_ref().map_or(y.shallow_clone(), |b| &y + b);
        match self.activation {
            Activation::Relu => y.relu(),
            Activation::Tanh => y.tanh(),
        }
    }

    #[differentiable(wrt(self))]
    fn scale_all(&mut self, by: f64) {
        self.w *= by;
    }

    fn like(&self) -> Layer {
        Layer {
            w: self.w.ones_like(),
            b: None,
            width: 2,
            activation: Activation::Tanh,
        }
    }
}

mod inner {
    //! Paths of the signature are those of the function's own module.
    use cotangent::differentiable;

    #[differentiable]
    pub(super) fn outside(layer: &super::Layer, k: self::Float) -> tch::Tensor {
        &layer.w * k
    }

    pub(super) type Float = f64;
}

fn layer() -> Layer {
    Layer {
        w: Tensor::from_slice(&[1.0, 2.0]),
        b: None,
        width: 1,
        activation: Activation::Relu,
    }
}

#[test]
fn every_entry_point_says_that_the_pass_did_not_run() {
    let x = Tensor::from_slice(&[1.0, 2.0]);
    refused(scaled::try_value_and_grad(&x, 2.0), "scaled");
    refused(scaled::try_grad(&x, 2.0), "scaled");
    refused(scaled::try_vjp(&x, 2.0), "scaled");
    refused(scaled::try_autograd(&x, 2.0), "scaled");
    let tangents = scaled::Tangents {
        x: x.ones_like(),
        k: 1.0,
    };
    refused(scaled::try_jvp(&x, 2.0, tangents), "scaled");
}

#[test]
fn the_plain_call_panics_with_the_same_text() {
    let panic = std::panic::catch_unwind(|| optional::vjp(1.0)).expect_err("it panics");
    let text = panic.downcast_ref::<String>().expect("a formatted message");
    assert_eq!(*text, optional::try_vjp(1.0).expect_err("it fails").to_string());
}

#[test]
fn signatures_of_every_kind_have_entry_points() {
    let x = Tensor::from_slice(&[1.0, 2.0]);
    refused(masked::try_grad(&x, &x, (0.5, true)), "masked");
    let call = |pullback: &masked::Pullback, seed: Tensor| pullback.call(seed).w;
    refused(
        masked::try_vjp(&x, &x, (0.5, true)).map(|(y, pullback)| call(&pullback, y)),
        "masked",
    );
    let seeds = |pullback: slices::Pullback, seed: Vec<Tensor>| -> (Vec<Tensor>, Vec<(Tensor, f64)>) {
        let slices::Cotangents { xs, pairs } = pullback.call(seed);
        (xs, pairs)
    };
    let called = slices::try_vjp(&[x.shallow_clone()], &[(&x, 2.0)], 1, "name");
    refused(called.map(|(y, pullback)| seeds(pullback, y)), "slices");
    refused(
        fallible::try_vjp(&x).map(|(y, pullback)| pullback.call(y.expect("it is there")).x),
        "fallible",
    );
    refused(
        optional::try_vjp(1.0).map(|(_, pullback)| pullback.call(1.0).x),
        "optional",
    );
    refused(
        borrowed::try_vjp(&x, &x).map(|(y, pullback)| pullback.call(y.shallow_clone()).y),
        "borrowed",
    );
    refused(generic::try_grad(&x, |x: &Tensor| x.sin(), [0, 1]), "generic");
    refused(
        generic::try_autograd::<fn(&Tensor) -> Tensor, 3>(&x, Tensor::sin, [0; 3]),
        "generic",
    );
    let single = x.to_kind(Kind::Float);
    let tensors = blended::try_autograd(&x, &x, &single, &x, 2.0, 1);
    assert!(tensors.is_err_and(|e| e.to_string().contains("`three` has 2 elements, and the kernel takes 3")));
    let three = Tensor::from_slice(&[1.0f32, 2.0, 3.0]);
    let called = blended::try_autograd(&x, &x, &three, &x, &Tensor::from(2.0), 1);
    refused(called.map(|(a, b): (Tensor, Tensor)| (a, b)), "blended");
    let net = || Net::Many {
        layers: vec![layer().like()],
        scale: 2.0,
    };
    let called = consumed::try_vjp(net(), Seed(1.0, [2.0; 2]), Box::new(1.0));
    let call = |pullback: consumed::Pullback, seed: Seed| -> (Net, Seed, Box<f64>) {
        let consumed::Cotangents { net, own, boxed } = pullback.call(seed);
        (net, own, boxed)
    };
    refused(called.map(|(y, pullback)| call(pullback, y)), "consumed");
    assert_eq!(consumed(Net::Empty, Seed(3.0, [0.0; 2]), Box::new(1.0)).0, 3.0);
    assert_eq!(consumed(Net::One(layer()), Seed(3.0, [0.0; 2]), Box::new(1.0)).0, 1.0);
}

#[test]
fn mutable_parameters_have_seeds_and_cotangents() {
    let (mut state, mut sums, mut count) = (Tensor::from(1.0), [1.0, 2.0], 0);
    let called = updated::try_vjp(&mut state, &mut sums, &mut count, &Tensor::from(2.0));
    refused(
        called.map(|(ret, pullback)| {
            let seed = updated::Seed {
                ret,
                state: Tensor::new(),
                sums: vec![0.0, 1.0],
            };
            let updated::Cotangents { state, sums, x } = pullback.call(seed);
            (state, x, sums[0])
        }),
        "updated",
    );
    assert_eq!(count, 0, "nothing ran");
    let mut out = [0.0; 3];
    let called = written::try_vjp(&[1.0; 3], &mut out);
    refused(
        called.map(|((), pullback)| pullback.call(written::Seed { out: vec![1.0; 3] }).x[0]),
        "written",
    );
}

#[test]
fn methods_have_modules_beside_the_block() {
    let (mut layer, x) = (layer(), Tensor::from_slice(&[1.0, 2.0]));
    assert_eq!(layer.forward(&x).double_value(&[]), 5.0);
    let called = layer_forward::try_vjp(&layer, &x);
    let call = |pullback: layer_forward::Pullback, seed: Tensor| -> (Layer, Tensor) {
        let layer_forward::Cotangents { this, x } = pullback.call(seed);
        (this, x)
    };
    refused(called.map(|(y, pullback)| call(pullback, y)), "layer_forward");
    let called = layer_scale_all::try_vjp(&mut layer, 2.0);
    let seed = layer_scale_all::Seed { this: layer_like() };
    refused(
        called.map(|((), pullback)| pullback.call(seed).this.w),
        "layer_scale_all",
    );
}

fn layer_like() -> Layer {
    layer().like()
}

#[test]
fn types_are_those_of_the_functions_own_module() {
    refused(
        inner::outside::try_grad(&layer(), 1.0).map(|c| (c.layer.w, c.k)),
        "inner::outside",
    );
    assert_eq!(inner::outside(&layer(), 2.0).sum(Kind::Double).double_value(&[]), 6.0);
}

#[test]
fn a_pullback_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<scaled::Pullback>();
    shared::<layer_forward::Pullback>();
}

#[cotangent::custom_vjp(forward = half_forward, backward = half_backward)]
fn half(x: &Tensor, mut k: f64) -> Tensor {
    k *= 0.5;
    x * k
}

fn half_forward(x: &Tensor, k: f64) -> (Tensor, f64) {
    (x * (k * 0.5), k)
}

fn half_backward(k: f64, seed: Tensor) -> (Tensor, f64) {
    (seed * (k * 0.5), 0.0)
}

#[cotangent::custom_jvp(tangent = cube_jvp)]
fn cube(x: f64, n: usize) -> f64 {
    x * x * x + n as f64
}

fn cube_jvp(x: f64, n: usize, x_dot: f64) -> (f64, f64) {
    (cube(x, n), 3.0 * x * x * x_dot)
}

#[cotangent::custom_vjp(forward = root_forward, backward = root_backward, tangent = root_jvp)]
fn root(x: &[f64]) -> Vec<f64> {
    x.iter().map(|x| x.sqrt()).collect()
}

fn root_forward(x: &[f64]) -> (Vec<f64>, Vec<f64>) {
    (root(x), root(x))
}

fn root_backward(roots: Vec<f64>, seed: Vec<f64>) -> Vec<f64> {
    roots.iter().zip(seed).map(|(r, s)| s / (2.0 * r)).collect()
}

fn root_jvp(x: &[f64], x_dot: Vec<f64>) -> (Vec<f64>, Vec<f64>) {
    (root(x), root_backward(root(x), x_dot))
}

#[cotangent::inactive]
fn noted(x: &Tensor) -> f64 {
    x.sum(Kind::Double).double_value(&[])
}

#[cotangent::op(relu)]
fn kernel(x: &[f64]) -> Vec<f64> {
    x.iter().map(|x| x.max(0.0)).collect()
}

#[test]
fn marked_functions_run_as_written() {
    let x = Tensor::from_slice(&[1.0, 2.0]);
    assert_eq!(noted(&half(&x, 4.0)), 6.0);
    assert_eq!(noted(&half_backward(half_forward(&x, 4.0).1, x.ones_like()).0), 4.0);
    assert_eq!((cube(2.0, 1), cube_jvp(2.0, 1, 1.0)), (9.0, (9.0, 12.0)));
    assert_eq!(root(&[4.0]), root_forward(&[4.0]).0);
    assert_eq!(root_jvp(&[4.0], vec![1.0]).1, [0.25]);
    assert_eq!(kernel(&[-1.0, 3.0]), [0.0, 3.0]);
    assert_eq!(cotangent::stop_gradient(kernel(&[2.0])[0]), 2.0);
    assert_eq!(noted(&cotangent::stop_gradient(&x)), 3.0);
}
