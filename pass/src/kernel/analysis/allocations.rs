//! Calls that allocate, resize and free, by attributes alone.
//!
//! LLVM marks allocation functions with `allockind`, `alloc-family` and `allocsize`: rustc does so for its allocator,
//! and `inferattrs` for those of C and C++. The attributes are promises of whoever set them; nothing is known of a
//! function without them.

use crate::llvm::Value;

/// Which bytes are requested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Size {
    /// The value of an argument.
    Argument(u32),
    /// The product of two arguments.
    Product(u32, u32),
    /// Not told.
    Unknown,
}

/// What a call does to the heap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Allocation {
    /// A new block is the result.
    New {
        /// Its size.
        size: Size,
        /// Is it zeroed?
        zeroed: bool,
    },
    /// The block `old` becomes the result, with what fits.
    Resize {
        /// Argument: the old block, or null.
        old: u32,
        /// The new size.
        size: Size,
    },
    /// The block is given back.
    Free {
        /// Argument: the block.
        block: u32,
    },
}

/// What a call does to the heap, if it is a call of an allocation function.
pub fn allocation(call: Value<'_>) -> Option<Allocation> {
    let callee = call.callee()?;
    let kind = callee.attribute("allockind")?;
    let size = match callee.attribute("allocsize") {
        // Two argument numbers; the second is all ones if there is one only.
        Some(packed) => match (packed >> 32, packed & u64::from(u32::MAX)) {
            (a, b) if b == u64::from(u32::MAX) => Size::Argument(a as u32),
            (a, b) => Size::Product(a as u32, b as u32),
        },
        None => Size::Unknown,
    };
    let pointer = |name: &str| {
        let n = call.argument_count();
        (0..n).find(|i| call.argument_has(*i, name)).unwrap_or(0)
    };
    if kind & 4 != 0 {
        Some(Allocation::Free {
            block: pointer("allocptr"),
        })
    } else if kind & 2 != 0 {
        Some(Allocation::Resize {
            old: pointer("allocptr"),
            size,
        })
    } else if kind & 1 != 0 {
        Some(Allocation::New {
            size,
            zeroed: kind & 16 != 0,
        })
    } else {
        None
    }
}
