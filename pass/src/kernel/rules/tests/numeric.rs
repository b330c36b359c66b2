//! Every rule under every name against differences of the op itself.

use super::harness::{Op, Program};
use crate::kernel::rules::table::{Class, Name, Rule, table};

/// Sample points, exact in every type and at no kink.
const POINTS: [f64; 7] = [0.3125, 0.703125, 1.203125, -0.40625, 2.515625, -1.71875, -3.1328125];
/// Values of integer operands.
const ORDERS: [f64; 4] = [-3.0, 1.0, 2.0, 5.0];
/// Names that glibc does not define, or for which LLVM has no code on this machine.
const ABSENT: [&str; 3] = ["pow10", "__powitf2", "llvm.sincospi"];
/// Names of approximations in steps, of which differences tell nothing. A case in C has them.
const STEPS: [&str; 4] = [
    "llvm.x86.sse.rcp",
    "llvm.x86.avx.rcp",
    "llvm.x86.sse.rsqrt",
    "llvm.x86.avx.rsqrt",
];

/// A float type: LLVM's text, suffix of intrinsics, suffix of library names, type of its lanes, and how many.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ty(pub(super) &'static str, &'static str, &'static str, &'static str, u32);
pub(super) const DOUBLE: Ty = Ty("double", "f64", "", "double", 1);
const FLOAT: Ty = Ty("float", "f32", "f", "float", 1);
const LONG: Ty = Ty("x86_fp80", "f80", "l", "x86_fp80", 1);
const DOUBLES: Ty = Ty("<2 x double>", "v2f64", "", "double", 2);
const FLOATS: Ty = Ty("<4 x float>", "v4f32", "f", "float", 4);

/// The ops that a rule's name stands for in a float type: one per part of the result. None if it has no such form.
pub(super) fn ops(rule: &Rule, name: &Name, ty: Ty) -> Vec<Op> {
    let Ty(float, suffix, form, lane, lanes) = ty;
    let kind = |operand: &String| match operand.as_str() {
        "n" if rule.name == "scalbln" => "i64".to_owned(),
        "n" if rule.name == "ldexp" => float.replace(lane, "i32"),
        "n" => "i32".to_owned(),
        "p" => "ptr".to_owned(),
        _ => float.to_owned(),
    };
    let mut operands: Vec<String> = rule.operands.iter().map(kind).collect();
    let mut result = float.to_owned();
    let called = match name {
        Name::Instruction(opcode) => {
            let list: Vec<_> = (0..operands.len()).map(|i| format!("%{i}")).collect();
            let text = format!("{opcode} {float} {}", list.join(", "));
            return vec![Op::new(rule, name, ty, operands, None, text, String::new())];
        }
        Name::Intrinsic(n) if n.starts_with("llvm.x86.") => {
            let (lane, bits) = if n.contains("ps") {
                ("float", 32)
            } else {
                ("double", 64)
            };
            let width = if n.ends_with("256") { 256 } else { 128 };
            if lane != "double" && ty.3 == "double" || float != lane {
                return vec![];
            }
            result = format!("<{} x {lane}>", width / bits);
            operands.fill(result.clone());
            n.clone()
        }
        Name::Intrinsic(n) => {
            let int = if lanes == 1 {
                "i32".to_owned()
            } else {
                format!("v{lanes}i32")
            };
            match rule.name.as_str() {
                // LLVM 22's vector-combine dies of a pair of vectors.
                "sincos" | "modf" | "frexp" if lanes > 1 => return vec![],
                "sincos" | "sincospi" | "modf" => result = format!("{{ {float}, {float} }}"),
                "frexp" => result = format!("{{ {float}, {} }}", float.replace(lane, "i32")),
                _ => {}
            }
            match rule.name.as_str() {
                "frexp" | "ldexp" => format!("{n}.{suffix}.{int}"),
                "powi" => format!("{n}.{suffix}.i32"),
                _ => format!("{n}.{suffix}"),
            }
        }
        Name::Library(_) if lanes > 1 => return vec![],
        Name::Library(n) if n == "nexttoward" => {
            operands[1] = "x86_fp80".into();
            format!("{n}{form}")
        }
        Name::Library(n) if n.ends_with("_r") => {
            if !form.is_empty() {
                return vec![];
            }
            n.clone()
        }
        Name::Library(n) => format!("{n}{form}"),
        Name::Exact(n) => {
            let float = match n.as_str() {
                "__powisf2" | "lgammaf_r" => "float",
                "__powixf2" | "lgammal_r" => "x86_fp80",
                _ => "double",
            };
            if float != ty.0 {
                return vec![];
            }
            n.clone()
        }
    };
    if ABSENT.iter().chain(&STEPS).any(|a| called.starts_with(a)) {
        return vec![];
    }
    let typed: Vec<_> = operands.iter().enumerate().map(|(i, t)| format!("{t} %{i}")).collect();
    let text = format!("call {result} @\"{called}\"({})", typed.join(", "));
    let declare = format!("declare {result} @\"{called}\"({})", operands.join(", "));
    let parts = if result.starts_with('{') {
        vec![Some(0), Some(1)]
    } else {
        vec![None]
    };
    let op = |part| Op::new(rule, name, ty, operands.clone(), part, text.clone(), declare.clone());
    parts.into_iter().map(op).collect()
}

