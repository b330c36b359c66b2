//! Functions `double f0(ptr x, i64 n, double a)` of about so many instructions, each of one shape.

use super::generate;
use std::fmt::Write;

/// The name of a shape, and what writes a function of it.
type Shape = (&'static str, fn(usize) -> String);

/// All shapes.
pub(crate) const ALL: [Shape; 7] = [
    ("straight", straight),
    ("loop", one_loop),
    ("loops", loops),
    ("branches", branches),
    ("calls", calls),
    ("mixed", |size| mixed(size, false)),
    ("recursive", |size| mixed(size, true)),
];

/// What is called: it calls itself, so it is not inlined.
const CALLED: &str = r"
define internal double @called(ptr %x, i64 %n, double %a) {
  %done = icmp sle i64 %n, 0
  br i1 %done, label %end, label %more
more:
  %first = load double, ptr %x
  %product = fmul double %first, %a
  store double %product, ptr %x
  %rest = getelementptr double, ptr %x, i64 1
  %less = sub i64 %n, 1
  %inner = call double @called(ptr %rest, i64 %less, double %product)
  %wave = call double @sin(double %inner)
  br label %end
end:
  %result = phi double [ %a, %0 ], [ %wave, %more ]
  ret double %result
}
";

/// Elements of `x` that are read and written.
const ELEMENTS: usize = 64;

/// Writes a function.
struct Writer {
    text: String,
    count: usize,
}

impl Writer {
    fn new() -> Self {
        let text = format!(
            "{}define double @f0(ptr %x, i64 %n, double %a) {{\nentry:\n",
            generate::HEADER
        );
        Self { text, count: 0 }
    }

    fn line(&mut self, code: &str) {
        self.count += 1;
        let _ = writeln!(self.text, "  {code}");
    }

    fn value(&mut self, code: &str) -> String {
        let name = format!("%t{}", self.count);
        self.line(&format!("{name} = {code}"));
        name
    }

    fn label(&mut self, label: &str) {
        let _ = writeln!(self.text, "{label}:");
    }

    /// Address of some element; a different one each time.
    fn element(&mut self) -> String {
        let at = 7 * self.count % ELEMENTS;
        self.value(&format!("getelementptr inbounds double, ptr %x, i64 {at}"))
    }

    fn load(&mut self) -> String {
        let at = self.element();
        self.value(&format!("load double, ptr {at}"))
    }

    fn store(&mut self, value: &str) {
        let at = self.element();
        self.line(&format!("store double {value}, ptr {at}"));
    }

    /// Arithmetic and memory, up to so many instructions; gives the last value.
    fn arithmetic(&mut self, size: usize, first: &str) -> String {
        let mut last = first.to_owned();
        while self.count < size {
            let x = self.load();
            let product = self.value(&format!("fmul double {x}, {last}"));
            let wave = self.value(&format!("call double @sin(double {product})"));
            last = self.value(&format!("fadd double {wave}, {x}"));
            self.store(&last);
        }
        last
    }

    fn end(mut self, result: &str) -> String {
        let _ = writeln!(self.text, "  ret double {result}\n}}");
        self.text
    }
}

fn straight(size: usize) -> String {
    let mut w = Writer::new();
    let last = w.arithmetic(size, "%a");
    w.end(&last)
}

/// One loop with a large body.
fn one_loop(size: usize) -> String {
    let mut w = Writer::new();
    w.line("br label %loop");
    w.label("loop");
    w.line("%i = phi i64 [ 0, %entry ], [ %next, %loop ]");
    w.line("%s = phi double [ %a, %entry ], [ %last, %loop ]");
    let last = w.arithmetic(size, "%s");
    w.line(&format!("%last = fmul double {last}, 0.5"));
    w.line("%next = add nsw i64 %i, 1");
    w.line("%more = icmp slt i64 %next, %n");
    w.line("br i1 %more, label %loop, label %end");
    w.label("end");
    w.end("%last")
}

/// Small loops, one after the other.
fn loops(size: usize) -> String {
    let mut w = Writer::new();
    let (mut before, mut sum) = ("entry".to_owned(), "%a".to_owned());
    w.line("br label %head0");
    let mut k = 0;
    while w.count < size {
        w.label(&format!("head{k}"));
        w.line(&format!("%i{k} = phi i64 [ 0, %{before} ], [ %next{k}, %body{k} ]"));
        w.line(&format!(
            "%s{k} = phi double [ {sum}, %{before} ], [ %sum{k}, %body{k} ]"
        ));
        w.line(&format!("%more{k} = icmp slt i64 %i{k}, %n"));
        w.line(&format!("br i1 %more{k}, label %body{k}, label %head{}", k + 1));
        w.label(&format!("body{k}"));
        let at = w.value(&format!("getelementptr inbounds double, ptr %x, i64 %i{k}"));
        let x = w.value(&format!("load double, ptr {at}"));
        let wave = w.value(&format!("call double @sin(double {x})"));
        w.line(&format!("store double {wave}, ptr {at}"));
        w.line(&format!("%sum{k} = fadd double %s{k}, {wave}"));
        w.line(&format!("%next{k} = add nsw i64 %i{k}, 1"));
        w.line(&format!("br label %head{k}"));
        (before, sum) = (format!("head{k}"), format!("%s{k}"));
        k += 1;
    }
    w.label(&format!("head{k}"));
    w.end(&sum)
}

/// Branches, one after the other.
fn branches(size: usize) -> String {
    let mut w = Writer::new();
    let mut last = "%a".to_owned();
    while w.count < size {
        let k = w.count;
        let x = w.load();
        let above = w.value(&format!("fcmp ogt double {x}, {last}"));
        w.line(&format!("br i1 {above}, label %then{k}, label %else{k}"));
        w.label(&format!("then{k}"));
        let product = w.value(&format!("fmul double {x}, {last}"));
        w.store(&product);
        w.line(&format!("br label %join{k}"));
        w.label(&format!("else{k}"));
        let y = w.load();
        let wave = w.value(&format!("call double @sin(double {y})"));
        w.line(&format!("br label %join{k}"));
        w.label(&format!("join{k}"));
        last = w.value(&format!("phi double [ {product}, %then{k} ], [ {wave}, %else{k} ]"));
    }
    w.end(&last)
}

/// Calls of a function that is not inlined.
fn calls(size: usize) -> String {
    let mut w = Writer::new();
    let mut last = "%a".to_owned();
    while w.count < size {
        let x = w.load();
        let product = w.value(&format!("fmul double {x}, {last}"));
        last = w.value(&format!("call double @called(ptr %x, i64 %n, double {product})"));
    }
    w.end(&last) + CALLED
}

/// A function of the random tests: about nine instructions a statement. A recursive one calls itself with arguments that
/// have a derivative and with others, and gets four derivatives.
fn mixed(size: usize, recursive: bool) -> String {
    let callees: Vec<String> = (!recursive).then(|| "@called".into()).into_iter().collect();
    let statements = (size / 9).try_into().expect("small enough");
    format!("{}{CALLED}{}", generate::HEADER, generate::sized(statements, &callees))
}
