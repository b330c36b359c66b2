//! Decisions: what control does where only run time knows.

use super::atomic::OLD_VALUE;
use super::{Choice, Eval, Flow, Stop};
use crate::code::{BlockId, Ty};
use crate::value::{Base, Ptr, Val};
use cotangent_graph::ir::Value;

impl Eval<'_> {
    /// A length or size that must be a number to go on.
    pub(crate) fn number(&mut self, v: &Val) -> Flow<i64> {
        match v {
            Val::Int(x, n) => Ok(crate::value::sign_extend(*x, *n) as i64),
            Val::Sym(s, ty) => self.decide_value(*s, &ty.clone()),
            Val::Ptr(Ptr {
                base: Base::Absolute,
                off,
            }) => Ok(*off),
            other => self.refuse(format!("{other} where a number is needed")),
        }
    }

    /// Is a condition true? Asks for a decision if only run time knows.
    pub(crate) fn decide_bool(&mut self, cond: &Val) -> Flow<bool> {
        match cond {
            Val::Int(c, _) => Ok(*c != 0),
            Val::Sym(v, _) => {
                let choice = self.decide(*v, Some(&[1]))?;
                let taken = choice == Some(1);
                self.trace.known.insert(*v, i64::from(taken));
                Ok(taken)
            }
            Val::Undef => self.refuse("a branch on a value that was never set"),
            other => self.refuse(format!("a branch on {other}")),
        }
    }

    pub(super) fn switch(&mut self, on: &Val, cases: &[(u128, BlockId)], default: BlockId) -> Flow<BlockId> {
        let find = |x: u128| cases.iter().find(|(c, _)| *c == x).map_or(default, |(_, b)| *b);
        match on {
            Val::Int(x, _) => Ok(find(*x)),
            Val::Ptr(Ptr {
                base: Base::Absolute,
                off,
            }) => Ok(find(*off as u64 as u128)),
            Val::Sym(v, ty) => {
                let Ty::Int(n) = ty else {
                    return self.refuse("a switch on a float");
                };
                let ways: Vec<i64> = cases
                    .iter()
                    .map(|(c, _)| crate::value::sign_extend(*c, *n) as i64)
                    .collect();
                Ok(match self.decide(*v, Some(&ways))? {
                    Some(x) => {
                        self.trace.known.insert(*v, x);
                        find(crate::value::mask(x as u128, *n))
                    }
                    None => default,
                })
            }
            other => self.refuse(format!("a switch on {other}")),
        }
    }

    /// The value of a scalar that must be concrete.
    pub(crate) fn decide_value(&mut self, v: Value, _ty: &Ty) -> Flow<i64> {
        match self.decide(v, None)? {
            Some(x) => {
                self.trace.known.insert(v, x);
                Ok(x)
            }
            None => self.refuse("a number that no decision fixes"),
        }
    }

    pub(super) fn decide(&mut self, on: Value, ways: Option<&[i64]>) -> Flow<Choice> {
        if let Some(x) = self.trace.known.get(&on) {
            let listed = ways.is_none_or(|w| w.contains(x));
            return Ok(listed.then_some(*x));
        }
        if self.is_passing(on) {
            return self.refuse(OLD_VALUE);
        }
        *self.asked.entry(self.site).or_default() += 1;
        match self.prefix.get(self.taken) {
            Some(choice) => {
                self.taken += 1;
                Ok(*choice)
            }
            None => Err(Stop::Undecided {
                on,
                ways: ways.map(<[i64]>::to_vec),
            }),
        }
    }
}
