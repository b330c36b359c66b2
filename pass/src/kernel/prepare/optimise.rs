//! The passes that run before and after differentiation, in the words of `opt -passes`.
//!
//! Nothing here vectorises, unrolls or makes calls of the library out of loops: the engine reads loops as they were
//! written, and the compiler that goes on with the program does the rest. Nothing here changes the arguments of
//! functions or follows constants from callers into callees, for the program calls the functions, too.

/// Calls of small functions vanish, variables become values, loops get one shape.
pub(crate) const BEFORE: &str = concat!(
    "always-inline,inferattrs,",
    "function(lower-expect,simplifycfg,sroa<modify-cfg>,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg),",
    "cgscc(devirt<4>(inline,function-attrs,function(",
    "sroa<modify-cfg>,early-cse<memssa>,correlated-propagation,simplifycfg,instcombine<no-verify-fixpoint>,",
    "sccp,gvn,memcpyopt,dse,adce,simplifycfg,instcombine<no-verify-fixpoint>))),",
    "function(loop-simplify,lcssa,loop-mssa(loop-rotate,licm),loop(indvars,loop-deletion),",
    "constraint-elimination,gvn,sroa<modify-cfg>,dse,instcombine<no-verify-fixpoint>,simplifycfg,adce,",
    "loop-simplify,lcssa),globaldce"
);

/// Forward and reverse sweeps are inlined into one function where they can be, and frames become values.
pub(crate) const AFTER: &str = concat!(
    "always-inline,",
    "function(sroa<modify-cfg>,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg),",
    "cgscc(devirt<4>(inline,function-attrs,function(",
    "sroa<modify-cfg>,early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint>,",
    "memcpyopt,adce,simplifycfg))),",
    "function(loop-simplify,lcssa,loop-mssa(loop-rotate,licm),loop(indvars,loop-deletion),",
    "gvn,sroa<modify-cfg>,dse,instcombine<no-verify-fixpoint>,simplifycfg,adce)"
);
