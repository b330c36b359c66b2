//! The published table of edge values.

use super::harness::Program;
use super::numeric::{DOUBLE, ops};
use crate::kernel::rules::table::{Name, table};

/// Rule, operands, seed, contributions to the operands.
struct Edge {
    rule: &'static str,
    at: Vec<f64>,
    seed: f64,
    want: Vec<f64>,
}

/// The rows of the published table.
fn published() -> Vec<Edge> {
    let text = include_str!("../../../../../docs/edge-values.md");
    let numbers = |cell: &str| cell.split(',').map(|n| n.trim().parse().unwrap()).collect::<Vec<f64>>();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `"));
    let row = |line: &'static str| {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        Edge {
            rule: cells[0].trim_end_matches('`'),
            at: numbers(cells[1]),
            seed: cells[2].parse().unwrap(),
            want: numbers(cells[3]),
        }
    };
    rows.map(row).collect()
}

#[test]
fn edge_values_are_the_published_ones_in_both_modes() {
    let of = |rule: &str| {
        let rule = table()
            .rules
            .iter()
            .find(|r| r.name == rule)
            .unwrap_or_else(|| panic!("no rule {rule}"));
        let usable = |n: &&Name| !matches!(n, Name::Intrinsic(n) if n == "llvm.minimumnum" || n == "llvm.maximumnum");
        let mut found = rule.names.iter().filter(usable).flat_map(|n| ops(rule, n, DOUBLE));
        found.next().expect("every edge is of a double")
    };
    let edges = published();
    assert!(edges.len() > 60);
    let mut program = Program::start(edges.iter().map(|e| of(e.rule)).collect());
    for (k, Edge { rule, at, seed, want }) in edges.iter().enumerate() {
        let got = program.ask(k, *seed, at);
        for (i, want) in want.iter().enumerate() {
            for got in [got.vjp[i], got.jvp[i]] {
                let same = got == *want || got.is_nan() && want.is_nan() || (got - want).abs() < 1e-15 * want.abs();
                assert!(
                    same,
                    "{rule}{at:?} with seed {seed}, operand {i}: {got}, published {want}"
                );
            }
        }
    }
}
