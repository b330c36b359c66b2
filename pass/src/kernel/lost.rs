//! Derivatives that would be lost: what only run time can tell stops the program there, with a message that names the
//! place. A store of an active value, or of a pointer to memory with a shadow, must find a shadow to write to; where
//! there is none, what is read back would count as constant.

use super::Refusal;
use super::engine::Engine;
use super::reverse::leaves::{INACTIVE, is_active};
use crate::llvm::{Builder, Function, IntPredicate, Linkage, Mod, Value, demangle};

/// What is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Lost {
    /// A value is stored to memory that has no shadow.
    Stored,
    /// Memory is copied to memory that has no shadow.
    Copied,
    /// A value is loaded by a pointer of which nobody knows where it leads.
    Loaded,
    /// The bits of a float are the result of integer arithmetic.
    Changed,
    /// Part of a float or pointer is moved by itself, in memory that holds either.
    Piece,
    /// Memory of the caller's is resized.
    Resized,
}

impl Lost {
    fn text(self) -> &'static str {
        match self {
            Self::Stored => {
                "a value with a derivative is stored to memory that has no shadow (it is declared constant, or is not \
                 reached through what has a derivative)"
            }
            Self::Copied => {
                "values with derivatives are copied to memory that has no shadow (it is declared constant, or is not \
                 reached through what has a derivative)"
            }
            Self::Loaded => "a value is loaded through a pointer that was made from an integer",
            Self::Changed => "the bits of a value with a derivative are computed as those of an integer",
            Self::Piece => {
                "part of a float or pointer is moved by itself, in memory that holds floats and pointers at different \
                 times: move whole values, and leave zeros in shadows of integers"
            }
            Self::Resized => {
                "memory that the function did not allocate is reallocated, and how much of it has a shadow is not known"
            }
        }
    }
}

/// The message, as a global constant.
pub(super) fn message<'m>(module: Mod<'m>, i: Value<'m>, what: Lost) -> Value<'m> {
    let at = i.location().map(|l| (l.file().1, l.position().0));
    let at = at.map_or_else(String::new, |(file, line)| format!(" at {file}:{line}"));
    let function = demangle(&i.block().parent().name());
    let text = format!("cotangent: a derivative is lost in `{function}`{at}: {}", what.text());
    constant(module, &text)
}

fn constant<'m>(module: Mod<'m>, text: &str) -> Value<'m> {
    let text = module.context().const_string(text);
    let message = module.add_global("cotangent.says.lost", text.ty());
    message.set_initializer(text);
    message.set_global_constant();
    message.set_global_linkage(Linkage::LLVMInternalLinkage);
    message
}

/// The message for a call by a pointer of a function that was refused.
pub(super) fn refusal<'m>(module: Mod<'m>, function: Function<'m>, why: &[Refusal]) -> Value<'m> {
    let name = demangle(&function.name());
    let reason = why.first().map_or_else(String::new, |r| match r.line {
        0 => format!(": {}", r.construct),
        line => format!(": {} at {}:{line}", r.construct, r.file.1),
    });
    constant(
        module,
        &format!("cotangent: `{name}`, which the program has called by a pointer, has no derivative{reason}"),
    )
}

/// Stops the program if `counts`, and the shadow address `to` is none.
pub(super) fn unless_shadowed<'m>(
    engine: &Engine<'m>,
    b: &Builder<'m>,
    i: Value<'m>,
    what: Lost,
    to: Value<'m>,
    counts: Value<'m>,
) {
    let says = message(engine.module(), i, what);
    b.call(engine.support("cotangent.lost.unless"), &[to, counts, says]);
}

/// Is any bit set of an integer, or of a vector of such?
pub(super) fn any_bit<'m>(b: &Builder<'m>, module: Mod<'m>, v: Value<'m>) -> Value<'m> {
    let word = v.ty().context().int(8 * module.size(v.ty()) as u32);
    let v = if v.ty().is_vector() { b.bitcast(v, word) } else { v };
    b.icmp(IntPredicate::LLVMIntNE, v, v.ty().zero())
}

/// Holds a shadow, of whatever type, the address of one? `None` if it cannot.
pub(super) fn any_active<'m>(m: Mod<'m>, b: &Builder<'m>, shadow: Value<'m>) -> Option<Value<'m>> {
    let (ty, context) = (shadow.ty(), m.context());
    if ty.is_pointer() {
        return Some(is_active(m, b, shadow));
    }
    if ty.is_int() {
        let bits = ty.int_width();
        if !bits.is_multiple_of(64) {
            return None;
        }
        if bits == 64 {
            // A word of zero is no address.
            let less = b.sub(shadow, ty.int(1));
            return Some(b.icmp(IntPredicate::LLVMIntULT, less, ty.int(INACTIVE - 1)));
        }
        let words = context.int(64).vector(bits / 64);
        return any_active(m, b, b.bitcast(shadow, words));
    }
    if !ty.is_vector() && !ty.is_struct() && !ty.is_array() {
        return None;
    }
    let index = context.int(32);
    let part = |k: u32| match ty.is_vector() {
        true => b.extract_element(shadow, index.int(u64::from(k))),
        false => b.extract(shadow, k),
    };
    if ty.is_vector() && !ty.element().is_pointer() && !ty.element().is_int() {
        return None;
    }
    let parts = (0..ty.parts().len() as u32).filter_map(|k| any_active(m, b, part(k)));
    parts.reduce(|a, c| b.or(a, c))
}
