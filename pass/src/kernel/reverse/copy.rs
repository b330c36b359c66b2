//! `memcpy`, `memmove` and `memset`.
//!
//!     forward   copy(d, s, n)     shadow pointers in S[s] are copied to S[d]; where it is not known what is where, all
//!                                 words are, and a mask tells pointers from floats
//!               set(d, b, n)      S[d] = 0 if there may have been pointers
//!     reverse   S[s] += S[d]; S[d] = 0, for the floats among the bytes
//!               S[d] = 0

use super::augment::Augment;
use super::frame::Slot;
use super::leaves::{is_active, widths};
use super::memory::{guarded, held};
use super::plan::{Need, Plan, Target};
use super::sweep::Sweep;
use crate::kernel::Refusal;
use crate::kernel::analysis::{Field, Holds, Start};
use crate::kernel::engine::Engine;
use crate::kernel::lost::{Lost, message};
use crate::llvm::{Builder, IntPredicate, Linkage, Opcode, Value};

/// Shorter structures are copied field by field, in line.
const SHORT: u64 = 256;

fn size(i: Value<'_>) -> Option<u64> {
    let n = i.operand(2);
    n.is_const_int().then(|| n.zext_value())
}

fn holds<'m>(i: Value<'m>, plan: &Plan<'m>) -> Holds {
    match i.operand(1).ty().is_pointer() {
        true => plan.content.copied(i.operand(0), i.operand(1), size(i)),
        false => plan.content.region(i.operand(0), size(i)),
    }
}

/// The float that all of memory holds, if there is one and nothing else.
fn uniform(holds: &Holds) -> Option<Field> {
    match holds {
        Holds::Fields { period, fields } => match fields.as_slice() {
            [(0, Field::F64)] if *period == 8 => Some(Field::F64),
            [(0, Field::F32)] if *period == 4 => Some(Field::F32),
            _ => None,
        },
        _ => None,
    }
}

/// Checks that what is copied can be told.
pub(super) fn classify<'m>(i: Value<'m>, plan: &mut Plan<'m>) -> Result<(), Refusal> {
    let pointers: Vec<_> = (0..2).map(|k| i.operand(k)).filter(|p| p.ty().is_pointer()).collect();
    let targets: Vec<_> = pointers.iter().map(|p| plan.target(*p)).collect();
    if targets.len() == 2 && targets[0] == Target::Inactive && targets[1] == Target::Active && moves_floats(i, plan) {
        let help = "the memory is constant, or of a size that is not known: give it a shadow (`enzyme_dup`), or copy \
                    to other memory";
        let what = "a copy of values with derivatives to memory that has no shadow";
        return Err(Refusal::at(i, what, help));
    }
    if targets.contains(&Target::Inactive) {
        return Ok(());
    }
    let Holds::Undecided {
        pointers: p,
        f64,
        f32,
        other,
        unknown,
        ..
    } = holds(i, plan)
    else {
        return Ok(());
    };
    let seeds = pointers.iter().any(|p| plan.content.may_hold_seeds(*p));
    let open = pointers.iter().any(|p| plan.content.is_open(*p));
    // Where no shadow of a float is set beforehand, floats of either width are moved, and the program stops if two meet.
    let told = plan.content.is_told();
    if other || unknown && !told || seeds && p && f32 || open && f64 && f32 && !told {
        let help = "copy the values one by one, or copy whole values of one type";
        return Err(Refusal::at(
            i,
            "a copy of memory of which the engine cannot tell what it holds",
            help,
        ));
    }
    Ok(())
}

/// Are there active floats among what is copied?
fn moves_floats<'m>(i: Value<'m>, plan: &Plan<'m>) -> bool {
    plan.activity.writes_active(i) && !plan.signature.frozen && held(&holds(i, plan)).floats
}

pub(super) fn reserve<'m>(i: Value<'m>, plan: &mut Plan<'m>) {
    if needs_mask(&holds(i, plan)) {
        let region = plan.shape.region_of_value(i);
        for direction in 0..plan.signature.width {
            plan.frames.reserve(region, Slot::Mask(i, direction), 8, 8);
        }
    }
}

fn needs_mask(holds: &Holds) -> bool {
    matches!(holds, Holds::Undecided { .. })
}

pub(super) fn needs<'m>(i: Value<'m>, plan: &Plan<'m>) -> Vec<Need<'m>> {
    if !held(&holds(i, plan)).floats {
        return vec![];
    }
    let mut needs = vec![Need::Primal(i.operand(2))];
    for pointer in [i.operand(0), i.operand(1)] {
        if pointer.ty().is_pointer() && plan.known_target(pointer) != Target::Inactive {
            needs.push(Need::Shadow(pointer));
        }
    }
    needs
}

