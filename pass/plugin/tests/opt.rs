//! The pass as `opt-22 -load-pass-plugin=LIBRARY -passes=cotangent` runs it, between two runs of `clang`, on code of every
//! level; and what `opt` says of what is refused. That the programs of `tests/kernels/c` are right in `clang` itself is
//! checked by `cargo xtask cases kernels`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The library, which Cargo built for this test and put beside it.
fn plugin() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let built = test.with_file_name("libcotangent_plugin.so");
    assert!(built.is_file(), "{} is missing", built.display());
    built
}

fn run(program: &str, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).output().unwrap()
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

#[track_caller]
fn succeeds(program: &str, arguments: &[&str]) {
    let output = run(program, arguments);
    assert!(output.status.success(), "{program} {arguments:?}: {}", told(&output));
}

/// Compiles a program as far as `opt`; gives what `opt` said and did.
fn through_opt(source: &str, level: &str, folder: &Path) -> (Output, String) {
    let at = |name: &str| folder.join(name).display().to_string();
    let (plain, done) = (at("plain.bc"), at("done.bc"));
    let front = [
        "-Xclang",
        "-disable-O0-optnone",
        "-Xclang",
        "-disable-llvm-passes",
        "-g",
    ];
    let clang = if source.ends_with(".cpp") {
        "clang++-22"
    } else {
        "clang-22"
    };
    let rest = [level, "-emit-llvm", "-c", source, "-o", &plain];
    succeeds(clang, &[&front[..], &rest].concat());
    let load = format!("-load-pass-plugin={}", plugin().display());
    let output = run("opt-22", &[&load, "-passes=cotangent", &plain, "-o", &done]);
    (output, done)
}

#[test]
fn programs_are_right_at_every_level() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels/c");
    let names = [
        "attribute_gradient.c",
        "attribute_inactive.c",
        "attribute_like.c",
        "attribute_tangent.c",
        "names_with_any_signature.cpp",
        "split_sweeps.c",
        "global_scratch.c",
        "second_derivative.c",
    ];
    for name in names {
        for level in ["-O0", "-O1", "-O2", "-O3"] {
            let folder = tempfile::tempdir().unwrap();
            let source = cases.join(name).display().to_string();
            let (output, done) = through_opt(&source, level, folder.path());
            assert!(output.status.success(), "{name} {level}: {}", told(&output));
            let program = folder.path().join("program").display().to_string();
            succeeds("clang++-22", &[level, "-w", &done, "-o", &program, "-lm"]);
            succeeds(&program, &[]);
        }
    }
}

#[test]
fn what_is_refused_is_told_with_its_place() {
    let code = "extern int enzyme_width;
double __enzyme_autodiff(void *, ...);
double unknown(double);
static double f(double x) {
  return x * unknown(x);
}
double g(double x) { return __enzyme_autodiff((void *)f, x); }
double h(double x) {
  return __enzyme_autodiff((void *)f, enzyme_width, 2, x);
}";
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("code.c");
    let refused = |code: &str, line: &str, what: &str| {
        std::fs::write(&source, code).unwrap();
        let (output, _) = through_opt(&source.display().to_string(), "-O1", folder.path());
        let text = told(&output);
        assert!(
            !output.status.success() && text.contains(line) && text.contains(what),
            "{text}"
        );
    };
    refused(code, "code.c:9:", "the derivative's result is [2 x double]");
    let (before, _) = code.split_once("double h(").unwrap();
    refused(before, "code.c:5:", "a call of `unknown`");
}
