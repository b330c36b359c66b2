//! Loads and stores.
//!
//!     forward   y = load p       y' = load S[p]                pointers: the shadow memory holds shadow pointers
//!               store x, p       store x', S[p]
//!     reverse   S[p] += ȳ; ȳ = 0                               floats: the shadow memory holds cotangents
//!               x̄ += S[p]; S[p] = 0
//!
//! Where memory holds floats or pointers at different times, storing one also ends what the other left in the shadow.
//! `S[p]` is the shadow of `p`. Where it may have none, the access is under a test; where it has none, there is none.

use super::augment::Augment;
use super::construct::Construct;
use super::given;
use super::leaves::{Carries, is_active, is_made, only_if};
use super::plan::{Need, Plan, Target};
use super::sweep::Sweep;
use crate::kernel::Refusal;
use crate::kernel::analysis::{Field, Holds, Kinds};
use crate::kernel::lost::{Lost, any_active, any_bit, unless_shadowed};
use crate::llvm::{Builder, IntPredicate, Opcode, RealPredicate, Type, Value};

const NO_SIGNED_ZEROS: u32 = 1 << 3;

/// Address, type and alignment of an access.
fn access<'m>(i: Value<'m>) -> (Value<'m>, Type<'m>) {
    match i.opcode() {
        Opcode::LLVMLoad => (i.operand(0), i.ty()),
        _ => (i.operand(1), i.operand(0).ty()),
    }
}

/// Alignment of the access to the shadow. The caller's shadows are aligned as their scalars are, no better.
fn alignment(i: Value<'_>) -> u32 {
    i.alignment().min(8)
}

/// The value that is loaded or stored.
fn moved<'m>(i: Value<'m>) -> Value<'m> {
    if i.is(Opcode::LLVMLoad) { i } else { i.operand(0) }
}

/// What memory may hold where the access is.
pub(super) fn there<'m>(i: Value<'m>, plan: &Plan<'m>) -> Carries {
    let (address, ty) = access(i);
    held(&plan.content.region(address, Some(plan.module().store_size(ty))))
}

/// What a range of memory may hold.
pub(super) fn held(holds: &Holds) -> Carries {
    match holds {
        Holds::Integers => Carries::default(),
        Holds::Fields { fields, .. } => Carries {
            pointers: fields.iter().any(|(_, f)| *f == Field::Pointer),
            floats: fields.iter().any(|(_, f)| *f != Field::Pointer),
        },
        Holds::Undecided {
            pointers,
            f64,
            f32,
            other,
            unknown,
            ..
        } => Carries {
            pointers: *pointers || *unknown,
            floats: *f64 || *f32 || *other || *unknown,
        },
    }
}

/// May the word that is loaded or stored hold a pointer at one time and a float at another?
fn is_either<'m>(i: Value<'m>, plan: &Plan<'m>) -> bool {
    let v = moved(i);
    plan.needs_shadow(v)
        && plan
            .leaves(v)
            .lanes
            .iter()
            .any(|(_, k)| k.has_pointer() && k.has_float())
}

/// Can the engine not tell what the word is that is loaded or stored? In memory of the program's own run time tells
/// pointers from floats: in the forward sweep the shadow of a float is zero.
fn is_undecided<'m>(i: Value<'m>, plan: &Plan<'m>) -> bool {
    let v = moved(i);
    let floats = Kinds::F64 | Kinds::F64_TAIL | Kinds::F32 | Kinds::PART;
    let mut known = floats | Kinds::PTR | Kinds::PTR_TAIL | Kinds::PARTIAL;
    if plan.content.is_told() {
        known |= Kinds::UNKNOWN;
    }
    if plan.leaves(v).lanes.iter().any(|(_, k)| !known.has(*k)) {
        return true;
    }
    let all = |kind| plan.leaves(v).lanes.iter().all(|(_, k)| *k == kind);
    let touched = plan.leaves(v).lanes.iter().all(|(_, k)| !k.has(Kinds::UNKNOWN));
    let words = words_of(v.ty());
    // Part of a pointer has part of a shadow: where that is zero, nothing else is there in the reverse. Parts of floats
    // are moved, not added.
    let narrow = v.ty().is_int() && v.ty().int_width() < 64;
    let part = narrow && (touched || v.ty().int_width() < 32 || all(Kinds::UNKNOWN));
    let told = match plan.content.may_hold_seeds(access(i).0) {
        true => {
            let doubles = |(_, k): &(u32, Kinds)| !k.meets(Kinds::F32 | Kinds::PARTIAL);
            is_piece(i, plan) || words.is_some() && touched && plan.leaves(v).lanes.iter().all(doubles)
        }
        false => part || words.is_some_and(|words| !words.is_vector() || touched),
    };
    is_either(i, plan) && !told
}

