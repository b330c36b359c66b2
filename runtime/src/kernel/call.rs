//! Calls of kernels. What stands between the entry points and the derivative is plain code over plain memory: it is
//! differentiated like any other where a differentiated function calls an entry point.

use super::Arena;
use super::held::Held;
use super::shadow::{Cursor, Piece, Run, Table, Walk};
use super::{Kernel, Whole, is_nested, nested};
use crate::differentiable::{Differentiable, Leaf, LeafKind, Leaves, Source};
use crate::entry::{Arguments, Pull, structure};
use crate::error::Error;
use std::alloc::Layout;
use std::mem::{ManuallyDrop, MaybeUninit};

/// A call whose memory has shadows.
struct Prepared {
    table: Table,
    /// Leaves of the differentiated parameters.
    wrt: Vec<Run>,
    /// The values of the arguments.
    values: Piece,
    /// The place for the result.
    out: Piece,
}

/// Lists the memory of a call. `list` has the addresses of the arguments; `reach` lists their leaves.
#[inline]
fn prepare<A, R>(list: &[*const ()], args: &A, out: *mut R, reach: impl Fn(&A, &mut Leaves)) -> Prepared {
    let mut walk = Walk::making();
    let addresses = walk.root(list.as_ptr().cast(), Layout::for_value(list));
    let values = walk.root((&raw const *args).cast(), Layout::new::<A>());
    let out = walk.root(out.cast(), Layout::new::<R>());
    for at in list {
        let link = addresses.shadow_of((&raw const *at).cast()).cast::<*mut u8>();
        // SAFETY: the shadow of the list has room for so many addresses.
        unsafe { link.write(values.shadow_of(at.cast())) };
    }
    walk.start(values);
    let mut leaves = Leaves::walking(walk);
    reach(args, &mut leaves);
    let (wrt, walk) = leaves.into_parts();
    Prepared {
        table: walk.map(Walk::into_table).unwrap_or_default(),
        wrt,
        values,
        out,
    }
}

impl Prepared {
    /// Leaves of the result and of what is behind `&mut`, after the call.
    #[inline]
    fn outputs<A, R: Differentiable>(
        self,
        args: &A,
        result: &R,
        finals: impl Fn(&A, &mut Leaves),
    ) -> (Table, Vec<Run>, Vec<Run>) {
        let mut walk = Walk::following(self.table);
        walk.start(self.out);
        let mut leaves = Leaves::walking(walk);
        leaves.of(Leaf::RETURN, result);
        if let Some(walk) = leaves.walk() {
            walk.start(self.values);
        }
        finals(args, &mut leaves);
        let (outputs, walk) = leaves.into_parts();
        (walk.map(Walk::into_table).unwrap_or_default(), self.wrt, outputs)
    }
}

/// Calls the function and pulls back a seed of one.
#[inline]
pub(crate) fn value_and_grad<A, R, C>(
    kernel: &'static Kernel,
    args: A,
    reach: impl Fn(&A, &mut Leaves),
    shape: impl FnOnce(&A, &mut Source) -> C,
    finals: impl Fn(&A, &mut Leaves),
) -> Result<(R, C), Error>
where
    A: Arguments,
    R: Differentiable,
    C: Differentiable<Cotangent = C>,
{
    if is_nested() {
        let Some(nested) = kernel.nested else {
            return Err(kernel.missing("grad"));
        };
        return match (R::NUMBER, nested.grad) {
            (Some(kind), Some(grad)) => Ok(nested::gradient(nested, grad, kind, args, reach, shape)),
            _ => Err(kernel.missing("grad")),
        };
    }
    match (R::NUMBER, kernel.grad) {
        (Some(kind), Some(grad)) => Ok(gradient(grad, kind, args, reach, shape)),
        (Some(_), None) => Err(kernel.missing("grad")),
        (None, _) => {
            let (result, pull) = vjp::<A, R, C>(kernel, args, reach, shape, finals)?;
            let cotangents = pull.once_with_one(&result)?;
            Ok((result, cotangents))
        }
    }
}

/// The same for a function that returns a float: the whole derivative is one call, during which the arguments live.
#[inline]
fn gradient<A, R, C>(
    grad: Whole,
    kind: LeafKind,
    args: A,
    reach: impl Fn(&A, &mut Leaves),
    shape: impl FnOnce(&A, &mut Source) -> C,
) -> (R, C)
where
    A: Arguments,
    C: Differentiable<Cotangent = C>,
{
    // By-value arguments are moved out by the callee.
    let args = ManuallyDrop::new(args);
    let shape = shape(&args, &mut Source::Nothing);
    let mut out = MaybeUninit::<R>::uninit();
    let place = out.as_mut_ptr();
    let cotangents = args.addresses(|list| {
        let Prepared { table, wrt, out, .. } = prepare(list, &*args, place, reach);
        let mut arena = Arena::new(&table);
        // SAFETY: the result is a float of that type, and so its shadow. The addresses are those of arguments of the
        // function, and of a place for its result.
        unsafe {
            match kind {
                LeafKind::F32 => out.shadow_of(place.cast()).cast::<f32>().write(1.0),
                _ => out.shadow_of(place.cast()).cast::<f64>().write(1.0),
            }
            grad(list.as_ptr(), place.cast(), &mut arena);
        }
        drop(arena);
        shape.cotangent(&mut Source::Shadows(Cursor::last(wrt, table)))
    });
    // SAFETY: the call returned, so it wrote the result.
    (unsafe { out.assume_init() }, cotangents)
}

