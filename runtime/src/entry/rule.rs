//! Functions with a derivative of their own, and other marks that the pass reads.
//!
//! What the pass sees, and what it is to make of it:
//!
//! * `cotangent_custom_vjp(rule, args, out)`, called by every function that has a rule. `rule` is the address of a
//!   constant [`Rule`], whose first two fields are its description (address and length of JSON text, as in a request);
//!   `args` is an array of addresses of the argument values, `out` the place of the result. Natively it runs
//!   `rule.primal(args, out)`. The evaluator does not enter it: a region ends there. It asks the rule's layout function
//!   what the result is made of, which calls `cotangent_leaf(kind, place)` for each tensor and float. At run time the
//!   engine finds the rule by its symbol, rebuilds `args` and a place for the result, calls [`Rule::run`], and keeps the
//!   [`Ran`]; [`Ran::pullback`] turns seeds (one per output leaf) into cotangents (one per leaf of the parameters with
//!   `"wrt":true`). Which arguments it can rebuild follows from `params[i].ty` in the description: `& Tensor`, `Tensor`,
//!   `f64`, `f32`, integers and `bool`.
//! * `cotangent_custom_jvp(rule, args, out)`, called by every function that has a tangent rule only ([`TangentRule`]).
//!   Natively it runs the function's body.
//! * `cotangent_inactive()`, first in a function: what the function returns and writes is constant. Its tensor ops have
//!   no derivative until it returns.
//! * `cotangent_stop_gradient_f64(x)` and `_f32`: the identity, of derivative zero.

use super::program::rules::{self, Backward};
use super::shim::{Arguments, Callable, Shim, shim_of};
use crate::differentiable::{Differentiable, Leaf, Leaves, Number, Source};
use crate::kernel::{Addresses, KernelRule};
use std::alloc::Layout;
use std::mem::{ManuallyDrop, MaybeUninit, offset_of};

/// A derivative that a user wrote.
#[repr(C)]
#[derive(Debug)]
pub struct Rule {
    description: *const u8,
    description_len: usize,
    primal: Shim,
    forward: unsafe fn(args: *const *const (), out: *mut ()) -> Box<dyn Backward>,
    outputs: unsafe fn(out: *const (), leaves: &mut Leaves),
    layout: unsafe extern "C-unwind" fn(out: *const ()),
    size: usize,
    align: usize,
    /// By this the pass knows a rule.
    marker: Marker,
    /// What kernels call.
    kernel: KernelRule,
}

// The pass knows these places, and that kernels' part comes last.
const _: () = {
    assert!(offset_of!(Rule, description_len) == 8 && offset_of!(Rule, layout) == 40);
    assert!(offset_of!(Rule, kernel) + size_of::<KernelRule>() == size_of::<Rule>());
    assert!(offset_of!(TangentRule, kernel) + size_of::<KernelRule>() == size_of::<TangentRule>());
};

// SAFETY: a rule is constant.
unsafe impl Sync for Rule {}

type Marker = extern "C-unwind" fn(rule: *const Rule, args: *const *const (), out: *mut ());

/// A rule's forward half that was run.
pub struct Ran(Box<dyn Backward>);

impl std::fmt::Debug for Ran {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ran")
    }
}

impl Rule {
    /// Its description, as JSON.
    pub fn description(&self) -> &'static str {
        // SAFETY: `rule_of` took the parts from a string of the program.
        unsafe { std::str::from_utf8_unchecked(std::slice::from_raw_parts(self.description, self.description_len)) }
    }

    /// Runs the forward half: arguments are moved out of their places, the result is written to `out`.
    ///
    /// # Safety
    /// `args` are addresses of arguments of the function, `out` is a place for its result.
    pub unsafe fn run(&self, args: *const *const (), out: *mut ()) -> Ran {
        // SAFETY: as the caller promises.
        Ran(unsafe { (self.forward)(args, out) })
    }

    /// Size and alignment of a result.
    pub fn result(&self) -> Layout {
        // SAFETY: they are those of a type.
        unsafe { Layout::from_size_align_unchecked(self.size, self.align) }
    }

    /// The leaves of a result.
    ///
    /// # Safety
    /// `out` holds a result of the function.
    pub unsafe fn outputs(&self, out: *const ()) -> Vec<Leaf> {
        let mut leaves = Leaves::default();
        // SAFETY: as the caller promises.
        unsafe { (self.outputs)(out, &mut leaves) };
        leaves.into_vec()
    }
}

impl Ran {
    /// One seed per leaf of the result in, one cotangent per leaf of the differentiated parameters out. Any number of
    /// times.
    pub fn pullback(&self, seeds: Vec<Number>) -> Vec<Number> {
        self.0.call(seeds)
    }
}

