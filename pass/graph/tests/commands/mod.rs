//! The commands of filetests.

mod functional;
mod special;

use cotangent_graph::differentiate::{Joint, NoOracle, vjp};
use cotangent_graph::explain::explain;
use cotangent_graph::ir::{Graph, Value};
use cotangent_graph::partition::{Policy, partition};
use cotangent_graph::plan::{Options, plan, plan_once};
use cotangent_graph::simplify;
use cotangent_graph::verify::{Stage, verify};

/// Runs the command `words` on a graph text and gives the text it produces.
pub(crate) fn run(words: &[&str], text: &str) -> Result<String, String> {
    let [command, options @ ..] = words else {
        return Err("no command".into());
    };
    let mut graph: Graph = match (text.parse(), *command) {
        (Ok(graph), _) => graph,
        (Err(e), "print") => return Ok(format!("{e}")),
        (Err(e), _) => return Err(format!("{e}")),
    };
    match *command {
        "print" => {}
        "verify" => return Ok(verify_at(&graph, options)),
        "cse" => drop(simplify::cse(&mut graph, &[])),
        "fold" => drop(simplify::fold(&mut graph, &[], &[])),
        "dce" => drop(simplify::dce(&mut graph, &[])),
        "simplify" => {
            let ones = options.iter().filter_map(|w| w.strip_prefix("one="));
            let ones = ones.map(|name| input(&graph, name).map(|v| (v, 1.0)));
            let ones = ones.collect::<Result<Vec<_>, _>>()?;
            simplify::graph_knowing(&mut graph, &ones);
        }
        "functionalize" => return functional::run(graph, options),
        "specialize" => return special::run(graph, text),
        _ => {
            verify(&graph, Stage::Functional).map_err(|e| e.to_string())?;
            return derived(command, &graph, options);
        }
    }
    verify(&graph, Stage::Open).map_err(|e| e.to_string())?;
    Ok(graph.to_string())
}

/// Commands that need a functional graph.
fn derived(command: &str, graph: &Graph, words: &[&str]) -> Result<String, String> {
    let options = Options {
        in_place: !words.contains(&"no-in-place"),
        accumulate: !words.contains(&"no-accumulate"),
        early_release: !words.contains(&"no-early-release"),
    };
    let wrt = words.iter().find_map(|w| w.strip_prefix("wrt="));
    let Some(wrt) = wrt else {
        return match command {
            "plan" => {
                let plan = plan(graph, options);
                Ok(format!("{plan}; {}\n", plan.cost))
            }
            other => Err(format!("`{other}` needs wrt=…")),
        };
    };
    let mut joint = match differentiate(graph, wrt)? {
        Ok(joint) => joint,
        Err(refusal) => return Ok(refusal),
    };
    if command == "differentiate" {
        return Ok(joint.to_string());
    }
    simplify::joint(&mut joint);
    verify(&joint.graph, Stage::Functional).map_err(|e| e.to_string())?;
    if command == "joint" {
        return Ok(joint.to_string());
    }
    let policy = match words.contains(&"recompute") {
        true => Policy::RecomputeAll,
        false => Policy::SaveReads,
    };
    let split = partition(&joint, policy);
    for half in [&split.forward, &split.backward] {
        verify(half, Stage::Functional).map_err(|e| e.to_string())?;
    }
    // A backward that runs once may use up what the forward left for it.
    let owners = if words.contains(&"once") {
        split.owners()
    } else {
        vec![]
    };
    let (forward, backward) = (
        plan(&split.forward, options),
        plan_once(&split.backward, options, &owners),
    );
    match command {
        "partition" => Ok(split.to_string()),
        "plan" => Ok(format!(
            "{forward}; {}\n\n{backward}; {}\n",
            forward.cost, backward.cost
        )),
        "explain" => {
            let wrt: Vec<String> = wrt.split(',').map(str::to_owned).collect();
            Ok(explain(&split, &forward, &backward, &wrt).to_string())
        }
        other => Err(format!("unknown command `{other}`")),
    }
}

/// The joint graph, or the refusal of a rule.
fn differentiate(graph: &Graph, wrt: &str) -> Result<Result<Joint, String>, String> {
    let wrt: Vec<Value> = wrt
        .split(',')
        .map(|name| input(graph, name))
        .collect::<Result<_, _>>()?;
    let seeded = vec![true; graph.outputs.len()];
    Ok(vjp(graph, &wrt, &seeded, &NoOracle).map_err(|(e, loc)| match loc {
        Some(at) => format!("{e}, at {at}"),
        None => e.to_string(),
    }))
}

fn input(graph: &Graph, name: &str) -> Result<Value, String> {
    let input = graph.inputs.iter().find(|i| i.name == name);
    input.map(|i| i.value).ok_or(format!("no input `{name}`"))
}

fn verify_at(graph: &Graph, stages: &[&str]) -> String {
    let mut out = String::new();
    for stage in stages {
        let at = match *stage {
            "open" => Stage::Open,
            "closed" => Stage::Closed,
            _ => Stage::Functional,
        };
        let verdict = verify(graph, at).map_or_else(|e| e.message, |()| "ok".into());
        out += &format!("{stage}: {verdict}\n");
    }
    out
}
