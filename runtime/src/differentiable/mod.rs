//! Values that can carry derivatives: what their leaves are, and what their cotangents look like.
//!
//! A leaf is a tensor or a float. The engines know leaves by the address of their place in memory, so that the same
//! description serves arguments, results and seeds. [`leaves`] lists them; [`containers`] are the types that hold others,
//! [`layers`] those of `tch::nn`.

mod beside;
mod containers;
mod layers;
pub(crate) mod leaves;

pub use beside::{Beside, BesideConstants, BesideLeaves};
pub use leaves::{Leaf, LeafKind, Leaves, Number, Place, Source};

use tch::Tensor;

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
    /// Whether it has no leaves, by its type.
    #[doc(hidden)]
    const CONSTANT: bool = false;
    /// The type of the leaf that it is.
    #[doc(hidden)]
    const NUMBER: Option<LeafKind> = None;

    /// Adds the leaves, in a fixed order.
    fn leaves(&self, leaves: &mut Leaves);

    /// A cotangent of the structure of this value, with leaves from `source` (in the order of `leaves`) and constants
    /// copied from here.
    fn cotangent(&self, source: &mut Source) -> Self::Cotangent;

    /// The same as a seed; nothing for a result that is not there.
    fn seed(&self, source: &mut Source) -> Option<Self::Seed>;

    /// Whether this is a result that is not there (`None`, `Err`): its seed has no effect.
    fn absent(&self) -> bool {
        false
    }

    /// The leaves of values that lie one behind the other.
    #[doc(hidden)]
    fn leaves_of_all(all: &[Self], leaves: &mut Leaves)
    where
        Self: Sized,
    {
        leaves.looking();
        all.iter().for_each(|item| item.leaves(leaves));
    }

    /// Their cotangents.
    #[doc(hidden)]
    fn cotangents_of_all(all: &[Self], source: &mut Source) -> Vec<Self::Cotangent>
    where
        Self: Sized,
    {
        all.iter().map(|item| item.cotangent(source)).collect()
    }
}

impl Differentiable for Tensor {
    type Cotangent = Tensor;
    type Seed = Tensor;
    const NUMBER: Option<LeafKind> = Some(LeafKind::Tensor);
    fn leaves(&self, leaves: &mut Leaves) {
        leaves.push(Place::Tensor(self));
    }
    fn cotangent(&self, source: &mut Source) -> Tensor {
        source.tensor()
    }
    fn seed(&self, source: &mut Source) -> Option<Tensor> {
        Some(source.tensor())
    }
}

macro_rules! float {
    ($($type:ident: $variant:ident),*) => {$(
        impl Differentiable for $type {
            type Cotangent = $type;
            type Seed = $type;
            const NUMBER: Option<LeafKind> = Some(LeafKind::$variant);
            #[inline]
            fn leaves(&self, leaves: &mut Leaves) {
                leaves.push(Place::$variant(self));
            }
            #[inline]
            fn cotangent(&self, source: &mut Source) -> $type {
                source.$type()
            }
            #[inline]
            fn seed(&self, source: &mut Source) -> Option<$type> {
                Some(source.$type())
            }
            #[inline]
            fn leaves_of_all(all: &[$type], leaves: &mut Leaves) {
                leaves.run(Place::$variant(all.as_ptr()), all.len());
            }
            #[inline]
            fn cotangents_of_all(all: &[$type], source: &mut Source) -> Vec<$type> {
                source.floats(all.len())
            }
        }
    )*};
}
float!(f64: F64, f32: F32);

macro_rules! constant {
    ($($type:ty),*) => {$(
        impl Differentiable for $type {
            type Cotangent = $type;
            type Seed = $type;
            const CONSTANT: bool = true;
            fn leaves(&self, _: &mut Leaves) {}
            fn cotangent(&self, _: &mut Source) -> $type {
                self.clone()
            }
            fn seed(&self, _: &mut Source) -> Option<$type> {
                Some(self.clone())
            }
            fn leaves_of_all(_: &[$type], _: &mut Leaves) {}
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