/// What tells where words begin, as `support/words.ll` wants it.
fn told<'m>(i: Value<'m>, holds: &Holds, plan: &Plan<'m>) -> Value<'m> {
    let word = i.operand(2).ty().context().int(64);
    let Holds::Undecided { words, .. } = holds else {
        return word.zero();
    };
    let by_address = |k: u32| u64::from(!is_part(i.operand(k))) << k;
    word.int(match words {
        Start::At(distance) => 8 + distance,
        // Pointers in the caller's memory are found as words only, and lie where pointers do.
        _ if may_hold_seeds(i, plan)[1] => 2,
        _ if may_hold_seeds(i, plan)[0] => 1,
        Start::Aligned => by_address(0) | by_address(1),
        Start::Apart => 0,
    })
}

/// Which ends of a copy of unknown contents may hold shadows of floats that are seeds.
fn may_hold_seeds<'m>(i: Value<'m>, plan: &Plan<'m>) -> [bool; 2] {
    [0, 1].map(|k| plan.content.may_hold_seeds(i.operand(k)))
}

/// May the pointer lead to what was cut out of a variable? LLVM aligns that by where it began.
fn is_part(pointer: Value<'_>) -> bool {
    let objects = pointer.underlying_objects();
    objects.iter().any(|o| o.is(Opcode::LLVMAlloca) && o.alignment() < 8)
}

/// The table of offsets that `support/copy.ll` and `fields.ll` read, and its length.
fn table<'m>(engine: &Engine<'m>, offsets: &[u64]) -> (Value<'m>, Value<'m>) {
    let word = engine.module().context().int(64);
    let entries: Vec<_> = offsets.iter().map(|o| word.int(*o)).collect();
    let ty = word.array(entries.len() as u64);
    let global = engine.module().add_global("cotangent.fields", ty);
    global.set_initializer(ty.aggregate(&entries));
    global.set_global_constant();
    global.set_global_linkage(Linkage::LLVMInternalLinkage);
    (global, word.int(entries.len() as u64))
}

/// Offsets of the fields of a sort.
fn offsets(fields: &[(u64, Field)], sort: Field) -> Vec<u64> {
    fields.iter().filter(|(_, f)| *f == sort).map(|(o, _)| *o).collect()
}

/// Offsets of all fields in so many bytes, if they are few.
fn unrolled(fields: &[(u64, Field)], period: u64, bytes: Option<u64>) -> Option<Vec<(u64, Field)>> {
    let bytes = bytes.filter(|b| *b <= SHORT)?;
    let starts = if period == 0 { 1 } else { bytes.div_ceil(period) };
    let all = (0..starts).flat_map(|k| fields.iter().map(move |(o, f)| (k * period + o, *f)));
    Some(all.filter(|(o, _)| *o < bytes).collect())
}

fn offset<'m>(b: &Builder<'m>, base: Value<'m>, bytes: u64) -> Value<'m> {
    if bytes == 0 {
        base
    } else {
        b.offset(base, base.ty().context().int(64).int(bytes))
    }
}

