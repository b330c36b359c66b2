//! Rules that users wrote, run by lli.

use crate::kernel::{Activity, DiffRequest, Mode, Refusal, differentiate};
use crate::llvm::OwnedModule;
use std::process::Command;

const REGISTERED: &str = r#"
    define double @f(double %x, ptr %p) {
      %y = call double @g(double %x, ptr %p)
      %z = fmul double %y, %x
      ret double %z
    }
    define double @g(double %x, ptr %p) noinline
        "cotangent-forward-rule"="g_forward" "cotangent-reverse-rule"="g_reverse" {
      %a = load double, ptr %p
      %y = fmul double %x, %a
      ret double %y
    }
    define { double, double } @g_forward(double %x, ptr %p, ptr %dp) {
      %a = load double, ptr %p
      %y = fmul double %x, %a
      %tape = fmul double %x, 10.0
      %one = insertvalue { double, double } poison, double %tape, 0
      %both = insertvalue { double, double } %one, double %y, 1
      ret { double, double } %both
    }
    define double @g_reverse(double %x, ptr %p, ptr %dp, double %dy, double %tape) {
      %more = fmul double %dy, 100.0
      store double %more, ptr %dp
      %dx = fmul double %dy, %tape
      ret double %dx
    }
    declare double @derivative(double, ptr, ptr)
    define i32 @main() {
      %p = alloca double
      %dp = alloca double
      store double 2.0, ptr %p
      store double 0.0, ptr %dp
      %d = call double @derivative(double 3.0, ptr %p, ptr %dp)
      %e = load double, ptr %dp
      %sum = fadd double %d, %e
      ; 6 + 3 * 30, and 3 * 100
      %right = fcmp oeq double %sum, 396.0
      %code = select i1 %right, i32 0, i32 1
      ret i32 %code
    }"#;

/// A rule as the runtime lays it out, of the square function, with a gradient of 7 and a tangent of 5.
const RUNTIME: &str = r#"
    @rule = constant { ptr, i64, ptr, ptr, ptr, ptr, ptr, ptr }
        { ptr null, i64 0, ptr null, ptr null, ptr null, ptr @augment, ptr @reverse, ptr @tangent }
    @kept = global [2 x ptr] zeroinitializer
    declare void @cotangent_custom_vjp(ptr, ptr, ptr)
    define double @f(double %x, ptr %unused) {
      %place = alloca double
      %args = alloca ptr
      %out = alloca double
      store double %x, ptr %place
      store ptr %place, ptr %args
      call void @cotangent_custom_vjp(ptr @rule, ptr %args, ptr %out)
      %y = load double, ptr %out
      %z = fmul double %y, 2.0
      ret double %z
    }
    define void @primal(ptr %args, ptr %out) {
      %place = load ptr, ptr %args
      %x = load double, ptr %place
      %y = fmul double %x, %x
      store double %y, ptr %out
      ret void
    }
    define ptr @augment(ptr %args, ptr %args.shadow, ptr %out, ptr %out.shadow, ptr %arena) {
      call void @primal(ptr %args, ptr %out)
      store ptr %args.shadow, ptr @kept
      store ptr %out.shadow, ptr getelementptr (ptr, ptr @kept, i64 1)
      ret ptr @kept
    }
    define void @reverse(ptr %kept) {
      %args = load ptr, ptr %kept
      %out.at = getelementptr ptr, ptr %kept, i64 1
      %out = load ptr, ptr %out.at
      %seed = load double, ptr %out
      store double 0.0, ptr %out
      %place = load ptr, ptr %args
      %old = load double, ptr %place
      %more = fmul double %seed, 7.0
      %new = fadd double %old, %more
      store double %new, ptr %place
      ret void
    }
    define void @tangent(ptr %args, ptr %args.shadow, ptr %out, ptr %out.shadow, ptr %arena) {
      call void @primal(ptr %args, ptr %out)
      %place = load ptr, ptr %args.shadow
      %dx = load double, ptr %place
      %dy = fmul double %dx, 5.0
      store double %dy, ptr %out.shadow
      ret void
    }
    declare double @derivative(DERIVATIVE)
    define i32 @main() {
      %d = call double @derivative(GIVEN)
      %right = fcmp oeq double %d, WANT
      %code = select i1 %right, i32 0, i32 1
      ret i32 %code
    }"#;

fn derive(text: &str, mode: Mode, arguments: [Activity; 2]) -> Result<bool, Vec<Refusal>> {
    derive_in(1, text, mode, arguments)
}

/// The same in so many directions.
fn derive_in(width: u32, text: &str, mode: Mode, arguments: [Activity; 2]) -> Result<bool, Vec<Refusal>> {
    let module = OwnedModule::read(text.as_bytes()).unwrap();
    let request = DiffRequest {
        function: module.get().function("f").unwrap(),
        mode,
        arguments: arguments.to_vec(),
        result_active: true,
        primal_result: false,
        seed_argument: false,
        arena_argument: false,
        width,
        entry: "derivative".into(),
    };
    differentiate(module.get(), &[request])?;
    module.get().verify().unwrap();
    let file = tempfile::NamedTempFile::with_suffix(".ll").unwrap();
    // The primal calls what the runtime has.
    let declared = "declare void @cotangent_custom_vjp(ptr, ptr, ptr)";
    let defined = "define void @cotangent_custom_vjp(ptr %rule, ptr %args, ptr %out) { ret void }";
    std::fs::write(file.path(), module.get().text().replace(declared, defined)).unwrap();
    Ok(Command::new("lli-22").arg(file.path()).status().unwrap().success())
}

