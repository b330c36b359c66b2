//! How derivatives flow: a graph of values and classes of memory, built in one pass.
//!
//! An edge from `a` to `b` says that `b` varies if `a` does, and that `a` is useful if `b` is. Edges between pointers say
//! that the first needs a shadow if the second does.

use crate::kernel::analysis::allocations::{Allocation, allocation};
use crate::kernel::analysis::constraints::Constraints;
use crate::kernel::analysis::content::classes;
use crate::kernel::analysis::shape::Sort;
use crate::kernel::analysis::words::{Words, is_distance};
use crate::kernel::attributes::{INACTIVE, has_own_rule};
use crate::kernel::callee::{Block, is_silent, of_block};
use crate::kernel::rules::{Class, known_body, rule_of};
use crate::llvm::{Function, Mod, Opcode, Type, Value};
use std::collections::{HashMap, HashSet};

/// The graph.
pub(super) struct Flows<'m> {
    /// Numbers of values.
    pub(super) numbers: HashMap<Value<'m>, u32>,
    by_class: HashMap<u32, u32>,
    by_object: HashMap<u32, u32>,
    edges: Vec<(u32, u32)>,
    pointers: Vec<(u32, u32)>,
    /// What integers that are no words are computed from; of these, what holds floats or words.
    pub(super) bits: Vec<(u32, u32)>,
    pub(super) sources: Vec<(u32, u32)>,
    /// Where integers become floats: casts, and stores with the memory they write. The number is the integer's.
    pub(super) ends: Vec<(Value<'m>, u32, Vec<u32>)>,
    count: u32,
    pub(super) varied_seeds: Vec<u32>,
    pub(super) useful_seeds: Vec<u32>,
    pub(super) shadow_seeds: Vec<u32>,
    /// What an access reads or writes, and the number of its pointer.
    pub(super) accesses: Vec<(Vec<u32>, u32)>,
    /// What stores and copies write.
    pub(super) writes: Vec<(Value<'m>, Vec<u32>)>,
    taken: HashMap<Type<'m>, Vec<Function<'m>>>,
    /// What stands for the variable arguments of a function.
    variable: HashMap<Function<'m>, u32>,
    /// What stands for memory that is accessed by pointers of which nobody knows where they lead.
    wild: u32,
}

impl<'m> Flows<'m> {
    pub(super) fn new(module: Mod<'m>, c: &mut Constraints<'_, 'm>, words: &Words<'m>) -> Self {
        let mut flows = Self {
            numbers: HashMap::new(),
            by_class: HashMap::new(),
            by_object: HashMap::new(),
            edges: vec![],
            pointers: vec![],
            bits: vec![],
            sources: vec![],
            ends: vec![],
            count: 0,
            varied_seeds: vec![],
            useful_seeds: vec![],
            shadow_seeds: vec![],
            accesses: vec![],
            writes: vec![],
            taken: HashMap::new(),
            variable: HashMap::new(),
            wild: 0,
        };
        flows.wild = flows.fresh();
        let bodies: Vec<_> = module.functions().filter(|f| !f.is_declaration()).collect();
        for pointer in module.functions().filter(|f| f.is_address_taken()) {
            let body = if pointer.is_declaration() {
                known_body(pointer)
            } else {
                Some(pointer)
            };
            flows.taken.entry(pointer.ty()).or_default().extend(body);
        }
        for f in bodies {
            for i in f.instructions() {
                flows.instruction(f, i, c, words);
            }
        }
        flows
    }

    fn fresh(&mut self) -> u32 {
        self.count += 1;
        self.count - 1
    }

    /// The number of a value.
    pub(super) fn number(&mut self, v: Value<'m>) -> u32 {
        if let Some(n) = self.numbers.get(&v) {
            return *n;
        }
        let n = self.fresh();
        // Constants are no places where derivatives meet; but the memory at an address may be.
        if !v.is_constant() || v.ty().is_pointer() && v.underlying_object().is_global() {
            self.numbers.insert(v, n);
        }
        n
    }

    /// The number of a class of memory.
    pub(super) fn class(&mut self, class: u32) -> u32 {
        if let Some(n) = self.by_class.get(&class) {
            return *n;
        }
        let n = self.fresh();
        self.by_class.insert(class, n);
        n
    }

    /// The number of an object of memory, which stands for what code of the module does not touch in it.
    fn object(&mut self, node: u32) -> u32 {
        if let Some(n) = self.by_object.get(&node) {
            return *n;
        }
        let n = self.fresh();
        self.by_object.insert(node, n);
        n
    }

    /// The numbers of all memory that the pointers in a value lead to, over pointers in memory, too.
    pub(super) fn reached(&mut self, c: &mut Constraints<'_, 'm>, v: Value<'m>) -> Vec<u32> {
        let targets = c.targets(v);
        let mut found = vec![];
        for node in c.regions.reach(targets) {
            found.push(self.object(node));
            for (_, slot) in c.regions.cells(node).0 {
                let class = c.regions.class(slot);
                found.push(self.class(class));
            }
        }
        found
    }

    fn point(&mut self, from: Value<'m>, to: Value<'m>) {
        let edge = (self.number(from), self.number(to));
        self.pointers.push(edge);
    }

    fn both(&mut self, from: Value<'m>, to: Value<'m>) {
        let edge = (self.number(from), self.number(to));
        self.edges.push(edge);
        self.pointers.push(edge);
    }

    /// What can depend on an active input, by what has derivatives.
    pub(super) fn varied(&self) -> Vec<bool> {
        reach(self.count, &[&self.edges], &self.varied_seeds, false)
    }

    /// What an active output can depend on.
    pub(super) fn useful(&self) -> Vec<bool> {
        reach(self.count, &[&self.edges], &self.useful_seeds, true)
    }

    /// What can depend on the seeds in any way but for edges of `ended`, or what the seeds can depend on.
    pub(super) fn followed(&self, seeds: &[u32], ended: &HashSet<(u32, u32)>, backward: bool) -> Vec<bool> {
        let kept: Vec<_> = self.edges.iter().filter(|e| !ended.contains(e)).copied().collect();
        reach(self.count, &[&kept, &self.bits], seeds, backward)
    }

    /// What needs a shadow.
    pub(super) fn shadowed(&self, seeds: &[u32]) -> Vec<bool> {
        reach(self.count, &[&self.pointers], seeds, true)
    }

    fn instruction(&mut self, f: Function<'m>, i: Value<'m>, c: &mut Constraints<'_, 'm>, words: &Words<'m>) {
        use Opcode::*;
        match i.opcode() {
            LLVMLoad => self.access(i, i.operand(0), i, false, c, words),
            LLVMStore => self.access(i, i.operand(1), i.operand(0), true, c, words),
            LLVMAtomicRMW | LLVMAtomicCmpXchg => {
                let new = i.operand(if i.is(LLVMAtomicRMW) { 1 } else { 2 });
                self.access(i, i.operand(0), new, true, c, words);
                self.access(i, i.operand(0), i, false, c, words);
            }
            LLVMCall | LLVMInvoke => self.call(i, c, words),
            LLVMRet => {
                if let Some(value) = i.operands().next() {
                    let (from, to) = (self.number(value), self.result(f));
                    self.edges.push((from, to));
                    self.pointers.push((from, to));
                }
            }
            LLVMBr | LLVMSwitch | LLVMUnreachable | LLVMResume | LLVMICmp | LLVMFCmp | LLVMAlloca => {}
            LLVMSelect => {
                for k in [1, 2] {
                    self.both(i.operand(k), i);
                }
            }
            LLVMGetElementPtr => self.point(i.operand(0), i),
            _ => self.operation(i, c, words),
        }
    }

    /// Arithmetic and moves.
    fn operation(&mut self, i: Value<'m>, c: &mut Constraints<'_, 'm>, words: &Words<'m>) {
        let rule = rule_of(i);
        if rule.is_some_and(|r| r.class() == Class::Zero) {
            return;
        }
        if is_distance(i) {
            return;
        }
        if !can_carry(i, c, words) {
            // An integer of no account; its operands may still be the bits of a float or pointer that becomes one again.
            return self.computed(i, i.operands(), c, words);
        }
        if i.is(Opcode::LLVMBitCast) && i.ty().scalar().is_float() {
            let n = self.number(i.operand(0));
            self.ends.push((i, n, vec![]));
        }
        for x in i.operands().filter(|x| !x.is_constant()).collect::<Vec<_>>() {
            self.both(x, i);
        }
    }

    /// An integer that is no word, and what it is computed from.
    fn computed(
        &mut self,
        i: Value<'m>,
        from: impl Iterator<Item = Value<'m>>,
        c: &mut Constraints<'_, 'm>,
        words: &Words<'m>,
    ) {
        let to = self.number(i);
        for x in from.filter(|x| !x.is_constant() && !x.ty().is_pointer()) {
            let edge = (self.number(x), to);
            self.bits.push(edge);
            if can_carry(x, c, words) {
                self.sources.push(edge);
            }
        }
    }

    fn access(
        &mut self,
        i: Value<'m>,
        pointer: Value<'m>,
        value: Value<'m>,
        write: bool,
        c: &mut Constraints<'_, 'm>,
        words: &Words<'m>,
    ) {
        let Some(first) = c.accesses.get(&i).copied() else {
            return;
        };
        let shape = c.shapes.of(value.ty());
        let word = words.of(value).to_vec();
        // What the caller's memory holds, of which the program reads integers alone, it does not say: floats, it may be.
        let open = c.is_open(pointer);
        let (mut floats, mut pointers, mut integers) = (vec![], vec![], vec![]);
        for leaf in &shape.leaves {
            for k in 0..leaf.slots {
                let class = c.regions.class(first + leaf.slot + k);
                let n = self.class(class);
                match leaf.sort {
                    Sort::Float(_) => floats.push(n),
                    Sort::Pointer => pointers.push(n),
                    Sort::Word | Sort::Byte => {
                        let at = (leaf.offset + 4 * i64::from(k)) as u32;
                        let carries = word.iter().any(|(o, _)| *o == at);
                        let mut here = vec![class];
                        if leaf.sort == Sort::Byte {
                            // Pieces of what is there as a whole.
                            here.extend(classes(c, pointer, Some(leaf.size as u64)));
                        }
                        for class in here {
                            let n = self.class(class);
                            if write || carries {
                                floats.push(n);
                                pointers.push(n);
                            }
                            if write || !carries {
                                let kinds = c.regions.class_kinds(class);
                                integers.push((n, kinds.has_float() || open && kinds.is_none()));
                            }
                        }
                    }
                }
            }
        }
        let (v, p) = (self.number(value), self.number(pointer));
        match write {
            true if !integers.is_empty() && !value.is_constant() => {
                let memory = integers.into_iter().map(|(n, _)| n).collect();
                self.ends.push((i, v, memory));
            }
            true => {}
            false => {
                for (n, float) in integers {
                    self.bits.push((n, v));
                    if float {
                        self.sources.push((n, v));
                    }
                }
            }
        }
        for n in &floats {
            self.edges.push(if write { (v, *n) } else { (*n, v) });
        }
        for n in &pointers {
            self.pointers.push(if write { (v, *n) } else { (*n, v) });
            // The shadow memory is read, or written, through the shadow of the address.
            self.pointers.push(if write { (p, *n) } else { (p, v) });
        }
        if is_wild(c, pointer) {
            self.edges.push(if write { (v, self.wild) } else { (self.wild, v) });
            // Nobody knows what is there: what is written may be read, and what is read may have been written.
            match write {
                true => self.useful_seeds.push(v),
                false => self.varied_seeds.push(v),
            }
            self.accesses.push((vec![v, self.wild], p));
        }
        if write {
            self.accesses.push((floats.clone(), p));
            floats.extend(pointers);
            if is_wild(c, pointer) {
                floats.extend([v, self.wild]);
            }
            self.writes.push((i, floats));
        } else {
            self.accesses.push((vec![v], p));
        }
    }

    /// A copy or fill of memory: what it writes, and through which pointers.
    fn block(&mut self, i: Value<'m>, pointers: &[Value<'m>], c: &mut Constraints<'_, 'm>) {
        let size = i
            .arguments()
            .get(2)
            .filter(|s| s.is_const_int())
            .map(|s| s.zext_value());
        let mut written = vec![];
        for p in pointers {
            for class in classes(c, *p, size) {
                written.push(self.class(class));
            }
        }
        if pointers.iter().any(|p| is_wild(c, *p)) {
            self.useful_seeds.extend(&written);
            self.varied_seeds.extend(&written);
            let wild = self.wild;
            self.edges.extend(written.iter().flat_map(|n| [(*n, wild), (wild, *n)]));
        }
        for p in pointers {
            let p = self.number(*p);
            self.accesses.push((written.clone(), p));
            self.pointers.extend(written.iter().map(|n| (p, *n)));
        }
        self.writes.push((i, written));
    }

    fn call(&mut self, i: Value<'m>, c: &mut Constraints<'_, 'm>, words: &Words<'m>) {
        let arguments = i.arguments();
        let Some(callee) = i.callee() else {
            if i.is_inline_assembly() {
                return self.unknown(i, &arguments, c, words);
            }
            let taken = self.taken.get(&i.called_type()).cloned().unwrap_or_default();
            if taken.is_empty() {
                // Run time will tell that there is no derivative, if there should be one.
                return self.unknown(i, &arguments, c, words);
            }
            for f in taken {
                self.bind(i, &arguments, f, c);
            }
            return;
        };
        if has_own_rule(callee) {
            return self.own_rule(i, &arguments, c);
        }
        if let Some(rule) = rule_of(i) {
            if rule.class() != Class::Zero {
                for x in rule.operands() {
                    self.both(x, i);
                }
            }
            return;
        }
        let numbers = i.ty().scalar().is_int() || i.ty().is_struct();
        if callee.is_declaration() && numbers && !can_carry(i, c, words) {
            self.computed(i, arguments.iter().copied(), c, words);
        }
        match allocation(i) {
            Some(Allocation::Resize { old, .. }) => {
                let old = arguments[old as usize];
                self.point(old, i);
                return self.block(i, &[old, i], c);
            }
            Some(_) => return,
            None => {}
        }
        if !callee.is_declaration() {
            return self.bind(i, &arguments, callee, c);
        }
        let name = callee.name();
        if name.starts_with("llvm.va_start") {
            return self.variable(arguments[0], i.block().parent(), c);
        }
        match of_block(&name) {
            Some(Block::Copy) => return self.block(i, &arguments[..2], c),
            Some(Block::Fill) => return self.block(i, &arguments[..1], c),
            None => {}
        }
        if !i.call_has("noreturn")
            && callee.string_attribute(INACTIVE).is_none()
            && !name.strip_prefix("llvm.").is_some_and(is_silent)
        {
            self.unknown(i, &arguments, c, words);
        }
    }

    /// A call of which nothing is known: what it gives and writes may depend on all its arguments, and on what they lead
    /// to.
    fn unknown(&mut self, i: Value<'m>, arguments: &[Value<'m>], c: &mut Constraints<'_, 'm>, words: &Words<'m>) {
        let effects = i.effects();
        let writes = effects.arguments.writes || effects.other.writes;
        let hub = self.fresh();
        let mut memory = vec![];
        for x in arguments {
            let n = self.number(*x);
            self.edges.push((n, hub));
            if can_carry(*x, c, words) {
                let met = self.reached(c, *x);
                self.accesses.push((met.clone(), n));
                memory.extend(met);
            }
        }
        if can_carry(i, c, words) {
            let n = self.number(i);
            self.edges.push((hub, n));
            memory.extend(self.reached(c, i));
            for x in arguments {
                let from = self.number(*x);
                self.pointers.push((from, n));
            }
        }
        for m in memory {
            self.edges.push((m, hub));
            if writes {
                self.edges.push((hub, m));
            }
        }
    }

    /// A call of a function whose derivative the user wrote: everything that it can reach may depend on everything, and is
    /// looked at through shadows.
    fn own_rule(&mut self, i: Value<'m>, arguments: &[Value<'m>], c: &mut Constraints<'_, 'm>) {
        let hub = self.fresh();
        let mut memory = vec![];
        for x in arguments.iter().filter(|x| !x.is_constant()) {
            let n = self.number(*x);
            self.edges.push((n, hub));
            self.accesses.push((vec![hub], n));
            memory.extend(self.reached(c, *x));
        }
        for n in &memory {
            self.edges.extend([(*n, hub), (hub, *n)]);
            self.accesses.push((vec![hub], *n));
        }
        let result = self.number(i);
        self.edges.push((hub, result));
        memory.push(hub);
        self.writes.push((i, memory));
    }

    fn bind(&mut self, call: Value<'m>, arguments: &[Value<'m>], callee: Function<'m>, c: &mut Constraints<'_, 'm>) {
        for a in arguments.iter().skip(callee.params().len()) {
            self.variable(*a, callee, c);
        }
        for (a, p) in arguments.iter().zip(callee.params()) {
            self.both(*a, p);
        }
        let (from, to) = (self.result(callee), self.number(call));
        self.edges.push((from, to));
        self.pointers.push((from, to));
    }

    /// A value that a function takes, or gives on, as a variable argument, or where it finds them: all of these depend on
    /// each other.
    fn variable(&mut self, v: Value<'m>, f: Function<'m>, c: &mut Constraints<'_, 'm>) {
        let hub = match self.variable.get(&f) {
            Some(hub) => *hub,
            None => {
                let hub = self.fresh();
                self.variable.insert(f, hub);
                hub
            }
        };
        let n = self.number(v);
        let memory = self.reached(c, v);
        self.edges.push((n, hub));
        self.accesses.push((vec![hub], n));
        for m in memory {
            self.edges.extend([(m, hub), (hub, m)]);
        }
    }

    /// The number that stands for a function's result: that of its address, which is a constant.
    fn result(&mut self, f: Function<'m>) -> u32 {
        if let Some(n) = self.numbers.get(&f.value()) {
            return *n;
        }
        let n = self.fresh();
        self.numbers.insert(f.value(), n);
        n
    }
}

