//! Libraries of compiled code: written by one process, used by another.

use cotangent_graph::ir::Graph;
use cotangent_graph::plan::{Options, plan};
use cotangent_runtime::engine::{compiled_hits, load_compiled, save_compiled};
use cotangent_runtime::exec::{CompiledGraph, Input, Output};
use cotangent_runtime::jit::materialisations;
use std::path::Path;
use std::process::Command;
use tch::{Device, Kind, Tensor};

/// The variable that makes this program the second process.
const SECOND: &str = "COTANGENT_TEST_LIBRARY";

/// Opaque ops, lists, floats, a constant array and a failing path: every kind of import.
const GRAPH: &str = r#"graph @several(%0: f32[2,3] "x", %1: f32[3] "w", %2: f64 "s") {
  %3: f32[2,3] = layer_norm(%0, [3], %1, none, 1e-5, false)
  %4: f64 = scalar.call("exp", %2, none, none)
  %5: f32[2,3] = mul_scalar(%3, %4)
  %6: f32[1,3], %7: f32[1,3] = split(%5, 1, 0)
  %8: f32[1,6] = cat({%6, %7}, 1)
  %9: f32[1,6] = special_entr(%8)
  return %9
}"#;

const OTHER: &str = r#"graph @other(%0: f32[2,3] "x") {
  %1: f32[2,3] = tanh(%0)
  return %1
}"#;

fn compile(text: &str) -> CompiledGraph {
    let graph: Graph = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
    CompiledGraph::compile(&plan(&graph, Options::default())).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn run(graph: &CompiledGraph) -> Vec<f32> {
    let x = Tensor::arange(6, (Kind::Float, Device::Cpu)).reshape([2, 3]);
    let w = Tensor::from_slice(&[1f32, 2.0, 3.0]);
    let outputs = graph
        .run(&[(&x).into(), (&w).into(), Input::Float(0.5)])
        .expect("it runs");
    let outputs = outputs.into_iter().filter_map(Output::into_tensor);
    outputs
        .flat_map(|y| Vec::<f32>::try_from(y.reshape([-1])).expect("numbers"))
        .collect()
}

/// What the second process does.
fn second(file: &Path) {
    assert_eq!(load_compiled(file).expect("it loads"), 1);
    let graph = compile(GRAPH);
    assert!(graph.is_loaded());
    println!("numbers {:?}", run(&graph));
    assert_eq!((compiled_hits(), materialisations()), (1, 0), "nothing is compiled");
    assert!(!compile(OTHER).is_loaded());
    assert_eq!(compiled_hits(), 1, "another graph is not in the library");
}

#[test]
fn another_process_runs_the_code_without_the_jit_and_a_broken_library_is_refused() {
    if let Some(file) = std::env::var_os(SECOND) {
        return second(file.as_ref());
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("compiled.so");
    assert!(
        save_compiled(&file)
            .unwrap_err()
            .to_string()
            .contains("no function was called")
    );

    let graph = compile(GRAPH);
    let numbers = run(&graph);
    assert_eq!(save_compiled(&file).expect("it is written"), 1);
    assert_eq!(
        folder.path().read_dir().expect("a folder").count(),
        1,
        "nothing is left beside it"
    );

    let mut process = Command::new(std::env::current_exe().expect("a path"));
    let output = process
        .arg("--nocapture")
        .env(SECOND, &file)
        .output()
        .expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(text.contains(&format!("numbers {numbers:?}")), "{text}");

    let bytes = std::fs::read(&file).expect("a file");
    let refused = |bytes: &[u8]| {
        let file = folder.path().join("broken.so");
        std::fs::write(&file, bytes).expect("a file");
        let error = load_compiled(&file).unwrap_err().to_string();
        assert!(
            error.contains("broken.so") && error.contains("cargo cotangent run"),
            "{error}"
        );
        error
    };
    for cut in [1, 100, bytes.len() / 4] {
        let error = refused(&bytes[..bytes.len() - cut]);
        assert!(error.contains("is truncated"), "{error}");
    }
    let mut damaged = bytes.clone();
    damaged[bytes.len() / 2] ^= 1;
    assert!(refused(&damaged).contains("is damaged"));
    assert!(refused(&std::fs::read("Cargo.toml").expect("a file")).contains("is not a library of compiled code"));
}
