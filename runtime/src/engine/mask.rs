//! Sets of small numbers: which inputs are differentiated, which outputs are seeded.

/// A set of flags, equal to another with the same flags set.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Mask {
    low: u64,
    /// Flags from 64 on, without trailing zeros; most sets need none.
    high: Vec<u64>,
}

impl Mask {
    /// The set of positions whose flag is set.
    pub(crate) fn of(flags: impl IntoIterator<Item = bool>) -> Self {
        let mut mask = Self::default();
        for (i, flag) in flags.into_iter().enumerate() {
            if flag {
                mask.insert(i);
            }
        }
        mask
    }

    /// The set of these positions.
    pub(crate) fn of_members(members: impl IntoIterator<Item = usize>) -> Self {
        let mut mask = Self::default();
        members.into_iter().for_each(|i| mask.insert(i));
        mask
    }

    /// Adds a position.
    pub(crate) fn insert(&mut self, i: usize) {
        match i / 64 {
            0 => self.low |= 1 << i,
            word => {
                if self.high.len() < word {
                    self.high.resize(word, 0);
                }
                self.high[word - 1] |= 1 << (i % 64);
            }
        }
    }

    /// Is the position in the set?
    pub(crate) fn has(&self, i: usize) -> bool {
        let word = match i / 64 {
            0 => self.low,
            word => self.high.get(word - 1).copied().unwrap_or(0),
        };
        word >> (i % 64) & 1 == 1
    }

    /// Is nothing in the set?
    pub(crate) fn is_empty(&self) -> bool {
        self.low == 0 && self.high.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::Mask;

    #[test]
    fn sets_are_equal_if_their_members_are() {
        for n in [1, 63, 64, 65, 200] {
            let mask = Mask::of((0..n).map(|i| i % 3 == 0));
            assert!((0..300).all(|i| mask.has(i) == (i < n && i % 3 == 0)));
            let mut grown = Mask::default();
            (0..n).rev().filter(|i| i % 3 == 0).for_each(|i| grown.insert(i));
            assert_eq!(mask, grown);
        }
        assert!(Mask::of([false; 100]).is_empty() && !Mask::of([true]).is_empty());
    }
}