/// Is it a piece of a word that is a pointer at one time and a float at another, in memory whose shadow may be a seed? It
/// has to be an integer: see `given.rs`.
fn is_piece<'m>(i: Value<'m>, plan: &Plan<'m>) -> bool {
    let v = moved(i);
    let touched = plan.leaves(v).lanes.iter().all(|(_, k)| !k.has(Kinds::UNKNOWN));
    let narrow = v.ty().is_int() && v.ty().int_width() < 64;
    narrow && touched && is_either(i, plan) && plan.content.may_hold_seeds(access(i).0)
}

/// The type as words, if what is loaded or stored there is either a pointer or a `double`, whose shadow may be a seed.
fn beside_seeds<'m>(i: Value<'m>, plan: &Plan<'m>) -> Option<Type<'m>> {
    words_of(moved(i).ty()).filter(|_| is_either(i, plan) && plan.content.may_hold_seeds(access(i).0))
}

/// The type as words as wide as a pointer: one, or a vector of them.
fn words_of(ty: Type<'_>) -> Option<Type<'_>> {
    if !ty.scalar().is_int() {
        return None;
    }
    let bits = match ty.is_vector() {
        true => u64::from(ty.scalar().int_width()) * ty.length(),
        false => u64::from(ty.int_width()),
    };
    let one = ty.context().int(64);
    match bits {
        64 => Some(one),
        n if n.is_multiple_of(64) => Some(one.vector((n / 64) as u32)),
        _ => None,
    }
}

/// Is the word no pointer, by its shadow? Of several, each.
fn is_no_pointer<'m>(b: &Builder<'m>, shadow: Value<'m>) -> Value<'m> {
    let words = words_of(shadow.ty()).unwrap_or(shadow.ty());
    b.icmp(IntPredicate::LLVMIntEQ, b.bitcast(shadow, words), words.zero())
}

/// Tells a load or store that has a part in derivatives.
pub(super) fn classify<'m>(i: Value<'m>, plan: &mut Plan<'m>) -> Result<Construct<'m>, Vec<Refusal>> {
    let target = plan.target(access(i).0);
    let load = i.is(Opcode::LLVMLoad);
    if load && !plan.active(i) && !plan.needs_shadow(i) || !load && !plan.activity.writes(i) {
        return Ok(Construct::Passive);
    }
    let carried = plan.carries(moved(i));
    if target != Target::Inactive && is_undecided(i, plan) {
        let help = "copy the values by their type, or write the union so that each member is read as it was written";
        return Err(vec![Refusal::at(
            i,
            "a copy of bits of which the engine cannot tell what they are",
            help,
        )]);
    }
    let counts = !load && carried.floats && plan.active(moved(i)) && plan.activity.writes_active(i);
    if counts && target == Target::Inactive && !address_is_null(i) {
        let help = "the memory is constant, or of a size that is not known: give it a shadow (`enzyme_dup`), or keep \
                    the value in other memory";
        return Err(vec![Refusal::at(
            i,
            "a value with a derivative stored to memory that has no shadow",
            help,
        )]);
    }
    Ok(match load {
        true if carried.any() => Construct::Load,
        false if carried.any() || target != Target::Inactive && (there(i, plan).any() || is_computed(i, plan)) => {
            Construct::Store
        }
        _ => Construct::Passive,
    })
}

/// Is an integer stored that may be computed from the bits of a float, where a float may be read? An integer has no
/// cotangent. Where there is one in the reverse, a float was.
fn is_computed<'m>(store: Value<'m>, plan: &Plan<'m>) -> bool {
    store.is(Opcode::LLVMStore) && store.operand(0).ty().scalar().is_int() && plan.is_laundered(store)
}

/// Is it a store to nowhere, which never runs?
fn address_is_null(store: Value<'_>) -> bool {
    let object = store.operand(1).underlying_object();
    object.is_null() || object.is_undef()
}

pub(super) fn needs<'m>(i: Value<'m>, plan: &Plan<'m>) -> Vec<Need<'m>> {
    let (address, _) = access(i);
    let floats = match i.is(Opcode::LLVMLoad) {
        true => plan.active(i),
        false => plan.carries(moved(i)).floats || there(i, plan).floats || is_computed(i, plan),
    };
    if !floats || plan.known_target(address) == Target::Inactive {
        return vec![];
    }
    let mut needs = vec![Need::Shadow(address)];
    let told = is_either(i, plan) && !is_piece(i, plan);
    needs.extend(told.then_some(Need::Shadow(moved(i))));
    needs
}

