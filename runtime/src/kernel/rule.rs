//! Derivatives that users wrote, as a kernel calls them: by addresses of values and of their shadows.

use super::Arena;
use super::shadow::{Cursor, Piece, Run, Table, Walk};
use crate::differentiable::{Differentiable, Leaf, Leaves, Source};
use crate::entry::{Callable, item, structure};

/// Runs the user's forward half in the place of the function; gives what [`Reverse`] needs, which goes with the arena.
type Augment = unsafe extern "C-unwind" fn(
    args: *const *const (),
    shadows: *const *mut u8,
    out: *mut (),
    out_shadow: *mut u8,
    arena: *mut Arena,
) -> *mut ();
/// Takes the cotangent out of the shadow of the result and adds those of the arguments to their shadows.
type Reverse = unsafe extern "C-unwind" fn(kept: *mut ());
/// Runs the user's tangent function in the place of the function.
type Tangent = unsafe extern "C-unwind" fn(
    args: *const *const (),
    shadows: *const *mut u8,
    out: *mut (),
    out_shadow: *mut u8,
    arena: *mut Arena,
);

/// The part of a rule that kernels use.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KernelRule {
    augment: Option<Augment>,
    reverse: Option<Reverse>,
    tangent: Option<Tangent>,
}

/// The arguments of a call of a function that has a rule: addresses of the values, and of their shadows.
#[derive(Debug)]
pub struct Addresses {
    args: *const *const (),
    shadows: *const *mut u8,
}

impl Addresses {
    /// The leaves of argument `i`.
    pub fn leaves<T: Differentiable>(&self, i: usize, leaves: &mut Leaves) {
        // SAFETY: macro-made code names the type of parameter `i`.
        let (value, shadow) = unsafe { (*self.args.add(i), *self.shadows.add(i)) };
        if let Some(walk) = leaves.walk() {
            walk.start(Piece::known(value.cast(), shadow));
        }
        // SAFETY: as above.
        leaves.of(i, unsafe { &*value.cast::<T>() });
    }

    /// The tangent of argument `i`, from a source of tangents.
    pub fn tangent<T: Differentiable>(&self, i: usize, source: &mut Source) -> T::Cotangent {
        // SAFETY: as in `leaves`.
        unsafe { &*(*self.args.add(i)).cast::<T>() }.cotangent(source)
    }

    /// Argument `i`, moved out of its place. Macro-made code does so once.
    pub fn take<T>(&self, i: usize) -> T {
        // SAFETY: as in `leaves`; the place is not used again.
        unsafe { (*self.args.add(i)).cast::<T>().read() }
    }

    /// Leaves of the differentiated arguments, with their shadows.
    fn reached(&self, reach: impl Fn(&Addresses, &mut Leaves)) -> Vec<Run> {
        let mut leaves = Leaves::walking(Walk::following(Table::default()));
        reach(self, &mut leaves);
        leaves.into_parts().0
    }
}

/// Leaves of a result that the engine does not know, with shadows made for the memory behind it.
fn made<R: Differentiable>(result: &R, shadow: *mut u8) -> (Vec<Run>, Table) {
    let mut walk = Walk::making();
    walk.start(Piece::known((&raw const *result).cast(), shadow));
    let mut leaves = Leaves::walking(walk);
    leaves.of(Leaf::RETURN, result);
    let (runs, walk) = leaves.into_parts();
    (runs, walk.map(Walk::into_table).unwrap_or_default())
}

/// What the reverse of a call needs.
struct Kept<S, D, B> {
    residuals: S,
    /// A seed with the structure of the result.
    seed: D,
    outputs: Vec<Run>,
    inputs: Vec<Run>,
    _shadows: Table,
    backward: B,
}

unsafe extern "C-unwind" fn augment<A, R, S, C, F, B, L>(
    args: *const *const (),
    shadows: *const *mut u8,
    out: *mut (),
    out_shadow: *mut u8,
    arena: *mut Arena,
) -> *mut ()
where
    R: Differentiable<Cotangent: 'static>,
    S: Clone + 'static,
    C: Differentiable,
    F: Callable<A, (R, S)> + Copy,
    B: Fn(S, R::Cotangent) -> C + Copy + 'static,
    L: Fn(&Addresses, &mut Leaves) + Copy,
{
    // SAFETY: `KernelRule::reverse_mode` was given the functions, which have no bytes.
    let (forward, backward, reach) = unsafe { (item::<F>(), item::<B>(), item::<L>()) };
    let inputs = Addresses { args, shadows }.reached(reach);
    // SAFETY: the caller passes addresses of the arguments.
    let (result, residuals) = unsafe { forward.call(args) };
    let seed = result.cotangent(&mut Source::Nothing);
    // SAFETY: `out` is a place for the result.
    let result = unsafe {
        out.cast::<R>().write(result);
        &*out.cast::<R>()
    };
    let (outputs, shadows) = made(result, out_shadow);
    let kept = Kept {
        residuals,
        seed,
        outputs,
        inputs,
        _shadows: shadows,
        backward,
    };
    // SAFETY: the caller passes the arena of its call.
    unsafe { (*arena).keep(kept) }.cast()
}

