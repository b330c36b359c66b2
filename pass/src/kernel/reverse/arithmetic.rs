//! Arithmetic: instructions, intrinsics and library functions with a rule.
//!
//! Of ops that give one of their operands, which one it was is all that is needed (`choice.rs`).
//!
//!     forward   y = f(x..)                    as it stands
//!     reverse   x̄ += ∂f(x.., y) · ȳ; ȳ = 0    by the rule, for every active operand

use super::construct::{Construct, is_flat};
use super::plan::{Need, Plan};
use super::sweep::Sweep;
use crate::kernel::Refusal;
use crate::kernel::rules::{Applied, Class};
use crate::llvm::Value;

pub(super) fn classify<'m>(i: Value<'m>, rule: Applied<'m>, plan: &Plan<'m>) -> Result<Construct<'m>, Vec<Refusal>> {
    if rule.class() == Class::Unsupported {
        let help = "there is no rule for it; write it with other functions or give a custom derivative";
        return Err(vec![Refusal::at(
            i,
            format!("the derivative of `{}`", rule.name()),
            help,
        )]);
    }
    let wanted = rule.operands().into_iter().enumerate();
    let active = !is_flat(rule) && wanted.into_iter().any(|(k, x)| rule.active(k) && plan.active(x));
    Ok(if active {
        Construct::Arithmetic(rule)
    } else {
        Construct::Passive
    })
}

/// The active operands.
fn wanted<'m>(rule: Applied<'m>, plan: &Plan<'m>) -> Vec<bool> {
    let operands = rule.operands().into_iter().enumerate();
    operands.map(|(k, x)| rule.active(k) && plan.active(x)).collect()
}

pub(super) fn needs<'m>(i: Value<'m>, rule: Applied<'m>, plan: &Plan<'m>) -> Vec<Need<'m>> {
    let operands = rule.operands();
    let mut needs = vec![];
    if let Some(choice) = plan.choices.of(i) {
        return vec![Need::Primal(choice)];
    }
    for (k, wanted) in wanted(rule, plan).into_iter().enumerate() {
        if !wanted {
            continue;
        }
        let reads = rule.reads(k);
        let read = operands.iter().enumerate().filter(|(j, _)| reads.operand(*j));
        needs.extend(read.map(|(_, x)| Need::Primal(*x)));
        if reads.result {
            needs.push(Need::Primal(i));
        }
    }
    needs
}

pub(super) fn reverse<'m>(i: Value<'m>, rule: Applied<'m>, s: &mut Sweep<'_, 'm>) -> Result<(), Refusal> {
    let wanted = wanted(rule, s.plan);
    let cotangent = s.take(i);
    let needs = needs(i, rule, s.plan);
    let choice = s.plan.choices.of(i).map(|c| s.primal(c)).transpose()?;
    let mut operands = vec![];
    for x in rule.operands() {
        let read = x.is_constant() || needs.contains(&Need::Primal(x));
        operands.push(if read { s.primal(x)? } else { x.ty().poison() });
    }
    let result = if needs.contains(&Need::Primal(i)) {
        Some(s.primal(i)?)
    } else {
        None
    };
    let parts = rule.vjp(s.b, (&operands, result), choice, cotangent, &|k| wanted[k]);
    for (x, part) in rule.operands().into_iter().zip(parts) {
        if let Some(part) = part {
            s.accumulate(x, part);
        }
    }
    Ok(())
}
