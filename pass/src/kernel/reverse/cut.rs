//! What is stored and what is computed again: the cheapest set of fields from which all that is needed follows.
//!
//! Needs and what they can be computed from are a graph. What cannot be computed again hangs on a source, what the reverse
//! reads on a sink; a minimum cut between the two, every need with the cost of a field for it, is the set of fields. Of
//! equally cheap sets the one nearest to the sink is taken, from which least has to be computed.

use super::plan::{Need, Place, Plan};
use petgraph::algo::dinics;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::unionfind::UnionFind;
use petgraph::visit::EdgeRef;
use std::collections::{HashMap, HashSet};

/// How long a chain of operations may be computed again.
const CHAIN: u32 = 12;
/// The same if nothing has to be stored for it.
const FREE: u32 = 32;
/// Larger parts of a graph are not cut: what is needed in them is stored.
const LARGE: usize = 2000;
/// Of edges that cannot be cut.
const ENDLESS: u64 = u64::MAX / 4;

/// Needs by number, each after what it is computed from.
#[derive(Default)]
struct Graph<'m> {
    numbers: HashMap<Need<'m>, usize>,
    nodes: Vec<Node<'m>>,
}

struct Node<'m> {
    need: Need<'m>,
    /// From what it is computed; `None` if it can only be stored.
    from: Option<Vec<usize>>,
    /// Does something that it is computed from have to be stored?
    rooted: bool,
    /// Length of the longest chain to it.
    chain: u32,
}

/// A need on the way to its number.
struct Open<'m> {
    need: Need<'m>,
    recipe: Option<Vec<Need<'m>>>,
    from: Vec<usize>,
}

impl<'m> Graph<'m> {
    /// The number of something that is needed; constants have none. Without recursion: code may be long.
    fn add(&mut self, plan: &Plan<'m>, need: Need<'m>) -> Option<usize> {
        let mut stack = vec![];
        let mut found = self.enter(plan, need, &mut stack);
        while let Some(top) = stack.last_mut() {
            top.from.extend(found.take());
            match top.recipe.as_mut().and_then(Vec::pop) {
                Some(next) => found = self.enter(plan, next, &mut stack),
                None => found = stack.pop().map(|done| self.close(done)),
            }
        }
        found
    }

    /// The number if there is one already; otherwise the need is put on the stack.
    fn enter(&mut self, plan: &Plan<'m>, need: Need<'m>, stack: &mut Vec<Open<'m>>) -> Option<usize> {
        if need.value().is_constant() {
            return None;
        }
        let known = self.numbers.get(&need).copied();
        if known.is_none() {
            let recipe = if plan.is_memory(need) {
                Some(vec![])
            } else {
                plan.recipe(need)
            };
            let from = vec![];
            stack.push(Open { need, recipe, from });
        }
        known
    }

    /// Gives a number to a need whose operands all have one. An operation at the end of a long chain begins a new one.
    fn close(&mut self, done: Open<'m>) -> usize {
        let operands = || done.from.iter().map(|k| &self.nodes[*k]);
        let chain = 1 + operands().map(|n| n.chain).max().unwrap_or(0);
        let rooted = done.recipe.is_none() || operands().any(|n| n.rooted);
        let most = if rooted { CHAIN } else { FREE };
        let node = match done.recipe {
            Some(_) if chain <= most => Node {
                need: done.need,
                from: Some(done.from),
                rooted,
                chain,
            },
            _ => Node {
                need: done.need,
                from: None,
                rooted: true,
                chain: 0,
            },
        };
        self.numbers.insert(done.need, self.nodes.len());
        self.nodes.push(node);
        self.nodes.len() - 1
    }
}

/// What single needs cost, by themselves.
#[derive(Default)]
pub(super) struct Costs<'m> {
    graph: Graph<'m>,
    least: Vec<u64>,
}

impl<'m> Costs<'m> {
    /// The least that the fields for something cost.
    pub(super) fn least(&mut self, plan: &Plan<'m>, need: Need<'m>) -> u64 {
        let Some(k) = self.graph.add(plan, need) else {
            return 0;
        };
        for n in &self.graph.nodes[self.least.len()..] {
            let stored = plan.cost_of_field(n.need);
            let again = |from: &Vec<usize>| from.iter().fold(0u64, |sum, k| sum.saturating_add(self.least[*k]));
            self.least.push(n.from.as_ref().map_or(stored, again).min(stored));
        }
        self.least[k]
    }
}

