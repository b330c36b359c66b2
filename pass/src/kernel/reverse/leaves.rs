//! What the leaves of a type carry, and arithmetic on values of any type, leaf by leaf.
//!
//! A shadow and a cotangent have the type of their value. In a shadow the pointer leaves are shadow pointers and the
//! others zero; in a cotangent the float leaves are cotangents and the others anything.

use crate::llvm::{Builder, Mod, Type, TypeKind, Value};

/// The shadow of memory that has none: a function, null, what the program itself must not reach.
pub const UNKNOWN: u64 = 1 << 63;
/// The shadow of memory that the user declared constant: losing a derivative there is asked for.
pub const CONSTANT: u64 = 3 << 62;
/// Shadows from here on are none; offsets of the two constants stay there.
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

/// What the bits of integers hold.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Word {
    /// Numbers.
    #[default]
    Int,
    /// Doubles, one or several side by side.
    Double,
    /// Floats, one or several side by side.
    Float,
    /// Pointers.
    Pointer,
}

/// What values of the type carry, if its integers hold `word`.
pub fn carries(ty: Type<'_>, word: Word) -> Carries {
    match ty.kind() {
        _ if ty.is_float() => Carries {
            floats: true,
            pointers: false,
        },
        TypeKind::LLVMPointerTypeKind => Carries {
            pointers: true,
            floats: false,
        },
        TypeKind::LLVMIntegerTypeKind => Carries {
            pointers: word == Word::Pointer,
            floats: matches!(word, Word::Double | Word::Float),
        },
        TypeKind::LLVMVectorTypeKind | TypeKind::LLVMArrayTypeKind => carries(ty.element(), word),
        TypeKind::LLVMStructTypeKind => {
            let parts = ty.parts();
            parts
                .into_iter()
                .fold(Carries::default(), |all, part| all.or(carries(part, word)))
        }
        _ => Carries::default(),
    }
}

/// The shadow of a value of that type that points nowhere active.
pub fn inactive_shadow<'m>(ty: Type<'m>, tag: u64) -> Value<'m> {
    let scalar = ty.scalar();
    if scalar.is_pointer() {
        return ty.address(tag);
    }
    if !carries(ty, Word::Int).pointers {
        return ty.zero();
    }
    let parts: Vec<_> = ty.parts().into_iter().map(|t| inactive_shadow(t, tag)).collect();
    ty.aggregate(&parts)
}

/// The type of floats that an integer type of words stands for.
fn floats_of<'m>(ty: Type<'m>, word: Word) -> Option<Type<'m>> {
    let (float, bits) = match word {
        Word::Double => (ty.context().double(), 64),
        Word::Float => (ty.context().float(), 32),
        Word::Int | Word::Pointer => return None,
    };
    let total = u64::from(ty.scalar().int_width()) * ty.length();
    (total.is_multiple_of(bits)).then(|| match total / bits {
        1 => float,
        n => float.vector(n as u32),
    })
}

/// The sum of two cotangents.
pub fn add<'m>(b: &Builder<'m>, x: Value<'m>, y: Value<'m>, word: Word) -> Value<'m> {
    let ty = x.ty();
    if ty.scalar().is_float() {
        return b.fadd(x, y);
    }
    if !carries(ty, word).floats {
        return x;
    }
    if ty.scalar().is_int() {
        let Some(floats) = floats_of(ty, word) else { return x };
        let sum = b.fadd(b.bitcast(x, floats), b.bitcast(y, floats));
        return b.bitcast(sum, ty);
    }
    let mut sum = x;
    for (i, part) in ty.parts().into_iter().enumerate() {
        if carries(part, word).floats {
            let i = i as u32;
            let s = add(b, b.extract(x, i), b.extract(y, i), word);
            sum = b.insert_value(sum, s, i);
        }
    }
    sum
}

/// `value`, or zero where `condition` is false.
pub fn only_if<'m>(b: &Builder<'m>, condition: Value<'m>, value: Value<'m>) -> Value<'m> {
    b.select(condition, value, value.ty().zero())
}

/// Is a shadow pointer the address of a shadow?
pub fn is_active<'m>(m: Mod<'m>, b: &Builder<'m>, shadow: Value<'m>) -> Value<'m> {
    let int = m.context().int(64);
    let bits = b.ptrtoint(shadow, int);
    b.icmp(crate::llvm::IntPredicate::LLVMIntULT, bits, int.int(INACTIVE))
}
