//! Kernels as LibTorch sees them: tensors in the place of slices and floats, and the call as one node of the graph.

use super::{Arguments, Pull, vjp};
use crate::differentiable::{Differentiable, Leaf, LeafKind, Leaves, Number, Source};
use crate::engine::Function;
use crate::error::Error;
use crate::kernel::Kernel;
use crate::torch::node::{self, Backward, Node};
use crate::torch::{Handle, Raw, facts};
use std::ffi::CString;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};
pub use tch::Tensor;
use tch::{Device, Kind};

/// The types of floats, as elements of tensors.
pub trait Element: Copy + tch::kind::Element {
    /// The number as a float of this type.
    fn from_f64(number: f64) -> Self;
}

impl Element for f64 {
    fn from_f64(number: f64) -> f64 {
        number
    }
}

impl Element for f32 {
    fn from_f64(number: f64) -> f32 {
        number as f32
    }
}

/// What a float parameter takes: a number, or a tensor of one element.
#[derive(Debug)]
pub enum Scalar<'a> {
    /// A number.
    Number(f64),
    /// A tensor.
    Tensor(&'a Tensor),
}

impl From<f64> for Scalar<'_> {
    fn from(number: f64) -> Self {
        Scalar::Number(number)
    }
}

impl From<f32> for Scalar<'_> {
    fn from(number: f32) -> Self {
        Scalar::Number(number.into())
    }
}

impl<'a> From<&'a Tensor> for Scalar<'a> {
    fn from(tensor: &'a Tensor) -> Self {
        Scalar::Tensor(tensor)
    }
}

/// A parameter of a function, in messages.
#[derive(Clone, Copy, Debug)]
pub struct Name {
    /// The function.
    pub function: &'static str,
    /// The parameter.
    pub param: &'static str,
    /// Whether the function is differentiated for it.
    pub wrt: bool,
}

impl Name {
    fn error(self, what: &str) -> Error {
        Error::new(format!("`{}::autograd`: `{}` {what}", self.function, self.param))
    }

    /// The elements of a tensor in memory, one after the other, if it is what the kernel takes.
    fn elements<T: Element>(self, tensor: &Tensor) -> Result<Tensor, Error> {
        if !tensor.defined() {
            return Err(self.error("is undefined"));
        }
        let wanted = T::KIND;
        if tensor.kind() != wanted {
            let kind = tensor.kind();
            return Err(self.error(&format!(
                "is of kind {kind:?}, and the kernel takes {wanted:?}: convert it with `to_kind`"
            )));
        }
        if tensor.device() != Device::Cpu {
            return Err(self.error("is not in the CPU's memory: move it with `to_device`"));
        }
        if !self.wrt && tensor.requires_grad() && facts::grad_enabled() {
            return Err(self.error(
                "requires grad, but the function is not differentiated for it: add it to `wrt(..)`, or pass it detached",
            ));
        }
        Ok(tensor.f_detach()?.f_contiguous()?)
    }
}

/// A tensor in the place of floats.
#[derive(Debug)]
pub struct Given<T> {
    name: Name,
    /// The elements, as they lie in memory.
    elements: Tensor,
    /// The tensor itself, where it may have a cotangent.
    edge: Option<Tensor>,
    floats: PhantomData<T>,
}

impl<T: Element> Given<T> {
    /// A tensor in the place of a slice, a vector or an array.
    pub fn tensor(name: Name, tensor: &Tensor) -> Result<Given<T>, Error> {
        Ok(Given {
            name,
            elements: name.elements::<T>(tensor)?,
            edge: Some(tensor.shallow_clone()),
            floats: PhantomData,
        })
    }

    /// A number or a tensor of one element in the place of a float.
    pub fn scalar<'a>(name: Name, value: impl Into<Scalar<'a>>) -> Result<Given<T>, Error> {
        match value.into() {
            Scalar::Tensor(tensor) if tensor.defined() && tensor.numel() != 1 => {
                let shape = tensor.size();
                Err(name.error(&format!(
                    "is a float: it takes a number or a tensor of one element, not one of shape {shape:?}"
                )))
            }
            Scalar::Tensor(tensor) => Given::tensor(name, tensor),
            Scalar::Number(number) => Ok(Given {
                name,
                elements: Tensor::from_slice(&[T::from_f64(number)]),
                edge: None,
                floats: PhantomData,
            }),
        }
    }

    /// All floats.
    pub fn slice(&self) -> &[T] {
        let count = self.elements.numel();
        if count == 0 {
            return &[];
        }
        // SAFETY: the tensor is of that kind and contiguous, and lives as long as the borrow.
        unsafe { std::slice::from_raw_parts(self.elements.data_ptr().cast_const().cast(), count) }
    }

    /// All floats, as an array.
    pub fn array<const N: usize>(&self) -> Result<&[T; N], Error> {
        let slice = self.slice();
        let what = || {
            self.name
                .error(&format!("has {} elements, and the kernel takes {N}", slice.len()))
        };
        slice.try_into().map_err(|_| what())
    }

    /// The float.
    pub fn number(&self) -> T {
        self.slice()[0]
    }

    /// The tensor that takes the cotangents, where there is one.
    pub fn edge(&self) -> Edge {
        Edge(self.edge.as_ref().map(Tensor::shallow_clone))
    }
}

