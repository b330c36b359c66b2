//! Regions of memory and what points into them: unification with offsets.
//!
//! A *node* stands for one or more objects. Its *cells* are what can be loaded and stored: four bytes each, at exact
//! offsets, or at the offsets of a [`Span`] (an array, folded by its stride). A *slot* is whatever holds a value that is
//! copied: a cell, a pointer in a register, four bytes of an integer in a register. It knows where a pointer in it
//! points ([`Target`]), and shares its [`Kinds`] with all slots that it is copied to or from.
//!
//! Copies carry targets forward; that both ends point into one node holds both ways, hence unification. So all accesses
//! of a byte, by whatever pointer, end in one cell: what is noted at a cell is noted for every access. Nodes join as
//! in a weighted union-find: near-linear in the number of constraints.

use super::kinds::Kinds;
use super::span::{Span, Step, gcd};
use std::collections::{BTreeMap, HashSet};

/// More exact cells than this are folded.
const CELLS: usize = 4096;
/// More spans than this in a node are folded.
const SPANS: usize = 24;

/// What objects a node stands for.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Origin {
    /// Stack slots.
    pub(crate) stack: bool,
    /// Heap blocks.
    pub(crate) heap: bool,
    /// Global variables and functions.
    pub(crate) global: bool,
    /// Memory that code outside of the module made or may change: arguments of roots, what unknown functions are given.
    pub(crate) open: bool,
    /// Of these, memory of which the derivatives' callers see the shadow, too. A global variable is none: its shadow goes
    /// with the call.
    pub(crate) given: bool,
}

impl Origin {
    fn join(self, o: Self) -> Self {
        Self {
            stack: self.stack | o.stack,
            heap: self.heap | o.heap,
            global: self.global | o.global,
            open: self.open | o.open,
            given: self.given | o.given,
        }
    }

