//! Tangents of small C functions, compiled and compared with central differences and with the reverse mode's gradient.

use crate::kernel::attributes as a;
use crate::kernel::rules::lower_outputs;
use crate::kernel::{Activity, DiffRequest, Mode, Refusal, differentiate, marks};
use crate::llvm::OwnedModule;
use std::path::Path;
use std::process::Command;

/// Runs clang; a failure is the test's.
fn clang(arguments: &[&str], folder: &Path) {
    let status = Command::new("clang-22")
        .args(arguments)
        .current_dir(folder)
        .status()
        .unwrap();
    assert!(status.success(), "clang-22 {arguments:?}");
}

/// The module of C code, after differentiation of `f(const double *x, int n)` as `tangent`.
fn differentiated(code: &str, level: &str, given: &[Mark], folder: &Path) -> Result<String, Vec<Refusal>> {
    std::fs::write(folder.join("code.c"), code).unwrap();
    clang(
        &[
            level,
            "-Xclang",
            "-disable-O0-optnone",
            "-g",
            "-mavx",
            "-fexceptions",
            "-emit-llvm",
            "-S",
            "code.c",
            "-o",
            "code.ll",
        ],
        folder,
    );
    let module = OwnedModule::read(&std::fs::read(folder.join("code.ll")).unwrap()).unwrap();
    for (function, attribute, value) in given {
        module
            .get()
            .function(function)
            .unwrap()
            .add_string_attribute(attribute, value);
    }
    marks::read(module.get());
    lower_outputs(module.get());
    // Allocation functions get the attributes that tell them, as every prepared module has them.
    module.get().run_passes("inferattrs").unwrap();
    let request = |mode, entry: &str| DiffRequest {
        function: module.get().function("f").unwrap(),
        mode,
        arguments: vec![Activity::Dup, Activity::Const],
        result_active: true,
        primal_result: true,
        seed_argument: false,
        arena_argument: false,
        width: 1,
        entry: entry.into(),
    };
    let mut requests = vec![request(Mode::Forward, "tangent")];
    // A rule for tangents is none for gradients.
    if !given.iter().any(|(_, attribute, _)| *attribute == a::TANGENT_RULE) {
        requests.push(request(Mode::Combined, "gradient"));
    }
    differentiate(module.get(), &requests)?;
    module.get().verify().unwrap();
    Ok(module.get().text())
}

const DRIVER: &str = r#"
#include <math.h>
#include <stdio.h>
typedef struct { double value, tangent; } both;
double f(double *, int);
both tangent(double *, double *, int);
__attribute__((weak)) double gradient(double *, double *, int);
#define N 6
int main(void) {
  const double at[N] = {0.7, 1.3, -0.4, 0.9, 2.1, -1.1}, v[N] = {0.5, -1.0, 2.0, 0.3, 0.0, 1.0};
  double x[N], dx[N], low, high, product = 0, h = 1e-5;
  for (int i = 0; i < N; i++) x[i] = at[i] + h * v[i];
  high = f(x, N);
  for (int i = 0; i < N; i++) x[i] = at[i] - h * v[i];
  low = f(x, N);
  for (int i = 0; i < N; i++) x[i] = at[i], dx[i] = v[i];
  both got = tangent(x, dx, N);
  for (int i = 0; i < N; i++) x[i] = at[i], dx[i] = 0;
  double again = gradient ? gradient(x, dx, N) : got.value;
  for (int i = 0; i < N; i++) product += dx[i] * v[i];
  if (!gradient) product = got.tangent;
  for (int i = 0; i < N; i++) x[i] = at[i];
  double value = f(x, N), want = WANT;
  if (got.value == value && again == value && fabs(product - got.tangent) < 1e-12 * fmax(1, fabs(product)) && fabs(got.tangent - want) < 1e-7 * fmax(1, fabs(want)) && fabs(want) > 1e-3) return 0;
  printf("value %.15g and %.15g, tangent %.15g, gradient %.15g, differences %.15g\n", got.value, value, got.tangent, product, want);
  return 1;
}
"#;

/// The tangent of `f` is that of differences, from code of every level.
#[track_caller]
fn holds(code: &str) {
    holds_with(code, &[], None);
}

