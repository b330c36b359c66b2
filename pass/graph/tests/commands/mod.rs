//! The commands of filetests.

use cotangent_graph::ir::Graph;
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
        "fold" => drop(simplify::fold(&mut graph, &[])),
        "dce" => drop(simplify::dce(&mut graph, &[])),
        "simplify" => simplify::graph(&mut graph),
        other => return Err(format!("unknown command `{other}`")),
    }
    verify(&graph, Stage::Open).map_err(|e| e.to_string())?;
    Ok(graph.to_string())
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
