//! Planning: from a graph to steps, with what is released when and what is written in place.
//!
//! *Takes* a closed, functional graph (a forward or a backward). *Gives* a [`Plan`]: steps over numbered slots.
//! *Promises* that running the steps gives the graph's outputs; that inputs, outputs, and whatever shares storage with
//! them before the end are never written to; that every other slot is released. [`Options`] switches each
//! improvement off, so that its worth can be measured.

mod cost;
mod in_place;
mod live;
mod print;

pub use cost::{Cost, flops};

use crate::ir::{Arg, Graph, Input, Inst, Loc, Type, Value};
use crate::ops::Op;
use crate::partition::Ownership;
use live::Live;
use serde::{Deserialize, Serialize};

/// Which improvements a plan may use.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Options {
    /// An op whose first operand dies may write its result there.
    pub in_place: bool,
    /// A product that is only added to something that dies there is accumulated into it. The sum is then rounded as
    /// the kernel does it: the last bits may differ from adding a finished product.
    pub accumulate: bool,
    /// Slots are released after their last use instead of at the end.
    pub early_release: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            in_place: true,
            accumulate: true,
            early_release: true,
        }
    }
}

impl Options {
    /// Without any improvement.
    pub const NONE: Self = Self {
        in_place: false,
        accumulate: false,
        early_release: false,
    };
}

/// A place for one value while a plan runs: a tensor handle, a tape, or a float.
pub type Slot = Value;

/// A graph, ready to be executed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Name of the function.
    pub name: String,
    /// The slots that are filled before the first step, in order. They belong to the caller and are not released,
    /// but for those that are `consumed`.
    pub inputs: Vec<Input>,
    /// Inputs whose handles the caller gives away: the plan releases them, or has them as outputs.
    pub consumed: Vec<Slot>,
    /// What is executed, in order.
    pub steps: Vec<Step>,
    /// The slots that hold the outputs after the last step. A slot may stand there twice, and may be an input: then
    /// the output is one more handle to the same tensor.
    pub outputs: Vec<Slot>,
    /// Slots to release after the last step: none unless early release is off.
    pub release: Vec<Slot>,
    /// Type of each slot.
    pub slots: Vec<Type>,
    /// What running the plan costs.
    pub cost: Cost,
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The op to call, from the table.
    pub op: Op,
    /// Its arguments; each value among them is a slot.
    pub args: Vec<Arg>,
    /// The slots of its results. An in-place step has the slot of its first argument here: the handle that the op
    /// returns is one more handle to that tensor.
    pub results: Vec<Slot>,
    /// The step writes to its first argument, which nothing else needs any more.
    pub in_place: bool,
    /// Slots to release after the step.
    pub release: Vec<Slot>,
    /// Where the user wrote it.
    pub loc: Option<Loc>,
}

/// Plans a graph whose inputs are the caller's: a run can be repeated.
pub fn plan(graph: &Graph, options: Options) -> Plan {
    plan_once(graph, options, &[])
}

/// Plans a graph for a single run, which may use up its inputs as `owners` (the first inputs', in order) allow.
pub fn plan_once(graph: &Graph, options: Options, owners: &[Ownership]) -> Plan {
    let with_owners = || graph.inputs.iter().map(|i| i.value).zip(owners.iter().copied());
    let consumed: Vec<Slot> = with_owners()
        .filter(|(v, o)| *o != Ownership::Caller && !graph.outputs.contains(v) && is_handle(graph.ty(*v)))
        .map(|(v, _)| v)
        .collect();
    let mut live = Live::of(graph, &consumed);
    for (v, _) in with_owners().filter(|(v, o)| *o == Ownership::RunAlone && consumed.contains(v)) {
        live.give_away(v);
    }
    let mut insts: Vec<Option<Inst>> = graph.insts.iter().cloned().map(Some).collect();
    let reuse: Vec<bool> = (0..insts.len())
        .map(|i| {
            options.accumulate && in_place::accumulate(graph, &mut insts, i, &mut live)
                || options.in_place && in_place::reuse(graph, &mut insts, i, &mut live)
        })
        .collect();
    let mut slot: Vec<Slot> = (0u32..).take(graph.value_count()).map(Value).collect();
    let mut steps = vec![];
    for (inst, in_place) in insts.into_iter().zip(reuse) {
        let Some(inst) = inst else { continue };
        let args: Vec<Arg> = inst
            .args
            .iter()
            .map(|a| a.map_values(&mut |v| Arg::Value(slot[v.index()])))
            .collect();
        if in_place && let Arg::Value(s) = args[0] {
            slot[inst.results[0].index()] = s;
        }
        steps.push(Step {
            op: inst.op,
            args,
            results: inst.results.iter().map(|r| slot[r.index()]).collect(),
            in_place,
            release: vec![],
            loc: inst.loc,
        });
    }
    let mut plan = Plan {
        name: graph.name.clone(),
        inputs: graph.inputs.clone(),
        consumed,
        steps,
        outputs: graph.outputs.iter().map(|v| slot[v.index()]).collect(),
        release: vec![],
        slots: (0..graph.value_count())
            .map(|i| graph.ty(Value(i as u32)).clone())
            .collect(),
        cost: Cost::default(),
    };
    release(&mut plan, options.early_release);
    plan.cost = cost::of(&plan);
    plan
}

/// Does a slot of this type hold what must be released?
fn is_handle(ty: &Type) -> bool {
    matches!(ty, Type::Tensor(_) | Type::Tape)
}

/// Adds the releases: after the last step that uses a slot, or all at the end.
fn release(plan: &mut Plan, early: bool) {
    let mut settled = vec![false; plan.slots.len()];
    let lent = plan
        .inputs
        .iter()
        .map(|i| i.value)
        .filter(|v| !plan.consumed.contains(v));
    let kept = lent.chain(plan.outputs.iter().copied());
    kept.for_each(|s| settled[s.index()] = true);
    for step in plan.steps.iter_mut().rev() {
        let mut last = vec![];
        let visit = &mut |s: Slot| {
            if is_handle(&plan.slots[s.index()]) && !std::mem::replace(&mut settled[s.index()], true) {
                last.push(s);
            }
        };
        step.args.iter().for_each(|a| a.for_each_value(visit));
        step.results.iter().for_each(|s| visit(*s));
        match early {
            true => step.release = last,
            false => plan.release.extend(last),
        }
    }
    // Given away, and used by no step.
    let unused = plan.consumed.iter().filter(|s| !settled[s.index()]);
    plan.release.extend(unused.copied().collect::<Vec<_>>());
}