/// A tensor that takes cotangents.
#[derive(Debug)]
pub struct Edge(Option<Tensor>);

/// What lists the parts of a cotangent, one for each edge.
type Parts<C> = fn(&C, &mut dyn FnMut(&dyn Part));

/// A result of a kernel, as tensors.
pub trait Returned: Differentiable {
    /// The tensors.
    type Tensors;
    /// Makes them, and adds another handle of each to the list.
    fn into_tensors(self, list: &mut Vec<Tensor>) -> Self::Tensors;
}

macro_rules! returned {
    ($($type:ty),*) => {$(
        impl Returned for $type {
            type Tensors = Tensor;
            fn into_tensors(self, list: &mut Vec<Tensor>) -> Tensor {
                listed(Tensor::from(self), list)
            }
        }
        impl Returned for Vec<$type> {
            type Tensors = Tensor;
            fn into_tensors(self, list: &mut Vec<Tensor>) -> Tensor {
                listed(Tensor::from_slice(&self), list)
            }
        }
        impl<const N: usize> Returned for [$type; N] {
            type Tensors = Tensor;
            fn into_tensors(self, list: &mut Vec<Tensor>) -> Tensor {
                listed(Tensor::from_slice(&self), list)
            }
        }
    )*};
}
returned!(f64, f32);

macro_rules! returned_tuple {
    ($($name:ident $index:tt),+) => {
        impl<$($name: Returned),+> Returned for ($($name,)+) {
            type Tensors = ($($name::Tensors,)+);
            fn into_tensors(self, list: &mut Vec<Tensor>) -> Self::Tensors {
                ($(self.$index.into_tensors(list),)+)
            }
        }
    };
}
returned_tuple!(A 0);
returned_tuple!(A 0, B 1);
returned_tuple!(A 0, B 1, C 2);
returned_tuple!(A 0, B 1, C 2, D 3);

fn listed(tensor: Tensor, list: &mut Vec<Tensor>) -> Tensor {
    list.push(tensor.shallow_clone());
    tensor
}

/// Calls a kernel with its outputs attached to LibTorch's graph. `edges` are the tensors of the differentiated parameters,
/// in order, of which `shape` makes cotangents.
#[expect(clippy::too_many_arguments, reason = "macro-made code calls it")]
pub fn attached<A, R, C>(
    kernel: Option<&'static Kernel>,
    function: impl FnOnce() -> &'static Function,
    args: A,
    reach: impl Fn(&A, &mut Leaves),
    shape: impl FnOnce(&A, &mut Source) -> C,
    finals: impl Fn(&A, &mut Leaves),
    edges: Vec<Edge>,
    parts: Parts<C>,
    plain: impl FnOnce(A) -> R,
) -> Result<R::Tensors, Error>
where
    A: Arguments,
    R: Returned<Seed: Send + 'static>,
    C: Differentiable<Cotangent = C> + Send + 'static,
    R::Seed: Differentiable<Cotangent = R::Seed>,
{
    let mut outputs = vec![];
    let wanted = |edge: &Edge| edge.0.as_ref().is_some_and(Tensor::requires_grad);
    if !facts::grad_enabled() || !edges.iter().any(wanted) {
        if kernel.is_none() {
            function().ready()?;
        }
        return Ok(plain(args).into_tensors(&mut outputs));
    }
    let (result, pull) = vjp::<A, R, C>(kernel, function, args, reach, shape, finals)?;
    let seed = result.seed(&mut Source::Nothing);
    let tensors = result.into_tensors(&mut outputs);
    if let Some(seed) = seed {
        let label = pull.name().rsplit("::").next().unwrap_or_default().to_owned();
        let call = Call {
            pull: Mutex::new(Some((pull, seed))),
            sizes: outputs.iter().map(|t| (t.numel(), t.kind())).collect(),
            shapes: edges.iter().map(|e| e.0.as_ref().map(Tensor::size)).collect(),
            parts,
        };
        let raw = |tensor: &Tensor| tensor.as_ptr().cast_mut();
        let from: Vec<Raw> = edges
            .iter()
            .map(|e| e.0.as_ref().map_or(std::ptr::null_mut(), raw))
            .collect();
        let outputs: Vec<Raw> = outputs.iter().map(raw).collect();
        let label = CString::new(format!("{label}Backward")).unwrap_or_default();
        // SAFETY: the edges are alive, and the outputs were made just now.
        unsafe { node::attach(Arc::new(call), &label, None, &from, &outputs) }.map_err(Error::new)?;
    }
    Ok(tensors)
}

