//! Values that can carry derivatives: what their leaves are, and what their cotangents look like.
//!
//! A leaf is a tensor or a float. The engine knows leaves by the address of their place in memory, so that the same
//! description serves arguments, results and seeds.

use std::rc::Rc;
use std::sync::Arc;
use tch::Tensor;

/// The place of one leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A tensor.
    Tensor(*const Tensor),
    /// An `f64`.
    F64(*const f64),
    /// An `f32`.
    F32(*const f32),
}

impl Place {
    /// The type of what is there.
    pub fn kind(self) -> LeafKind {
        match self {
            Place::Tensor(_) => LeafKind::Tensor,
            Place::F64(_) => LeafKind::F64,
            Place::F32(_) => LeafKind::F32,
        }
    }
}

impl Place {
    /// Its address.
    pub fn address(self) -> u64 {
        match self {
            Place::Tensor(at) => at as u64,
            Place::F64(at) => at as u64,
            Place::F32(at) => at as u64,
        }
    }
}

/// The type of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeafKind {
    /// A tensor.
    Tensor,
    /// An `f64`.
    F64,
    /// An `f32`.
    F32,
}

/// One leaf of an argument or of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// Index of the parameter the leaf belongs to, or [`Leaf::RETURN`].
    pub param: usize,
    /// Where the value is.
    pub place: Place,
}

impl Leaf {
    /// The `param` of a leaf of the returned value.
    pub const RETURN: usize = usize::MAX;
}

/// A cotangent or tangent of one leaf. For tensors, undefined means "none", as in LibTorch.
#[derive(Debug)]
pub enum Number {
    /// Of a tensor.
    Tensor(Tensor),
    /// Of an `f64`.
    F64(f64),
    /// Of an `f32`.
    F32(f32),
}

impl Number {
    /// "No derivative" for a leaf of that type.
    pub fn none(kind: LeafKind) -> Number {
        match kind {
            LeafKind::Tensor => Number::Tensor(Tensor::new()),
            LeafKind::F64 => Number::F64(0.0),
            LeafKind::F32 => Number::F32(0.0),
        }
    }

    /// The type of leaf it belongs to.
    pub fn kind(&self) -> LeafKind {
        match self {
            Number::Tensor(_) => LeafKind::Tensor,
            Number::F64(_) => LeafKind::F64,
            Number::F32(_) => LeafKind::F32,
        }
    }
}

/// Collects the leaves of values, in order.
#[derive(Debug, Default)]
pub struct Leaves {
    param: usize,
    list: Vec<Leaf>,
}

impl Leaves {
    /// The leaves of a value, as those of a parameter.
    pub fn of<T: Differentiable + ?Sized>(&mut self, param: usize, value: &T) {
        self.param = param;
        value.leaves(self);
    }

    /// Adds a leaf.
    pub fn push(&mut self, place: Place) {
        self.list.push(Leaf {
            param: self.param,
            place,
        });
    }

    /// What was collected.
    pub fn into_vec(self) -> Vec<Leaf> {
        self.list
    }
}

/// Where the leaves of a cotangent come from.
#[derive(Debug)]
pub enum Source {
    /// Every leaf is "none".
    Nothing,
    /// One number for each leaf, in order.
    Numbers(std::vec::IntoIter<Number>),
}

impl Source {
    fn take(&mut self, kind: LeafKind) -> Number {
        match self {
            Source::Nothing => Number::none(kind),
            Source::Numbers(numbers) => match numbers.next() {
                Some(number) if number.kind() == kind => number,
                other => {
                    panic!("cotangents do not fit the value they belong to: {other:?} for a leaf of type {kind:?}")
                }
            },
        }
    }
}

/// A value that can carry a derivative: a tensor, a float, or something made of them.
///
/// Derive it for structs and enums. Tensors and floats are leaves; integers, `bool`, `char`, `String` and tch's enums
/// are constants, which a cotangent copies.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not known to carry derivatives",
    label = "no derivative is known for this type",
    note = "derive it: `#[derive(cotangent::Differentiable)]`; a field without a derivative is marked `#[constant]`",
    note = "or name the parameters to differentiate, without this one: `#[differentiable(wrt(..))]`"
)]
pub trait Differentiable {
    /// The type of its cotangents and tangents: owned, with the structure of the value.
    type Cotangent: Differentiable<Cotangent = Self::Cotangent>;
    /// The type of a seed where the value is a function's result: that of its cotangent, but for `Option` and `Result`
    /// that of the value inside.
    type Seed: Differentiable;

    /// Adds the leaves, in a fixed order.
    fn leaves(&self, leaves: &mut Leaves);

    /// A cotangent of the structure of this value, with leaves from `source` (in the order of `leaves`) and constants
    /// copied from here.
    fn cotangent(&self, source: &mut Source) -> Self::Cotangent;

    /// Whether this is a result that is not there (`None`, `Err`): its seed has no effect.
    fn absent(&self) -> bool {
        false
    }
}

macro_rules! leaf {
    ($($type:ty: $variant:ident),*) => {$(
        impl Differentiable for $type {
            type Cotangent = $type;
            type Seed = $type;
            fn leaves(&self, leaves: &mut Leaves) {
                leaves.push(Place::$variant(self));
            }
            fn cotangent(&self, source: &mut Source) -> $type {
                match source.take(LeafKind::$variant) {
                    Number::$variant(value) => value,
                    _ => unreachable!("`take` gives what fits"),
                }
            }
        }
    )*};
}
leaf!(Tensor: Tensor, f64: F64, f32: F32);

