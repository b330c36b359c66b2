//! Leaves of types: what a value is made of, and how many slots each leaf takes.

use super::kinds::Kinds;
use crate::llvm::{Mod, Type, TypeKind};
use std::collections::HashMap;
use std::rc::Rc;

/// What a leaf is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sort {
    /// A float; the kind of its first four bytes.
    Float(Kinds),
    /// A pointer.
    Pointer,
    /// An integer (or a vector of integers, as one block) of four bytes or more.
    Word,
    /// A smaller integer.
    Byte,
}

/// A part of a value that is not an aggregate.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    /// Offset in memory.
    pub(crate) offset: i64,
    /// Bytes.
    pub(crate) size: i64,
    pub(crate) sort: Sort,
    /// Its first slot among those of the value; one per four bytes, one for a pointer.
    pub(crate) slot: u32,
    /// Number of slots.
    pub(crate) slots: u32,
    /// Where it is in the aggregate.
    pub(crate) path: Rc<[u32]>,
}

/// The leaves of a type.
#[derive(Default, Debug)]
pub(crate) struct Shape {
    pub(crate) leaves: Vec<Leaf>,
    /// Number of slots.
    pub(crate) slots: u32,
}

/// Shapes of the types of a module.
pub(crate) struct Shapes<'m> {
    module: Mod<'m>,
    known: HashMap<Type<'m>, Rc<Shape>>,
}

/// The kind of a float's first four bytes.
pub(crate) fn float_kind(t: Type<'_>) -> Kinds {
    match t.kind() {
        TypeKind::LLVMDoubleTypeKind => Kinds::F64,
        TypeKind::LLVMFloatTypeKind => Kinds::F32,
        TypeKind::LLVMX86_FP80TypeKind => Kinds::F80,
        _ => Kinds::OTHER_FLOAT,
    }
}

/// The kind of the `i`-th four bytes of a value that begins with `first`.
pub(crate) fn part_kind(first: Kinds, i: u32) -> Kinds {
    match (first, i) {
        (k, 0) => k,
        (Kinds::F64, _) => Kinds::F64_TAIL,
        (Kinds::F80, _) => Kinds::F80_TAIL,
        (Kinds::PTR, _) => Kinds::PTR_TAIL,
        (k, _) => k,
    }
}

impl<'m> Shapes<'m> {
    pub(crate) fn new(module: Mod<'m>) -> Self {
        Self {
            module,
            known: HashMap::new(),
        }
    }

    pub(crate) fn of(&mut self, t: Type<'m>) -> Rc<Shape> {
        if let Some(shape) = self.known.get(&t) {
            return shape.clone();
        }
        let mut shape = Shape::default();
        self.collect(t, 0, &mut vec![], &mut shape);
        let shape = Rc::new(shape);
        self.known.insert(t, shape.clone());
        shape
    }

    fn collect(&self, t: Type<'m>, offset: i64, path: &mut Vec<u32>, shape: &mut Shape) {
        use TypeKind::*;
        let mut each = |i: u32, t: Type<'m>, offset: i64, shape: &mut Shape| {
            path.push(i);
            self.collect(t, offset, path, shape);
            path.pop();
        };
        let sort = match t.kind() {
            LLVMStructTypeKind => {
                for i in 0..t.fields() {
                    each(i, t.field(i), offset + self.module.offset(t, i) as i64, shape);
                }
                return;
            }
            LLVMVectorTypeKind if t.element().is_int() => Sort::Word,
            LLVMArrayTypeKind | LLVMVectorTypeKind => {
                let element = t.element();
                let size = match t.is_array() {
                    true => self.module.size(element),
                    false => self.module.store_size(element),
                } as i64;
                for i in 0..t.length() {
                    each(i as u32, element, offset + i as i64 * size, shape);
                }
                return;
            }
            LLVMPointerTypeKind => Sort::Pointer,
            LLVMIntegerTypeKind if t.int_width() >= 32 => Sort::Word,
            LLVMIntegerTypeKind => Sort::Byte,
            _ if t.is_float() => Sort::Float(float_kind(t)),
            _ => return,
        };
        let size = self.module.store_size(t) as i64;
        let slots = match sort {
            Sort::Pointer | Sort::Byte => 1,
            _ => (size as u32).div_ceil(4),
        };
        shape.leaves.push(Leaf {
            offset,
            size,
            sort,
            slot: shape.slots,
            slots,
            path: Rc::from(&path[..]),
        });
        shape.slots += slots;
    }
}
