//! Types that hold others: references, pointers, sequences, options, tuples, cells.
//!
//! Where a value lies behind a pointer, [`Leaves`] are told where the pointer is and what it points to: that is
//! how a kernel's call finds all memory that an argument reaches.

use super::{Differentiable, Leaves, Source};
use std::alloc::Layout;
use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::rc::Rc;
use std::sync::Arc;

impl<T: ?Sized> Differentiable for std::marker::PhantomData<T> {
    type Cotangent = std::marker::PhantomData<T>;
    type Seed = std::marker::PhantomData<T>;
    const CONSTANT: bool = true;
    fn leaves(&self, _: &mut Leaves) {}
    fn cotangent(&self, _: &mut Source) -> Self {
        *self
    }
    fn seed(&self, _: &mut Source) -> Option<Self> {
        Some(*self)
    }
}

/// Offset of the address of the first element in a reference to a slice. (The length comes first or last.)
const SLICE_POINTER: usize = {
    let slice = std::ptr::slice_from_raw_parts(std::ptr::without_provenance::<u64>(8), 3);
    // SAFETY: a pointer to a slice has two words, and the address of this one has no provenance.
    let words: [usize; 2] = unsafe { std::mem::transmute(slice) };
    if words[0] == 8 { 0 } else { size_of::<usize>() }
};

/// Offset of the address of the buffer in a vector.
const fn vec_pointer<T>() -> usize {
    const { assert!(size_of::<Vec<T>>() == 3 * size_of::<usize>()) };
    let empty = ManuallyDrop::new(Vec::<T>::new());
    // SAFETY: a vector has three words; in an empty one all are initialized, and only the pointer, which has no
    // provenance, is not zero.
    let words: [usize; 3] = unsafe { (&raw const empty).cast::<[usize; 3]>().read() };
    let mut at = 0;
    while words[at] == 0 {
        at += 1;
    }
    at * size_of::<usize>()
}

/// Offset of the value behind an `Rc` or `Arc` from the start of its allocation: two counts come first.
fn shared_header<T>() -> usize {
    (2 * size_of::<usize>()).next_multiple_of(align_of::<T>())
}

macro_rules! behind {
    ($($type:ty),*) => {$(
        impl<T: Differentiable + ?Sized> Differentiable for $type {
            type Cotangent = T::Cotangent;
            type Seed = T::Seed;
            const CONSTANT: bool = T::CONSTANT;
            #[inline]
            fn leaves(&self, leaves: &mut Leaves) {
                if T::CONSTANT {
                    return;
                }
                let value: &T = self;
                let place = (&raw const *self).cast::<u8>();
                let thin = size_of::<&T>() == size_of::<usize>();
                let link = place.wrapping_add(if thin { 0 } else { SLICE_POINTER });
                let start = (&raw const *value).cast::<u8>();
                leaves.behind(link, start, Layout::for_value(value), |leaves| value.leaves(leaves));
            }
            fn cotangent(&self, source: &mut Source) -> T::Cotangent {
                (**self).cotangent(source)
            }
            fn seed(&self, source: &mut Source) -> Option<T::Seed> {
                (**self).seed(source)
            }
            fn absent(&self) -> bool {
                (**self).absent()
            }
        }
    )*};
}
behind!(&T, &mut T);

impl<T: Differentiable> Differentiable for Box<T> {
    type Cotangent = Box<T::Cotangent>;
    type Seed = Box<T::Cotangent>;
    const CONSTANT: bool = T::CONSTANT;
    fn leaves(&self, leaves: &mut Leaves) {
        if T::CONSTANT {
            return;
        }
        let value: &T = self;
        let (link, start) = ((&raw const *self).cast(), (&raw const *value).cast());
        leaves.allocated(link, start, Layout::new::<T>(), |leaves| {
            if T::NUMBER.is_none() {
                leaves.looking();
            }
            value.leaves(leaves);
        });
    }
    fn cotangent(&self, source: &mut Source) -> Self::Cotangent {
        Box::new((**self).cotangent(source))
    }
    fn seed(&self, source: &mut Source) -> Option<Self::Seed> {
        Some(self.cotangent(source))
    }
}

macro_rules! shared {
    ($($pointer:ident),*) => {$(
        /// Each owner shows the cotangent of the value, which is one for all of them.
        impl<T: Differentiable> Differentiable for $pointer<T> {
            type Cotangent = $pointer<T::Cotangent>;
            type Seed = $pointer<T::Cotangent>;
            const CONSTANT: bool = T::CONSTANT;
            fn leaves(&self, leaves: &mut Leaves) {
                if T::CONSTANT {
                    return;
                }
                let value: &T = self;
                let header = shared_header::<T>();
                let start = (&raw const *value).cast::<u8>().wrapping_sub(header);
                let align = align_of::<T>().max(align_of::<usize>());
                let size = (header + size_of::<T>()).next_multiple_of(align);
                let layout = Layout::from_size_align(size, align).expect("the value is in memory");
                leaves.shared((&raw const *self).cast(), start, layout, |leaves| value.leaves(leaves));
            }
            fn cotangent(&self, source: &mut Source) -> Self::Cotangent {
                $pointer::new((**self).cotangent(source))
            }
            fn seed(&self, source: &mut Source) -> Option<Self::Seed> {
                Some(self.cotangent(source))
            }
        }
    )*};
}
shared!(Rc, Arc);