macro_rules! constant {
    ($($type:ty),*) => {$(
        impl Differentiable for $type {
            type Cotangent = $type;
            type Seed = $type;
            fn leaves(&self, _: &mut Leaves) {}
            fn cotangent(&self, _: &mut Source) -> $type {
                self.clone()
            }
        }
    )*};
}
constant!(
    i8,
    i16,
    i32,
    i64,
    i128,
    isize,
    u8,
    u16,
    u32,
    u64,
    u128,
    usize,
    bool,
    char,
    String,
    ()
);
constant!(tch::Kind, tch::Device, tch::Reduction, std::time::Duration);

impl<T: ?Sized> Differentiable for std::marker::PhantomData<T> {
    type Cotangent = std::marker::PhantomData<T>;
    type Seed = std::marker::PhantomData<T>;
    fn leaves(&self, _: &mut Leaves) {}
    fn cotangent(&self, _: &mut Source) -> Self {
        *self
    }
}

macro_rules! behind {
    ($($type:ty),*) => {$(
        impl<T: Differentiable + ?Sized> Differentiable for $type {
            type Cotangent = T::Cotangent;
            type Seed = T::Seed;
            fn leaves(&self, leaves: &mut Leaves) {
                (**self).leaves(leaves);
            }
            fn cotangent(&self, source: &mut Source) -> T::Cotangent {
                (**self).cotangent(source)
            }
            fn absent(&self) -> bool {
                (**self).absent()
            }
        }
    )*};
}
behind!(&T, &mut T);

macro_rules! pointer {
    ($($pointer:ident),*) => {$(
        impl<T: Differentiable> Differentiable for $pointer<T> {
            type Cotangent = $pointer<T::Cotangent>;
            type Seed = $pointer<T::Cotangent>;
            fn leaves(&self, leaves: &mut Leaves) {
                (**self).leaves(leaves);
            }
            fn cotangent(&self, source: &mut Source) -> Self::Cotangent {
                $pointer::new((**self).cotangent(source))
            }
        }
    )*};
}
pointer!(Box, Rc, Arc);

impl<T: Differentiable> Differentiable for [T] {
    type Cotangent = Vec<T::Cotangent>;
    type Seed = Vec<T::Cotangent>;
    fn leaves(&self, leaves: &mut Leaves) {
        self.iter().for_each(|item| item.leaves(leaves));
    }
    fn cotangent(&self, source: &mut Source) -> Self::Cotangent {
        self.iter().map(|item| item.cotangent(source)).collect()
    }
}

impl<T: Differentiable> Differentiable for Vec<T> {
    type Cotangent = Vec<T::Cotangent>;
    type Seed = Vec<T::Cotangent>;
    fn leaves(&self, leaves: &mut Leaves) {
        self.as_slice().leaves(leaves);
    }
    fn cotangent(&self, source: &mut Source) -> Self::Cotangent {
        self.as_slice().cotangent(source)
    }
}

impl<T: Differentiable, const N: usize> Differentiable for [T; N] {
    type Cotangent = [T::Cotangent; N];
    type Seed = [T::Cotangent; N];
    fn leaves(&self, leaves: &mut Leaves) {
        self.as_slice().leaves(leaves);
    }
    fn cotangent(&self, source: &mut Source) -> Self::Cotangent {
        std::array::from_fn(|i| self[i].cotangent(source))
    }
}

impl<T: Differentiable> Differentiable for Option<T> {
    type Cotangent = Option<T::Cotangent>;
    type Seed = T::Seed;
    fn leaves(&self, leaves: &mut Leaves) {
        self.iter().for_each(|value| value.leaves(leaves));
    }
    fn cotangent(&self, source: &mut Source) -> Self::Cotangent {
        self.as_ref().map(|value| value.cotangent(source))
    }
    fn absent(&self) -> bool {
        self.as_ref().is_none_or(T::absent)
    }
}

impl<T: Differentiable, E> Differentiable for Result<T, E> {
    type Cotangent = Option<T::Cotangent>;
    type Seed = T::Seed;
    fn leaves(&self, leaves: &mut Leaves) {
        self.iter().for_each(|value| value.leaves(leaves));
    }
    fn cotangent(&self, source: &mut Source) -> Self::Cotangent {
        self.as_ref().ok().map(|value| value.cotangent(source))
    }
    fn absent(&self) -> bool {
        self.as_ref().map_or(true, T::absent)
    }
}

macro_rules! tuple {
    ($($name:ident $index:tt),+) => {
        impl<$($name: Differentiable),+> Differentiable for ($($name,)+) {
            type Cotangent = ($($name::Cotangent,)+);
            type Seed = ($($name::Cotangent,)+);
            fn leaves(&self, leaves: &mut Leaves) {
                $(self.$index.leaves(leaves);)+
            }
            fn cotangent(&self, source: &mut Source) -> Self::Cotangent {
                ($(self.$index.cotangent(source),)+)
            }
        }
    };
}
tuple!(A 0);
tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);
tuple!(A 0, B 1, C 2, D 3, E 4);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
