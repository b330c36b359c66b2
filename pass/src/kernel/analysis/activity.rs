//! Activity: which values and memory can carry a derivative from what is asked for to what is asked about.
//!
//! A value is *varied* if it can depend on an active input, *useful* if an active output can depend on it; it is *active*
//! if it is both. Memory is looked at by the cells of [`content`](super::content), in classes: cells between which
//! copies go are one. Floats, and integers that are words, can be active; nothing else. A pointer *needs a shadow* if an
//! active access can go through it, or if memory must hold its shadow for one.
//!
//! **Promise.** What is said to be inactive has a derivative of zero, or none that counts, at every run, under the
//! promise of [`content`](super::content); what needs no shadow is never asked for one. One answer serves all that the
//! module is asked for, and all calls of a function. Unknown counts as active.

mod changed;
mod flows;

use super::constraints::Constraints;
use super::content::Content;
use super::words::Words;
use crate::kernel::request::Activity as Asked;
use crate::llvm::{Function, Mod, Opcode, Type, Value};
use flows::Flows;
use std::collections::{HashMap, HashSet};
use std::fmt::Write;

/// What is asked of a function from outside.
#[derive(Clone, Debug)]
pub struct Ask<'m> {
    /// The function.
    pub function: Function<'m>,
    /// One per argument.
    pub arguments: Vec<Asked>,
    /// Is the result differentiated?
    pub result: bool,
}

/// The activity of a module.
#[derive(Default)]
pub struct Activity<'m> {
    active: HashSet<Value<'m>>,
    shadowed: HashSet<Value<'m>>,
    /// Stores and copies that meet active memory, or memory that holds needed shadows.
    writes: HashSet<Value<'m>>,
    /// Those of them that write active floats.
    active_writes: HashSet<Value<'m>>,
    /// Integers that may be computed from the bits of what varies, on the way to where they are taken for floats.
    computed: HashSet<Value<'m>>,
    /// Casts and stores that take such for floats that count.
    laundered: HashSet<Value<'m>>,
    /// Global variables that need a shadow.
    globals: Vec<Value<'m>>,
    /// Functions that have a part in derivatives, themselves or by what they call.
    taking_part: HashSet<Function<'m>>,
    /// Types of those of them that may be called by a pointer.
    indirect: HashSet<Type<'m>>,
}

