//! The table against the functions themselves: every rule, under every name, is compiled by LLVM and compared with
//! differences; edge values are asserted one by one.

mod edges;
mod harness;
mod numeric;

use super::table::{Name, Table, table};
use super::{Class, rule_of};
use crate::llvm::OwnedModule;

#[test]
fn the_table_reads() {
    Table::new(include_str!("table.txt")).unwrap();
}

#[test]
fn a_name_claimed_twice_is_an_error() {
    let text = "[zero]\nfloor(x)\n[linear]\nother(x) = d @ floor";
    assert!(Table::new(text).unwrap_err().contains("two rules"));
}

#[test]
fn a_broken_formula_is_an_error_with_its_line() {
    let error = Table::new("[elementwise]\nsin(x) = cos(z)").unwrap_err();
    assert_eq!(error, "line 2: unknown `z`: sin(x) = cos(z)");
}

#[test]
fn names_are_found_in_every_form() {
    let t = table();
    let library = |name: &str| t.library(name).map(|(rule, _)| rule.name.as_str());
    assert_eq!(library("sinf"), Some("sin"));
    assert_eq!(library("erfl"), Some("erf"));
    assert_eq!(library("erff"), Some("erf"));
    assert_eq!(library("__pow_finite"), Some("pow"));
    assert_eq!(library("__expf_finite"), Some("exp"));
    assert_eq!(library("modulus"), None);
    let intrinsic = |name: &str| t.intrinsic(name).map(|rule| rule.name.as_str());
    assert_eq!(intrinsic("llvm.fma.v4f32"), Some("fma"));
    assert_eq!(intrinsic("llvm.x86.avx.min.ps.256"), Some("x86min"));
    assert_eq!(intrinsic("llvm.memcpy.p0.p0.i64"), None);
}

#[test]
fn a_bilinear_or_linear_class_is_what_the_formulas_are() {
    for rule in &table().rules {
        for (i, partial) in rule.partials.iter().enumerate() {
            let reads = rule.reads(i);
            match rule.class {
                Class::Linear => assert!(!reads.result && reads.operands & 1 == 0, "{} {partial:?}", rule.name),
                Class::Bilinear => assert!(!reads.result && !reads.operand(i), "{}", rule.name),
                _ => {}
            }
        }
    }
}

#[test]
fn a_declaration_of_another_signature_and_a_function_of_the_program_have_no_rule() {
    let text = "
        declare float @sin(float)
        define double @cos(double %x) { ret double %x }
        declare double @exp(double)
        define double @f(double %x, float %y) {
          %a = call float @sin(float %y)
          %b = call double @cos(double %x)
          %c = call double @exp(double %x)
          ret double %c
        }";
    let module = OwnedModule::read(text.as_bytes()).unwrap();
    let f = module.get().function("f").unwrap();
    let known: Vec<_> = f.instructions().map(|i| rule_of(i).is_some()).collect();
    assert_eq!(known, [false, false, true, false]);
}

#[test]
fn every_intrinsic_exists() {
    for name in table().rules.iter().flat_map(|r| &r.names) {
        let Name::Intrinsic(name) = name else { continue };
        assert!(crate::llvm::is_intrinsic(name), "{name}");
    }
}

#[test]
fn every_op_stands_in_one_class_only() {
    let mut seen = std::collections::HashSet::new();
    for rule in &table().rules {
        for name in &rule.names {
            assert!(seen.insert(name.clone()), "{name:?}");
            assert!(!matches!(name, Name::Exact(n) if n.is_empty()));
        }
    }
}