pub(super) fn forward_copy<'m>(i: Value<'m>, a: &mut Augment<'_, 'm>) -> Result<(), Refusal> {
    let (to, from) = (i.operand(0), i.operand(1));
    let (to_target, from_target) = (a.plan.known_target(to), a.plan.known_target(from));
    let holds = holds(i, a.plan);
    if to_target != Target::Active
        && from_target != Target::Inactive
        && (held(&holds).pointers || moves_floats(i, a.plan))
    {
        let says = message(a.plan.module(), i, Lost::Copied);
        let bytes =
            a.b.cast_int(a.primal(i.operand(2)), a.engine.module().context().int(64));
        let none = a.b.icmp(IntPredicate::LLVMIntNE, bytes, bytes.ty().zero());
        let counts = a.b.and(none, is_active(a.plan.module(), a.b, a.shadow(from)?));
        a.b.call(
            a.engine.support("cotangent.lost.unless"),
            &[a.shadow(to)?, counts, says],
        );
    }
    if to_target == Target::Inactive || !held(&holds).pointers && !needs_mask(&holds) {
        return Ok(());
    }
    let context = a.engine.module().context();
    let word = context.int(64);
    let (b, pointer) = (a.b, context.ptr());
    let (s_to, s_from) = (a.shadow(to)?, a.shadow(from)?);
    let seeds = may_hold_seeds(i, a.plan).map(|s| s && needs_mask(&holds));
    if seeds.contains(&true) {
        // What was there has to be known.
        b.before(a.primal(i));
    }
    let bytes = b.cast_int(a.primal(i.operand(2)), word);
    // In the forward sweep there is no branch: where there is no shadow, no bytes are copied.
    let mut active = context.int(1).all_ones();
    for (shadow, target) in [(s_to, to_target), (s_from, from_target)] {
        if target != Target::Active {
            active = b.and(active, is_active(a.plan.module(), b, shadow));
        }
    }
    let bytes = b.select(active, bytes, word.zero());
    match holds {
        Holds::Fields { period, fields } => {
            let pointers: Vec<_> = fields.into_iter().filter(|(_, f)| *f == Field::Pointer).collect();
            match unrolled(&pointers, period, size(i)).filter(|_| active.is_constant()) {
                Some(all) => {
                    // All are read before any is written: the ranges may overlap.
                    let read: Vec<_> = all
                        .iter()
                        .map(|(o, _)| b.load_aligned(pointer, offset(b, s_from, *o), 1))
                        .collect();
                    for ((o, _), word) in all.iter().zip(read) {
                        b.store_aligned(word, offset(b, s_to, *o), 1);
                    }
                }
                None => {
                    let (table, count) = table(a.engine, &offsets(&pointers, Field::Pointer));
                    let period = if period == 0 { bytes } else { word.int(period) };
                    let all = [s_to, s_from, bytes, period, table, count];
                    b.call(a.engine.support("cotangent.copy.fields"), &all);
                }
            }
        }
        Holds::Undecided { .. } => {
            let told = told(i, &holds, a.plan);
            let mask = match seeds.contains(&true) {
                true => {
                    let seeds = seeds.map(|s| word.int(u64::from(s)));
                    let (primal_to, primal_from) = (a.primal(to), a.primal(from));
                    let all = [
                        a.arena,
                        s_to,
                        s_from,
                        bytes,
                        primal_to,
                        primal_from,
                        seeds[0],
                        seeds[1],
                        told,
                    ];
                    b.call(a.engine.support("cotangent.copy.given"), &all)
                }
                false => b.call(
                    a.engine.support("cotangent.copy.words"),
                    &[a.arena, s_to, s_from, bytes, told],
                ),
            };
            if let Some(field) = a.field(a.plan.shape.region_of_value(i), Slot::Mask(i, a.direction)) {
                b.store(mask, field);
            }
        }
        Holds::Integers => {}
    }
    a.after(i);
    Ok(())
}

pub(super) fn forward_fill<'m>(i: Value<'m>, a: &mut Augment<'_, 'm>) -> Result<(), Refusal> {
    let to = i.operand(0);
    let (target, there) = (a.plan.known_target(to), held(&holds(i, a.plan)));
    if target == Target::Inactive || !there.pointers || there.floats && a.plan.content.may_hold_seeds(to) {
        return Ok(());
    }
    let context = a.engine.module().context();
    let (shadow, mut bytes) = (a.shadow(to)?, a.b.cast_int(a.primal(i.operand(2)), context.int(64)));
    if target != Target::Active {
        bytes =
            a.b.select(is_active(a.plan.module(), a.b, shadow), bytes, bytes.ty().zero());
    }
    a.b.memset(shadow, context.int(8).zero(), bytes, 1);
    Ok(())
}

pub(super) fn reverse_copy<'m>(i: Value<'m>, s: &mut Sweep<'_, 'm>) -> Result<(), Refusal> {
    let (to, from) = (i.operand(0), i.operand(1));
    let (to_target, from_target) = (s.plan.known_target(to), s.plan.known_target(from));
    let holds = holds(i, s.plan);
    if to_target == Target::Inactive || !held(&holds).floats {
        return Ok(());
    }
    if from_target == Target::Inactive || s.plan.signature.frozen {
        return reverse_fill(i, s);
    }
    let word = s.engine.module().context().int(64);
    let (s_to, s_from) = (s.shadow(to)?, s.shadow(from)?);
    let bytes = s.primal(i.operand(2))?;
    let bytes = s.b.cast_int(bytes, word);
    let mask = match s.field(s.plan.shape.region_of_value(i), Slot::Mask(i, s.direction)) {
        Some(field) => s.b.load(s_to.ty(), field),
        None => s_to,
    };
    let (b, plan, engine) = (s.b, s.plan, s.engine);
    let moves = i.intrinsic().is_some_and(|n| n.starts_with("llvm.memmove"));
    guarded(b, plan, to_target, s_to, None, || {
        // What comes from where there is no shadow ends in the copy.
        let f = b.block().parent();
        let end = (from_target != Target::Active).then(|| {
            let (both, only, end) = (f.append_block("both"), f.append_block("only"), f.append_block("moved"));
            b.cond_br(is_active(plan.module(), b, s_from), both, only);
            b.at_end(only);
            b.memset(s_to, engine.module().context().int(8).zero(), bytes, 1);
            b.br(end);
            b.at_end(both);
            end
        });
        let told = told(i, &holds, plan);
        move_back(engine, b, &holds, (s_from, s_to), (bytes, size(i)), (mask, told), moves);
        if let Some(end) = end {
            b.br(end);
            b.at_end(end);
        }
        None
    });
    Ok(())
}