    /// Is no object known that the node could stand for?
    pub(crate) fn is_none(self) -> bool {
        self == Self::default()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Target {
    pub(crate) node: u32,
    pub(crate) span: Span,
}

#[derive(Default)]
struct Node {
    parent: u32,
    /// Offset 0 of this node in its parent.
    delta: i64,
    cells: BTreeMap<i64, u32>,
    spans: Vec<(Span, u32)>,
    /// Not 0: offsets count modulo this.
    fold: i64,
    /// What single bytes are copied to and from.
    bytes: Option<u32>,
    origin: Origin,
}

#[derive(Default)]
struct Slot {
    parent: u32,
    class: u32,
    target: Option<Target>,
    /// Copies to other slots.
    out: Vec<(u32, Step)>,
    /// Copies from other slots.
    back: Vec<(u32, Step)>,
    /// Accesses through the pointer: at a step, a cell is copied to the slot, or (`true`) from it.
    accesses: Vec<(Step, u32, bool)>,
    /// Byte accesses through the pointer.
    bytes: Vec<u32>,
    /// Blocks that are copied to or from where the pointer points, of unknown size.
    blocks: Vec<u32>,
    queued: bool,
}

/// The solver: constraints are added, then solved once.
#[derive(Default)]
pub(crate) struct Regions {
    nodes: Vec<Node>,
    slots: Vec<Slot>,
    classes: Vec<(u32, Kinds)>,
    queue: Vec<u32>,
    joins: Vec<(u32, u32)>,
}

impl Regions {
    pub(crate) fn node(&mut self, origin: Origin) -> u32 {
        let id = self.nodes.len() as u32;
        self.nodes.push(Node {
            parent: id,
            origin,
            ..Node::default()
        });
        id
    }

    pub(crate) fn slot(&mut self) -> u32 {
        let id = self.slots.len() as u32;
        let class = self.classes.len() as u32;
        self.classes.push((class, Kinds::NONE));
        self.slots.push(Slot {
            parent: id,
            class,
            ..Slot::default()
        });
        id
    }

    /// The node that stands for this one, and where this one's offset 0 is in it.
    pub(crate) fn find(&mut self, node: u32) -> (u32, i64) {
        let (mut root, mut delta) = (node, 0i64);
        while self.nodes[root as usize].parent != root {
            delta = delta.wrapping_add(self.nodes[root as usize].delta);
            root = self.nodes[root as usize].parent;
        }
        let (mut at, mut rest) = (node, delta);
        while self.nodes[at as usize].parent != root && at != root {
            let n = &mut self.nodes[at as usize];
            let step = n.delta;
            let up = std::mem::replace(&mut n.parent, root);
            n.delta = rest;
            rest = rest.wrapping_sub(step);
            at = up;
        }
        (root, delta)
    }

    /// The slot that stands for this one.
    pub(crate) fn rep(&mut self, slot: u32) -> u32 {
        let mut root = slot;
        while self.slots[root as usize].parent != root {
            root = self.slots[root as usize].parent;
        }
        let mut at = slot;
        while self.slots[at as usize].parent != root {
            at = std::mem::replace(&mut self.slots[at as usize].parent, root);
        }
        root
    }

    /// The class of slots that share the slot's kinds.
    pub(crate) fn class(&mut self, slot: u32) -> u32 {
        let s = self.rep(slot);
        let start = self.slots[s as usize].class;
        let mut root = start;
        while self.classes[root as usize].0 != root {
            root = self.classes[root as usize].0;
        }
        let mut at = start;
        while self.classes[at as usize].0 != root {
            at = std::mem::replace(&mut self.classes[at as usize].0, root);
        }
        self.slots[s as usize].class = root;
        root
    }

    pub(crate) fn kinds(&mut self, slot: u32) -> Kinds {
        let c = self.class(slot);
        self.class_kinds(c)
    }

    /// What the slots of a class can hold.
    pub(crate) fn class_kinds(&self, class: u32) -> Kinds {
        self.classes[class as usize].1
    }

    /// Notes what a slot can hold.
    pub(crate) fn note(&mut self, slot: u32, kinds: Kinds) {
        let c = self.class(slot);
        self.classes[c as usize].1 |= kinds;
    }

    /// The slots to which what is in a slot is copied as it is.
    pub(crate) fn copies(&mut self, slot: u32) -> Vec<u32> {
        let out = &self.slots[slot as usize].out;
        let same: Vec<u32> = out
            .iter()
            .filter(|(_, step)| *step == Span::exact(0))
            .map(|(to, _)| *to)
            .collect();
        same.into_iter().map(|to| self.rep(to)).collect()
    }

    /// Number of slots.
    pub(crate) fn slot_count(&self) -> usize {
        self.slots.len()
    }

    /// Number of nodes.
    pub(crate) fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// Makes two slots share their kinds.
    pub(crate) fn share(&mut self, a: u32, b: u32) {
        let (a, b) = (self.class(a), self.class(b));
        if a != b {
            let kinds = self.classes[a as usize].1;
            self.classes[a as usize].0 = b;
            self.classes[b as usize].1 |= kinds;
        }
    }

    fn wake(&mut self, slot: u32) {
        let s = self.rep(slot);
        if !std::mem::replace(&mut self.slots[s as usize].queued, true) {
            self.queue.push(s);
        }
    }

    /// A pointer in `from`, moved by `step`, may be in `to`.
    pub(crate) fn flow(&mut self, from: u32, to: u32, step: Step) {
        let (from, to) = (self.rep(from), self.rep(to));
        if from == to && step == Span::exact(0) {
            return;
        }
        self.slots[from as usize].out.push((to, step));
        self.slots[to as usize].back.push((from, step));
        self.wake(from);
        self.wake(to);
    }

    /// A pointer in `from` may be in `to`, as it is.
    pub(crate) fn flow_whole(&mut self, from: u32, to: u32) {
        self.flow(from, to, Span::exact(0));
    }

    /// The whole value of `from` may be in `to`.
    pub(crate) fn copy(&mut self, from: u32, to: u32) {
        self.share(from, to);
        self.flow_whole(from, to);
    }

    /// A pointer in the slot may point there.
    pub(crate) fn point(&mut self, slot: u32, node: u32, span: Span) {
        let s = self.rep(slot);
        self.aim(s, Target { node, span });
    }

    /// The four bytes where `pointer` points, moved by `step`, are copied to `slot`, or from it.
    pub(crate) fn access(&mut self, pointer: u32, step: Step, slot: u32, write: bool) {
        let p = self.rep(pointer);
        self.slots[p as usize].accesses.push((step, slot, write));
        self.wake(p);
    }

    /// A byte where the pointer points is copied to or from `slot`.
    pub(crate) fn access_byte(&mut self, pointer: u32, slot: u32) {
        let p = self.rep(pointer);
        self.slots[p as usize].bytes.push(slot);
        self.wake(p);
    }

    /// A block of unknown size is copied between where the pointers point.
    pub(crate) fn copy_block(&mut self, a: u32, b: u32) {
        let (a, b) = (self.rep(a), self.rep(b));
        self.slots[a as usize].blocks.push(b);
        self.slots[b as usize].blocks.push(a);
        self.wake(a);
        self.wake(b);
    }

    /// Where the pointer in the slot points; resolved to the node that stands for the others.
    pub(crate) fn target(&mut self, slot: u32) -> Option<Target> {
        let s = self.rep(slot);
        let target = self.slots[s as usize].target?;
        let (node, delta) = self.find(target.node);
        let span = target.span.shifted(delta);
        Some(Target { node, span })
    }

    /// What the node stands for.
    pub(crate) fn origin(&mut self, node: u32) -> Origin {
        let (node, _) = self.find(node);
        self.nodes[node as usize].origin
    }

    /// Adds to what the node stands for.
    pub(crate) fn add_origin(&mut self, node: u32, origin: Origin) {
        let (node, _) = self.find(node);
        let n = &mut self.nodes[node as usize];
        n.origin = n.origin.join(origin);
    }

    /// The cells of a node: offsets and slots.
    pub(crate) fn cells(&mut self, node: u32) -> (Vec<(Span, u32)>, i64) {
        let (node, _) = self.find(node);
        let n = &self.nodes[node as usize];
        let exact = n.cells.iter().map(|(o, s)| (Span::exact(*o), *s));
        (exact.chain(n.spans.iter().copied()).collect(), n.fold)
    }

    /// Nodes, and all that pointers in their cells lead to.
    pub(crate) fn reach(&mut self, mut open: Vec<u32>) -> HashSet<u32> {
        let mut seen = HashSet::new();
        while let Some(node) = open.pop() {
            let (node, _) = self.find(node);
            if seen.insert(node) {
                let cells = self.cells(node).0;
                open.extend(cells.into_iter().filter_map(|(_, slot)| Some(self.target(slot)?.node)));
            }
        }
        seen
    }

    /// Solves the constraints.
    pub(crate) fn solve(&mut self) {
        self.drain();
        for s in 0..self.slots.len() as u32 {
            let slot = &self.slots[s as usize];
            let used = !slot.accesses.is_empty() || !slot.bytes.is_empty() || !slot.blocks.is_empty();
            if slot.parent == s && used && slot.target.is_none() {
                let node = self.node(Origin::default());
                self.point(s, node, Span::exact(0));
                self.drain();
            }
        }
    }

    fn drain(&mut self) {
        loop {
            while let Some((a, b)) = self.joins.pop() {
                self.join_slots(a, b);
            }
            let Some(s) = self.queue.pop() else { return };
            self.slots[s as usize].queued = false;
            if self.slots[s as usize].parent == s {
                self.visit(s);
            }
        }
    }

    /// Applies the constraints of a slot.
    fn visit(&mut self, s: u32) {
        let Some(target) = self.slots[s as usize].target else {
            // Whoever it is copied to, or from, gives it one when it has one itself.
            return;
        };
        for i in 0..self.slots[s as usize].out.len() {
            let (to, step) = self.slots[s as usize].out[i];
            let to = self.rep(to);
            let span = target.span.plus(step);
            self.aim(to, Target { span, ..target });
        }
        for i in 0..self.slots[s as usize].back.len() {
            let (from, step) = self.slots[s as usize].back[i];
            let from = self.rep(from);
            if self.slots[from as usize].target.is_none() {
                let span = Span::exact(target.span.base.wrapping_sub(step.base));
                self.aim(from, Target { span, ..target });
            }
        }
        for i in 0..self.slots[s as usize].accesses.len() {
            let (step, slot, write) = self.slots[s as usize].accesses[i];
            let cell = self.cell(target.node, target.span.plus(step));
            self.share(cell, slot);
            match write {
                true => self.flow(slot, cell, Span::exact(0)),
                false => self.flow(cell, slot, Span::exact(0)),
            }
        }
        for i in 0..self.slots[s as usize].bytes.len() {
            let slot = self.slots[s as usize].bytes[i];
            let bytes = self.bytes_of(target.node);
            self.share(bytes, slot);
        }
        for i in 0..self.slots[s as usize].blocks.len() {
            let other = self.slots[s as usize].blocks[i];
            let other = self.rep(other);
            if self.slots[other as usize].target.is_none() {
                let node = self.node(Origin::default());
                self.aim(
                    other,
                    Target {
                        node,
                        span: target.span,
                    },
                );
            }
            if let Some(t) = self.slots[other as usize].target {
                self.unify_blocks(target, t);
            }
        }
    }

    /// Where a slot points, and there, too.
    fn aim(&mut self, s: u32, new: Target) {
        let Some(old) = self.slots[s as usize].target else {
            self.slots[s as usize].target = Some(new);
            self.wake(s);
            return;
        };
        let ((a, da), (b, db)) = (self.find(old.node), self.find(new.node));
        let (old_span, new_span) = (old.span.shifted(da), new.span.shifted(db));
        let (node, span) = if a == b {
            (a, old_span.widen(new_span))
        } else {
            let shift = old_span.base.wrapping_sub(new_span.base);
            let root = self.unite(a, b, shift);
            let at = self.find(a).1;
            (root, old_span.shifted(at).widen(new_span.shifted(shift).shifted(at)))
        };
        let changed = {
            let (root, delta) = self.find(a);
            root != node || old_span.shifted(delta) != span
        };
        self.slots[s as usize].target = Some(Target { node, span });
        if changed {
            self.wake(s);
        }
    }

    fn unify_blocks(&mut self, p: Target, q: Target) {
        let ((a, da), (b, db)) = (self.find(p.node), self.find(q.node));
        let (x, y) = (p.span.shifted(da), q.span.shifted(db));
        let shift = x.base.wrapping_sub(y.base);
        let (root, apart) = if a == b {
            (a, shift)
        } else {
            (self.unite(a, b, shift), 0)
        };
        let fold = gcd(gcd(x.stride, y.stride), apart);
        if fold != 0 {
            self.fold(root, fold);
        }
    }

    /// Makes two roots one; an offset in `b` is `shift` more in `a`. Gives the root.
    fn unite(&mut self, a: u32, b: u32, shift: i64) -> u32 {
        let size = |n: &Node| n.cells.len() + n.spans.len();
        let swap = size(&self.nodes[a as usize]) < size(&self.nodes[b as usize]);
        let (big, small, delta) = if swap {
            (b, a, shift.wrapping_neg())
        } else {
            (a, b, shift)
        };
        let moved = std::mem::take(&mut self.nodes[small as usize]);
        self.nodes[small as usize].parent = big;
        self.nodes[small as usize].delta = delta;
        let n = &mut self.nodes[big as usize];
        n.origin = n.origin.join(moved.origin);
        match (n.bytes, moved.bytes) {
            (Some(x), Some(y)) => self.share(x, y),
            (None, y) => n.bytes = y,
            _ => {}
        }
        if moved.fold != 0 {
            self.fold(big, moved.fold);
        }
        let exact = moved.cells.into_iter().map(|(o, s)| (Span::exact(o), s));
        for (span, slot) in exact.chain(moved.spans) {
            let cell = self.cell(big, span.shifted(delta));
            self.joins.push((cell, slot));
        }
        big
    }

    /// Makes offsets of a root count modulo `by`.
    fn fold(&mut self, root: u32, by: i64) {
        let n = &mut self.nodes[root as usize];
        let fold = gcd(n.fold, by);
        if fold == n.fold {
            return;
        }
        n.fold = fold;
        let cells = std::mem::take(&mut n.cells);
        let spans = std::mem::take(&mut n.spans);
        let exact = cells.into_iter().map(|(o, s)| (Span::exact(o), s));
        for (span, slot) in exact.chain(spans) {
            let cell = self.cell(root, span);
            self.joins.push((cell, slot));
        }
    }

    /// The cell at these offsets of a node.
    fn cell(&mut self, node: u32, span: Span) -> u32 {
        let (root, delta) = self.find(node);
        let mut span = span.shifted(delta);
        let fold = self.nodes[root as usize].fold;
        if fold != 0 && span.stride % fold != 0 {
            self.fold(root, span.stride);
        }
        let fold = self.nodes[root as usize].fold;
        if fold != 0 {
            span = Span::exact(span.base.rem_euclid(fold));
        }
        if span.is_exact() {
            return self.exact_cell(root, span.base);
        }
        let spans = &self.nodes[root as usize].spans;
        let same = |s: &Span| s.stride == span.stride && (s.base.wrapping_sub(span.base)) % s.stride == 0;
        let (wide, slot, at) = match spans.iter().position(|(s, _)| same(s)) {
            Some(i) => (spans[i].0.join(span), spans[i].1, Some(i)),
            None => (span, self.slot(), None),
        };
        let n = &mut self.nodes[root as usize];
        match at {
            Some(i) if n.spans[i].0 == wide => return slot,
            Some(i) => n.spans[i].0 = wide,
            None => n.spans.push((wide, slot)),
        }
        // Cells and spans that it meets are the same memory.
        let (from, to) = (wide.low.unwrap_or(i64::MIN), wide.high.unwrap_or(i64::MAX));
        let exact = n.cells.range(from..=to).filter(|(o, _)| wide.contains(**o));
        let others = n.spans.iter().filter(|(s, _)| s.meets(wide));
        let met = exact.map(|(_, s)| *s).chain(others.map(|(_, s)| *s));
        self.joins.extend(met.map(|m| (slot, m)));
        if n.spans.len() > SPANS {
            let stride = n.spans.iter().fold(0, |g, (s, _)| gcd(g, s.stride));
            self.fold(root, stride);
        }
        slot
    }

    fn exact_cell(&mut self, root: u32, offset: i64) -> u32 {
        if let Some(slot) = self.nodes[root as usize].cells.get(&offset) {
            return *slot;
        }
        let slot = self.slot();
        let n = &mut self.nodes[root as usize];
        n.cells.insert(offset, slot);
        let met = n.spans.iter().filter(|(s, _)| s.contains(offset));
        self.joins.extend(met.map(|(_, s)| (slot, *s)));
        if n.cells.len() > CELLS && n.fold == 0 {
            self.fold(root, 8);
        }
        slot
    }

    /// What single bytes of a node are copied to and from.
    pub(crate) fn bytes_of(&mut self, node: u32) -> u32 {
        let (root, _) = self.find(node);
        if let Some(slot) = self.nodes[root as usize].bytes {
            return slot;
        }
        let slot = self.slot();
        self.nodes[root as usize].bytes = Some(slot);
        slot
    }

    /// Makes two slots one.
    fn join_slots(&mut self, a: u32, b: u32) {
        self.share(a, b);
        let (a, b) = (self.rep(a), self.rep(b));
        if a == b {
            return;
        }
        let weight = |s: &Slot| s.out.len() + s.back.len() + s.accesses.len();
        let swap = weight(&self.slots[a as usize]) < weight(&self.slots[b as usize]);
        let (big, small) = if swap { (b, a) } else { (a, b) };
        let moved = std::mem::take(&mut self.slots[small as usize]);
        self.slots[small as usize].parent = big;
        let slot = &mut self.slots[big as usize];
        slot.out.extend(moved.out);
        slot.back.extend(moved.back);
        slot.accesses.extend(moved.accesses);
        slot.bytes.extend(moved.bytes);
        slot.blocks.extend(moved.blocks);
        if let Some(target) = moved.target {
            self.aim(big, target);
        }
        self.wake(big);
    }
}
