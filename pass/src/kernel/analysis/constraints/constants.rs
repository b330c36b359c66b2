//! Constants: addresses, and what globals hold at the start.

use super::Constraints;
use crate::kernel::analysis::kinds::Kinds;
use crate::kernel::analysis::regions::Origin;
use crate::kernel::analysis::shape::{Shape, Sort, float_kind, part_kind};
use crate::kernel::analysis::span::{Span, Step};
use crate::llvm::{Linkage, Opcode, Value, ValueKind};

/// Arrays in initializers that are longer are one span of elements.
const ELEMENTS: u64 = 64;

impl<'m> Constraints<'_, 'm> {
    /// Targets of the pointers in a constant; are there any?
    pub(super) fn constant(&mut self, v: Value<'m>, shape: &Shape, first: u32) -> bool {
        let mut any = false;
        for leaf in shape
            .leaves
            .iter()
            .filter(|l| l.sort == Sort::Pointer || l.sort == Sort::Word)
        {
            let part = leaf.path.iter().try_fold(v, |v, i| v.element(*i));
            if let Some((object, step)) = part.and_then(|p| self.address(p)) {
                let node = self.object_of(object);
                self.regions.point(first + leaf.slot, node, step);
                any = true;
                if leaf.sort == Sort::Word {
                    self.regions.note(first + leaf.slot, Kinds::PTR);
                    self.sources.push((first + leaf.slot, None));
                }
            }
        }
        any
    }

    /// The global or function that a constant points into, and where.
    fn address(&mut self, v: Value<'m>) -> Option<(Value<'m>, Step)> {
        match v.kind() {
            ValueKind::LLVMFunctionValueKind | ValueKind::LLVMGlobalVariableValueKind => Some((v, Span::exact(0))),
            ValueKind::LLVMGlobalAliasValueKind => match v.as_function_or_alias() {
                Some(f) => Some((f.value(), Span::exact(0))),
                None => Some((v.alias_target()?.underlying_object(), Span::strided(0, 1))),
            },
            ValueKind::LLVMConstantExprValueKind => {
                let (object, step) = self.address(v.operand(0))?;
                Some(match v.const_opcode() {
                    Opcode::LLVMGetElementPtr => (object, step.plus(self.step(false, v))),
                    Opcode::LLVMAddrSpaceCast | Opcode::LLVMPtrToInt | Opcode::LLVMIntToPtr | Opcode::LLVMBitCast => {
                        (object, step)
                    }
                    _ => (object, Span::strided(0, 1)),
                })
            }
            _ => None,
        }
    }

    fn object_of(&mut self, v: Value<'m>) -> u32 {
        if let Some(node) = self.objects.get(&v) {
            return *node;
        }
        let node = self.regions.node(Origin {
            global: true,
            ..Origin::default()
        });
        self.objects.insert(v, node);
        node
    }

    /// A global variable, and what it holds at the start.
    pub(super) fn global(&mut self, g: Value<'m>) {
        let node = self.object_of(g);
        let local = matches!(
            g.global_linkage(),
            Linkage::LLVMInternalLinkage | Linkage::LLVMPrivateLinkage
        );
        if !local && !g.is_global_constant() {
            self.regions.add_origin(
                node,
                Origin {
                    open: true,
                    ..Origin::default()
                },
            );
        }
        if let Some(start) = g.initializer() {
            self.holds(node, Span::exact(0), start);
        }
    }

    /// A constant is at these offsets of a node.
    fn holds(&mut self, node: u32, span: Span, v: Value<'m>) {
        if v.is_null() || v.is_undef() {
            return;
        }
        let t = v.ty();
        if t.is_struct() {
            for i in 0..t.fields() {
                if let Some(part) = v.element(i) {
                    self.holds(node, span.shifted(self.module.offset(t, i) as i64), part);
                }
            }
        } else if t.is_array() || t.is_vector() {
            let (n, size) = (t.length(), self.module.size(t.element()) as i64);
            let data = v.kind() == ValueKind::LLVMConstantDataArrayValueKind;
            let folded = n > ELEMENTS || data;
            let all = span.plus(Span {
                low: Some(0),
                high: Some(size * (n.max(1) as i64 - 1)),
                ..Span::strided(0, if n > 1 { size } else { 0 })
            });
            let visited = if data { 1 } else { n };
            for i in 0..visited as u32 {
                let at = if folded { all } else { span.shifted(size * i64::from(i)) };
                if let Some(part) = v.element(i) {
                    self.leaf(node, at, part, data);
                }
            }
        } else {
            self.leaf(node, span, v, false);
        }
    }

    fn leaf(&mut self, node: u32, span: Span, v: Value<'m>, any: bool) {
        let t = v.ty();
        if t.is_float() {
            let k = float_kind(t);
            for i in 0..(self.module.store_size(t) as u32).div_ceil(4) {
                self.put(node, span.shifted(4 * i64::from(i)), part_kind(k, i), None);
            }
        } else if t.is_pointer() || t.is_int() {
            if let Some(address) = self.address(v) {
                self.put(node, span, Kinds::PTR, Some(address));
                self.put(node, span.shifted(4), Kinds::PTR_TAIL, None);
            }
        } else if !any {
            self.holds(node, span, v);
        }
    }

    fn put(&mut self, node: u32, span: Span, kinds: Kinds, address: Option<(Value<'m>, Step)>) {
        let (pointer, cell) = (self.regions.slot(), self.regions.slot());
        self.regions.point(pointer, node, span);
        self.regions.note(cell, kinds);
        if let Some((object, step)) = address {
            let target = self.object_of(object);
            self.regions.point(cell, target, step);
        }
        self.regions.access(pointer, Span::exact(0), cell, true);
    }
}
