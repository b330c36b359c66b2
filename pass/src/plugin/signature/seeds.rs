//! The cotangents of the result with which a reverse sweep begins: one, or of several directions an array of them.
//!
//! C passes an array in a structure: through memory, or taken apart into registers, where it looks like as many numbers or
//! like vectors of them.

use super::{Holds, Operands, Passed, fits};
use crate::llvm::{Type, Value};
use crate::plugin::names::marker;

/// What a call passes.
pub(in crate::plugin) enum Seeds<'m> {
    /// One after the other.
    Each(Vec<Passed<'m>>),
    /// The address of an array of such.
    At(Value<'m>, Type<'m>),
    /// An array of such in parts.
    Parts(Vec<Value<'m>>, Type<'m>),
}

/// Reads as many seeds of a type as there are directions.
pub(super) fn read<'m>(operands: &mut Operands<'m>, ty: Type<'m>, width: u32) -> Option<Seeds<'m>> {
    let module = operands.call.block().parent().module();
    let bytes = u64::from(width) * module.size(ty);
    let passed = operands.call.argument_type_attribute(operands.next, "byval");
    if let Some(object) = passed.filter(|_| operands.left() > 0) {
        let fits = module.size(object) == bytes;
        return operands.take().filter(|_| fits).map(|at| Seeds::At(at, ty));
    }
    let mut next = || operands.take().filter(|v| marker(*v).is_none());
    let first = next()?;
    let mut parts = vec![first];
    if fits(first.ty(), ty) {
        for _ in 1..width {
            parts.push(next().filter(|v| fits(v.ty(), ty))?);
        }
        let each = parts.into_iter().map(|v| Passed::Value(v, ty));
        return Some(Seeds::Each(each.collect()));
    }
    let size = |parts: &[Value<'m>]| parts.iter().map(|v| module.size(v.ty())).sum::<u64>();
    while size(&parts) < bytes {
        parts.push(next()?);
    }
    let whole = size(&parts) == bytes && parts.iter().all(|v| Holds::of(v.ty()).floats);
    whole.then_some(Seeds::Parts(parts, ty))
}