impl<'m> Activity<'m> {
    /// Looks at a module.
    pub fn new(module: Mod<'m>, content: &Content<'_, 'm>, words: &Words<'m>, asks: &[Ask<'m>]) -> Self {
        let c = &mut *content.inner.borrow_mut();
        let mut flows = Flows::new(module, c, words);
        for ask in asks {
            seed(&mut flows, c, ask);
        }
        let changed = changed::find(&mut flows);
        let active: Vec<bool> = flows
            .varied()
            .into_iter()
            .zip(flows.useful())
            .map(|(v, u)| v && u)
            .collect();
        let mut shadow_seeds = std::mem::take(&mut flows.shadow_seeds);
        for (accesses, pointer) in &flows.accesses {
            if accesses.iter().any(|n| active[*n as usize]) {
                shadow_seeds.push(*pointer);
            }
        }
        let shadowed = flows.shadowed(&shadow_seeds);
        let mut activity = Self {
            computed: changed.on_the_way,
            laundered: changed.ends,
            ..Self::default()
        };
        for (v, n) in &flows.numbers {
            if active[*n as usize] {
                activity.active.insert(*v);
            }
            if shadowed[*n as usize] {
                activity.shadowed.insert(*v);
            }
        }
        for (i, nodes) in &flows.writes {
            if nodes.iter().any(|n| active[*n as usize] || shadowed[*n as usize]) {
                activity.writes.insert(*i);
            }
            if nodes.iter().any(|n| active[*n as usize]) {
                activity.active_writes.insert(*i);
            }
        }
        activity.globals = activity.shadowed_globals(module, c);
        activity.spread(module);
        activity
    }

    /// Variables to which a pointer may lead that needs a shadow. Constants have none: nothing active is written there.
    fn shadowed_globals(&self, module: Mod<'m>, c: &mut Constraints<'_, 'm>) -> Vec<Value<'m>> {
        let mut met = HashSet::new();
        for v in &self.shadowed {
            let first = c.slots_of(*v);
            for slot in first..first + c.shapes.of(v.ty()).slots {
                let target = c.regions.target(slot);
                met.extend(target.map(|t| c.regions.find(t.node).0));
            }
        }
        let mut needs = |g: &Value<'m>| {
            let node = c.objects.get(g).copied();
            !g.is_global_constant() && node.is_some_and(|n| met.contains(&c.regions.find(n).0))
        };
        module.globals().filter(|g| needs(g)).collect()
    }

    /// Functions that take part, and then their callers.
    fn spread(&mut self, module: Mod<'m>) {
        let bodies: Vec<_> = module.functions().filter(|f| !f.is_declaration()).collect();
        let mut callers: HashMap<Function<'m>, Vec<Function<'m>>> = HashMap::new();
        let mut indirect: HashMap<Type<'m>, Vec<Function<'m>>> = HashMap::new();
        let mut work = vec![];
        for f in &bodies {
            let mut own = f.params().into_iter().any(|p| self.has_part(p));
            for i in f.instructions() {
                own |= self.has_part(i);
                if i.is_call() {
                    match i.callee() {
                        Some(callee) => callers.entry(callee).or_default().push(*f),
                        None => indirect.entry(i.called_type()).or_default().push(*f),
                    }
                }
            }
            if own {
                work.push(*f);
            }
        }
        while let Some(f) = work.pop() {
            if self.taking_part.insert(f) {
                work.extend(callers.remove(&f).unwrap_or_default());
                if f.is_address_taken() && self.indirect.insert(f.ty()) {
                    work.extend(indirect.remove(&f.ty()).unwrap_or_default());
                }
            }
        }
    }

    fn has_part(&self, v: Value<'m>) -> bool {
        let lost = self.laundered.contains(&v);
        lost || self.active.contains(&v) || self.shadowed.contains(&v) || self.writes.contains(&v)
    }

    /// Can the value carry a derivative?
    pub fn is_active(&self, v: Value<'m>) -> bool {
        self.active.contains(&v)
    }

    /// Must the value (a pointer, or what holds pointers) have a shadow?
    pub fn needs_shadow(&self, v: Value<'m>) -> bool {
        self.shadowed.contains(&v)
    }

    /// Does the store, copy or fill end or move what derivatives need?
    pub fn writes(&self, i: Value<'m>) -> bool {
        self.writes.contains(&i)
    }

    /// Does the store, copy or fill write what is active, and not pointers alone?
    pub fn writes_active(&self, i: Value<'m>) -> bool {
        self.active_writes.contains(&i)
    }

    /// Does the instruction (a store, or a cast to float) take for a float what may be computed from bits of another?
    pub fn is_laundered(&self, i: Value<'m>) -> bool {
        self.laundered.contains(&i)
    }

    /// Is the integer one that may become such a float?
    pub fn is_computed(&self, v: Value<'m>) -> bool {
        self.computed.contains(&v)
    }

    /// Global variables that need a shadow, in the module's order.
    pub fn globals(&self) -> &[Value<'m>] {
        &self.globals
    }

    /// Has the call no part in derivatives, so that it can stay as it is?
    pub fn is_inactive_call(&self, call: Value<'m>) -> bool {
        let callee = match call.callee() {
            Some(f) if f.is_declaration() => false,
            Some(f) => self.taking_part.contains(&f),
            None if call.is_inline_assembly() => false,
            None => self.indirect.contains(&call.called_type()),
        };
        !callee && !self.has_part(call) && !call.arguments().iter().any(|a| self.has_part(*a))
    }

    /// Text form.
    pub fn print(&self, f: Function<'m>) -> String {
        let mut text = format!(
            "@{}{}\n",
            f.name(),
            if self.taking_part.contains(&f) {
                ""
            } else {
                ": inactive"
            }
        );
        let values: Vec<_> = f.params().into_iter().chain(f.instructions()).collect();
        let mut list = |title: &str, wanted: &dyn Fn(Value<'m>) -> bool| {
            let names: Vec<_> = values.iter().filter(|v| wanted(**v)).map(|v| label(*v)).collect();
            if !names.is_empty() {
                let _ = writeln!(text, "  {title}: {}", names.join(", "));
            }
        };
        list("active", &|v| self.is_active(v));
        list("shadowed", &|v| self.needs_shadow(v));
        list("writes", &|v| self.writes(v));
        list("laundered", &|v| self.is_laundered(v));
        list("inactive calls", &|v| v.is_call() && self.is_inactive_call(v));
        text
    }
}

fn label(v: Value<'_>) -> String {
    match v.name() {
        name if !name.is_empty() => format!("%{name}"),
        _ => v.text().trim().to_string(),
    }
}

/// What goes in and out at the functions that are asked for.
fn seed<'m>(flows: &mut Flows<'m>, c: &mut Constraints<'_, 'm>, ask: &Ask<'m>) {
    for (p, asked) in ask.function.params().into_iter().zip(&ask.arguments) {
        if *asked == Asked::Const {
            continue;
        }
        let n = flows.number(p);
        flows.varied_seeds.push(n);
        // Memory of the caller: what it holds is given, and looked at afterwards, pointers included.
        for n in flows.reached(c, p) {
            flows.varied_seeds.push(n);
            flows.useful_seeds.push(n);
            flows.shadow_seeds.push(n);
        }
    }
    if ask.result {
        let returns = ask.function.instructions().filter(|i| i.is(Opcode::LLVMRet));
        for value in returns.filter_map(|r| r.operands().next()) {
            let n = flows.number(value);
            flows.useful_seeds.push(n);
            // Where it leads is looked at afterwards, by its shadow.
            let reached = flows.reached(c, value);
            flows.shadow_seeds.extend((!reached.is_empty()).then_some(n));
            flows.useful_seeds.extend(&reached);
            flows.shadow_seeds.extend(&reached);
        }
    }
}