/// Decides for everything that is wanted, and for what it is computed from.
pub(super) fn choose<'m>(plan: &Plan<'m>, wanted: Vec<Need<'m>>) -> HashMap<Need<'m>, Place> {
    let mut graph = Graph::default();
    let wanted: HashSet<usize> = wanted.into_iter().filter_map(|n| graph.add(plan, n)).collect();
    let stored = stored(plan, &graph, &wanted);
    let mut places = HashMap::new();
    let mut work: Vec<_> = wanted.into_iter().collect();
    while let Some(k) = work.pop() {
        let node = &graph.nodes[k];
        let place = match &node.from {
            _ if plan.is_memory(node.need) => Place::Memory,
            Some(_) if !stored[k] => Place::Recompute,
            _ => Place::Field,
        };
        if places.insert(node.need, place).is_none() && place == Place::Recompute {
            work.extend(node.from.iter().flatten());
        }
    }
    places
}

/// Which needs are stored.
fn stored<'m>(plan: &Plan<'m>, graph: &Graph<'m>, wanted: &HashSet<usize>) -> Vec<bool> {
    let nodes = &graph.nodes;
    let mut stored = vec![false; nodes.len()];
    let mut parts = UnionFind::<usize>::new(nodes.len());
    for (k, node) in nodes.iter().enumerate() {
        for from in node.from.iter().flatten().filter(|f| node.rooted && nodes[**f].rooted) {
            parts.union(k, *from);
        }
    }
    let mut members: HashMap<usize, Vec<usize>> = HashMap::new();
    for k in (0..nodes.len()).filter(|k| nodes[*k].rooted) {
        members.entry(parts.find(k)).or_default().push(k);
    }
    for part in members.values() {
        match part[..] {
            [one] => stored[one] = true,
            _ if part.len() > LARGE => part.iter().for_each(|k| stored[*k] = wanted.contains(k)),
            _ => cut(plan, graph, wanted, part, &mut stored),
        }
    }
    stored
}

/// Cuts a part of the graph.
fn cut<'m>(plan: &Plan<'m>, graph: &Graph<'m>, wanted: &HashSet<usize>, part: &[usize], stored: &mut [bool]) {
    let mut flow = DiGraph::<(), u64>::new();
    let (source, sink) = (flow.add_node(()), flow.add_node(()));
    let ends: HashMap<usize, (NodeIndex, NodeIndex)> = part
        .iter()
        .map(|k| (*k, (flow.add_node(()), flow.add_node(()))))
        .collect();
    let mut fields = vec![];
    for k in part {
        let (node, (into, out)) = (&graph.nodes[*k], ends[k]);
        fields.push(flow.add_edge(into, out, plan.cost_of_field(node.need)));
        match &node.from {
            Some(from) => {
                let rooted = from.iter().filter_map(|f| ends.get(f));
                for (_, from) in rooted.copied().collect::<Vec<_>>() {
                    flow.add_edge(from, into, ENDLESS);
                }
            }
            None => drop(flow.add_edge(source, into, ENDLESS)),
        }
        if wanted.contains(k) {
            flow.add_edge(out, sink, ENDLESS);
        }
    }
    let (_, flows) = dinics(&flow, source, sink);
    // Where the sink can still be reached from, against the flow.
    let mut open = HashSet::from([sink]);
    let mut work = vec![sink];
    while let Some(at) = work.pop() {
        let back = flow.edges_directed(at, petgraph::Incoming);
        let free = back.filter(|e| flows[e.id().index()] < *e.weight()).map(|e| e.source());
        let undone = flow.edges(at).filter(|e| flows[e.id().index()] > 0).map(|e| e.target());
        let next: Vec<_> = free.chain(undone).collect();
        work.extend(next.into_iter().filter(|n| open.insert(*n)));
    }
    for (k, field) in part.iter().zip(fields) {
        let (into, out) = ends[k];
        stored[*k] = !open.contains(&into) && open.contains(&out) && flows[field.index()] > 0;
    }
}
