//! The published table of edge values.

use super::harness::Program;
use super::numeric::{DOUBLE, ops};
use crate::kernel::rules::table::{Name, table};

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

/// Rule, operands, seed, contributions to the operands.
type Edge = (&'static str, &'static [f64], f64, &'static [f64]);

const EDGES: &[Edge] = &[
    // Square root: infinite slope at both zeros; NaN stays.
    ("sqrt", &[0.0], 1.0, &[INF]),
    ("sqrt", &[-0.0], 1.0, &[INF]),
    ("sqrt", &[0.0], 0.0, &[0.0]),
    ("sqrt", &[NAN], 1.0, &[NAN]),
    ("sqrt", &[-1.0], 1.0, &[NAN]),
    ("sqrt", &[INF], 1.0, &[0.0]),
    ("cbrt", &[0.0], 1.0, &[INF]),
    ("cbrt", &[0.0], 0.0, &[0.0]),
    // Absolute value: zero at zero, as the sign.
    ("fabs", &[0.0], 1.0, &[0.0]),
    ("fabs", &[-0.0], 1.0, &[0.0]),
    ("fabs", &[NAN], 1.0, &[NAN]),
    ("fabs", &[NAN], 0.0, &[0.0]),
    ("fabs", &[-INF], 1.0, &[-1.0]),
    // Of equal arguments the first; with NaN, the one returned.
    ("fmin", &[2.0, 2.0], 1.0, &[1.0, 0.0]),
    ("fmax", &[2.0, 2.0], 1.0, &[1.0, 0.0]),
    ("fmin", &[NAN, 2.0], 1.0, &[0.0, 1.0]),
    ("fmax", &[3.0, NAN], 1.0, &[1.0, 0.0]),
    ("fmin", &[NAN, NAN], 1.0, &[1.0, 0.0]),
    ("fminimum", &[2.0, 2.0], 1.0, &[1.0, 0.0]),
    ("fmaximum", &[2.0, 2.0], 1.0, &[1.0, 0.0]),
    ("fminimum", &[NAN, 2.0], 1.0, &[1.0, 0.0]),
    ("fmaximum", &[2.0, NAN], 1.0, &[0.0, 1.0]),
    ("fdim", &[2.0, 2.0], 1.0, &[0.0, 0.0]),
    ("fdim", &[NAN, 2.0], 1.0, &[NAN, NAN]),
    // Powers.
    ("pow", &[0.0, 2.0], 1.0, &[0.0, 0.0]),
    ("pow", &[0.0, 1.0], 1.0, &[1.0, 0.0]),
    ("pow", &[0.0, 0.5], 1.0, &[INF, 0.0]),
    ("pow", &[0.0, 0.0], 1.0, &[0.0, 0.0]),
    ("pow", &[3.0, 0.0], 1.0, &[0.0, 1.0986122886681098]),
    ("pow", &[-2.0, 3.0], 1.0, &[12.0, NAN]),
    ("pow", &[-2.0, 3.0], 0.0, &[0.0, 0.0]),
    ("pow", &[0.0, -1.0], 1.0, &[-INF, -INF]),
    ("pow", &[NAN, 2.0], 1.0, &[NAN, NAN]),
    ("pow", &[INF, -1.0], 1.0, &[0.0, 0.0]),
    ("powi", &[0.0, 0.0], 1.0, &[0.0, 0.0]),
    ("powi", &[NAN, 0.0], 1.0, &[0.0, 0.0]),
    ("powi", &[0.0, 1.0], 1.0, &[1.0, 0.0]),
    ("powi", &[0.0, 3.0], 1.0, &[0.0, 0.0]),
    ("powi", &[0.0, -1.0], 1.0, &[-INF, 0.0]),
    ("powi", &[-2.0, -1.0], 1.0, &[-0.25, 0.0]),
    // Distance and direction.
    ("hypot", &[0.0, 0.0], 1.0, &[0.0, 0.0]),
    ("hypot", &[3.0, 4.0], 1.0, &[0.6, 0.8]),
    ("hypot", &[NAN, 1.0], 1.0, &[NAN, NAN]),
    ("atan2", &[0.0, 0.0], 1.0, &[NAN, NAN]),
    ("atan2", &[0.0, 0.0], 0.0, &[0.0, 0.0]),
    ("atan2", &[0.0, -2.0], 1.0, &[-0.5, 0.0]),
    ("atan2", &[1e200, 1e200], 1.0, &[5e-201, -5e-201]),
    // Signs.
    ("copysign", &[-2.0, 3.0], 1.0, &[-1.0, 0.0]),
    ("copysign", &[-2.0, -0.0], 1.0, &[1.0, 0.0]),
    ("copysign", &[0.0, -1.0], 1.0, &[0.0, 0.0]),
    // An exact zero contributes nothing, whatever it is multiplied with.
    ("fmul", &[INF, 2.0], 0.0, &[0.0, 0.0]),
    ("fmul", &[NAN, NAN], 0.0, &[0.0, 0.0]),
    ("fmul", &[INF, 2.0], NAN, &[NAN, NAN]),
    ("fdiv", &[1.0, 0.0], 0.0, &[0.0, 0.0]),
    ("fdiv", &[1.0, 0.0], 1.0, &[INF, -INF]),
    ("fma", &[INF, NAN, 1.0], 0.0, &[0.0, 0.0, 0.0]),
    ("log", &[0.0], 1.0, &[INF]),
    ("log", &[0.0], 0.0, &[0.0]),
    ("exp", &[INF], 0.0, &[0.0]),
    ("asin", &[1.0], 1.0, &[INF]),
    ("acos", &[-1.0], 1.0, &[-INF]),
    ("atanh", &[1.0], 1.0, &[INF]),
    ("acosh", &[1.0], 1.0, &[INF]),
    ("fmod", &[7.0, 2.0], 1.0, &[1.0, -3.0]),
    ("fmod", &[7.0, INF], 1.0, &[1.0, 0.0]),
    ("ldexp", &[0.0, 5.0], 1.0, &[32.0, 0.0]),
];

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
    let ops: Vec<_> = EDGES.iter().map(|(rule, ..)| of(rule)).collect();
    let mut program = Program::start(ops);
    for (k, (rule, at, seed, want)) in EDGES.iter().enumerate() {
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
