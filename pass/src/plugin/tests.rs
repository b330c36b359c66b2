//! Calls of entry points: what they become, and what is told of those that are wrong.

use crate::llvm::{OwnedModule, collect_errors};

/// Functions to differentiate, and the markers.
const FUNCTIONS: &str = "
@enzyme_const = external global i32
@enzyme_dup = external global i32
@enzyme_out = external global i32
@enzyme_width = external global i32
define internal double @square(double %x) {
  %y = fmul double %x, %x
  ret double %y
}
define internal double @scale(double %x, i32 %n) {
  %m = sitofp i32 %n to double
  %y = fmul double %x, %m
  ret double %y
}
define internal double @narrow(float %x) {
  %y = fpext float %x to double
  ret double %y
}
define internal double @first(ptr %p) {
  %y = load double, ptr %p
  ret double %y
}
declare double @hidden(double)
declare double @__enzyme_autodiff(ptr, ...)
declare double @_Z16__enzyme_fwddiffPvz(ptr, ...)
declare { double, double } @__enzyme_autodiff_pair(ptr, ...)
declare ptr @__enzyme_augmentfwd(ptr, ...)
declare double @__enzyme_reverse(ptr, ...)
declare { double, double } @__enzyme_reverse_pair(ptr, ...)
declare double @__enzyme_batch(ptr, ...)
";

/// The errors for a function body with calls, and the module's text after the pass.
fn run(body: &str) -> (Vec<String>, String) {
    let text = format!("{FUNCTIONS}\ndefine double @caller(double %x, ptr %p, ptr %d) {{\n{body}\n}}");
    let module = OwnedModule::read(text.as_bytes()).unwrap();
    let program = module.get();
    let (changed, errors) = collect_errors(program.context(), || super::differentiate(program));
    assert!(changed, "the module has a request");
    program.verify().unwrap();
    (errors, program.text())
}

fn refused(call: &str, words: &str) {
    let (errors, _) = run(&format!("%r = {call}\n ret double %r"));
    assert!(errors.len() == 1 && errors[0].contains(words), "{errors:?}");
}

#[test]
fn a_call_becomes_a_call_of_the_derivative() {
    let (errors, text) = run("%r = call double (ptr, ...) @__enzyme_autodiff(ptr @square, double %x)\n ret double %r");
    assert_eq!(errors, [""; 0]);
    assert!(!text.contains("call double (ptr, ...)"), "{text}");
    assert!(
        text.contains("define internal") && text.contains("cotangent.gradient.0.square"),
        "{text}"
    );
}

#[test]
fn markers_are_seen_by_value_by_address_and_as_metadata() {
    for marker in ["i32 %m", "ptr @enzyme_const", "metadata !\"enzyme_const\""] {
        let (errors, _) = run(&format!(
            "%m = load i32, ptr @enzyme_const
             %r = call double (ptr, ...) @__enzyme_autodiff(ptr @scale, double %x, {marker}, i32 3)
             ret double %r"
        ));
        assert_eq!(errors, [""; 0], "{marker}");
    }
}