impl<T: Differentiable + Copy> Differentiable for Cell<T>
where
    T::Cotangent: Copy,
{
    type Cotangent = Cell<T::Cotangent>;
    type Seed = Cell<T::Cotangent>;
    const CONSTANT: bool = T::CONSTANT;
    fn leaves(&self, leaves: &mut Leaves) {
        // SAFETY: nothing writes to the cell while its leaves are listed.
        unsafe { &*self.as_ptr() }.leaves(leaves);
    }
    fn cotangent(&self, source: &mut Source) -> Self::Cotangent {
        Cell::new(self.get().cotangent(source))
    }
    fn seed(&self, source: &mut Source) -> Option<Self::Seed> {
        Some(self.cotangent(source))
    }
}

impl<T: Differentiable> Differentiable for RefCell<T> {
    type Cotangent = RefCell<T::Cotangent>;
    type Seed = RefCell<T::Cotangent>;
    const CONSTANT: bool = T::CONSTANT;
    fn leaves(&self, leaves: &mut Leaves) {
        self.borrow().leaves(leaves);
    }
    fn cotangent(&self, source: &mut Source) -> Self::Cotangent {
        RefCell::new(self.borrow().cotangent(source))
    }
    fn seed(&self, source: &mut Source) -> Option<Self::Seed> {
        Some(self.cotangent(source))
    }
}

impl<T: Differentiable> Differentiable for [T] {
    type Cotangent = Vec<T::Cotangent>;
    type Seed = Vec<T::Cotangent>;
    const CONSTANT: bool = T::CONSTANT;
    #[inline]
    fn leaves(&self, leaves: &mut Leaves) {
        T::leaves_of_all(self, leaves);
    }
    #[inline]
    fn cotangent(&self, source: &mut Source) -> Self::Cotangent {
        T::cotangents_of_all(self, source)
    }
    fn seed(&self, source: &mut Source) -> Option<Self::Seed> {
        Some(self.cotangent(source))
    }
}

impl<T: Differentiable> Differentiable for Vec<T> {
    type Cotangent = Vec<T::Cotangent>;
    type Seed = Vec<T::Cotangent>;
    const CONSTANT: bool = T::CONSTANT;
    #[inline]
    fn leaves(&self, leaves: &mut Leaves) {
        if T::CONSTANT {
            return;
        }
        let place = (&raw const *self).cast::<u8>();
        let link = place.wrapping_add(const { vec_pointer::<T>() });
        let buffer = Layout::array::<T>(self.capacity()).expect("the buffer is in memory");
        leaves.allocated(link, self.as_ptr().cast(), buffer, |leaves| {
            T::leaves_of_all(self, leaves)
        });
    }
    #[inline]
    fn cotangent(&self, source: &mut Source) -> Self::Cotangent {
        T::cotangents_of_all(self, source)
    }
    fn seed(&self, source: &mut Source) -> Option<Self::Seed> {
        Some(self.cotangent(source))
    }
}

impl<T: Differentiable, const N: usize> Differentiable for [T; N] {
    type Cotangent = [T::Cotangent; N];
    type Seed = [T::Cotangent; N];
    const CONSTANT: bool = T::CONSTANT;
    #[inline]
    fn leaves(&self, leaves: &mut Leaves) {
        T::leaves_of_all(self, leaves);
    }
    #[inline]
    fn cotangent(&self, source: &mut Source) -> Self::Cotangent {
        std::array::from_fn(|i| self[i].cotangent(source))
    }
    fn seed(&self, source: &mut Source) -> Option<Self::Seed> {
        Some(self.cotangent(source))
    }
}

impl<T: Differentiable> Differentiable for Option<T> {
    type Cotangent = Option<T::Cotangent>;
    type Seed = T::Seed;
    const CONSTANT: bool = T::CONSTANT;
    fn leaves(&self, leaves: &mut Leaves) {
        self.iter().for_each(|value| value.leaves(leaves));
    }
    fn cotangent(&self, source: &mut Source) -> Self::Cotangent {
        self.as_ref().map(|value| value.cotangent(source))
    }
    fn seed(&self, source: &mut Source) -> Option<T::Seed> {
        self.as_ref()?.seed(source)
    }
    fn absent(&self) -> bool {
        self.as_ref().is_none_or(T::absent)
    }
}

impl<T: Differentiable, E> Differentiable for Result<T, E> {
    type Cotangent = Option<T::Cotangent>;
    type Seed = T::Seed;
    const CONSTANT: bool = T::CONSTANT;
    fn leaves(&self, leaves: &mut Leaves) {
        self.iter().for_each(|value| value.leaves(leaves));
    }
    fn cotangent(&self, source: &mut Source) -> Self::Cotangent {
        self.as_ref().ok().map(|value| value.cotangent(source))
    }
    fn seed(&self, source: &mut Source) -> Option<T::Seed> {
        self.as_ref().ok()?.seed(source)
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
            const CONSTANT: bool = $($name::CONSTANT)&&+;
            #[inline]
            fn leaves(&self, leaves: &mut Leaves) {
                $(self.$index.leaves(leaves);)+
            }
            #[inline]
            fn cotangent(&self, source: &mut Source) -> Self::Cotangent {
                ($(self.$index.cotangent(source),)+)
            }
            fn seed(&self, source: &mut Source) -> Option<Self::Seed> {
                Some(self.cotangent(source))
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
