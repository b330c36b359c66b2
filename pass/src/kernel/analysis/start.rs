//! Where the words of a range of memory begin, its pointers and `double`s: what a copy must know that moves them one by one.

use super::kinds::Kinds;
use super::span::{Span, gcd};

/// Where words begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    /// So many bytes from the start of the range (less than eight), and every eight from there.
    At(u64),
    /// Each elsewhere, as in a struct without padding.
    Apart,
    /// Where nothing else is known, at addresses that are multiples of eight.
    Aligned,
}

impl Start {
    /// Where words begin in a window, by its cells. `fold` is the distance at which the memory repeats, or zero. Where an
    /// address may be any, it is taken to be one of a word. Cells that may be the first half of a word and the second, too,
    /// tell nothing: there the analysis took several places for one.
    pub(super) fn of(cells: &[(Span, Kinds)], window: Span, fold: i64) -> Self {
        let (mut at, mut aligned) = (None, false);
        for (cell, kinds) in cells.iter().filter(|(_, k)| k.meets(Kinds::F64 | Kinds::PTR)) {
            let stride = gcd(gcd(cell.stride, window.stride), fold);
            let distance = (cell.base - window.base).rem_euclid(8);
            match stride % 8 {
                _ if cell.stride > 8 && cell.stride % 8 != 0 => return Self::Apart,
                0 if kinds.meets(Kinds::F64_TAIL | Kinds::PTR_TAIL) && distance % 4 == 0 => aligned = true,
                0 if at.is_some_and(|a| a != distance) => return Self::Apart,
                0 => at = Some(distance),
                4 if distance % 4 != 0 => return Self::Apart,
                _ => aligned = true,
            }
        }
        match at {
            Some(distance) if !aligned => Self::At(distance as u64),
            _ => Self::Aligned,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(cells: &[(i64, i64, Kinds)], window: Span) -> Start {
        let cells: Vec<_> = cells
            .iter()
            .map(|(base, stride, k)| (Span::strided(*base, *stride), *k))
            .collect();
        Start::of(&cells, window, 0)
    }

    #[test]
    fn words_begin_where_all_doubles_and_pointers_do() {
        let record = [(8, 0, Kinds::PTR), (16, 24, Kinds::F64), (4, 0, Kinds::F32)];
        assert_eq!(start(&record, Span::exact(0)), Start::At(0));
        // What is left of it behind a key of four bytes, and behind one of a byte.
        assert_eq!(start(&record, Span::exact(4)), Start::At(4));
        assert_eq!(start(&record, Span::exact(1)), Start::At(7));
    }

    #[test]
    fn words_of_structs_without_padding_begin_apart() {
        assert_eq!(start(&[(4, 12, Kinds::F64)], Span::exact(0)), Start::Apart);
        let two = [(0, 0, Kinds::F64), (12, 0, Kinds::PTR)];
        assert_eq!(start(&two, Span::exact(0)), Start::Apart);
    }

    #[test]
    fn a_cell_that_may_be_either_half_of_a_word_tells_nothing() {
        let both = Kinds::F64 | Kinds::F64_TAIL;
        assert_eq!(start(&[(0, 0, both), (4, 0, both)], Span::exact(0)), Start::Aligned);
    }

    #[test]
    fn where_an_address_may_be_any_words_are_aligned() {
        let one = [(8, 0, Kinds::F64)];
        assert_eq!(start(&one, Span::strided(0, 1)), Start::Aligned);
        assert_eq!(start(&[], Span::exact(0)), Start::Aligned);
    }
}
