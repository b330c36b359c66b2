//! Compiles ops with their partials in both modes, and asks them at points.

use super::numeric::Ty;
use crate::kernel::rules::rule_of;
use crate::kernel::rules::table::{Name, Rule};
use crate::llvm::{Builder, Mod, OwnedModule, Value};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// An op under test: how it is written in LLVM's text.
#[derive(Clone, Debug)]
pub(super) struct Op {
    /// What it is called in messages.
    pub(super) name: String,
    /// Rule and name, whatever the type.
    pub(super) title: String,
    /// Types of the operands.
    pub(super) operands: Vec<String>,
    /// The part of the result that is looked at.
    pub(super) part: Option<u32>,
    /// The instruction, with `%0`, `%1` for the operands.
    pub(super) text: String,
    /// Declarations that it needs.
    pub(super) declare: String,
}

impl Op {
    #[allow(clippy::too_many_arguments, reason = "the parts of a record")]
    pub(super) fn new(
        rule: &Rule,
        name: &Name,
        ty: Ty,
        operands: Vec<String>,
        part: Option<u32>,
        text: String,
        declare: String,
    ) -> Self {
        let title = format!("{} as {name:?}", rule.name);
        Self {
            name: format!("{title} of {}, part {part:?}", ty.0),
            title,
            operands,
            part,
            text,
            declare,
        }
    }
}

/// What an op and its rule give at a point.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) value: f64,
    /// The contribution of the seed to each operand.
    pub(super) vjp: Vec<f64>,
    /// The tangent if only this operand has the seed as its tangent.
    pub(super) jvp: Vec<f64>,
}

/// A running program that answers for its ops.
pub(super) struct Program {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    ops: Vec<Op>,
    folder: tempfile::TempDir,
}

fn lane(ty: &str) -> &str {
    ty.strip_prefix('<')
        .map_or(ty, |t| t.trim_end_matches('>').split(" x ").nth(1).unwrap())
}

fn lanes(ty: &str) -> u32 {
    ty.strip_prefix('<')
        .map_or(1, |t| t.split(' ').next().unwrap().parse().unwrap())
}

/// Text that makes operand `i` of the type from the double `%in{i}`.
fn operand(i: usize, ty: &str) -> String {
    let scalar = match lane(ty) {
        "double" => format!("%s{i} = fadd double %in{i}, -0.0"),
        "float" | "half" => format!("%s{i} = fptrunc double %in{i} to {}", lane(ty)),
        "x86_fp80" => format!("%s{i} = fpext double %in{i} to x86_fp80"),
        "ptr" => return format!("%op{i} = alloca i64"),
        int => format!("%s{i} = fptosi double %in{i} to {int}"),
    };
    let n = lanes(ty);
    if n == 1 {
        return format!("{scalar}\n%op{i} = select i1 true, {ty} %s{i}, {ty} %s{i}");
    }
    let zero = format!("<{n} x i32> zeroinitializer");
    format!(
        "{scalar}\n%v{i} = insertelement {ty} poison, {} %s{i}, i32 0\n%op{i} = shufflevector {ty} %v{i}, {ty} poison, {zero}",
        lane(ty)
    )
}

/// A function `t{k}(in, seed, out)` that computes the op; the partials are added by [`add_partials`].
fn wrapper(k: usize, op: &Op) -> String {
    let mut text = format!("define void @t{k}(ptr %in, double %seed, ptr %out) \"target-features\"=\"+avx\" {{\n");
    let mut call = op.text.clone();
    for (i, ty) in op.operands.iter().enumerate() {
        writeln!(text, "%at{i} = getelementptr double, ptr %in, i64 {i}").unwrap();
        writeln!(text, "%in{i} = load double, ptr %at{i}\n{}", operand(i, ty)).unwrap();
        call = call.replace(&format!("%{i}"), &format!("%op{i}"));
    }
    writeln!(text, "%op = {call}\nret void\n}}").unwrap();
    text
}

/// The looked-at lane of a value, as a double.
fn to_double<'m>(b: &Builder<'m>, m: Mod<'m>, v: Value<'m>) -> Value<'m> {
    let c = m.context();
    let v = if v.ty().is_vector() {
        b.extract_element(v, c.int(32).int(1))
    } else {
        v
    };
    match v.ty() {
        ty if ty == c.double() => v,
        ty if m.store_size(ty) > 8 => b.fptrunc(v, c.double()),
        ty if ty.is_float() => b.fpext(v, c.double()),
        _ => b.sitofp(v, c.double()),
    }
}

