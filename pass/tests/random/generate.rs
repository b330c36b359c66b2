//! Random programs, as LLVM's text in the shape that a C compiler gives without optimisation: every variable is a stack
//! slot. They have loops (triangular ones among them), breaks, early returns, branches, switches, arrays that are
//! overwritten, indices from data, structs with padding and pointers, heap blocks that grow, global variables and pointers
//! to them, copies of memory and of floats as integers, calls, recursion, and calls of pointers.

#[path = "statements.rs"]
mod statements;

use std::fmt::Write;

/// Numbers that a seed determines (splitmix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub(crate) fn real(&mut self) -> f64 {
        (self.below(4001) as f64 - 2000.0) / 1000.0
    }
}

/// Elements of the array that is passed.
pub(crate) const INPUTS: usize = 6;
/// Variables, arrays and counters of a function.
const VARIABLES: u64 = 4;

/// What every module declares. `main` functions are `double f(ptr x, i64 n, double a)`.
pub(crate) const HEADER: &str = r#"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"
%S = type { i32, double, float, ptr, [2 x double] }
declare double @sin(double)
declare double @llvm.exp.f64(double)
declare double @llvm.fabs.f64(double)
declare double @llvm.sqrt.f64(double)
declare double @tanh(double)
declare ptr @malloc(i64)
declare ptr @realloc(ptr, i64)
declare void @free(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"#;

/// Writes one function.
struct Writer<'a> {
    r: &'a mut Random,
    text: String,
    next: u32,
    /// Statements that may still be written.
    budget: u32,
    /// Counters of the loops around, and the label to leave the innermost.
    counters: Vec<String>,
    exits: Vec<String>,
    narrow: bool,
    /// Functions that may be called.
    callees: &'a [String],
    own: String,
    /// Number of the program.
    program: usize,
}