/// Function, attribute, value.
type Mark = (&'static str, &'static str, &'static str);

/// The same with attributes on functions; `want` is the tangent where it is not that of differences.
#[track_caller]
fn holds_with(code: &str, marks: &[Mark], want: Option<&str>) {
    let code = format!("#include <math.h>\n#include <stdlib.h>\n#include <string.h>\n{code}");
    for level in ["-O0", "-O2"] {
        let folder = tempfile::tempdir().unwrap();
        let text = differentiated(&code, level, marks, folder.path()).unwrap_or_else(|r| panic!("{level}: {r:?}"));
        std::fs::write(folder.path().join("done.ll"), text).unwrap();
        let want = want.unwrap_or("(high - low) / (2 * h)");
        std::fs::write(folder.path().join("driver.c"), DRIVER.replace("WANT", want)).unwrap();
        clang(&["-w", "-O1", "done.ll", "driver.c", "-o", "run", "-lm"], folder.path());
        let run = Command::new(folder.path().join("run")).output().unwrap();
        assert!(
            run.status.success(),
            "{level}: {}",
            String::from_utf8_lossy(&run.stdout)
        );
    }
}

#[test]
fn loops_and_branches() {
    holds(
        "double f(double *x, int n) {
           double s = 1;
           for (int i = 0; i < n; i++) {
             if (x[i] < 0) { s -= x[i] * s; continue; }
             if (i == 4) break;
             s = s * x[i] + sin(s);
           }
           return s;
         }",
    );
}

#[test]
fn memory_on_stack_and_heap() {
    holds(
        "double f(double *x, int n) {
           double *a = malloc(2 * sizeof(double)), b[8] = {0}, s = 0;
           a[0] = 1; a[1] = 2;
           a = realloc(a, n * sizeof(double));
           for (int i = 2; i < n; i++) a[i] = x[i] * a[i - 1] + x[0];
           memcpy(b + 1, a, n * sizeof(double));
           memmove(b, b + 1, n * sizeof(double));
           memset(a, 0, n * sizeof(double));
           for (int i = 0; i < n; i++) s += b[i] * (i + 1) + a[i];
           free(a);
           return s;
         }",
    );
}

#[test]
fn structures_and_pointers_in_memory() {
    holds(
        "struct node { int n; double v; struct node *next; };
         typedef struct { double a; float b; } pair;
         static pair make(double x) { pair p = {x * x, (float)x}; return p; }
         double f(double *x, int n) {
           struct node nodes[6], *head = 0;
           for (int i = 0; i < n; i++) {
             pair p = make(x[i]);
             nodes[i].n = i; nodes[i].v = p.a + i; nodes[i].next = head;
             head = &nodes[i];
           }
           double s = 0;
           for (struct node *p = head; p; p = p->next) s = s * 0.5 + p->v * (p->n + 1);
           return s;
         }",
    );
}

#[test]
fn recursion_in_turns_and_calls_of_pointers() {
    holds(
        "static double twice(double x) { return 2 * x; }
         static double square(double x) { return x * x; }
         static double even(const double *x, int n);
         __attribute__((noinline)) static double odd(const double *x, int n) {
           return n == 0 ? 1 : x[0] * even(x + 1, n - 1);
         }
         __attribute__((noinline)) static double even(const double *x, int n) {
           return n == 0 ? 1 : x[0] + odd(x + 1, n - 1);
         }
         static double (*volatile table[3])(double) = {twice, square, sin};
         double f(double *x, int n) {
           double s = even(x, n);
           for (int i = 0; i < n; i++) s += table[i % 3](x[i]);
           return s;
         }",
    );
}

#[test]
fn bits_of_floats_in_integers() {
    holds(
        "union both { double d; unsigned long u; };
         double f(double *x, int n) {
           union both a, b, c;
           unsigned long w[6];
           memcpy(w, x, sizeof w);
           for (int i = 0; i < n / 2; i++) { unsigned long t = w[i]; w[i] = w[n - 1 - i]; w[n - 1 - i] = t; }
           a.u = w[1];
           b.d = x[2]; b.u &= 0x7fffffffffffffffUL;
           c.d = x[0]; c.u ^= 0x8000000000000000UL;
           return a.d * a.d + 3 * b.d + c.d * x[1];
         }",
    );
}

#[test]
fn an_array_of_the_caller_is_overwritten_with_tangents() {
    holds(
        "double f(double *x, int n) {
           for (int i = 1; i < n; i++) x[i] = i % 2 ? x[i] * x[i - 1] : 7.0;
           x[n - 1] += x[0];
           return x[n - 1] * x[1];
         }",
    );
}

