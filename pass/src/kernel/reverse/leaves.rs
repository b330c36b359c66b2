//! What the leaves of a value carry, and arithmetic on values of any type, leaf by leaf.
//!
//! A shadow and a cotangent have the type of their value. In a shadow the pointer leaves are shadow pointers and all
//! other bits are zero; in a cotangent the float leaves are cotangents and all other bits are zero. Integers may be
//! *words*, which carry floats or pointers in lanes of four bytes.

use crate::kernel::analysis::Kinds;
use crate::kernel::attributes::WIDTHS;
use crate::llvm::{Builder, IntPredicate, Mod, Type, TypeKind, Value};

/// The shadow of memory that has none: a function, null, what the program itself must not reach.
pub const UNKNOWN: u64 = 1 << 63;
/// The shadow of memory that the user declared constant: losing a derivative there is asked for.
pub const CONSTANT: u64 = 3 << 62;
/// The shadow of a pointer that was made from an integer, if nobody knows where it leads.
pub const MADE: u64 = 5 << 61;
/// Shadows from here on are none; offsets of the constants stay there.
pub const INACTIVE: u64 = 1 << 62;

/// What a value carries that derivatives are about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Carries {
    /// Pointers, which have shadows.
    pub pointers: bool,
    /// Floats, which have cotangents.
    pub floats: bool,
}

impl Carries {
    /// What either carries.
    pub fn or(self, other: Self) -> Self {
        Self {
            pointers: self.pointers || other.pointers,
            floats: self.floats || other.floats,
        }
    }

    /// Does it carry anything?
    pub fn any(self) -> bool {
        self.pointers || self.floats
    }
}

/// The lanes of a word: offsets in the value, and what is there.
pub type Lanes<'w> = &'w [(u32, Kinds)];

/// A value's type in its module, with what its integers carry.
#[derive(Clone, Copy)]
pub struct Leaves<'w, 'm> {
    /// Layout of types.
    pub module: Mod<'m>,
    /// What integers carry.
    pub lanes: Lanes<'w>,
}

/// May the lane hold a float, or part of one, that is nowhere touched as a float?
fn is_part(k: Kinds) -> bool {
    k.meets(Kinds::PART | Kinds::PARTIAL) && !k.meets(Kinds::FLOATS | Kinds::UNKNOWN)
}

/// What a type carries if its integers are just that.
pub fn carries(ty: Type<'_>) -> Carries {
    match ty.kind() {
        _ if ty.is_float() => Carries {
            floats: true,
            pointers: false,
        },
        TypeKind::LLVMPointerTypeKind => Carries {
            pointers: true,
            floats: false,
        },
        TypeKind::LLVMVectorTypeKind => carries(ty.element()),
        TypeKind::LLVMArrayTypeKind if ty.length() > 0 => carries(ty.element()),
        TypeKind::LLVMStructTypeKind => ty
            .parts()
            .into_iter()
            .fold(Carries::default(), |all, t| all.or(carries(t))),
        _ => Carries::default(),
    }
}

/// The shadow of a value of that type that points nowhere active.
pub fn inactive_shadow<'m>(ty: Type<'m>, tag: u64) -> Value<'m> {
    if ty.scalar().is_pointer() {
        return ty.address(tag);
    }
    if !carries(ty).pointers {
        return ty.zero();
    }
    let parts: Vec<_> = ty.parts().into_iter().map(|t| inactive_shadow(t, tag)).collect();
    ty.aggregate(&parts)
}

/// The zero that nothing is changed by when it is added to: floats are negative, so that LLVM sees that `zero + x` is
/// `x`.
pub fn neutral<'m>(ty: Type<'m>) -> Value<'m> {
    if ty.scalar().is_float() {
        return ty.real(-0.0);
    }
    if !ty.is_struct() && !ty.is_array() || !carries(ty).floats {
        return ty.zero();
    }
    let parts: Vec<_> = ty.parts().into_iter().map(neutral).collect();
    ty.aggregate(&parts)
}

/// The cotangent without negative zeros, for those who asked.
pub fn positive<'m>(b: &Builder<'m>, x: Value<'m>) -> Value<'m> {
    let ty = x.ty();
    if ty.scalar().is_float() {
        return b.fadd(x, ty.zero());
    }
    if !ty.is_struct() && !ty.is_array() || !carries(ty).floats {
        return x;
    }
    let parts = ty.parts().len() as u32;
    (0..parts).fold(x, |all, k| b.insert_value(all, positive(b, b.extract(x, k)), k))
}