/// Calls the function: its result, and what turns seeds into cotangents.
#[inline]
pub(crate) fn vjp<A, R, C>(
    kernel: &'static Kernel,
    args: A,
    reach: impl Fn(&A, &mut Leaves),
    shape: impl FnOnce(&A, &mut Source) -> C,
    finals: impl Fn(&A, &mut Leaves),
) -> Result<(R, Pull<C>), Error>
where
    A: Arguments,
    R: Differentiable,
    C: Differentiable<Cotangent = C>,
{
    let (Some(aug), Some(rev)) = (kernel.aug, kernel.rev) else {
        return Err(kernel.missing("vjp"));
    };
    // By-value arguments are moved out by the callee.
    let args = ManuallyDrop::new(args);
    let shape = shape(&args, &mut Source::Nothing);
    let mut out = MaybeUninit::<R>::uninit();
    let place = out.as_mut_ptr();
    let held = args.addresses(|list| {
        let call = prepare(list, &*args, place, reach);
        // The reverse is given the same arena, which stays where it is.
        let mut arena = Box::new(Arena::new(&call.table));
        // SAFETY: the addresses are those of arguments of the function, and of a place for its result, which the call
        // writes.
        let (frame, result) = unsafe {
            let frame = aug(list.as_ptr(), place.cast(), &mut *arena);
            (frame, &*place)
        };
        let (table, wrt, outputs) = call.outputs(&*args, result, finals);
        Held::new(rev, frame, arena, table, wrt, outputs)
    });
    // SAFETY: the call returned, so it wrote the result.
    let result = unsafe { out.assume_init() };
    let absent = result.absent();
    Ok((result, Pull::of_kernel(kernel.name(), held, shape, absent)))
}

/// Calls the function with tangents: its result, and what `output` makes of the tangents of its outputs.
#[inline]
pub(crate) fn jvp<A, R, T>(
    kernel: &'static Kernel,
    args: A,
    reach: impl Fn(&A, &mut Leaves),
    tangents: impl Fn(&mut Leaves),
    finals: impl Fn(&A, &mut Leaves),
    output: impl FnOnce(&A, &R, &mut Source) -> Option<T>,
) -> Result<(R, T), Error>
where
    A: Arguments,
    R: Differentiable,
{
    if is_nested() {
        let Some(nested) = kernel.nested else {
            return Err(kernel.missing("jvp"));
        };
        return nested::jvp(nested, kernel, args, reach, tangents, finals, output);
    }
    let Some(jvp) = kernel.jvp else {
        return Err(kernel.missing("jvp"));
    };
    let mut given = Leaves::default();
    tangents(&mut given);
    let (given, _) = given.into_parts();
    // By-value arguments are moved out by the callee.
    let mut args = ManuallyDrop::new(args);
    let mut out = MaybeUninit::<R>::uninit();
    let place = out.as_mut_ptr();
    let tangent = args.addresses(|list| {
        let call = prepare(list, &*args, place, reach);
        if let Some(difference) = structure::difference(&given, &call.wrt) {
            let name = kernel.name();
            return Err(Error::new(format!(
                "the tangents of `{name}` have not the structure of its arguments: the tangents are made of {difference}"
            )));
        }
        structure::copy(&given, &call.wrt);
        let mut arena = Arena::new(&call.table);
        // SAFETY: the addresses are those of arguments of the function, and of a place for its result, which the call
        // writes.
        let result = unsafe {
            jvp(list.as_ptr(), place.cast(), &mut arena);
            &*place
        };
        let (table, _, outputs) = call.outputs(&*args, result, finals);
        let tangent = output(&*args, result, &mut Source::Shadows(Cursor::new(outputs)));
        drop((arena, table));
        Ok(tangent)
    });
    match tangent {
        // SAFETY: the function was not called, so that the arguments are still there.
        Err(error) => unsafe {
            ManuallyDrop::drop(&mut args);
            Err(error)
        },
        Ok(tangent) => {
            // SAFETY: the call returned, so it wrote the result.
            let result = unsafe { out.assume_init() };
            Ok((result, tangent.ok_or_else(|| kernel.no_result())?))
        }
    }
}
