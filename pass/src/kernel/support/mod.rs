//! Run-time support of derivatives, as LLVM code that becomes part of the module.

use crate::llvm::{Function, Linkage, Mod, parse_text};

const TEXTS: [&str; 6] = [
    include_str!("arena.ll"),
    include_str!("copy.ll"),
    include_str!("words.ll"),
    include_str!("given.ll"),
    include_str!("../forward/support.ll"),
    include_str!("table.ll"),
];

/// What moves back fields of one sort, one copy for each: accesses of other types would be taken for what memory holds
/// where derivatives are differentiated.
const FIELDS: &str = include_str!("fields.ll");
const SORTS: [&str; 4] = ["f64", "f32", "f80", "part"];

/// The chunk that derivatives leave for each other. It has state, so that it comes last: see there.
const SPARE: &str = include_str!("spare.ll");

/// Says of a function that it is one of these.
const MARK: &str = "cotangent-support";

/// Adds the support functions to a module, once. Until [`close`] passes keep them.
///
/// # Errors
/// If LLVM cannot read or link them.
pub fn link(module: Mod<'_>) -> Result<(), String> {
    if module.function("cotangent.alloc").is_some_and(|f| !f.is_declaration()) {
        return Ok(());
    }
    TEXTS.into_iter().try_for_each(|text| add(module, text))?;
    SORTS
        .into_iter()
        .try_for_each(|sort| add(module, &FIELDS.replace("SORT", sort)))
}

fn add(module: Mod<'_>, text: &str) -> Result<(), String> {
    let own = parse_text(module.context(), text)?;
    for f in own.module().functions().filter(|f| !f.is_declaration()) {
        f.add_string_attribute(MARK, "");
    }
    own.module().adopt_target(module);
    own.link_into(module)
}

/// Is it a support function?
pub fn is_support(f: Function<'_>) -> bool {
    f.string_attribute(MARK).is_some()
}

/// Makes the support functions the module's own, when all derivatives are made: what is not used of them goes.
///
/// # Errors
/// If LLVM cannot read or link them.
pub fn close(module: Mod<'_>) -> Result<(), String> {
    if module
        .function("cotangent.spare.put")
        .is_some_and(|f| f.is_declaration())
    {
        add(module, SPARE)?;
    }
    for f in module.functions().filter(|f| is_support(*f)) {
        f.set_linkage(Linkage::LLVMInternalLinkage);
    }
    Ok(())
}