#[test]
fn a_registered_rule_is_called_in_the_place_of_the_body() {
    assert_eq!(
        derive(REGISTERED, Mode::Combined, [Activity::Out, Activity::Dup]),
        Ok(true)
    );
}

#[test]
fn a_rule_of_the_runtime_is_called_in_both_modes() {
    let with = |types: &str, given: &str, want: &str| {
        RUNTIME
            .replace("DERIVATIVE", types)
            .replace("GIVEN", given)
            .replace("WANT", want)
    };
    let reverse = with("double, ptr", "double 3.0, ptr null", "14.0");
    assert_eq!(
        derive(&reverse, Mode::Combined, [Activity::Out, Activity::Const]),
        Ok(true)
    );
    let forward = with("double, double, ptr", "double 3.0, double 1.5, ptr null", "15.0");
    assert_eq!(
        derive(&forward, Mode::Forward, [Activity::Dup, Activity::Const]),
        Ok(true)
    );
}

#[test]
fn a_rule_for_tangents_only_is_refused_for_gradients_and_the_other_way_round() {
    let text = RUNTIME
        .replace("DERIVATIVE", "double, ptr")
        .replace("GIVEN", "double 3.0, ptr null");
    let text = text
        .replace("WANT", "0.0")
        .replace("ptr @augment,", "ptr null,")
        .replace("ptr @tangent }", "ptr null }");
    let refusals = derive(&text, Mode::Combined, [Activity::Out, Activity::Const]).unwrap_err();
    assert!(refusals[0].construct.contains("for tangents only"), "{refusals:?}");
    let refusals = derive(&text, Mode::Forward, [Activity::Dup, Activity::Const]).unwrap_err();
    assert!(refusals[0].construct.contains("for gradients only"), "{refusals:?}");
}

#[test]
fn a_rule_that_takes_shadows_is_refused_in_several_directions() {
    let refused = |text: &str, arguments| {
        let refusals = derive_in(2, text, Mode::Combined, arguments).unwrap_err();
        assert!(
            refusals[0].construct.contains("whose rule is for one direction"),
            "{refusals:?}"
        );
    };
    let text = REGISTERED.replace("@derivative(double, ptr, ptr)", "@other(double, ptr, ptr)");
    let text = text.replace("call double @derivative(", "call double @other(");
    refused(&text, [Activity::Out, Activity::Dup]);
    let text = RUNTIME.replace("declare double @derivative(DERIVATIVE)", "");
    let text = text.replace("call double @derivative(GIVEN)", "fadd double 0.0, 0.0");
    refused(&text.replace("WANT", "0.0"), [Activity::Out, Activity::Const]);
}

#[test]
fn a_registered_rule_of_another_signature_is_refused() {
    let text = REGISTERED.replace("double %dy, double %tape)", "double %dy, float %tape.small)");
    let text = text.replace(
        "%dx = fmul double",
        "%tape = fpext float %tape.small to double\n%dx = fmul double",
    );
    let refusals = derive(&text, Mode::Combined, [Activity::Out, Activity::Dup]).unwrap_err();
    assert!(refusals[0].construct.contains("`g_reverse`"), "{refusals:?}");
}

/// `norm` overwrites what `x[1]` was multiplied into, and is constant.
const INACTIVE: &str = r#"
    define void @norm(ptr %x, ptr %to) noinline "cotangent-inactive" {
      %a = load double, ptr %x
      %y = fmul double %a, %a
      store double %y, ptr %to
      ret void
    }
    define double @f(ptr %x, ptr %s) {
      %b.at = getelementptr double, ptr %x, i64 1
      %b = load double, ptr %b.at
      store double %b, ptr %s
      call void @norm(ptr %x, ptr %s)
      %n = load double, ptr %s
      %y = fmul double %n, %b
      ret double %y
    }
    declare void @derivative(ptr, ptr, ptr, ptr)
    define i32 @main() {
      %x = alloca [2 x double]
      %dx = alloca [2 x double]
      %s = alloca double
      %ds = alloca double
      store [2 x double] [double 3.0, double 4.0], ptr %x
      store [2 x double] zeroinitializer, ptr %dx
      store double 0.0, ptr %ds
      call void @derivative(ptr %x, ptr %dx, ptr %s, ptr %ds)
      %da = load double, ptr %dx
      %db.at = getelementptr double, ptr %dx, i64 1
      %db = load double, ptr %db.at
      %e = load double, ptr %ds
      %first = fcmp oeq double %da, 0.0
      %second = fcmp oeq double %db, 9.0
      %third = fcmp oeq double %e, 0.0
      %two = and i1 %first, %second
      %right = and i1 %two, %third
      %code = select i1 %right, i32 0, i32 1
      ret i32 %code
    }"#;

#[test]
fn what_an_inactive_function_writes_is_constant() {
    assert_eq!(
        derive(INACTIVE, Mode::Combined, [Activity::Dup, Activity::Dup]),
        Ok(true)
    );
}

#[test]
fn a_rule_counts_where_the_function_itself_is_constant() {
    let text = REGISTERED.replace(
        "%y = fmul double %x, %a\n      ret double %y\n    }\n    define { double, double }",
        "ret double 6.0\n    }\n    define { double, double }",
    );
    assert_ne!(text, REGISTERED);
    assert_eq!(derive(&text, Mode::Combined, [Activity::Out, Activity::Dup]), Ok(true));
}