impl Writer<'_> {
    fn fresh(&mut self) -> String {
        self.next += 1;
        format!("%t{}", self.next)
    }

    fn emit(&mut self, code: &str) -> String {
        let t = self.fresh();
        writeln!(self.text, "  {t} = {code}").unwrap();
        t
    }

    fn line(&mut self, code: &str) {
        writeln!(self.text, "  {code}").unwrap();
    }

    fn label(&mut self) -> String {
        self.next += 1;
        format!("l{}", self.next)
    }

    fn begin(&mut self, label: &str) {
        writeln!(self.text, "{label}:").unwrap();
    }

    fn constant(&mut self) -> String {
        format!("{:.3}", self.r.real())
    }

    /// Address of a variable, or of an element of an array, the input or a struct.
    fn place(&mut self) -> String {
        match self.r.below(10) {
            8 => {
                let i = self.index(6);
                let globals = self.globals();
                self.emit(&format!(
                    "getelementptr inbounds [6 x double], ptr {globals}, i64 0, i64 {i}"
                ))
            }
            9 => {
                let pointer = self.global_pointer();
                self.emit(&format!("load ptr, ptr {pointer}"))
            }
            0..=2 => format!("%v{}", self.r.below(VARIABLES)),
            3 | 4 => {
                let array = if self.r.below(2) == 0 { "%arr" } else { "%other" };
                let i = self.index(4);
                self.emit(&format!(
                    "getelementptr inbounds [6 x double], ptr {array}, i64 0, i64 {i}"
                ))
            }
            5 => {
                let i = self.index(INPUTS as u64);
                self.emit(&format!("getelementptr inbounds double, ptr %x, i64 {i}"))
            }
            6 => {
                let s = self.structure();
                match self.r.below(2) {
                    0 => self.emit(&format!("getelementptr inbounds %S, ptr {s}, i32 0, i32 1")),
                    _ => {
                        let i = self.index(2);
                        self.emit(&format!("getelementptr inbounds %S, ptr {s}, i32 0, i32 4, i64 {i}"))
                    }
                }
            }
            _ => {
                // Through a pointer in memory.
                let s = self.structure();
                let at = self.emit(&format!("getelementptr inbounds %S, ptr {s}, i32 0, i32 3"));
                self.emit(&format!("load ptr, ptr {at}"))
            }
        }
    }

    /// Name of the program's global array.
    fn globals(&self) -> String {
        format!("@g{}", self.program)
    }

    /// Name of the program's global pointer into it.
    fn global_pointer(&self) -> String {
        format!("@p{}", self.program)
    }

    fn structure(&mut self) -> &'static str {
        if self.r.below(2) == 0 { "%s" } else { "%z" }
    }

    /// An index below a bound: constant, from a counter, or from data.
    fn index(&mut self, bound: u64) -> String {
        if self.r.below(12) == 0 {
            let v = self.r.below(VARIABLES);
            let x = self.emit(&format!("load double, ptr %v{v}"));
            let x = self.emit(&format!("fmul double {x}, 7.0"));
            let x = self.emit(&format!("call double @tanh(double {x})"));
            let x = self.emit(&format!("fadd double {x}, 1.0"));
            let x = self.emit(&format!("fmul double {x}, {}.0", bound * 4));
            let i = self.emit(&format!("fptosi double {x} to i64"));
            return self.emit(&format!("urem i64 {i}, {bound}"));
        }
        match self.counters.last().cloned() {
            Some(counter) if self.r.below(2) == 0 => {
                let i = self.emit(&format!("load i64, ptr {counter}"));
                self.emit(&format!("urem i64 {i}, {bound}"))
            }
            _ => self.r.below(bound).to_string(),
        }
    }

    /// A bounded expression.
    fn expression(&mut self, depth: u32) -> String {
        if depth == 0 {
            return match self.r.below(6) {
                0 => self.constant(),
                1 => "%a".into(),
                2 if self.narrow => {
                    let s = self.structure();
                    let at = self.emit(&format!("getelementptr inbounds %S, ptr {s}, i32 0, i32 2"));
                    let x = self.emit(&format!("load float, ptr {at}"));
                    self.emit(&format!("fpext float {x} to double"))
                }
                3 if !self.counters.is_empty() => {
                    let counter = self.counters[0].clone();
                    let i = self.emit(&format!("load i64, ptr {counter}"));
                    let x = self.emit(&format!("sitofp i64 {i} to double"));
                    self.emit(&format!("fmul double {x}, 0.25"))
                }
                _ => {
                    let place = self.place();
                    self.emit(&format!("load double, ptr {place}"))
                }
            };
        }
        let x = self.expression(depth - 1);
        match self.r.below(9) {
            0..=2 => {
                let y = self.expression(depth - 1);
                let op = ["fadd", "fsub", "fmul"][self.r.below(3) as usize];
                self.emit(&format!("{op} double {x}, {y}"))
            }
            3 => {
                let y = self.expression(depth - 1);
                let square = self.emit(&format!("fmul double {y}, {y}"));
                let under = self.emit(&format!("fadd double {square}, 1.0"));
                self.emit(&format!("fdiv double {x}, {under}"))
            }
            4 => {
                let square = self.emit(&format!("fmul double {x}, {x}"));
                let under = self.emit(&format!("fadd double {square}, 1.0"));
                self.emit(&format!("call double @llvm.sqrt.f64(double {under})"))
            }
            5 => {
                let square = self.emit(&format!("fmul double {x}, {x}"));
                let minus = self.emit(&format!("fneg double {square}"));
                self.emit(&format!("call double @llvm.exp.f64(double {minus})"))
            }
            6 => {
                let y = self.expression(depth - 1);
                let c = self.emit(&format!("fcmp olt double {x}, {y}"));
                self.emit(&format!("select i1 {c}, double {x}, double {y}"))
            }
            7 => self.emit(&format!("call double @llvm.fabs.f64(double {x})")),
            _ => self.emit(&format!("call double @tanh(double {x})")),
        }
    }

    /// An expression between -1 and 1.
    fn tame(&mut self) -> String {
        let depth = 1 + self.r.below(2) as u32;
        let x = self.expression(depth);
        self.emit(&format!("call double @sin(double {x})"))
    }

    fn condition(&mut self) -> String {
        match self.counters.last().cloned() {
            Some(counter) if self.r.below(3) == 0 => {
                let i = self.emit(&format!("load i64, ptr {counter}"));
                let bit = self.emit(&format!("and i64 {i}, 1"));
                self.emit(&format!("icmp eq i64 {bit}, 0"))
            }
            _ => {
                let (x, y) = (self.expression(1), self.constant());
                self.emit(&format!("fcmp ogt double {x}, {y}"))
            }
        }
    }

    fn block(&mut self, depth: u32) {
        for _ in 0..1 + self.r.below(3) {
            if self.budget > 0 {
                self.budget -= 1;
                self.statement(depth);
            }
        }
    }

    fn function(mut self, linkage: &str) -> String {
        let own = self.own.clone();
        writeln!(
            self.text,
            "define {linkage}double {own}(ptr %x, i64 %n, double %a) {{\nentry:"
        )
        .unwrap();
        for v in 0..VARIABLES {
            self.line(&format!("%v{v} = alloca double"));
        }
        for (name, ty) in [
            ("arr", "[6 x double]"),
            ("other", "[6 x double]"),
            ("s", "%S"),
            ("z", "%S"),
            ("c0", "i64"),
            ("c1", "i64"),
            ("c2", "i64"),
            ("heap", "ptr"),
        ] {
            self.line(&format!("%{name} = alloca {ty}"));
        }
        for v in 0..VARIABLES {
            let c = self.constant();
            self.line(&format!("store double {c}, ptr %v{v}"));
        }
        self.line("store double %a, ptr %v0");
        if linkage.is_empty() {
            // What the program itself left there before must not count.
            let (globals, pointer) = (self.globals(), self.global_pointer());
            for i in 0..INPUTS {
                let from = self.emit(&format!("getelementptr inbounds double, ptr %x, i64 {i}"));
                let to = self.emit(&format!("getelementptr inbounds double, ptr {globals}, i64 {i}"));
                let value = self.emit(&format!("load double, ptr {from}"));
                self.line(&format!("store double {value}, ptr {to}"));
            }
            let at = self.emit(&format!(
                "getelementptr inbounds [6 x double], ptr {globals}, i64 0, i64 2"
            ));
            self.line(&format!("store ptr {at}, ptr {pointer}"));
        }
        for array in ["%arr", "%other"] {
            self.line(&format!(
                "call void @llvm.memcpy.p0.p0.i64(ptr {array}, ptr %x, i64 48, i1 false)"
            ));
        }
        let block = self.emit("call ptr @malloc(i64 48)");
        self.line(&format!(
            "call void @llvm.memcpy.p0.p0.i64(ptr {block}, ptr %other, i64 48, i1 false)"
        ));
        self.line(&format!("store ptr {block}, ptr %heap"));
        for s in ["%s", "%z"] {
            self.line(&format!(
                "call void @llvm.memset.p0.i64(ptr {s}, i8 0, i64 48, i1 false)"
            ));
            let at = self.emit(&format!("getelementptr inbounds %S, ptr {s}, i32 0, i32 3"));
            self.line(&format!("store ptr %v1, ptr {at}"));
        }
        while self.budget > 0 {
            self.block(3);
        }
        let mut sum = self.constant();
        for at in ["%v0", "%v1", "%v2", "%v3", "%arr"] {
            let x = self.emit(&format!("load double, ptr {at}"));
            sum = self.emit(&format!("fadd double {sum}, {x}"));
        }
        for k in 0..2 {
            let x = self.expression(1);
            let scaled = self.emit(&format!("fmul double {x}, {k}.5"));
            sum = self.emit(&format!("fadd double {sum}, {scaled}"));
        }
        let block = self.emit("load ptr, ptr %heap");
        let x = self.emit(&format!("load double, ptr {block}"));
        sum = self.emit(&format!("fadd double {sum}, {x}"));
        self.line(&format!("call void @free(ptr {block})"));
        self.line(&format!("ret double {sum}\n}}"));
        self.text
    }
}