/// The rule of a function: its body, `forward(args..) -> (result, residuals)`, `backward(residuals, seed) -> cotangents`,
/// and what lists the leaves of its arguments.
pub const fn rule_of<A, R, S, C, P, F, B, L>(
    description: &'static str,
    primal: P,
    forward: F,
    backward: B,
    reach: L,
) -> Rule
where
    L: Fn(&Addresses, &mut Leaves) + Copy,
    R: Differentiable<Cotangent: Send + 'static>,
    S: Clone + Send + 'static,
    C: Differentiable + 'static,
    P: Callable<A, R> + Copy,
    F: Callable<A, (R, S)> + Copy,
    B: Fn(S, R::Cotangent) -> C + Copy + Send + Sync + 'static,
{
    Rule {
        description: description.as_ptr(),
        description_len: description.len(),
        primal: shim_of::<A, R, P>(primal),
        forward: rules::forward::<A, R, S, C, F, B>,
        outputs: rules::outputs::<R>,
        kernel: KernelRule::reverse_mode::<A, R, S, C, F, B, L>(forward, backward, reach),
        layout: rules::layout::<R>,
        size: size_of::<R>(),
        align: align_of::<R>(),
        marker: cotangent_custom_vjp,
    }
}

impl Rule {
    /// The same rule with `jvp(args, tangents) -> (result, tangent)`.
    pub const fn with_tangent<R, J, L>(self, jvp: J, reach: L) -> Rule
    where
        R: Differentiable,
        J: Fn(&Addresses, &mut Source) -> (R, R::Cotangent) + Copy,
        L: Fn(&Addresses, &mut Leaves) + Copy,
    {
        Rule {
            kernel: self.kernel.with_tangent::<R, J, L>(jvp, reach),
            ..self
        }
    }
}

/// A tangent that a user wrote.
#[repr(C)]
#[derive(Debug)]
pub struct TangentRule {
    description: *const u8,
    description_len: usize,
    primal: Shim,
    kernel: KernelRule,
}

/// The rule of a function: its body, `jvp(args, tangents) -> (result, tangent)`, and what lists the leaves of its
/// arguments.
pub const fn tangent_rule_of<A, R, P, J, L>(description: &'static str, primal: P, jvp: J, reach: L) -> TangentRule
where
    R: Differentiable,
    P: Callable<A, R> + Copy,
    J: Fn(&Addresses, &mut Source) -> (R, R::Cotangent) + Copy,
    L: Fn(&Addresses, &mut Leaves) + Copy,
{
    TangentRule {
        description: description.as_ptr(),
        description_len: description.len(),
        primal: shim_of::<A, R, P>(primal),
        kernel: KernelRule::NONE.with_tangent::<R, J, L>(jvp, reach),
    }
}

/// A call of a function that has a tangent rule only.
#[inline]
pub fn call_with_tangent_rule<A: Arguments, R>(rule: &'static TangentRule, args: A) -> R {
    let args = ManuallyDrop::new(args);
    let mut out = MaybeUninit::<R>::uninit();
    args.addresses(|args| cotangent_custom_jvp(rule, args.as_ptr(), out.as_mut_ptr().cast()));
    // SAFETY: the function returned, so it wrote the result.
    unsafe { out.assume_init() }
}

/// The marker of a function with a tangent rule; natively, a call of its body.
#[inline(never)]
#[unsafe(no_mangle)]
extern "C-unwind" fn cotangent_custom_jvp(rule: *const TangentRule, args: *const *const (), out: *mut ()) {
    // SAFETY: `call_with_tangent_rule` passes a rule with arguments of its function.
    unsafe { ((*rule).primal)(args, out) };
}

/// A call of a function that has a rule.
#[inline]
pub fn call_with_rule<A: Arguments, R>(rule: &'static Rule, args: A) -> R {
    let args = ManuallyDrop::new(args);
    let mut out = MaybeUninit::<R>::uninit();
    args.addresses(|args| cotangent_custom_vjp(rule, args.as_ptr(), out.as_mut_ptr().cast()));
    // SAFETY: the function returned, so it wrote the result.
    unsafe { out.assume_init() }
}

/// The marker of a function with a rule; natively, a call of its body.
#[inline(never)]
#[unsafe(no_mangle)]
extern "C-unwind" fn cotangent_custom_vjp(rule: *const Rule, args: *const *const (), out: *mut ()) {
    // SAFETY: `call_with_rule` passes a rule with arguments of its function.
    unsafe { ((*rule).primal)(args, out) };
}

/// The marker of a leaf of a result.
#[inline(never)]
#[unsafe(no_mangle)]
pub(super) extern "C" fn cotangent_leaf(_kind: i32, _place: *const ()) {}

/// Marks a function as constant for the derivative.
#[inline(always)]
pub fn inactive() {
    cotangent_inactive();
}

/// The marker of an inactive function.
#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn cotangent_inactive() {}