/// Moves cotangents from the copy back to the original.
fn move_back<'m>(
    engine: &Engine<'m>,
    b: &Builder<'m>,
    holds: &Holds,
    (to, from): (Value<'m>, Value<'m>),
    (bytes, constant): (Value<'m>, Option<u64>),
    (mask, told): (Value<'m>, Value<'m>),
    overlap: bool,
) {
    let context = engine.module().context();
    let word = context.int(64);
    let back = if overlap { "back." } else { "" };
    match (uniform(holds), holds) {
        (Some(float), _) if constant.is_none_or(|c| c > SHORT) => {
            let float = if float == Field::F64 { "f64" } else { "f32" };
            b.call(
                engine.support(&format!("cotangent.move.{back}{float}")),
                &[to, from, bytes],
            );
        }
        (_, Holds::Fields { period, fields }) => {
            let floats: Vec<_> = fields.iter().copied().filter(|(_, f)| *f != Field::Pointer).collect();
            match unrolled(&floats, *period, constant) {
                Some(all) => {
                    let ty = |f: Field| match f {
                        Field::F64 => context.double(),
                        Field::F80 => context.extended(),
                        Field::Part => context.int(32),
                        Field::F32 | Field::Pointer => context.float(),
                    };
                    let mut read = vec![];
                    for (o, f) in &all {
                        let at = offset(b, from, *o);
                        read.push(b.load_aligned(ty(*f), at, 1));
                        b.store_aligned(ty(*f).zero(), at, 1);
                    }
                    for ((o, f), x) in all.iter().zip(read) {
                        let at = offset(b, to, *o);
                        let there = b.load_aligned(ty(*f), at, 1);
                        let sum = match f {
                            Field::Part => b.call(engine.support("cotangent.add.part"), &[there, x]),
                            _ => b.fadd(there, x),
                        };
                        b.store_aligned(sum, at, 1);
                    }
                }
                None => {
                    let period = if *period == 0 { bytes } else { word.int(*period) };
                    let sorts = [
                        (Field::F64, "f64"),
                        (Field::F32, "f32"),
                        (Field::F80, "f80"),
                        (Field::Part, "part"),
                    ];
                    for (sort, name) in sorts {
                        let own = offsets(&floats, sort);
                        if !own.is_empty() {
                            let (table, count) = table(engine, &own);
                            let move_fields = engine.support(&format!("cotangent.move.fields.{name}"));
                            b.call(move_fields, &[to, from, bytes, period, table, count]);
                        }
                    }
                }
            }
        }
        (
            _,
            Holds::Undecided {
                f64,
                f32,
                unknown,
                words,
                ..
            },
        ) => {
            // Doubles that are no words are moved like floats of either width, not added.
            let sort = word.int(u64::from(*f64) | u64::from(*f32 || *words == Start::Apart) << 1);
            let sort = if *unknown { b.or(sort, widths(b)) } else { sort };
            let all = [to, from, bytes, mask, sort, told];
            b.call(engine.support("cotangent.move.words"), &all);
        }
        (_, Holds::Integers) => {}
    }
}

pub(super) fn reverse_fill<'m>(i: Value<'m>, s: &mut Sweep<'_, 'm>) -> Result<(), Refusal> {
    let known = s.plan.known_target(i.operand(0));
    if known == Target::Inactive || !held(&holds(i, s.plan)).floats {
        return Ok(());
    }
    let (shadow, bytes) = (s.shadow(i.operand(0))?, s.primal(i.operand(2))?);
    let byte = s.engine.module().context().int(8).zero();
    let b = s.b;
    guarded(b, s.plan, known, shadow, None, || {
        b.memset(shadow, byte, bytes, 1);
        None
    });
    Ok(())
}