#[test]
fn vectors_and_their_lanes() {
    holds(
        "typedef double v4 __attribute__((vector_size(32)));
         typedef float f4 __attribute__((vector_size(16)));
         double f(double *x, int n) {
           v4 a = {x[0], x[1], x[2], x[3]}, b = a * x[4] + 0.25;
           v4 c = __builtin_shufflevector(a, b, 3, 0, 5, 5);
           v4 d = __builtin_elementwise_exp(c) + __builtin_elementwise_max(a, b);
           d[n & 3] = x[5];
           f4 e = __builtin_convertvector(d, f4);
           return __builtin_reduce_maximum(b) * d[1] + c[2] * d[3] + __builtin_reduce_minimum(a) * d[0] + 0 * e[1];
         }",
    );
}

#[test]
fn sums_and_products_of_lanes() {
    holds(
        "typedef double v4 __attribute__((vector_size(32)));
         double add(double, v4) __asm__(\"llvm.vector.reduce.fadd.v4f64\");
         double multiply(double, v4) __asm__(\"llvm.vector.reduce.fmul.v4f64\");
         double f(double *x, int n) {
           v4 a = {x[0], x[1], x[2], x[3]};
           return add(x[4], a * a) * multiply(x[5], a);
         }",
    );
}

#[test]
fn results_in_memory_of_library_functions() {
    holds(
        "void sincos(double, double *, double *);
         double f(double *x, int n) {
           double s, c, whole; int e;
           sincos(x[0], &s, &c);
           double m = modf(4 * x[1], &whole), h = frexp(x[2] * 8, &e);
           return s * c + m * whole + h * e;
         }",
    );
}

#[test]
fn inactive_functions_and_registered_rules_are_not_entered() {
    holds_with(
        "__attribute__((noinline)) void norm(const double *x, double *to) { *to = x[0] * x[1]; }
         __attribute__((noinline)) double opaque(double, double);
         double f(double *x, int n) {
           double s = x[3];
           norm(x, &s);
           return s * x[2] + opaque(x[1], 2.0);
         }
         double opaque(double x, double y) { return x * y; }
         double opaque_tangent(double x, double dx, double y, double dy) { return dx * y; }",
        &[("norm", a::INACTIVE, ""), ("opaque", a::TANGENT_RULE, "opaque_tangent")],
        Some("0.7 * 1.3 * v[2] + 2 * v[1]"),
    );
}

#[test]
fn a_function_without_a_body_or_a_rule_is_refused_by_name_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let code = "double unknown(double *);\ndouble f(double *x, int n) {\n  return unknown(x); }";
    let refusals = differentiated(code, "-O0", &[], folder.path()).unwrap_err();
    assert_eq!(refusals.len(), 1);
    assert!(refusals[0].construct.contains("`unknown`"));
    assert_eq!((refusals[0].line, refusals[0].function.as_str()), (3, "f"));
}

#[test]
fn global_variables_have_shadows_for_the_time_of_a_call() {
    holds(
        "double kept[8], *at = kept;
         static double *const places[2] = {kept + 1, kept + 4};
         static void put(double *to, double y) { *to = y; }
         double f(const double *x, int n) {
           at = kept + n - 1;
           *at = x[0] * x[0];
           put(places[1], x[1] * x[2]);
           kept[n - 5] = sin(x[3]);
           return kept[5] * kept[4] + places[0][0] * x[4];
         }",
    );
}

#[test]
fn floats_made_of_computed_bits_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let code = "#include <string.h>
double f(double *x, int n) {
  unsigned long u; double y = x[0] * 2;
  memcpy(&u, &y, 8); u += 1UL << 52; memcpy(&y, &u, 8);
  return y; }";
    let refusals = differentiated(code, "-O2", &[], folder.path()).unwrap_err();
    assert!(refusals[0].construct.contains("computed bits"), "{refusals:?}");
}

#[test]
fn pointers_to_library_functions() {
    holds(
        "static double (*volatile table[3])(double) = {cos, exp, sin};
         double f(double *x, int n) {
           double s = 0;
           for (int i = 0; i < n; i++) s += table[i % 3](x[i]);
           return s;
         }",
    );
}

#[test]
fn calls_that_may_unwind_past_a_clean_up() {
    holds(
        "__attribute__((noinline)) static double step(const double *x, int i) { return x[i] * x[i + 1] + x[0]; }
         static void done(double **p) { free(*p); }
         double f(double *x, int n) {
           __attribute__((cleanup(done))) double *a = malloc(n * sizeof(double));
           double s = 0;
           for (int i = 0; i < n - 1; i++) { a[i] = step(x, i); s += a[i] * s + x[i]; }
           return s;
         }",
    );
}
