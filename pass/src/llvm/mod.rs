//! LLVM at the edge: bitcode modules, and the decoder that turns them into the evaluator's own form.
//!
//! The only unsafe code of the pass. [`raw`] wraps the C API value by value; [`decode`] reads functions, [`constant`]
//! constants and types, [`debug`] source locations.
//!
//! The kernel engine works on modules in place: [`Mod`], [`Function`], [`Block`], [`Value`] and [`Type`] are `Copy`
//! handles with queries, [`Builder`] emits.

mod analyses;
mod builder;
mod compile;
mod constant;
mod debug;
mod decode;
mod export;
mod function;
mod instruction;
mod module;
mod owned;
mod raw;
mod scope;
mod types;
mod value;
mod work;

pub use analyses::{Alias, Analyses, Backedges, CycleRef, Effects, IntegerFacts, ModRef};
pub use builder::Builder;
pub use function::{Function, is_intrinsic};
pub use instruction::Location;
pub use owned::OwnedModule;
pub use scope::Scope;
pub use types::{Type, TypeKind};
pub use value::{
    Block, Context as IrContext, IntPredicate, Linkage, Mod, Opcode, RealPredicate, RmwOp, Value, ValueKind,
};
pub use work::{Limit, OwnedMod, RawModule, collect_errors, demangle, empty_like, parse, parse_text, report_error};

pub(crate) use debug::Locations;
pub(crate) use export::{Export, export};
pub(crate) use module::{Context, Module};
