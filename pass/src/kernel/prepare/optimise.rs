//! The passes that run before and after differentiation, in the words of `opt -passes`.
//!
//! Nothing here vectorises, unrolls or makes calls of the library out of loops: the engine reads loops as they were
//! written, and the compiler that goes on with the program does the rest. Nothing here changes the arguments of
//! functions or follows constants from callers into callees, for the program calls the functions, too.
//!
//! In very large functions the passes that take time as the square of the size have limits. None of them is needed for
//! a right derivative.

use crate::llvm::{Limit, Mod};

/// Calls of small functions vanish, variables become values, loops get one shape. Jumps are threaded, so that the pointer in
/// a result that may be an error is a pointer again where there was none.
const BEFORE: &str = concat!(
    "always-inline,inferattrs,",
    "function(lower-expect,simplifycfg,sroa<modify-cfg>,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg),",
    "cgscc(devirt<4>(inline,function-attrs,function(",
    "sroa<modify-cfg>,early-cse<memssa>,jump-threading,correlated-propagation,simplifycfg,instcombine<no-verify-fixpoint>,",
    "sccp,gvn,memcpyopt,dse,adce,simplifycfg,instcombine<no-verify-fixpoint>))),",
    "function(loop-simplify,lcssa,loop-mssa(loop-rotate,licm),loop(indvars,loop-deletion),",
    "constraint-elimination,gvn,sroa<modify-cfg>,dse,instcombine<no-verify-fixpoint>,simplifycfg,adce,",
    "loop-simplify,lcssa),globaldce"
);

/// Forward and reverse sweeps are inlined into one function where they can be, and frames become values. `instsimplify` is
/// for functions on which `instcombine` does not run: without either, `simplifycfg` goes round for every block.
const AFTER: &str = concat!(
    "always-inline,",
    "function(sroa<modify-cfg>,early-cse<memssa>,instsimplify,instcombine<no-verify-fixpoint>,simplifycfg),",
    "cgscc(devirt<4>(inline,function-attrs,function(",
    "sroa<modify-cfg>,early-cse<memssa>,simplifycfg,instsimplify,instcombine<no-verify-fixpoint>,",
    "memcpyopt,adce,simplifycfg))),",
    "function(loop-simplify,lcssa,loop-mssa(loop-rotate,licm),loop(indvars,loop-deletion),",
    "gvn,sroa<modify-cfg>,dse,instsimplify,instcombine<no-verify-fixpoint>,simplifycfg,adce)"
);

/// Blocks of the largest functions in which a pass runs, before: one seeks every load in all blocks, one asks at every block
/// what is known of a value in those before.
const LIMITS_BEFORE: [Limit; 2] = [Limit::new(c"GVNPass", 2_000), Limit::new(c"JumpThreadingPass", 2_000)];

/// The same, after. One more asks for every use of a value about all branches on that value, and one gives each variable
/// its places in all blocks.
const LIMITS_AFTER: [Limit; 3] = [
    Limit::new(c"GVNPass", 2_000),
    Limit::new(c"InstCombinePass", 2_000),
    Limit::new(c"SROAPass", 12_000),
];

/// Makes code easy to differentiate.
///
/// # Errors
/// Never, as the words are constant.
pub(crate) fn before(module: Mod<'_>) -> Result<(), String> {
    module.run_passes_within(BEFORE, &LIMITS_BEFORE)?;
    super::addresses::as_pointers(module);
    Ok(())
}

/// Makes derivatives as simple as they can be.
///
/// # Errors
/// Never, as the words are constant.
pub(crate) fn after(module: Mod<'_>) -> Result<(), String> {
    module.run_passes_within(AFTER, &LIMITS_AFTER)
}
