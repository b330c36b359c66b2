//! Where in a region a pointer may point: offsets `base + k · stride` between two bounds.

/// A set of offsets. Stride 0: only `base`, and then both bounds are `base`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Span {
    /// One offset that all others are congruent to.
    pub(crate) base: i64,
    /// Distance of the offsets.
    pub(crate) stride: i64,
    /// The least, if it is known.
    pub(crate) low: Option<i64>,
    /// The greatest, if it is known.
    pub(crate) high: Option<i64>,
}

/// What is added to a pointer: `offset`, and a multiple of `stride` between two bounds.
pub(crate) type Step = Span;

pub(crate) fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i64::try_from(a).unwrap_or(1)
}

impl Span {
    pub(crate) fn exact(offset: i64) -> Self {
        Self {
            base: offset,
            stride: 0,
            low: Some(offset),
            high: Some(offset),
        }
    }

    /// All multiples of `stride` from `base`, both ways.
    pub(crate) fn strided(base: i64, stride: i64) -> Self {
        if stride == 0 {
            return Self::exact(base);
        }
        Self {
            base,
            stride: stride.abs(),
            low: None,
            high: None,
        }
    }

    pub(crate) fn is_exact(self) -> bool {
        self.stride == 0
    }

    /// The sums of an offset of each.
    pub(crate) fn plus(self, step: Step) -> Self {
        let sum = |a: Option<i64>, b: Option<i64>| a?.checked_add(b?);
        Self {
            base: self.base.wrapping_add(step.base),
            stride: gcd(self.stride, step.stride),
            low: sum(self.low, step.low),
            high: sum(self.high, step.high),
        }
    }

    pub(crate) fn shifted(self, by: i64) -> Self {
        self.plus(Self::exact(by))
    }

    /// Offsets of either.
    pub(crate) fn join(self, other: Self) -> Self {
        let stride = gcd(gcd(self.stride, other.stride), self.base.wrapping_sub(other.base));
        let both = |f: fn(i64, i64) -> i64, a: Option<i64>, b: Option<i64>| Some(f(a?, b?));
        Self {
            base: self.base,
            stride,
            low: both(i64::min, self.low, other.low),
            high: both(i64::max, self.high, other.high),
        }
    }

    /// The join, where a bound that grows again is given up: an ascending or descending pointer.
    pub(crate) fn widen(self, other: Self) -> Self {
        let mut joined = self.join(other);
        if !self.is_exact() {
            joined.low = joined.low.filter(|_| joined.low == self.low);
            joined.high = joined.high.filter(|_| joined.high == self.high);
        }
        joined
    }

    /// Is the offset one of these?
    pub(crate) fn contains(self, offset: i64) -> bool {
        let on = match self.stride {
            0 => offset == self.base,
            s => offset.wrapping_sub(self.base) % s == 0,
        };
        on && self.low.is_none_or(|l| offset >= l) && self.high.is_none_or(|h| offset <= h)
    }

    /// May an offset be in both?
    pub(crate) fn meets(self, other: Self) -> bool {
        let stride = gcd(self.stride, other.stride);
        let apart = self.base.wrapping_sub(other.base);
        let on = if stride == 0 { apart == 0 } else { apart % stride == 0 };
        let below = |h: Option<i64>, l: Option<i64>| matches!((h, l), (Some(h), Some(l)) if h < l);
        on && !below(self.high, other.low) && !below(other.high, self.low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_that_ascends_has_no_upper_bound() {
        let once = Span::exact(0).widen(Span::exact(8));
        assert_eq!((once.stride, once.low, once.high), (8, Some(0), Some(8)));
        let again = once.widen(once.shifted(8));
        assert_eq!((again.stride, again.low, again.high), (8, Some(0), None));
        assert_eq!(again.widen(again.shifted(8)), again);
    }

    #[test]
    fn spans_meet_only_where_offsets_coincide() {
        let array = Span {
            low: Some(8),
            high: Some(40),
            ..Span::strided(8, 16)
        };
        assert!(array.meets(Span::exact(24)));
        assert!(!array.meets(Span::exact(0)));
        assert!(!array.meets(Span::exact(16)));
        assert!(!array.meets(Span::exact(56)));
        assert!(array.meets(Span::strided(0, 4)));
    }
}
