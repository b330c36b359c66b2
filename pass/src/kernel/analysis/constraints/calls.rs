//! Calls: what arguments and results are in the callee, and what is known of code that is not in the module.

use super::Constraints;
use crate::kernel::analysis::allocations::{Allocation, allocation};
use crate::kernel::analysis::regions::Origin;
use crate::kernel::analysis::shape::Sort;
use crate::kernel::analysis::span::Span;
use crate::kernel::callee::{Block, does_output, is_silent, of_block};
use crate::kernel::rules::rule_of;
use crate::llvm::{Function, Value};

/// Blocks of up to this many bytes are copied cell by cell.
const BLOCK: u64 = 256;

/// What code outside knows. It has no part in derivatives, and sees no shadow.
const OPEN: Origin = Origin {
    stack: false,
    heap: false,
    global: false,
    open: true,
    given: false,
};
/// What nobody knows: it may be memory of the caller's, too.
const GIVEN: Origin = Origin { given: true, ..OPEN };

impl<'m> Constraints<'_, 'm> {
    pub(super) fn call(&mut self, f: Function<'m>, i: Value<'m>) {
        let arguments = i.arguments();
        let Some(callee) = i.callee() else {
            return self.indirect(i, &arguments);
        };
        let name = callee.value().name();
        match allocation(i) {
            Some(Allocation::Free { .. }) => return,
            Some(Allocation::New { .. }) => {
                self.object(i, heap());
                return;
            }
            Some(Allocation::Resize { old, .. }) => {
                self.object(i, heap());
                let (from, to) = (self.slots_of(arguments[old as usize]), self.slots_of(i));
                return self.regions.flow(from, to, Span::exact(0));
            }
            None => {}
        }
        if !callee.is_declaration() {
            return self.bind(callee, i, &arguments);
        }
        if of_block(&name) == Some(Block::Copy) {
            let (to, from, size) = (arguments[0], arguments[1], arguments[2]);
            match size.is_const_int() {
                true if size.zext_value() <= BLOCK && is_whole(i, size.zext_value()) => {
                    self.copy_cells(i, to, from, size.zext_value());
                }
                _ => self.copy_unknown(i, to, from),
            }
            if !name.starts_with("llvm.") {
                let result = self.slots_of(i);
                self.copy_value(to, result);
            }
            return;
        }
        if name.starts_with("llvm.") {
            self.intrinsic(f, i, &name, &arguments);
        } else if does_output(&name) {
            // What it writes are numbers and texts.
            self.open(i, OPEN);
        } else if rule_of(i).is_some() {
            // It computes; what it leaves in memory are numbers.
        } else if i.call_has("noreturn") {
            self.thrown(&arguments);
        } else {
            self.unknown(i, &arguments);
        }
    }

    fn copy_unknown(&mut self, call: Value<'m>, to: Value<'m>, from: Value<'m>) {
        let (p, q) = (self.slots_of(to), self.slots_of(from));
        let at = self.allot(1);
        self.accesses.insert(call, at);
        self.regions.copy_block(p, q);
    }

    fn intrinsic(&mut self, _: Function<'m>, i: Value<'m>, name: &str, arguments: &[Value<'m>]) {
        let silent = name.strip_prefix("llvm.").is_some_and(is_silent);
        if silent
            || ["llvm.memset", "llvm.va_end", "llvm.eh"]
                .iter()
                .any(|p| name.starts_with(p))
        {
            return;
        }
        let pointers = i.ty().scalar().is_pointer();
        if pointers && arguments.first().is_some_and(|a| a.ty() == i.ty()) {
            // `ptrmask`, `launder.invariant.group`, `threadlocal.address`: into the same object.
            let (from, to) = (self.slots_of(arguments[0]), self.slots_of(i));
            let step = if name.starts_with("llvm.ptrmask") {
                Span::strided(0, 1)
            } else {
                Span::exact(0)
            };
            return self.regions.flow(from, to, step);
        }
        let shape = self.shape(i);
        if shape.leaves.iter().any(|l| l.sort != Sort::Byte) && i.ty().scalar().is_int() {
            // Swaps of bytes, rotations, saturating arithmetic, minimum: the result is another number.
            let to = self.lanes(i);
            for a in arguments
                .iter()
                .filter(|a| !a.is_constant() && a.ty().scalar().is_int())
            {
                let from = self.lanes(*a);
                self.change(&from, &to);
            }
            return;
        }
        if arguments.iter().any(|a| a.ty().scalar().is_pointer()) {
            self.unknown(i, arguments);
        }
    }

    /// Arguments to parameters, result to result.
    fn bind(&mut self, callee: Function<'m>, call: Value<'m>, arguments: &[Value<'m>]) {
        let params = callee.params();
        for (a, p) in arguments.iter().zip(&params) {
            if a.ty() == p.ty() {
                let to = self.slots_of(*p);
                self.copy_value(*a, to);
            } else {
                self.open(*a, GIVEN);
                self.open(*p, GIVEN);
            }
        }
        for a in arguments.iter().skip(params.len()) {
            self.open(*a, GIVEN);
        }
        if callee.result() == call.ty() && !call.ty().is_void() {
            let (from, to) = (self.result_of(callee), self.slots_of(call));
            let shape = self.shape(call);
            self.copy_slots(&shape.leaves, from, to);
        } else if !call.ty().is_void() {
            self.open(call, GIVEN);
        }
    }

    /// An indirect call: as a call of a function that calls each candidate of the type.
    fn indirect(&mut self, call: Value<'m>, arguments: &[Value<'m>]) {
        let (params, result) = self.signature(call.called_type());
        for (a, to) in arguments.iter().zip(&params) {
            if let Some(to) = to {
                self.copy_value(*a, *to);
            }
        }
        if let Some(from) = result {
            let to = self.slots_of(call);
            let shape = self.shape(call);
            self.copy_slots(&shape.leaves, from, to);
        }
    }

    fn signature(&mut self, ty: crate::llvm::Type<'m>) -> (Vec<Option<u32>>, Option<u32>) {
        if let Some(s) = self.signatures.get(&ty) {
            return s.clone();
        }
        let mut slots = |t: crate::llvm::Type<'m>| {
            let n = self.shapes.of(t).slots;
            (n > 0).then(|| self.allot(n))
        };
        let params: Vec<_> = ty.params().into_iter().map(&mut slots).collect();
        let result = slots(ty.result());
        self.signatures.insert(ty, (params.clone(), result));
        (params, result)
    }

    /// A function whose address is taken: indirect calls of its type may reach it.
    pub(super) fn candidate(&mut self, f: Function<'m>) {
        let (params, result) = self.signature(f.ty());
        for (p, from) in f.params().into_iter().zip(params) {
            if let Some(from) = from {
                let to = self.slots_of(p);
                let shape = self.shape(p);
                self.copy_slots(&shape.leaves, from, to);
            }
        }
        if let Some(to) = result {
            let from = self.result_of(f);
            let leaves = self.shapes.of(f.result());
            self.copy_slots(&leaves.leaves, from, to);
        }
    }

    /// A function that is not in the module: what it may write is open, and its result points there, or elsewhere.
    fn unknown(&mut self, call: Value<'m>, arguments: &[Value<'m>]) {
        let effects = call.effects();
        for (k, a) in arguments.iter().enumerate() {
            let (access, kept) = call.argument_effects(k as u32);
            if (access.writes && effects.arguments.writes) || kept {
                self.open(*a, OPEN);
            }
        }
        if call.ty().is_void() {
            return;
        }
        self.open(call, OPEN);
        let pointer = call.ty().is_pointer();
        for a in arguments.iter().filter(|a| pointer && a.ty().is_pointer()) {
            let (from, to) = (self.slots_of(*a), self.slots_of(call));
            self.regions.flow(from, to, Span::strided(0, 1));
        }
    }

    /// A call that only an exception leaves: what it is given may be part of it.
    fn thrown(&mut self, arguments: &[Value<'m>]) {
        let Some(thrown) = self.thrown else { return };
        for a in arguments.iter().filter(|a| a.ty().is_pointer()) {
            let from = self.slots_of(*a);
            self.regions.flow(from, thrown, Span::strided(0, 1));
        }
    }

    /// What a landing pad gives leads to what was thrown, here or outside.
    pub(super) fn caught(&mut self, pad: Value<'m>) {
        let Some(thrown) = self.thrown else { return };
        self.open(pad, OPEN);
        let to = self.slots_of(pad);
        self.regions.flow(thrown, to, Span::strided(0, 1));
    }

    /// Pointers of the value point to memory that code outside knows; its integers come from there.
    fn open(&mut self, v: Value<'m>, origin: Origin) {
        if v.is_undef() {
            return;
        }
        let shape = self.shape(v);
        let first = self.slots_of(v);
        for leaf in &shape.leaves {
            match leaf.sort {
                Sort::Pointer => {
                    let node = self.regions.node(origin);
                    self.regions.point(first + leaf.slot, node, Span::exact(0));
                }
                Sort::Word => {
                    let slots = first + leaf.slot..first + leaf.slot + leaf.slots;
                    self.sources.extend(slots.map(|s| (s, None)));
                }
                _ => {}
            }
        }
    }
}

/// Does a block begin where floats can? What LLVM leaves of a struct behind a small field that it keeps in a register need
/// not.
fn is_whole(copy: Value<'_>, size: u64) -> bool {
    size <= 4 || size == 8 || (0..2).any(|k| copy.argument_alignment(k).is_none_or(|a| a >= 4))
}

fn heap() -> Origin {
    Origin {
        heap: true,
        ..Origin::default()
    }
}
