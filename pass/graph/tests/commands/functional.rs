//! The command `functionalize`: inputs are contiguous tensors, each of its own storage, but for `same=x,y` (two
//! handles to one tensor), `shares=x,y` (two tensors on one storage) and `transposed=x`.

use cotangent_graph::differentiate::NoOracle;
use cotangent_graph::functionalize::functionalize;
use cotangent_graph::ir::{Graph, Type, Value};
use cotangent_graph::specialize::{ClosedImage, InputInfo, Prologue, Specialized, TensorFacts};
use cotangent_graph::verify::{Stage, verify};

pub(super) fn run(graph: Graph, options: &[&str]) -> Result<String, String> {
    verify(&graph, Stage::Closed).map_err(|e| e.to_string())?;
    let names = |option: &str| -> Vec<String> {
        let list = options.iter().find_map(|o| o.strip_prefix(option));
        list.map_or(vec![], |l| l.split(',').map(String::from).collect())
    };
    let mut inputs: Vec<InputInfo> = graph
        .inputs
        .iter()
        .enumerate()
        .map(|(k, i)| info(&graph, i.value, k))
        .collect();
    let at = |name: &String| graph.inputs.iter().position(|i| i.name == *name);
    let pair = |option: &str| match names(option).iter().filter_map(at).collect::<Vec<_>>()[..] {
        [a, b] => Some((a, b)),
        _ => None,
    };
    if let Some((a, b)) = pair("same=") {
        inputs[b].facts = inputs[a].facts.clone();
    }
    if let (Some((a, b)), storage) = (pair("shares="), |i: &InputInfo| i.facts.as_ref().map(|f| f.storage)) {
        let storage = storage(&inputs[a]).unwrap_or_default();
        inputs[b].facts.iter_mut().for_each(|f| f.storage = storage);
    }
    for k in names("transposed=").iter().filter_map(at) {
        inputs[k].facts.iter_mut().for_each(|f| f.strides.reverse());
    }
    let wrt: Vec<Value> = names("wrt=")
        .iter()
        .filter_map(at)
        .map(|k| graph.inputs[k].value)
        .collect();
    let mut specialized = Specialized {
        leaf: 0,
        inputs,
        prologue: Prologue {
            steps: vec![],
            slots: graph.inputs.len(),
        },
        image: ClosedImage::default(),
        constants: vec![],
        cut: None,
        graph,
    };
    let effects = match functionalize(&mut specialized, &wrt, &NoOracle) {
        Ok(effects) => effects,
        Err(refusal) => return Ok(refusal.to_string()),
    };
    verify(&specialized.graph, Stage::Functional).map_err(|e| e.to_string())?;
    let checks: String = specialized
        .prologue
        .steps
        .iter()
        .map(|s| format!("; check {s}\n"))
        .collect();
    Ok(format!("{}{effects}{checks}", specialized.graph))
}

fn info(graph: &Graph, value: Value, k: usize) -> InputInfo {
    let facts = match graph.ty(value) {
        Type::Tensor(Some(ty)) => Some(TensorFacts::contiguous(ty.clone(), 1000 + k as u64)),
        _ => None,
    };
    InputInfo {
        value,
        slot: k as u32,
        place: None,
        facts,
        internal: false,
    }
}
