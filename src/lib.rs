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

#![cfg(feature = "runtime")]

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
        Edge, Given, Name, Part, Pull, Returned, Scalar, Tensor, attached, autograd, call_with_rule,
        call_with_tangent_rule, caught, inactive, instance_of, jvp, kernel, op, request, rule_of, shim_of,
        tangent_rule_of, unwrap, value_and_grad, vjp,
    };
    pub use cotangent_runtime::kernel::{Addresses, Kernel, Mode};
}

/// The example of the README, compiled as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