#[test]
fn a_function_is_found_through_a_variable_that_is_written_once() {
    let (errors, _) = run("%v = alloca ptr
        store ptr @square, ptr %v
        %f = load ptr, ptr %v
        %r = call double (ptr, ...) @__enzyme_autodiff(ptr %f, double %x)
        ret double %r");
    assert_eq!(errors, [""; 0]);
}

#[test]
fn a_float_that_was_widened_on_its_way_is_narrowed_again() {
    let (errors, text) = run("%r = call double (ptr, ...) @__enzyme_autodiff(ptr @narrow, double %x)\n ret double %r");
    assert_eq!(errors, [""; 0]);
    assert!(text.contains("fptrunc double %x to float"), "{text}");
}

#[test]
fn tangents_follow_marked_floats_and_unmarked_ones_if_nothing_else_fits() {
    for arguments in ["i32 %m, double %x, double 1.0", "double %x, double 1.0"] {
        let (errors, _) = run(&format!(
            "%m = load i32, ptr @enzyme_dup
             %r = call double (ptr, ...) @_Z16__enzyme_fwddiffPvz(ptr @square, {arguments})
             ret double %r"
        ));
        assert_eq!(errors, [""; 0], "{arguments}");
    }
}

#[test]
fn a_wrong_call_is_an_error_that_names_the_function_and_the_reason() {
    let call = |rest: &str| format!("call double (ptr, ...) @__enzyme_autodiff({rest})");
    refused(&call("ptr %p, double %x"), "which function is meant");
    refused(
        &call("ptr @hidden, double %x"),
        "`hidden`: its body is not in this file",
    );
    refused(
        &call("ptr @square"),
        "`square`: the argument for parameter 1 of 1 is missing",
    );
    refused(
        &call("ptr @square, double %x, double %x"),
        "1 of the call's arguments are left over",
    );
    refused(&call("ptr @square, i32 2"), "is i32 where double is wanted");
    refused(
        &call("ptr @first, ptr %p"),
        "the shadow for parameter 1 of 1 is missing",
    );
    refused(&call("ptr @first, ptr @enzyme_out, ptr %p"), "marked as an output");
    refused(
        &call("ptr @square, ptr @enzyme_width, i32 65, double %x"),
        "65 directions at once; 1 to 64",
    );
    refused(
        &call("ptr @square, ptr @enzyme_width, i32 4, double %x"),
        "the derivative's result is [4 x double]",
    );
    refused(
        &call("ptr @first, ptr @enzyme_width, i32 2, ptr %p, ptr %d"),
        "the shadow for parameter 1 of 1 is missing",
    );
    refused(&call("ptr @first, ptr %p, ptr %d"), "the derivative has none");
    refused(
        "call double (ptr, ...) @__enzyme_batch(ptr @square, double %x)",
        "this entry point is not known",
    );
}

#[test]
fn a_result_of_another_shape_is_an_error() {
    let (errors, _) = run(
        "%s = call { double, double } (ptr, ...) @__enzyme_autodiff_pair(ptr @square, double %x)
        %r = extractvalue { double, double } %s, 0
        ret double %r",
    );
    assert!(errors[0].contains("the derivative's result is double"), "{errors:?}");
}

#[test]
fn several_directions_take_as_many_shadows_and_give_arrays_of_outputs() {
    let (errors, text) = run(
        "%s = call { double, double } (ptr, ...) @__enzyme_autodiff_pair(ptr @square, ptr @enzyme_width,
            i32 2, double %x)
        call double (ptr, ...) @__enzyme_autodiff(ptr @first, ptr @enzyme_width, i32 2, ptr %p, ptr %d, ptr %p)
        %r = extractvalue { double, double } %s, 1
        ret double %r",
    );
    assert_eq!(errors, [""; 0]);
    assert!(
        text.contains("[2 x double] @cotangent.gradient.0.square(double"),
        "{text}"
    );
    assert!(
        text.contains("void @cotangent.gradient.1.first(ptr %p, ptr %d, ptr %p)"),
        "{text}"
    );
}

#[test]
fn the_seeds_of_several_directions_are_an_array_however_c_passes_it() {
    let reverse = |seeds: &str| {
        run(&format!(
            "%v = load <2 x double>, ptr %p
            %a = load [2 x double], ptr %p
            %t = call ptr (ptr, ...) @__enzyme_augmentfwd(ptr @square, ptr @enzyme_width, i32 2, double %x)
            %s = call {{ double, double }} (ptr, ...) @__enzyme_reverse_pair(ptr @square, ptr @enzyme_width, i32 2,
                double %x, {seeds}, ptr %t)
            %r = extractvalue {{ double, double }} %s, 1
            ret double %r"
        ))
        .0
    };
    let by_value = "ptr byval([2 x double]) %p";
    for seeds in ["double 1.0, double 2.0", "<2 x double> %v", "[2 x double] %a", by_value] {
        assert_eq!(reverse(seeds), [""; 0], "{seeds}");
    }
    for seeds in ["double 1.0", "ptr byval([3 x double]) %p", "ptr %p"] {
        let errors = reverse(seeds);
        let missing = "the cotangents of its result, an array of 2 of double, are missing";
        assert!(errors.len() == 1 && errors[0].contains(missing), "{seeds}: {errors:?}");
    }
}

#[test]
fn a_reverse_sweep_that_does_not_fit_the_forward_sweep_is_an_error() {
    let (errors, _) = run(
        "%t = call ptr (ptr, ...) @__enzyme_augmentfwd(ptr @square, ptr @enzyme_width, i32 2, double %x)
        %r = call double (ptr, ...) @__enzyme_reverse(ptr @square, double %x, double 1.0, ptr %t)
        ret double %r",
    );
    assert!(
        errors.len() == 1 && errors[0].contains("in another way than the forward sweep"),
        "{errors:?}"
    );
}

#[test]
fn all_errors_are_told_at_once() {
    let (errors, _) = run("%a = call double (ptr, ...) @__enzyme_autodiff(ptr @square)
        %b = call double (ptr, ...) @__enzyme_autodiff(ptr @first, ptr %p)
        ret double %a");
    assert_eq!(errors.len(), 2, "{errors:?}");
}
