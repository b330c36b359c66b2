//! What four bytes can hold.

use std::fmt;
use std::ops::{BitAnd, BitOr, BitOrAssign};

/// A set of what a cell can hold beside integers. A value wider than four bytes is noted at its first cell, and as a
/// tail at those that it goes on in.
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Kinds(u16);

impl Kinds {
    /// Integers only.
    pub const NONE: Self = Self(0);
    /// `double`.
    pub const F64: Self = Self(1);
    /// Second half of a `double`.
    pub const F64_TAIL: Self = Self(2);
    /// `float`.
    pub const F32: Self = Self(4);
    /// A float of another width (`half`, `fp128`).
    pub const OTHER_FLOAT: Self = Self(8);
    /// A pointer.
    pub const PTR: Self = Self(16);
    /// Second half of a pointer.
    pub const PTR_TAIL: Self = Self(32);
    /// Floats of all widths.
    pub const FLOATS: Self = Self(1 | 2 | 4 | 8 | 512 | 1024);
    /// Single bytes of something that is not an integer.
    pub const PARTIAL: Self = Self(64);
    /// Copied between memory that code outside knows, and touched nowhere else.
    pub const UNKNOWN: Self = Self(128);
    /// The same, where run time does not tell either: part of a float of whatever width, if not of an integer.
    pub const PART: Self = Self(256);
    /// `x86_fp80`.
    pub const F80: Self = Self(512);
    /// The rest of an `x86_fp80`.
    pub const F80_TAIL: Self = Self(1024);

    /// Is it nothing but integers?
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }

    /// Is all of `other` in it?
    pub fn has(self, other: Self) -> bool {
        self & other == other
    }

    /// Is anything of `other` in it?
    pub fn meets(self, other: Self) -> bool {
        !(self & other).is_none()
    }

    /// The others than these.
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Can floats be in it?
    pub fn has_float(self) -> bool {
        self.meets(Self::FLOATS | Self::UNKNOWN | Self::PART | Self::PARTIAL)
    }

    /// Can pointers be in it?
    pub fn has_pointer(self) -> bool {
        self.meets(Self::PTR | Self::PTR_TAIL | Self::UNKNOWN | Self::PARTIAL)
    }
}

impl BitOr for Kinds {
    type Output = Self;

    fn bitor(self, o: Self) -> Self {
        Self(self.0 | o.0)
    }
}

impl BitOrAssign for Kinds {
    fn bitor_assign(&mut self, o: Self) {
        self.0 |= o.0;
    }
}

impl BitAnd for Kinds {
    type Output = Self;

    fn bitand(self, o: Self) -> Self {
        Self(self.0 & o.0)
    }
}

impl fmt::Display for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [(Kinds, &str); 11] = [
            (Kinds::F64, "f64"),
            (Kinds::F64_TAIL, "f64+4"),
            (Kinds::F32, "f32"),
            (Kinds::OTHER_FLOAT, "float"),
            (Kinds::PTR, "ptr"),
            (Kinds::PTR_TAIL, "ptr+4"),
            (Kinds::PARTIAL, "bytes"),
            (Kinds::UNKNOWN, "unknown"),
            (Kinds::PART, "part"),
            (Kinds::F80, "f80"),
            (Kinds::F80_TAIL, "f80+4"),
        ];
        let names: Vec<_> = NAMES.iter().filter(|(k, _)| self.has(*k)).map(|(_, n)| *n).collect();
        match names[..] {
            [] => f.write_str("int"),
            _ => f.write_str(&names.join("|")),
        }
    }
}

impl fmt::Debug for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