fn all(ty: Ty, classes: &[Class]) -> Vec<(&'static Rule, Op)> {
    let rules = table().rules.iter().filter(|r| classes.contains(&r.class));
    let named = rules.flat_map(|r| r.names.iter().map(move |n| (r, n)));
    named
        .flat_map(|(r, n)| ops(r, n, ty).into_iter().map(move |op| (r, op)))
        .collect()
}

const FORMULAS: [Class; 3] = [Class::Linear, Class::Bilinear, Class::Elementwise];

/// All combinations of sample points for the operands.
fn points(op: &Op) -> Vec<Vec<f64>> {
    op.operands.iter().enumerate().fold(vec![vec![]], |points, (i, ty)| {
        let values = match ty.as_str() {
            "ptr" => vec![0.0],
            t if t.contains('i') => ORDERS.to_vec(),
            // No two operands are equal.
            _ => POINTS.map(|x| x * (1.0 + i as f64 * 0.1328125)).to_vec(),
        };
        let with = |p: &Vec<f64>| {
            values
                .iter()
                .map(|v| [p.as_slice(), &[*v]].concat())
                .collect::<Vec<_>>()
        };
        points.iter().flat_map(with).collect()
    })
}

/// Central differences in operand `i`, by Richardson's rule from two steps.
fn difference(program: &mut Program, k: usize, at: &[f64], i: usize) -> f64 {
    let mut slope = |h: f64| {
        let mut value = |by: f64| {
            let mut at = at.to_vec();
            at[i] += by;
            program.ask(k, 0.0, &at).value
        };
        (value(h) - value(-h)) / (2.0 * h)
    };
    let h = 1.0 / 1024.0;
    (4.0 * slope(h / 2.0) - slope(h)) / 3.0
}

fn close(got: f64, want: f64, tolerance: f64) -> bool {
    (got - want).abs() <= tolerance * want.abs().max(1.0) || got.is_nan() && want.is_nan()
}

#[test]
fn partials_are_the_differences_of_the_op_in_both_modes_and_a_change_of_any_would_be_seen() {
    let (rules, ops): (Vec<_>, Vec<_>) = all(DOUBLE, &FORMULAS).into_iter().unzip();
    let mut program = Program::start(ops);
    for (k, rule) in rules.into_iter().enumerate() {
        let op = program.ops()[k].clone();
        let part = op.part.unwrap_or(0) as usize;
        let mut seen = vec![false; op.operands.len()];
        for at in points(&op) {
            let answer = program.ask(k, 1.5, &at);
            if answer.value.is_nan() {
                continue;
            }
            for (i, seen) in seen.iter_mut().enumerate() {
                assert_eq!(
                    answer.vjp[i].to_bits(),
                    answer.jvp[i].to_bits(),
                    "{} at {at:?}, operand {i}",
                    op.name
                );
                if !op.operands[i].contains("double") {
                    continue;
                }
                let want = 1.5 * difference(&mut program, k, &at, i);
                let ok = |x: f64| close(x, want, 3e-9);
                assert!(
                    ok(answer.vjp[i]),
                    "{} at {at:?}, operand {i}: {answer:?}, differences {want}",
                    op.name
                );
                *seen |= !ok(answer.vjp[i] * 1.001) && !ok(0.0);
            }
        }
        for (i, partials) in rule.partials.iter().enumerate() {
            let has = partials.get(part).is_some_and(Option::is_some);
            assert_eq!(seen[i], has, "{}: no point shows the partial in operand {i}", op.name);
        }
    }
}

#[test]
fn ops_of_class_zero_are_locally_constant() {
    // Those that give integers are constant by their type; `stop` is constant by decree.
    let others = ["stop", "lround", "lrint", "ilogb", "class", "classify", "nan", "to_int"];
    // So are those of the machine but for rounding, which is told how.
    let float = |rule: &Rule, op: &Op| {
        op.text.starts_with("call") && !others.contains(&rule.name.as_str()) && !rule.name.starts_with("x86")
    };
    let ops = all(DOUBLE, &[Class::Zero])
        .into_iter()
        .filter(|(rule, op)| float(rule, op));
    let ops: Vec<_> = ops.map(|(_, op)| op).collect();
    assert!(ops.len() > 10);
    let mut program = Program::start(ops);
    for k in 0..program.ops().len() {
        for x in POINTS {
            assert_eq!(
                difference(&mut program, k, &[x], 0),
                0.0,
                "{} at {x}",
                program.ops()[k].name
            );
        }
    }
}

#[test]
fn every_float_type_and_vector_has_the_partials_of_double() {
    let (_, ops): (Vec<_>, Vec<_>) = all(DOUBLE, &FORMULAS).into_iter().unzip();
    let mut reference = Program::start(ops);
    for (ty, tolerance) in [(FLOAT, 3e-5), (LONG, 1e-12), (DOUBLES, 1e-12), (FLOATS, 3e-5)] {
        let (_, ops): (Vec<_>, Vec<_>) = all(ty, &FORMULAS).into_iter().unzip();
        let mut program = Program::start(ops);
        for k in 0..program.ops().len() {
            let op = program.ops()[k].clone();
            let same = |o: &Op| o.title == op.title && o.part == op.part;
            let Some(r) = reference.ops().iter().position(same) else {
                continue;
            };
            for at in points(&op) {
                let (got, want) = (program.ask(k, 1.5, &at), reference.ask(r, 1.5, &at));
                for (got, want) in got.vjp.iter().zip(&want.vjp).chain(got.jvp.iter().zip(&want.jvp)) {
                    assert!(close(*got, *want, tolerance), "{} at {at:?}: {got} and {want}", op.name);
                }
            }
        }
    }
}