/// Is it unknown what object a pointer leads to?
fn is_wild<'m>(c: &mut Constraints<'_, 'm>, pointer: Value<'m>) -> bool {
    let slot = c.slots_of(pointer);
    let target = c.regions.target(slot);
    !pointer.is_constant() && target.is_none_or(|t| c.regions.origin(t.node).is_none())
}

/// Can the value hold floats, bits of floats, or pointers?
fn can_carry<'m>(v: Value<'m>, c: &mut Constraints<'_, 'm>, words: &Words<'m>) -> bool {
    let shape = c.shapes.of(v.ty());
    let typed = shape
        .leaves
        .iter()
        .any(|l| matches!(l.sort, Sort::Float(_) | Sort::Pointer));
    typed || !words.of(v).is_empty()
}

fn reach(count: u32, edges: &[&Vec<(u32, u32)>], seeds: &[u32], backward: bool) -> Vec<bool> {
    let mut next = vec![vec![]; count as usize];
    for (a, b) in edges.iter().copied().flatten() {
        let (from, to) = if backward { (*b, *a) } else { (*a, *b) };
        next[from as usize].push(to);
    }
    let mut seen = vec![false; count as usize];
    let mut work = seeds.to_vec();
    while let Some(n) = work.pop() {
        if !std::mem::replace(&mut seen[n as usize], true) {
            work.extend(&next[n as usize]);
        }
    }
    seen
}