/// Does the program compute with `float`s, too?
pub(crate) fn is_narrow(seed: u64) -> bool {
    seed % 2 == 1
}

/// The functions of program `k`: `f{k}` and what it calls.
pub(crate) fn program(k: usize, seed: u64) -> String {
    let mut r = Random::new(seed);
    let mut text = variables(k);
    let mut callees = vec![];
    for helper in 0..r.below(3) {
        let budget = 3 + r.below(6) as u32;
        let own = format!("@h{k}.{helper}");
        let available = std::mem::take(&mut callees);
        text += &writer(&mut r, (k, own.clone()), (budget, is_narrow(seed)), &available).function("internal ");
        callees = available;
        callees.push(own);
    }
    let budget = 6 + r.below(14) as u32;
    text += &writer(&mut r, (k, format!("@f{k}")), (budget, is_narrow(seed)), &callees).function("");
    text
}

/// One function `f0` of so many statements. If it calls nothing, it calls itself.
pub(crate) fn sized(statements: u32, callees: &[String]) -> String {
    variables(0) + &writer(&mut Random::new(7), (0, "@f0".into()), (statements, false), callees).function("")
}

/// The global variables of a program.
fn variables(k: usize) -> String {
    format!("@g{k} = global [6 x double] zeroinitializer\n@p{k} = global ptr null\n")
}

fn writer<'a>(
    r: &'a mut Random,
    (program, own): (usize, String),
    (budget, narrow): (u32, bool),
    callees: &'a [String],
) -> Writer<'a> {
    Writer {
        r,
        text: String::new(),
        next: 0,
        budget,
        counters: vec![],
        exits: vec![],
        narrow,
        callees,
        own,
        program,
    }
}
