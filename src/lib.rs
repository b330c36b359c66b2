//! Cotangent differentiates compiled Rust: functions over [`tch`](https://docs.rs/tch) tensors and over floats.
//!
//! ```no_run
//! use cotangent::differentiable;
//! use tch::{Kind, Tensor};
//!
//! #[differentiable(wrt(w, b))]
//! fn loss(x: &Tensor, y: &Tensor, w: &Tensor, b: &Tensor) -> Tensor {
//!     let d = x.matmul(w) + b - y;
//!     (&d * &d).sum(Kind::Float) / (2.0 * x.size()[0] as f64)
//! }
//!
//! # fn main() {
//! # let [x, y, w, b] = [(); 4].map(|()| Tensor::new());
//! let (value, cotangents) = loss::value_and_grad(&x, &y, &w, &b);
//! println!("{value:?} {:?} {:?}", cotangents.w, cotangents.b);
//! loss::autograd(&x, &y, &w, &b).backward();
//! # }
//! ```
//!
//! Build with `cargo cotangent build`. In a plain build the function itself works, and its derivatives say what to do.
//!
//! # What the attribute makes
//!
//! `#[differentiable]` leaves the function `f` as it is, and puts a module `f` beside it. `wrt(a, b)` names the parameters
//! to differentiate for; without it they are all that can carry a derivative. Cotangents are a struct, `f::Cotangents`,
//! with a field for each of them, of the parameter's own structure: a tensor for `&Tensor` (same shape and kind), a
//! `Vec<f64>` for `&[f64]`, a struct of cotangents for a struct with `derive(Differentiable)`, a layer for a layer of
//! `tch::nn` (its weights and bias, that is; what else it holds means nothing there).
//!
//! | entry point | gives | needs |
//! |---|---|---|
//! | `f::value_and_grad(..)` | the result, and the cotangents for a seed of one | a result of one number |
//! | `f::grad(..)` | the cotangents alone | a result of one number |
//! | `f::vjp(..)` | the result, and a pullback to call with seeds, as often as one likes | |
//! | `f::jvp(.., tangents)` | the result, and its tangent | |
//! | `f::autograd(..)` | the result as a node of LibTorch's graph; a kernel takes tensors for its slices | |
//! | `f::register(ns)` | makes a kernel the operator `torch.ops.ns.f` | slices and numbers |
//!
//! Each has a twin `try_..` that returns what goes wrong as an [`Error`]: the function's own panic or LibTorch's message, a
//! seed of another shape, a tensor that requires grad and is not in `wrt`. The plain ones panic with it. [`register`] makes
//! every tensor function of the program an operator.
//!
//! Forward and backward are compiled once for each combination of shapes, kinds and decisions that a function of tensors
//! meets; a kernel's derivatives are compiled with the program. The time of a gradient is a small multiple of the
//! function's, and its memory what the backward reads: `cargo cotangent explain f` tells.

pub use cotangent_macros::{Differentiable, custom_jvp, custom_vjp, differentiable, inactive, op};
#[cfg(feature = "jit")]
pub use cotangent_runtime::engine::save_compiled;
pub use cotangent_runtime::engine::{
    PlanOptions, compiled_hits, load_compiled, materializations, not_registrable, register, set_plan_options,
    specializations,
};
pub use cotangent_runtime::torch::{StorageUse, measure_storage};
pub use cotangent_runtime::{Differentiable, Error, Saved, stop_gradient};

/// What macro-made code calls. Not part of the public interface.
#[doc(hidden)]
pub mod __private {
    pub use cotangent_runtime::differentiable::{Beside, BesideConstants, BesideLeaves, Leaf, Leaves, Source};
    pub use cotangent_runtime::engine::Function;
    pub use cotangent_runtime::entry::{
        Edge, Given, Listed, Name, Part, Pull, Returned, Scalar, Tensor, Values, attached, autograd, call_with_rule,
        call_with_tangent_rule, caught, inactive, instance_of, jvp, kernel, register, request, rule_of, shim_of,
        tangent_rule_of, unwrap, value_and_grad, vjp,
    };
    pub use cotangent_runtime::kernel::{Addresses, Kernel, Mode};
    pub use cotangent_runtime::operations;
}

/// The example of the README, compiled as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
