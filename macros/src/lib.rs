//! The attributes of Cotangent. The crate `cotangent` documents and re-exports them.
//!
//! [`signature`] reads a function and decides what is differentiated, [`module`] and [`entries`] write the module of entry points,
//! [`derive`] and [`custom`] are the other attributes.

mod attribute;
mod custom;
mod derive;
mod entries;
mod module;
mod operation;
mod place;
#[cfg(test)]
mod refusals;
mod signature;
mod tensors;
mod types;

use proc_macro::TokenStream;

/// Makes a module of derivatives beside a function: see the documentation of the crate `cotangent`.
#[proc_macro_attribute]
pub fn differentiable(arguments: TokenStream, item: TokenStream) -> TokenStream {
    attribute::expand(arguments.into(), item.into()).into()
}

/// Makes a struct or an enum of tensors and floats differentiable; other fields are constants, marked `#[constant]`
/// where their type is not known.
#[proc_macro_derive(Differentiable, attributes(constant))]
pub fn derive_differentiable(item: TokenStream) -> TokenStream {
    derive::expand(item.into()).into()
}

/// Gives a function a derivative of its own: `#[custom_vjp(forward = f_fwd, backward = f_bwd)]`.
#[proc_macro_attribute]
pub fn custom_vjp(arguments: TokenStream, item: TokenStream) -> TokenStream {
    custom::custom_vjp(arguments.into(), item.into()).into()
}

/// Gives a function a tangent of its own: `#[custom_jvp(tangent = f_jvp)]`, where `f_jvp` takes the arguments, then the
/// tangents of those that are differentiable, and gives the result and its tangent.
#[proc_macro_attribute]
pub fn custom_jvp(arguments: TokenStream, item: TokenStream) -> TokenStream {
    custom::custom_jvp(arguments.into(), item.into()).into()
}

/// Makes what a function returns and writes constant for the derivative.
#[proc_macro_attribute]
pub fn inactive(arguments: TokenStream, item: TokenStream) -> TokenStream {
    custom::inactive(arguments.into(), item.into()).into()
}

/// Gives a function the derivative of a known operation, whatever its body is made of: `#[op(matmul)]`.
///
/// A plain call runs the body. Where the call is differentiated, the operation runs in its place (products of matrices by
/// LibTorch's BLAS), and what its derivative needs is kept. `T` is `f32` or `f64`; slices are rows after rows; a slice whose
/// length is not that of its dimensions is a panic.
///
/// | operation | signature |
/// |---|---|
/// | `relu`, `tanh`, `sigmoid`, `softplus` | `fn(&[T]) -> Vec<T>` |
/// | `sum`, `mean`, `logsumexp` | `fn(&[T]) -> T` |
/// | `dot` | `fn(&[T], &[T]) -> T` |
/// | `softmax` | `fn(&[T], columns: usize) -> Vec<T>` |
/// | `matmul` (`m × k` by `k × n`) | `fn(&[T], &[T], m: usize, k: usize, n: usize) -> Vec<T>` |
/// | `conv2d` (image of channels × height × width; number, height and width of kernels; no padding) | `fn(&[T], &[T], input: [usize; 3], kernel: [usize; 3]) -> Vec<T>` |
///
/// Another signature is a compile error.
#[proc_macro_attribute]
pub fn op(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let expanded = custom::or_error(item.clone().into(), || operation::expand(arguments.into(), item.into()));
    expanded.into()
}
