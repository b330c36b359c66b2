//! The names that the field uses in C: entry points, and the words between arguments.

use crate::llvm::{Opcode, Value};

/// What a call asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryPoint {
    /// Forward and reverse sweep.
    Autodiff,
    /// Tangents.
    Fwddiff,
    /// The forward sweep alone.
    AugmentFwd,
    /// The reverse sweep alone.
    Reverse,
    /// The bytes that a caller must provide for what the forward sweep leaves.
    AugmentSize,
}

/// Entry points; a function is one if its name contains the text.
const ENTRY_POINTS: [(&str, EntryPoint); 5] = [
    ("__enzyme_autodiff", EntryPoint::Autodiff),
    ("__enzyme_fwddiff", EntryPoint::Fwddiff),
    ("__enzyme_augmentfwd", EntryPoint::AugmentFwd),
    ("__enzyme_augmentsize", EntryPoint::AugmentSize),
    ("__enzyme_reverse", EntryPoint::Reverse),
];
/// How all names of the family begin.
pub(super) const FAMILY: &str = "__enzyme_";

/// The entry point that a function's name tells; none if it is not of the family.
///
/// # Errors
/// If it is of the family, and nothing that is known.
pub(super) fn entry_point(name: &str) -> Result<Option<EntryPoint>, ()> {
    match ENTRY_POINTS.iter().find(|(text, _)| name.contains(text)) {
        Some((_, point)) => Ok(Some(*point)),
        None if name.contains(FAMILY) => Err(()),
        None => Ok(None),
    }
}

/// A word before an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marker {
    Const,
    Dup,
    DupNoNeed,
    /// A shadow per direction, at a distance that is given.
    DupV,
    DupNoNeedV,
    Out,
    Width,
    Tape,
    Allocated,
    NoFree,
    PrimalReturn,
    NoReturn,
    /// A wish that holds anyway.
    Granted,
}

const MARKERS: [(&str, Marker); 17] = [
    ("enzyme_const", Marker::Const),
    ("enzyme_dup", Marker::Dup),
    ("enzyme_dupnoneed", Marker::DupNoNeed),
    ("enzyme_dupv", Marker::DupV),
    ("enzyme_dupnoneedv", Marker::DupNoNeedV),
    ("enzyme_out", Marker::Out),
    ("enzyme_width", Marker::Width),
    ("enzyme_vector", Marker::Granted),
    ("enzyme_tape", Marker::Tape),
    ("enzyme_allocated", Marker::Allocated),
    ("enzyme_nofree", Marker::NoFree),
    ("enzyme_primal_return", Marker::PrimalReturn),
    ("enzyme_noret", Marker::NoReturn),
    ("enzyme_const_return", Marker::NoReturn),
    ("enzyme_runtime_activity", Marker::Granted),
    ("enzyme_strong_zero", Marker::Granted),
    ("enzyme_active_return", Marker::Granted),
];

/// The word that an operand of a call is: a variable of that name, by value or by address, or metadata.
pub(super) fn marker(operand: Value<'_>) -> Option<Marker> {
    let name = match operand.metadata_text() {
        Some(text) => text,
        None => {
            let loaded = operand.is(Opcode::LLVMLoad).then(|| operand.operand(0));
            let variable = loaded.unwrap_or(operand);
            variable.is_global().then(|| variable.name())?
        }
    };
    named(&name)
}

/// The word of a name, which may be that of a C++ variable in a namespace.
fn named(name: &str) -> Option<Marker> {
    let is = |word: &str| {
        let mangled = format!("{}{word}", word.len());
        let inner = name
            .strip_prefix("_Z")
            .and_then(|n| n.split_once(&mangled))
            .map(|(_, rest)| rest);
        name == word || inner.is_some_and(|rest| rest.is_empty() || rest.starts_with('E'))
    };
    MARKERS.iter().find(|(word, _)| is(word)).map(|(_, m)| *m)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_points_are_found_in_mangled_names() {
        assert_eq!(entry_point("_Z17__enzyme_autodiffPvz"), Ok(Some(EntryPoint::Autodiff)));
        assert_eq!(entry_point("__enzyme_fwddiff_f"), Ok(Some(EntryPoint::Fwddiff)));
        assert_eq!(entry_point("__enzyme_batch"), Err(()));
        assert_eq!(entry_point("sin"), Ok(None));
    }

    #[test]
    fn words_are_found_in_namespaces_and_longer_names_are_not_words() {
        assert_eq!(named("enzyme_dup"), Some(Marker::Dup));
        assert_eq!(named("enzyme_dupnoneed"), Some(Marker::DupNoNeed));
        assert_eq!(named("_ZN2ad12enzyme_constE"), Some(Marker::Const));
        assert_eq!(named("enzyme_constants"), None);
        assert_eq!(named("_ZL15enzyme_constant"), None);
    }
}