/// A cotangent that becomes one tensor.
pub trait Part {
    /// The tensor of that shape.
    fn tensor(&self, shape: &[i64]) -> Tensor;
}

macro_rules! part {
    ($($type:ty),*) => {$(
        impl Part for $type {
            fn tensor(&self, shape: &[i64]) -> Tensor {
                Tensor::from(*self).reshape(shape)
            }
        }
        impl Part for Vec<$type> {
            fn tensor(&self, shape: &[i64]) -> Tensor {
                Tensor::from_slice(self).reshape(shape)
            }
        }
        impl<const N: usize> Part for [$type; N] {
            fn tensor(&self, shape: &[i64]) -> Tensor {
                Tensor::from_slice(self).reshape(shape)
            }
        }
    )*};
}
part!(f64, f32);

/// A call, as a node of LibTorch's graph.
struct Call<C, S> {
    /// The pullback, and a seed with the structure of the result; nothing once it was released.
    pull: Mutex<Option<(Pull<C>, S)>>,
    /// Number and kind of the elements of each output.
    sizes: Vec<(usize, Kind)>,
    /// The shapes of the inputs.
    shapes: Vec<Option<Vec<i64>>>,
    parts: Parts<C>,
}

impl<C, S> Backward for Call<C, S>
where
    C: Differentiable<Cotangent = C> + Send + 'static,
    S: Differentiable<Cotangent = S> + Send + 'static,
{
    fn apply(
        &self,
        node: Option<&Node>,
        seeds: Vec<Option<Handle>>,
        needs: &[bool],
    ) -> Result<Vec<Option<Handle>>, String> {
        if node.is_some() {
            return Err(
                "a kernel's pullback has no derivative of its own in LibTorch's graph: `create_graph` is not \
                        possible here; differentiate a kernel that calls `grad`"
                    .into(),
            );
        }
        let mut numbers = vec![];
        for ((count, kind), seed) in self.sizes.iter().zip(seeds) {
            spread(*count, *kind, seed.map(Handle::into_tensor), &mut numbers)?;
        }
        let pull = self.pull.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((pull, shape)) = &*pull else {
            return Err("Trying to backward through the graph a second time: pass `keep_graph` to the first".into());
        };
        let seed = shape.cotangent(&mut Source::numbers(numbers));
        let cotangents = pull
            .call(|leaves| leaves.of(Leaf::RETURN, &seed))
            .map_err(|e| e.to_string())?;
        let mut results = vec![];
        (self.parts)(&cotangents, &mut |part| {
            let i = results.len();
            let shape = self.shapes[i].as_ref().filter(|_| needs[i]);
            results.push(shape.map(|shape| Handle::take(part.tensor(shape))));
        });
        Ok(results)
    }

    fn will_release(&self) {}

    fn release(&self) {
        *self.pull.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// The elements of a seed; zeros where it is undefined.
fn spread(count: usize, kind: Kind, seed: Option<Tensor>, numbers: &mut Vec<Number>) -> Result<(), String> {
    let Some(seed) = seed.filter(Tensor::defined) else {
        let leaf = if kind == Kind::Float {
            LeafKind::F32
        } else {
            LeafKind::F64
        };
        numbers.extend((0..count).map(|_| Number::none(leaf)));
        return Ok(());
    };
    let flat = seed.f_reshape([-1]).map_err(|e| e.to_string())?;
    match kind {
        Kind::Float => numbers.extend(vector::<f32>(&flat)?.into_iter().map(Number::F32)),
        _ => numbers.extend(vector::<f64>(&flat)?.into_iter().map(Number::F64)),
    }
    Ok(())
}

fn vector<T: tch::kind::Element>(tensor: &Tensor) -> Result<Vec<T>, String>
where
    Vec<T>: for<'a> TryFrom<&'a Tensor, Error = tch::TchError>,
{
    Vec::<T>::try_from(tensor).map_err(|e| e.to_string())
}