/// Adds result, contributions (`vjp`) and tangents (`jvp`) to the wrapper and stores them.
fn add_partials<'m>(m: Mod<'m>, k: usize, op: &Op) {
    let f = m.function(&format!("t{k}")).unwrap();
    let last = f.instructions().last().unwrap();
    let call = last.previous().unwrap();
    let applied = rule_of(call).unwrap_or_else(|| panic!("no rule for {}", op.name));
    let (c, b) = (m.context(), Builder::new(m.context()));
    b.before(last);
    let [_, seed, out] = f.params()[..] else { unreachable!() };
    let store = |at: usize, v: Value<'m>| {
        let to = b.gep(c.double(), out, &[c.int(64).int(at as u64)]);
        b.store(to_double(&b, m, v), to);
    };
    let part = |v| op.part.map_or(v, |i| b.extract(v, i));
    let value = part(call);
    store(0, value);
    let operands = applied.operands();
    let n = operands.len();
    let seed_of = |like: Value<'m>| {
        let ty = like.ty().scalar();
        let x = if ty == c.double() {
            seed
        } else if m.store_size(ty) > 8 {
            b.fpext(seed, ty)
        } else {
            b.fptrunc(seed, ty)
        };
        let zero = like.ty().zero();
        if !like.ty().is_vector() {
            return x;
        }
        (0..like.ty().length()).fold(zero, |v, i| b.insert_element(v, x, c.int(32).int(i)))
    };
    if value.ty().scalar().is_float() {
        let seed = seed_of(value);
        let cotangent = op.part.map_or(seed, |i| b.insert_value(call.ty().zero(), seed, i));
        let choice = applied.choice(&b);
        // Operands that the rule does not claim to read are not there, and none is where it is known which the op gives.
        for i in 0..n {
            let reads = applied.reads(i);
            let given: Vec<_> = (operands.iter().enumerate())
                .map(|(j, v)| {
                    if reads.operand(j) && choice.is_none() || v.ty().is_pointer() {
                        *v
                    } else {
                        v.ty().poison()
                    }
                })
                .collect();
            let result = Some(call).filter(|_| reads.result);
            let back = applied.vjp(&b, (&given, result), choice, cotangent, &|j| j == i);
            store(1 + i, back[i].unwrap_or(c.double().zero()));
        }
    }
    for i in 0..n {
        if !applied.active(i) {
            store(1 + n + i, c.double().zero());
            continue;
        }
        let mut tangents = vec![None; n];
        tangents[i] = Some(seed_of(operands[i]));
        let tangent = applied.jvp(&b, &operands, call, &tangents);
        store(1 + n + i, tangent.map_or(c.double().zero(), part));
    }
}

const DRIVER: &str = r#"
#include <stdio.h>
extern void (*const table[])(const double *, double, double *);
extern const int sizes[];
int main(void) {
  int k;
  double seed, in[8];
  while (scanf("%d %la", &k, &seed) == 2) {
    double out[20] = {0};
    for (int i = 0; i < sizes[k]; i++) if (scanf("%la", &in[i]) != 1) return 1;
    table[k](in, seed, out);
    for (int i = 0; i < 1 + 2 * sizes[k]; i++) printf("%.17g ", out[i]);
    printf("\n");
    fflush(stdout);
  }
  return 0;
}
"#;

impl Program {
    /// Compiles the ops and starts the program.
    pub(super) fn start(ops: Vec<Op>) -> Self {
        let mut text = String::from("target triple = \"x86_64-unknown-linux-gnu\"\n");
        text.push_str(
            "target datalayout = \"e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128\"\n",
        );
        let declared: std::collections::BTreeSet<_> = ops.iter().map(|op| op.declare.clone()).collect();
        declared.iter().for_each(|d| writeln!(text, "{d}").unwrap());
        for (k, op) in ops.iter().enumerate() {
            text.push_str(&wrapper(k, op));
        }
        let (pointers, sizes): (Vec<_>, Vec<_>) = ops
            .iter()
            .enumerate()
            .map(|(k, op)| (format!("ptr @t{k}"), format!("i32 {}", op.operands.len())))
            .unzip();
        let n = ops.len();
        writeln!(text, "@table = constant [{n} x ptr] [{}]", pointers.join(", ")).unwrap();
        writeln!(text, "@sizes = constant [{n} x i32] [{}]", sizes.join(", ")).unwrap();
        let module = OwnedModule::read(text.as_bytes()).unwrap_or_else(|e| panic!("{e}\n{text}"));
        ops.iter()
            .enumerate()
            .for_each(|(k, op)| add_partials(module.get(), k, op));
        module.get().verify().unwrap();

        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("ops.ll"), module.get().text()).unwrap();
        std::fs::write(at("driver.c"), DRIVER).unwrap();
        let status = Command::new("clang-22")
            .args(["-O1", "-w", "-o"])
            .args([at("ops"), at("ops.ll"), at("driver.c")])
            .arg("-lm")
            .status()
            .unwrap();
        assert!(status.success());
        let mut child = Command::new(at("ops"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (
            child.stdin.take().unwrap(),
            BufReader::new(child.stdout.take().unwrap()),
        );
        Self {
            child,
            input,
            output,
            ops,
            folder,
        }
    }

    pub(super) fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// What op `k` gives at a point.
    pub(super) fn ask(&mut self, k: usize, seed: f64, at: &[f64]) -> Answer {
        let mut line = format!("{k} {seed:?}");
        at.iter().for_each(|x| write!(line, " {x:?}").unwrap());
        writeln!(self.input, "{line}").unwrap();
        self.input.flush().unwrap();
        let mut answer = String::new();
        self.output.read_line(&mut answer).unwrap();
        let numbers: Vec<f64> = answer.split_whitespace().map(|n| n.parse().unwrap()).collect();
        let n = at.len();
        assert_eq!(numbers.len(), 1 + 2 * n, "{:?} at {at:?}: {answer}", self.ops[k].name);
        Answer {
            value: numbers[0],
            vjp: numbers[1..1 + n].into(),
            jvp: numbers[1 + n..].into(),
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The program ends when its input does; a failing test does not wait.
        self.child.kill().ok();
        self.child.wait().ok();
        assert!(self.folder.path().exists());
    }
}