impl<'m> Leaves<'_, 'm> {
    /// What a value of the type carries.
    pub fn carries(self, ty: Type<'m>) -> Carries {
        let words = self.lanes.iter().fold(Carries::default(), |all, (_, k)| {
            all.or(Carries {
                pointers: k.has_pointer(),
                floats: k.has_float(),
            })
        });
        carries(ty).or(words)
    }

    /// The sum of two cotangents.
    pub fn add(self, b: &Builder<'m>, x: Value<'m>, y: Value<'m>) -> Value<'m> {
        self.add_at(b, x, y, 0)
    }

    fn add_at(self, b: &Builder<'m>, x: Value<'m>, y: Value<'m>, at: u32) -> Value<'m> {
        let ty = x.ty();
        if ty.scalar().is_float() {
            return b.fadd(x, y);
        }
        if ty.scalar().is_int() {
            return self.add_words(b, x, y, at);
        }
        if !ty.is_struct() && !ty.is_array() || self.lanes.is_empty() && !carries(ty).floats {
            return x;
        }
        let mut sum = x;
        for (i, part) in ty.parts().into_iter().enumerate() {
            let i = i as u32;
            let offset = if ty.is_struct() {
                self.module.offset(ty, i) as u32
            } else {
                i * self.module.size(part) as u32
            };
            let (a, c) = (b.extract(x, i), b.extract(y, i));
            let s = self.add_at(b, a, c, at + offset);
            if s != a {
                sum = b.insert_value(sum, s, i);
            }
        }
        sum
    }

    /// The sum of two words: of their float lanes; other lanes stay those of `x`.
    fn add_words(self, b: &Builder<'m>, x: Value<'m>, y: Value<'m>, at: u32) -> Value<'m> {
        let ty = x.ty();
        let context = ty.context();
        let bytes = u64::from(ty.scalar().int_width()) * ty.length() / 8;
        let own = |o: &u32| *o >= at && u64::from(*o - at) < bytes;
        let lanes: Vec<_> = self
            .lanes
            .iter()
            .filter(|(o, _)| own(o))
            .map(|(o, k)| ((o - at) / 4, *k))
            .collect();
        if !lanes.iter().any(|(_, k)| k.has_float()) {
            return x;
        }
        if lanes.iter().any(|(_, k)| is_part(*k)) && bytes.is_multiple_of(4) {
            return self.add_parts(b, x, y, at);
        }
        let doubles = Kinds::F64 | Kinds::F64_TAIL;
        if lanes.iter().any(|(_, k)| k.meets(Kinds::UNKNOWN))
            && bytes == 8
            && let Some(sum) = self.module.function("cotangent.add.word")
        {
            let typed = |k: Kinds, bit: u64| {
                if lanes.iter().any(|(_, own)| own.meets(k)) {
                    bit
                } else {
                    0
                }
            };
            let typed = context.int(64).int(typed(doubles, 1) | typed(Kinds::F32, 2));
            let (p, q) = (b.bitcast(x, context.int(64)), b.bitcast(y, context.int(64)));
            return b.bitcast(b.call(sum, &[p, q, b.or(typed, widths(b))]), ty);
        }
        if bytes == 4 && lanes.iter().all(|(_, k)| *k == Kinds::UNKNOWN) {
            let float = context.float();
            return b.bitcast(b.fadd(b.bitcast(x, float), b.bitcast(y, float)), ty);
        }
        let apart = |k: Kinds| k.meets(Kinds::PARTIAL) || k.meets(Kinds::F32) && k.meets(doubles);
        if !bytes.is_multiple_of(4) || lanes.iter().any(|(_, k)| apart(*k)) {
            return self.add_undecided(b, x, y);
        }
        let n = (bytes / 4) as u32;
        let narrow = context.int(32).vector(n);
        let (low, other) = (b.bitcast(x, narrow), b.bitcast(y, narrow));
        let mut sum = low;
        let f32s: Vec<u32> = lanes
            .iter()
            .filter(|(_, k)| k.meets(Kinds::F32))
            .map(|(l, _)| *l)
            .collect();
        // In memory that is known by the four bytes only, every lane may be either half of a `double`: they begin where
        // words do.
        let kinds = |l: u32| lanes.iter().find(|(o, _)| *o == l).map_or(Kinds::NONE, |(_, k)| *k);
        let (mut f64s, mut l) = (vec![], 0);
        while l < n {
            if kinds(l).meets(Kinds::F64) && kinds(l + 1).meets(Kinds::F64_TAIL) {
                f64s.extend([l, l + 1]);
                l += 2;
            } else if kinds(l).meets(doubles) {
                return self.add_undecided(b, x, y);
            } else {
                l += 1;
            }
        }
        for (picked, float, width) in [(f32s, context.float(), 1), (f64s, context.double(), 2)] {
            if picked.is_empty() {
                continue;
            }
            let count = picked.len() as u32;
            let mask = |lanes: &[u32]| {
                let lanes: Vec<_> = lanes.iter().map(|l| context.int(32).int(u64::from(*l))).collect();
                context.const_vector(&lanes)
            };
            let floats = float.vector(count / width);
            let pick = |v| b.bitcast(b.shuffle(v, v, mask(&picked)), floats);
            let added = b.bitcast(b.fadd(pick(low), pick(other)), context.int(32).vector(count));
            // As long as the whole, so that the two can be merged.
            let spread: Vec<u32> = (0..n)
                .map(|l| picked.iter().position(|p| *p == l).unwrap_or(0) as u32)
                .collect();
            let spread = b.shuffle(added, added, mask(&spread));
            let keep: Vec<u32> = (0..n).map(|l| if picked.contains(&l) { n + l } else { l }).collect();
            sum = b.shuffle(sum, spread, mask(&keep));
        }
        b.bitcast(sum, ty)
    }

    /// The sum of two words with lanes of which nothing is known: these are decided at run time.
    fn add_parts(self, b: &Builder<'m>, x: Value<'m>, y: Value<'m>, at: u32) -> Value<'m> {
        let context = x.ty().context();
        let bits = x.ty().scalar().int_width() * x.ty().length() as u32;
        let narrow = context.int(32).vector(bits / 32);
        let own = |l: u32| self.lanes.iter().any(|(o, k)| *o == at + 4 * l && is_part(*k));
        let mask: Vec<_> = (0..bits / 32)
            .map(|l| match own(l) {
                true => context.int(32).all_ones(),
                false => context.int(32).zero(),
            })
            .collect();
        let mask = context.const_vector(&mask);
        let parts = |v| b.and(b.bitcast(v, narrow), mask);
        let decided = self.add_undecided(b, parts(x), parts(y));
        let others: Vec<_> = self.lanes.iter().filter(|(_, k)| !is_part(*k)).copied().collect();
        let others = Leaves {
            module: self.module,
            lanes: &others,
        };
        let rest = b.bitcast(others.add_words(b, x, y, at), narrow);
        let rest = b.and(rest, b.xor(mask, narrow.all_ones()));
        b.bitcast(b.or(rest, decided), x.ty())
    }

    /// The sum of two words of which only run time knows how wide their floats are: in every lane one of them is zero, or
    /// the program stops.
    fn add_undecided(self, b: &Builder<'m>, x: Value<'m>, y: Value<'m>) -> Value<'m> {
        let bits = x.ty().scalar().int_width() * x.ty().length() as u32;
        self.merge(b, x, y, if bits.is_multiple_of(32) { 32 } else { bits })
    }

    /// Two words that hold pieces of floats: in every byte one of them is zero, or the program stops.
    pub fn put_together(self, b: &Builder<'m>, x: Value<'m>, y: Value<'m>) -> Value<'m> {
        self.merge(b, x, y, 8)
    }

    /// Two words, in every lane of which one is zero, or the program stops.
    fn merge(self, b: &Builder<'m>, x: Value<'m>, y: Value<'m>, lane: u32) -> Value<'m> {
        let ty = x.ty();
        let bits = ty.scalar().int_width() * ty.length() as u32;
        let lanes = ty.context().int(lane).vector(bits / lane);
        let (p, q) = (b.bitcast(x, lanes), b.bitcast(y, lanes));
        let zero = |v| b.icmp(IntPredicate::LLVMIntEQ, v, lanes.zero());
        let flags = ty.context().int(bits / lane);
        let decided = b.bitcast(b.or(zero(p), zero(q)), flags);
        let decided = b.icmp(IntPredicate::LLVMIntEQ, decided, flags.all_ones());
        let f = b.block().parent();
        let (stop, go_on) = (f.append_block("undecided"), f.append_block("decided"));
        b.cond_br(decided, go_on, stop);
        b.at_end(stop);
        if let Some(support) = self.module.function("cotangent.undecided") {
            b.call(support, &[]);
        }
        b.unreachable();
        b.at_end(go_on);
        b.bitcast(b.or(p, q), ty)
    }
}

/// Which floats the caller's memory holds: of a function of a sweep, whose last argument is the arena, as run time tells
/// it.
pub fn widths<'m>(b: &Builder<'m>) -> Value<'m> {
    let f = b.block().parent();
    let word = f.module().context().int(64);
    match f.params().last() {
        Some(arena) => b.load(word, b.offset(*arena, word.int(WIDTHS))),
        None => word.int(3),
    }
}

/// `value`, or zero where `condition` is false.
pub fn only_if<'m>(b: &Builder<'m>, condition: Value<'m>, value: Value<'m>) -> Value<'m> {
    b.select(condition, value, value.ty().zero())
}

/// Is a shadow pointer the address of a shadow?
pub fn is_active<'m>(m: Mod<'m>, b: &Builder<'m>, shadow: Value<'m>) -> Value<'m> {
    let int = m.context().int(64);
    // The shadow of null may be null.
    let less = b.sub(b.ptrtoint(shadow, int), int.int(1));
    b.icmp(IntPredicate::LLVMIntULT, less, int.int(INACTIVE - 1))
}

/// Is a shadow that of a pointer that was made from an integer?
pub fn is_made<'m>(m: Mod<'m>, b: &Builder<'m>, shadow: Value<'m>) -> Value<'m> {
    let int = m.context().int(64);
    let tag = b.lshr(b.ptrtoint(shadow, int), int.int(61));
    b.icmp(IntPredicate::LLVMIntEQ, tag, int.int(MADE >> 61))
}

/// The shadow of a pointer that was made from an integer.
pub fn made<'m>(m: Mod<'m>, b: &Builder<'m>, found: Value<'m>) -> Value<'m> {
    b.select(is_active(m, b, found), found, found.ty().address(MADE))
}
