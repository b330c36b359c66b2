//! Shape: what is called is chosen by the caller: function pointers, closures and trait objects come in as arguments, alone,
//! in slices, and behind each other.
//! Hard: the pointers lead to the program's own functions, not to what is compiled for derivatives.
use cotangent::differentiable;

/// Relative tolerance. CASE_RTOL loosens it for a finite-difference reference run.
fn rtol() -> f64 {
    std::env::var("CASE_RTOL")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or(1e-9)
}

#[track_caller]
fn close(got: f64, want: f64) {
    assert!(
        (got - want).abs() <= rtol() * want.abs().max(1.0),
        "got {got:?}, want {want:?}"
    );
}

#[differentiable(wrt(x))]
fn thrice(f: fn(f64) -> f64, x: f64) -> f64 {
    f(f(f(x)))
}

fn shifted(x: f64) -> f64 {
    x * x + 1.0
}

#[differentiable(wrt(x))]
fn by_closure(f: &dyn Fn(f64, f64) -> f64, x: &[f64]) -> f64 {
    x.windows(2).map(|w| f(w[0], w[1])).sum()
}

trait Layer {
    fn forward(&self, x: Vec<f64>) -> Vec<f64>;
    fn penalty(&self) -> f64 {
        0.0
    }
}
struct Scale(f64);
struct Apply(fn(f64) -> f64);
struct Twice(Box<dyn Layer>);

impl Layer for Scale {
    fn forward(&self, x: Vec<f64>) -> Vec<f64> {
        x.into_iter().map(|v| self.0 * v).collect()
    }
    fn penalty(&self) -> f64 {
        self.0 * self.0
    }
}
impl Layer for Apply {
    fn forward(&self, mut x: Vec<f64>) -> Vec<f64> {
        x.iter_mut().for_each(|v| *v = (self.0)(*v));
        x
    }
}
impl Layer for Twice {
    fn forward(&self, x: Vec<f64>) -> Vec<f64> {
        self.0.forward(self.0.forward(x))
    }
    fn penalty(&self) -> f64 {
        2.0 * self.0.penalty()
    }
}

#[differentiable(wrt(x))]
fn stack(layers: &[Box<dyn Layer>], x: &[f64]) -> f64 {
    let start: Vec<f64> = x.to_vec();
    let end = layers.iter().fold(start, |x, l| l.forward(x));
    end.iter().sum::<f64>() + x[0] * layers.iter().map(|l| l.penalty()).sum::<f64>()
}

#[test]
fn function_pointers() {
    let x = 0.4f64;
    let (a, b) = (x.sin(), x.sin().sin());
    close(thrice::grad(f64::sin, x).x, b.cos() * a.cos() * x.cos());
    let (a, b) = (shifted(x), shifted(shifted(x)));
    close(thrice::grad(shifted, x).x, 8.0 * x * a * b);
    close(thrice::grad(|v| 3.0 * v, x).x, 27.0);
}

#[test]
fn closures_with_state() {
    let s = 1.5;
    let g = by_closure::grad(&move |a, b| s * a * b, &[1.0, 2.0, 4.0]);
    [3.0, 7.5, 3.0].iter().zip(&g.x).for_each(|(w, g)| close(*g, *w));
    let g = by_closure::grad(&|a: f64, b: f64| a.powi(2) - b, &[1.0, 2.0, 4.0]);
    [2.0, 3.0, -1.0].iter().zip(&g.x).for_each(|(w, g)| close(*g, *w));
}

#[test]
fn trait_objects_within_trait_objects() {
    let layers: Vec<Box<dyn Layer>> = vec![
        Box::new(Scale(0.5)),
        Box::new(Twice(Box::new(Apply(f64::exp)))),
        Box::new(Twice(Box::new(Scale(2.0)))),
    ];
    let g = stack::grad(&layers, &[0.2, -0.6]);
    let d = |v: f64| 4.0 * (0.5 * v).exp().exp() * (0.5 * v).exp() * 0.5;
    close(g.x[0], d(0.2) + 0.25 + 8.0);
    close(g.x[1], d(-0.6));
    let t = stack::Tangents { x: vec![1.0, 2.0] };
    let (_, slope) = stack::jvp(&layers, &[0.2, -0.6], t);
    close(slope, g.x[0] + 2.0 * g.x[1]);
}