/// Emits `inner` where the shadow is active. `inner` gives a value, else it is `otherwise`. The builder must stand at the
/// end of a block, as it does in the reverse sweep.
pub(super) fn guarded<'m>(
    b: &Builder<'m>,
    plan: &Plan<'m>,
    known: Target,
    shadow: Value<'m>,
    otherwise: Option<Value<'m>>,
    inner: impl FnOnce() -> Option<Value<'m>>,
) -> Option<Value<'m>> {
    match known {
        Target::Active => return inner(),
        Target::Inactive => return otherwise,
        Target::Unknown => {}
    }
    let (from, f) = (b.block(), b.block().parent());
    let active = is_active(plan.module(), b, shadow);
    let (yes, join) = (f.append_block("active"), f.append_block("joined"));
    b.cond_br(active, yes, join);
    b.at_end(yes);
    let given = inner();
    let end = b.block();
    b.br(join);
    b.at_end(join);
    let (given, otherwise) = (given?, otherwise?);
    let phi = b.phi(given.ty());
    phi.add_incoming(&[(end, given), (from, otherwise)]);
    Some(phi)
}

/// The shadow address, or in the forward sweep a place of no consequence where there is none.
pub(super) fn or_aside<'m>(
    a: &Augment<'_, 'm>,
    known: Target,
    shadow: Value<'m>,
    aside: impl Fn() -> Value<'m>,
) -> Value<'m> {
    match known {
        Target::Active => shadow,
        Target::Inactive => aside(),
        Target::Unknown => a.b.select(is_active(a.plan.module(), a.b, shadow), shadow, aside()),
    }
}

pub(super) fn forward_load<'m>(i: Value<'m>, a: &mut Augment<'_, 'm>) -> Result<(), Refusal> {
    if !a.plan.needs_shadow(i) {
        return Ok(());
    }
    let (address, ty) = access(i);
    let known = a.plan.known_target(address);
    if known == Target::Inactive {
        let shadow = a.found_elsewhere(i);
        a.set_shadow(i, shadow);
        return Ok(());
    }
    let shadow = a.shadow(address)?;
    let from = or_aside(a, known, shadow, || a.nothing(ty));
    let mut loaded = a.b.load_aligned(ty, from, alignment(i));
    if is_piece(i, a.plan) {
        given::is_integer(a.engine, a.b, i, loaded);
        a.set_shadow(i, ty.zero());
        return Ok(());
    }
    if let Some(words) = beside_seeds(i, a.plan) {
        loaded = given::loaded(a, words, a.primal(i), loaded);
    }
    let found = a.found(i, loaded);
    a.set_shadow(i, found);
    Ok(())
}

pub(super) fn forward_store<'m>(i: Value<'m>, a: &mut Augment<'_, 'm>) -> Result<(), Refusal> {
    let (address, ty) = access(i);
    let known = a.plan.known_target(address);
    let (carried, there) = (a.plan.carries(i.operand(0)), there(i, a.plan));
    // Floats and integers end what pointers were there; in memory of the caller's the floats may have seeds.
    let floats = carried.floats || is_computed(i, a.plan);
    let ends = there.pointers && !(floats && a.plan.content.may_hold_seeds(address));
    // What is stored where no shadow is ever asked for, nobody reads.
    let read = address.is_constant() || a.plan.activity.needs_shadow(address);
    let leads = read && a.plan.needs_shadow(i.operand(0));
    if !carried.pointers && !ends || known == Target::Inactive && !leads {
        return Ok(());
    }
    let (target, value) = (a.shadow(address)?, a.shadow(i.operand(0))?);
    // Where the address of memory with a shadow is kept without one, what is read by it would count as constant.
    if known != Target::Active
        && leads
        && let Some(counts) = any_active(a.plan.module(), a.b, value)
    {
        unless_shadowed(a.engine, a.b, i, Lost::Stored, target, counts);
    }
    if known == Target::Inactive {
        return Ok(());
    }
    let place = || or_aside(a, known, target, || a.aside(ty));
    if is_piece(i, a.plan) {
        given::is_integer(a.engine, a.b, i, value);
        a.b.before(a.primal(i));
        given::ended(a, a.primal(address), place(), ty);
        a.after(i);
        return Ok(());
    }
    let (to, left) = match beside_seeds(i, a.plan) {
        Some(words) => {
            a.b.before(a.primal(i));
            let to = place();
            let left = given::stored(a, words, value, (a.primal(address), to), alignment(i));
            a.after(i);
            (to, left)
        }
        None => (place(), value),
    };
    a.b.store_aligned(left, to, alignment(i));
    Ok(())
}

