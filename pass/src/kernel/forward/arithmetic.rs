//! Arithmetic: `y' = Σ ∂f/∂x · x'` by the rule of the op.

use super::sweep::Sweep;
use crate::kernel::Refusal;
use crate::kernel::rules::{Class, rule_of};
use crate::llvm::Value;

pub(super) fn tangent<'m>(s: &mut Sweep<'_, '_, 'm>, i: Value<'m>) -> Result<(), Refusal> {
    let Some(rule) = rule_of(i) else { return Ok(()) };
    if rule.class() == Class::Unsupported {
        let what = format!("a call of `{}`", rule.name());
        return Err(Refusal::at(
            i,
            what,
            "it has no derivative; write the computation in another way",
        ));
    }
    let operands = rule.operands();
    let tangents: Vec<_> = operands.iter().map(|x| s.shadow(*x)).collect();
    let operands: Vec<_> = operands.into_iter().map(|x| s.primal(x)).collect();
    if let Some(tangent) = rule.jvp(s.b, &operands, s.primal(i), &tangents) {
        s.set_shadow(i, tangent);
    }
    Ok(())
}
