//! What becomes of each output of a function: a tensor of its own, an input, or a view to be made again outside.
//!
//! An output that shares storage with an input or with another output must do so for the user too, with LibTorch's own
//! record of the view: version counters and in-place writes go by it. So such an output is not taken from the compiled
//! forward; the views that lead to it are replayed, natively, from the tensor that the user has.

use cotangent_graph::differentiate::{ShapeOracle, emit};
use cotangent_graph::extract::part;
use cotangent_graph::functionalize::Alias;
use cotangent_graph::ir::{Arg, Graph, Value};
use cotangent_graph::ops::ShapeError;
use std::collections::{HashMap, HashSet};

/// The tensor that an output is, or is a view of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Root {
    /// The input at this position, as the function leaves it.
    Input(usize),
    /// A value that the forward makes, by position in [`Outputs::fresh`].
    Fresh(usize),
}

/// How a tensor output comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Output {
    /// It is the root.
    Is(Root),
    /// It is a view, by position among the outputs of the replayed graph.
    View(usize),
}

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Outputs {
    /// Each output of the graph that the image mentions as a tensor.
    pub(super) tensors: Vec<Output>,
    /// Tensors that the forward makes for them, or earlier regions of the call did.
    pub(super) fresh: Vec<Value>,
    /// The views, from `starts`.
    pub(super) replay: Option<Graph>,
    /// What the inputs of `replay` are.
    pub(super) starts: Vec<Root>,
}

impl Outputs {
    /// Plans the first `count` outputs of a functional graph. `aliases` are those that view a tensor which the function
    /// writes to: after the call they view its final value. `internal` inputs were made by earlier regions of the call.
    pub(super) fn plan(
        graph: &Graph,
        count: usize,
        aliases: &[Alias],
        internal: &dyn Fn(usize) -> bool,
        oracle: &dyn ShapeOracle,
    ) -> Result<Self, ShapeError> {
        let definitions = graph.definitions();
        let input_of = |v: Value| {
            let input = graph.inputs.iter().position(|i| i.value == v);
            input.filter(|i| !internal(*i))
        };
        let mut whole = graph.clone();
        // Each output as a view of what, and the input that this is.
        let mut targets: Vec<(Value, Value, Option<usize>)> = vec![];
        for (k, v) in graph.outputs[..count].iter().enumerate() {
            targets.push(match aliases.iter().find(|a| a.output == k) {
                Some(alias) => {
                    let start = graph.inputs[alias.input].value;
                    let mut at = start;
                    for step in &alias.steps {
                        at = emit(&mut whole, oracle, step.op, step.args_on(at.into()), None)?[0];
                    }
                    (at, start, Some(alias.input))
                }
                None => {
                    let base = base(graph, &definitions, *v);
                    (*v, base, input_of(base))
                }
            });
        }
        let mut users: HashMap<Value, HashSet<Value>> = HashMap::new();
        for (v, base, _) in &targets {
            users.entry(*base).or_default().insert(*v);
        }
        let mut plan = Self::default();
        let (mut views, mut starts) = (vec![], vec![]);
        for (v, base, input) in &targets {
            // The only output on the storage of an intermediate is that intermediate, as far as a user can tell.
            let alone = input.is_none() && users[base].len() == 1;
            let root = match input {
                Some(i) => Root::Input(*i),
                None => Root::Fresh(index_of(&mut plan.fresh, if alone { *v } else { *base })),
            };
            plan.tensors.push(if alone || v == base {
                Output::Is(root)
            } else {
                index_of(&mut starts, (*base, root));
                Output::View(index_of(&mut views, *v))
            });
        }
        if !views.is_empty() {
            let given: Vec<Value> = starts.iter().map(|(v, _)| *v).collect();
            let part = part(&whole, &format!("{} views", graph.name), &views, &given, None)
                .expect("a view is computed from its base");
            let root = |v: &Value| {
                starts
                    .iter()
                    .find(|(b, _)| b == v)
                    .expect("a part starts from what is given")
                    .1
            };
            plan.starts = part.inputs.iter().map(root).collect();
            plan.replay = Some(part.graph);
        }
        Ok(plan)
    }
}

/// What a value is a view of, through however many views.
fn base(graph: &Graph, definitions: &[Option<usize>], mut v: Value) -> Value {
    while let Some(at) = definitions[v.index()] {
        let inst = &graph.insts[at];
        match inst.args.first() {
            Some(Arg::Value(from)) if inst.op.facts.view && graph.ty(*from).is_tensor() => v = *from,
            _ => break,
        }
    }
    v
}

/// Position of an item, which is added if it is not there.
fn index_of<T: PartialEq>(list: &mut Vec<T>, item: T) -> usize {
    list.iter().position(|x| *x == item).unwrap_or_else(|| {
        list.push(item);
        list.len() - 1
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cotangent_graph::differentiate::NoOracle;
    use cotangent_graph::functionalize::Step;
    use cotangent_graph::ir::{Kind, Type};
    use cotangent_graph::ops::Op;

    fn graph(views_of_input: bool) -> (Graph, Value, Value) {
        let t = Type::tensor(Kind::F32, [2, 2]);
        let mut g = Graph::new("f");
        let x = g.input("x", t.clone());
        let mut op = |name: &str, args: Vec<Arg>| g.push(Op::named(name), args, vec![t.clone()], None)[0];
        let y = op("exp", vec![x.into()]);
        let from = if views_of_input { x } else { y };
        let view = op("t", vec![from.into()]);
        (g, y, view)
    }

    #[test]
    fn a_view_of_an_input_is_replayed_from_the_input() {
        let (mut g, y, view) = graph(true);
        g.outputs = vec![view, y];
        let plan = Outputs::plan(&g, 2, &[], &|_| false, &NoOracle).unwrap();
        assert_eq!(plan.tensors, [Output::View(0), Output::Is(Root::Fresh(0))]);
        assert_eq!((plan.fresh, plan.starts), (vec![y], vec![Root::Input(0)]));
    }

    #[test]
    fn views_of_an_intermediate_are_replayed_only_if_several_escape() {
        let (mut g, y, view) = graph(false);
        g.outputs = vec![view, view];
        let plan = Outputs::plan(&g, 2, &[], &|_| false, &NoOracle).unwrap();
        assert_eq!(plan.tensors, [Output::Is(Root::Fresh(0)); 2]);
        assert_eq!(plan.fresh, [view]);
        g.outputs = vec![view, y];
        let plan = Outputs::plan(&g, 2, &[], &|_| false, &NoOracle).unwrap();
        assert_eq!(plan.tensors, [Output::View(0), Output::Is(Root::Fresh(0))]);
        assert_eq!((plan.fresh, plan.starts), (vec![y], vec![Root::Fresh(0)]));
    }

    #[test]
    fn what_views_a_written_input_is_replayed_from_the_input() {
        let (mut g, y, view) = graph(false);
        g.outputs = vec![y, view];
        let alias = |output, steps: &[&str]| Alias {
            output,
            input: 0,
            steps: steps
                .iter()
                .map(|name| Step {
                    op: Op::named(name),
                    args: vec![Arg::None],
                })
                .collect(),
        };
        let aliases = [alias(0, &[]), alias(1, &["t"])];
        let plan = Outputs::plan(&g, 2, &aliases, &|_| false, &NoOracle).unwrap();
        assert_eq!(plan.tensors, [Output::Is(Root::Input(0)), Output::View(0)]);
        assert_eq!((plan.fresh.len(), plan.starts), (0, vec![Root::Input(0)]));
    }
}