pub(super) fn reverse_load<'m>(i: Value<'m>, s: &mut Sweep<'_, 'm>) -> Result<(), Refusal> {
    if !s.plan.active(i) {
        return Ok(());
    }
    let cotangent = s.take(i);
    let (address, ty) = access(i);
    let known = s.plan.known_target(address);
    if known == Target::Inactive {
        return Ok(());
    }
    if is_piece(i, s.plan) {
        given::is_integer(s.engine, s.b, i, cotangent);
        return Ok(());
    }
    let cotangent = unless_pointer(i, cotangent, s)?;
    let shadow = s.shadow(address)?;
    let (b, leaves, alignment) = (s.b, s.plan.leaves(i), alignment(i));
    let wild = s.plan.content.is_wild(address);
    if known == Target::Unknown && (wild || s.engine.makes_pointers()) {
        let counts = is_set(s, cotangent);
        let counts = match wild {
            true => counts,
            false => b.and(counts, is_made(s.plan.module(), b, shadow)),
        };
        unless_shadowed(s.engine, b, i, Lost::Loaded, shadow, counts);
    }
    guarded(b, s.plan, known, shadow, None, || {
        let sum = leaves.add(b, b.load_aligned(ty, shadow, alignment), cotangent);
        // What a store left as zero becomes the cotangent itself: no zero of a sum has a sign to keep.
        sum.set_fast_math(if ty.scalar().is_float() { NO_SIGNED_ZEROS } else { 0 });
        b.store_aligned(sum, shadow, alignment);
        None
    });
    Ok(())
}

pub(super) fn reverse_store<'m>(i: Value<'m>, s: &mut Sweep<'_, 'm>) -> Result<(), Refusal> {
    let value = i.operand(0);
    let (address, ty) = access(i);
    let known = s.plan.known_target(address);
    let floats = s.plan.carries(value).floats || there(i, s.plan).floats || is_computed(i, s.plan);
    if known == Target::Inactive || !floats {
        return Ok(());
    }
    let shadow = s.shadow(address)?;
    let (b, alignment) = (s.b, alignment(i));
    if is_piece(i, s.plan) {
        guarded(b, s.plan, known, shadow, None, || {
            let left = given::piece_left(s, shadow, b.load_aligned(ty, shadow, alignment));
            given::is_integer(s.engine, b, i, left);
            None
        });
        return Ok(());
    }
    if known == Target::Unknown && s.plan.active(value) {
        let float = match is_either(i, s.plan) {
            true => {
                let floats = is_no_pointer(b, s.shadow(value)?);
                match floats.ty().is_vector() {
                    true => {
                        let flags = floats.ty().context().int(floats.ty().length() as u32);
                        b.icmp(IntPredicate::LLVMIntNE, b.bitcast(floats, flags), flags.zero())
                    }
                    false => floats,
                }
            }
            false => s.engine.module().context().int(1).all_ones(),
        };
        unless_shadowed(s.engine, b, i, Lost::Stored, shadow, float);
    }
    let float = match beside_seeds(i, s.plan) {
        Some(words) => Some((words, is_no_pointer(b, s.shadow(value)?))),
        None => None,
    };
    let cotangent = guarded(b, s.plan, known, shadow, Some(ty.zero()), || {
        let cotangent = b.load_aligned(ty, shadow, alignment);
        // The shadows of pointers are the caller's, who may use them again.
        let left = float.map_or(ty.zero(), |(words, float)| {
            b.bitcast(b.select(float, words.zero(), b.bitcast(cotangent, words)), ty)
        });
        b.store_aligned(left, shadow, alignment);
        Some(cotangent)
    });
    if let Some(cotangent) = cotangent
        && is_computed(i, s.plan)
    {
        let counts = any_bit(b, s.plan.module(), cotangent);
        unless_shadowed(s.engine, b, i, Lost::Changed, s.inactive(address.ty()), counts);
        return Ok(());
    }
    if let Some(cotangent) = cotangent
        && s.plan.active(value)
    {
        let cotangent = unless_pointer(i, cotangent, s)?;
        s.accumulate(value, cotangent);
    }
    Ok(())
}

/// Is any part of a cotangent other than zero, as far as that can be told?
fn is_set<'m>(s: &Sweep<'_, 'm>, cotangent: Value<'m>) -> Value<'m> {
    let ty = cotangent.ty();
    match ty.is_float() {
        true => s.b.fcmp(RealPredicate::LLVMRealUNE, cotangent, ty.zero()),
        false => ty.context().int(1).all_ones(),
    }
}

/// The cotangent of a word, or zero if the word was a pointer.
fn unless_pointer<'m>(i: Value<'m>, cotangent: Value<'m>, s: &mut Sweep<'_, 'm>) -> Result<Value<'m>, Refusal> {
    if !is_either(i, s.plan) {
        return Ok(cotangent);
    }
    let shadow = s.shadow(moved(i))?;
    let words = words_of(shadow.ty()).unwrap_or(shadow.ty());
    let kept = only_if(s.b, is_no_pointer(s.b, shadow), s.b.bitcast(cotangent, words));
    Ok(s.b.bitcast(kept, cotangent.ty()))
}
