//! Words in memory of the caller's that hold a pointer at one time and a `double` at another.
//!
//! There the shadow of a `double` is a seed, so that a shadow other than zero is not yet that of a pointer. The word itself
//! tells: an address, read as a `double`, is less than 1e-308.
//!
//!     forward   w = load p        w' = S[p] if w is an address, else 0
//!               store w, p        S[p] = w' if w has one; else 0 if there was an address; else as it was
//!     reverse   as elsewhere, and shadows of pointers stay in `S[p]`
//!
//! Of a piece of such a word (a tag or a count, where a `union` or a virtual call lets objects of several types be in one
//! place) nothing tells what it is a piece of. It is taken for an integer, which has neither shadow nor cotangent: where
//! there turns out to be one, the program stops.
//!
//!     forward   k = load p        S[p] is zero
//!               store k, p        S[p] = 0 if the word around was an address
//!     reverse   k̄ is zero; so is S[p], if it is no shadow of a pointer

use super::augment::Augment;
use super::leaves::UNKNOWN;
use super::sweep::Sweep;
use crate::kernel::engine::Engine;
use crate::kernel::lost::{Lost, any_bit, unless_shadowed};
use crate::llvm::{Builder, Type, Value};

/// The shadow of a word that was loaded, from what is in its place. `words` is the type as words as wide as a pointer.
pub(super) fn loaded<'m>(a: &Augment<'_, 'm>, words: Type<'m>, value: Value<'m>, shadow: Value<'m>) -> Value<'m> {
    let (values, shadows) = (a.b.bitcast(value, words), a.b.bitcast(shadow, words));
    let pointer = |k: u32| each(a, "cotangent.given.pointer", k, &[values, shadows]);
    gathered(a, words, shadow.ty(), pointer)
}

/// What a store of a word leaves in its place in the shadow memory. Where the builder stands, it has not happened yet.
pub(super) fn stored<'m>(
    a: &Augment<'_, 'm>,
    words: Type<'m>,
    shadow: Value<'m>,
    (address, place): (Value<'m>, Value<'m>),
    alignment: u32,
) -> Value<'m> {
    let before = a.b.load_aligned(words, address, alignment);
    let seeds = a.b.load_aligned(words, place, alignment);
    let shadows = a.b.bitcast(shadow, words);
    let left = |k: u32| each(a, "cotangent.given.left", k, &[before, seeds, shadows]);
    gathered(a, words, shadow.ty(), left)
}

/// Stops the program if a piece is none of an integer, by its shadow or its cotangent.
pub(super) fn is_integer<'m>(engine: &Engine<'m>, b: &Builder<'m>, i: Value<'m>, piece: Value<'m>) {
    if piece.is_constant() {
        return;
    }
    let counts = any_bit(b, engine.module(), piece);
    let none = piece.ty().context().ptr().address(UNKNOWN);
    unless_shadowed(engine, b, i, Lost::Piece, none, counts);
}

/// Ends the shadow of a pointer that a piece is written over. Where the builder stands, it has not happened yet.
pub(super) fn ended<'m>(a: &Augment<'_, 'm>, address: Value<'m>, place: Value<'m>, ty: Type<'m>) {
    let bytes = ty.context().int(64).int(a.engine.module().store_size(ty));
    a.b.call(a.engine.support("cotangent.given.ended"), &[address, place, bytes]);
}

/// The cotangent of a piece that is stored, or zero where the shadow of a pointer is.
pub(super) fn piece_left<'m>(s: &Sweep<'_, 'm>, place: Value<'m>, piece: Value<'m>) -> Value<'m> {
    let pointer = s.b.call(s.engine.support("cotangent.given.is.pointer"), &[place]);
    s.b.select(pointer, piece.ty().zero(), piece)
}

/// A support function's answer for one of several words.
fn each<'m>(a: &Augment<'_, 'm>, name: &str, k: u32, words: &[Value<'m>]) -> Value<'m> {
    let one = |w: &Value<'m>| match w.ty().is_vector() {
        true => a.b.extract_element(*w, w.ty().context().int(32).int(u64::from(k))),
        false => *w,
    };
    let words: Vec<_> = words.iter().map(one).collect();
    a.b.call(a.engine.support(name), &words)
}

fn gathered<'m>(a: &Augment<'_, 'm>, words: Type<'m>, ty: Type<'m>, each: impl Fn(u32) -> Value<'m>) -> Value<'m> {
    if !words.is_vector() {
        return a.b.bitcast(each(0), ty);
    }
    let index = words.context().int(32);
    let all = (0..words.length() as u32).fold(words.poison(), |all, k| {
        a.b.insert_element(all, each(k), index.int(u64::from(k)))
    });
    a.b.bitcast(all, ty)
}