unsafe extern "C-unwind" fn reverse<S, D, C, B>(kept: *mut ())
where
    S: Clone,
    D: Differentiable<Cotangent = D>,
    C: Differentiable,
    B: Fn(S, D) -> C,
{
    // SAFETY: what `augment` gave; one reverse runs at a time.
    let kept = unsafe { &*kept.cast::<Kept<S, D, B>>() };
    let seed = kept
        .seed
        .cotangent(&mut Source::Shadows(Cursor::new(kept.outputs.clone())));
    structure::zero(&kept.outputs);
    let cotangents = (kept.backward)(kept.residuals.clone(), seed);
    add(&cotangents, &kept.inputs, "cotangents", "arguments");
}

/// Adds numbers of a user's rule to shadows.
fn add<T: Differentiable>(given: &T, to: &[Run], what: &str, whose: &str) {
    let mut leaves = Leaves::default();
    leaves.of(0, given);
    let (given, _) = leaves.into_parts();
    let wanted: Vec<Run> = to.iter().map(|run| Run { param: 0, ..*run }).collect();
    if let Some(difference) = structure::difference(&given, &wanted) {
        panic!("the {what} of a rule have not the structure of its {whose}: the {what} are made of {difference}");
    }
    structure::add(&given, &wanted);
}

unsafe extern "C-unwind" fn tangent<R, J, L>(
    args: *const *const (),
    shadows: *const *mut u8,
    out: *mut (),
    out_shadow: *mut u8,
    arena: *mut Arena,
) where
    R: Differentiable,
    J: Fn(&Addresses, &mut Source) -> (R, R::Cotangent) + Copy,
    L: Fn(&Addresses, &mut Leaves) + Copy,
{
    // SAFETY: `KernelRule::with_tangent` was given the functions, which have no bytes.
    let (jvp, reach) = unsafe { (item::<J>(), item::<L>()) };
    let addresses = Addresses { args, shadows };
    let inputs = addresses.reached(reach);
    let (result, tangent) = jvp(&addresses, &mut Source::Shadows(Cursor::new(inputs)));
    // SAFETY: `out` is a place for the result.
    let result = unsafe {
        out.cast::<R>().write(result);
        &*out.cast::<R>()
    };
    let (outputs, shadows) = made(result, out_shadow);
    structure::zero(&outputs);
    add(&tangent, &outputs, "tangents", "result");
    // SAFETY: the caller passes the arena of its call.
    unsafe { (*arena).keep(shadows) };
}

impl KernelRule {
    /// No rule.
    pub const NONE: KernelRule = KernelRule {
        augment: None,
        reverse: None,
        tangent: None,
    };

    /// The rule of a function with `forward(args..) -> (result, residuals)` and `backward(residuals, seed) -> cotangents`.
    pub const fn reverse_mode<A, R, S, C, F, B, L>(_: F, _: B, _: L) -> KernelRule
    where
        R: Differentiable<Cotangent: 'static>,
        S: Clone + 'static,
        C: Differentiable,
        F: Callable<A, (R, S)> + Copy,
        B: Fn(S, R::Cotangent) -> C + Copy + 'static,
        L: Fn(&Addresses, &mut Leaves) + Copy,
    {
        KernelRule {
            augment: Some(augment::<A, R, S, C, F, B, L>),
            reverse: Some(reverse::<S, R::Cotangent, C, B>),
            tangent: None,
        }
    }

    /// The same with `jvp(args, tangents) -> (result, tangent)`.
    pub const fn with_tangent<R, J, L>(self, _: J, _: L) -> KernelRule
    where
        R: Differentiable,
        J: Fn(&Addresses, &mut Source) -> (R, R::Cotangent) + Copy,
        L: Fn(&Addresses, &mut Leaves) + Copy,
    {
        KernelRule {
            tangent: Some(tangent::<R, J, L>),
            ..self
        }
    }
}
