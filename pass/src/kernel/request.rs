//! What a frontend asks for.
//!
//! A request becomes one function of the module, `entry`, whose signature follows from the fields:
//!
//! * [`Mode::Combined`]: the primal's arguments; after each [`Activity::Dup`] argument its shadows, as many as `width`
//!   says; then, if `seed_argument`, as many cotangents of the result. Result: a structure of the primal's result if
//!   `primal_result`, then the cotangents of the [`Activity::Out`] arguments, in order, of several directions an array
//!   each; the bare value if it is one; `void` if it is none.
//! * [`Mode::Forward`]: the primal's arguments; after each `Dup` argument its shadows, or tangents, as many as `width`
//!   says. Result: a structure of the primal's result if `primal_result`, then its tangents; bare or `void` as above.
//! * Of both, the last argument is `ptr arena` if `arena_argument`.
//! * [`Mode::Augmented`] and [`Mode::Reverse`] split the combined one. Augmented: arguments and shadows, then
//!   `ptr arena`; gives the structure {`ptr` frame, primal's result, shadow of the result if it holds pointers, of several
//!   directions an array of them}. Reverse: as many cotangents of the result if it holds floats, then `ptr frame, ptr
//!   arena`; gives the cotangents of the `Out` arguments as above.

use crate::llvm::{Function, Type};

/// What is asked of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Forward and reverse sweep in one function.
    Combined,
    /// The forward sweep, which leaves a frame.
    Augmented,
    /// The reverse sweep from a frame, as often as wanted.
    Reverse,
    /// Tangents beside values.
    Forward,
}

/// What a function's argument means for the derivative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Activity {
    /// Nothing depends on it that is asked for.
    Const,
    /// A float (or aggregate or word of floats) by value: its cotangent is returned.
    Out,
    /// A pointer (or aggregate with pointers) with a shadow; in forward mode also a float with a tangent.
    Dup,
    /// As `Dup`, and what the argument points to is wanted for its shadow only.
    DupNoNeed,
}

/// One derivative that a frontend asks for.
#[derive(Clone, Debug)]
pub struct DiffRequest<'m> {
    /// The function to differentiate.
    pub function: Function<'m>,
    /// What is asked.
    pub mode: Mode,
    /// One per argument of the function.
    pub arguments: Vec<Activity>,
    /// Is the result differentiated?
    pub result_active: bool,
    /// Does the derivative give the primal's result, too?
    pub primal_result: bool,
    /// Is the cotangent of the result an argument? Otherwise it is one.
    pub seed_argument: bool,
    /// Is the arena an argument, the last one, of a combined derivative or of tangents? Otherwise the entry has one of its
    /// own. Split sweeps always take it as an argument.
    pub arena_argument: bool,
    /// Directions at once: the primal runs once, and every value has as many shadows, tangents or cotangents.
    pub width: u32,
    /// Name of the function to emit. If the module declares it, with the right type, it gets its body; calls of it
    /// are in the differentiated code when requests are nested.
    pub entry: String,
}

/// The type of what a request gives once for each of its directions: an array of several.
pub fn of_all(ty: Type<'_>, width: u32) -> Type<'_> {
    match width {
        1 => ty,
        n => ty.array(n.into()),
    }
}
