//! Words in memory of the caller's that hold a pointer at one time and a `double` at another.
//!
//! There the shadow of a `double` is a seed, so that a shadow other than zero is not yet that of a pointer. The word itself
//! tells: an address, read as a `double`, is less than 1e-308.
//!
//!     forward   w = load p        w' = S[p] if w is an address, else 0
//!               store w, p        S[p] = w' if w has one; else 0 if there was an address; else as it was
//!     reverse   as elsewhere, and shadows of pointers stay in `S[p]`

use super::augment::Augment;
use crate::llvm::{Builder, IntPredicate, Type, Value};

/// Addresses are less: what a program can be given by the system.
const ADDRESSES: u64 = 1 << 48;
/// No object begins in the first page.
const PAGE: u64 = 1 << 12;

/// Which words (one, or a vector of them) are addresses?
fn is_address<'m>(b: &Builder<'m>, words: Value<'m>) -> Value<'m> {
    let ty = words.ty();
    let above = b.sub(words, constant(ty, PAGE));
    b.icmp(IntPredicate::LLVMIntULT, above, constant(ty, ADDRESSES - PAGE))
}

fn constant<'m>(ty: Type<'m>, value: u64) -> Value<'m> {
    let word = ty.scalar().int(value);
    match ty.is_vector() {
        true => ty.context().const_vector(&vec![word; ty.length() as usize]),
        false => word,
    }
}

/// The shadow of a word that was loaded, from what is in its place. `words` is the type as words as wide as a pointer.
pub(super) fn loaded<'m>(b: &Builder<'m>, words: Type<'m>, value: Value<'m>, shadow: Value<'m>) -> Value<'m> {
    let pointers = b.bitcast(shadow, words);
    let kept = b.select(is_address(b, b.bitcast(value, words)), pointers, words.zero());
    b.bitcast(kept, shadow.ty())
}

/// What a store of a word leaves in its place in the shadow memory. Where the builder stands, it has not happened yet.
pub(super) fn stored<'m>(
    a: &Augment<'_, 'm>,
    words: Type<'m>,
    shadow: Value<'m>,
    (address, place): (Value<'m>, Value<'m>),
    alignment: u32,
) -> Value<'m> {
    let b = a.b;
    let pointers = b.bitcast(shadow, words);
    // It may be memory that nothing was written to yet.
    let before = b.freeze(b.load_aligned(words, address, alignment));
    let seeds = b.load_aligned(words, place, alignment);
    let seeds = b.select(is_address(b, before), words.zero(), seeds);
    let none = b.icmp(IntPredicate::LLVMIntEQ, pointers, words.zero());
    b.bitcast(b.select(none, seeds, pointers), shadow.ty())
}
