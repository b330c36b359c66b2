//! Loops over dense memory.
//!
//! A step that writes over a small tensor takes LibTorch longer to prepare than to do. Steps that follow each other,
//! each an arithmetic operation on elements in place, become one loop of the compiled code where all their operands lie
//! in order in the CPU's memory; that is asked in the call, and elsewhere LibTorch's kernels run. A loop does for each
//! element what the kernels do, operation by operation: its results have the same bits.

use super::emit::Emitter;
use super::{LowerError, number};
use cotangent_graph::ir::{Arg, Kind, Type, Value};
use cotangent_graph::plan::{Plan, Step};
use std::collections::HashMap;
use std::fmt::Write;

/// So many elements LibTorch leaves to one thread (`at::internal::GRAIN_SIZE`); larger tensors are left to LibTorch.
const MOST_ELEMENTS: i64 = 32768;

/// Bytes of a vector.
const VECTOR: usize = 32;

/// What a step does to each element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    /// `a ∘ b`, by an instruction of LLVM.
    Binary(&'static str),
    /// `-a`
    Neg,
    /// `a < 0 ? 0 : a`: NaN and -0 stay.
    Relu,
    /// `b <= t ? 0 : a`, as the derivative of ReLU has it.
    Threshold,
}

/// Ops that write over their first argument: what they do, and how many arguments stand before their operands.
const OPERATIONS: &[(&str, Operation, usize)] = &[
    ("add_", Operation::Binary("fadd"), 0),
    ("add_scalar_", Operation::Binary("fadd"), 0),
    ("sub_", Operation::Binary("fsub"), 0),
    ("sub_scalar_", Operation::Binary("fsub"), 0),
    ("sub_out", Operation::Binary("fsub"), 1),
    ("mul_", Operation::Binary("fmul"), 0),
    ("mul_scalar_", Operation::Binary("fmul"), 0),
    ("div_", Operation::Binary("fdiv"), 0),
    ("div_scalar_", Operation::Binary("fdiv"), 0),
    ("div_out", Operation::Binary("fdiv"), 1),
    ("neg_", Operation::Neg, 0),
    ("relu_", Operation::Relu, 0),
    ("threshold_backward_grad_input", Operation::Threshold, 1),
];

/// What a loop reads.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Operand {
    /// The element of a tensor.
    Tensor(Value, Shape),
    /// A number.
    Number(f64),
}

/// How a tensor's elements lie beside those that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// One for each.
    Full,
    /// One for each of so many last ones, again and again.
    Row(i64),
    /// One for all.
    One,
}

/// One step of a loop.
#[derive(Clone, Debug)]
struct Item {
    operation: Operation,
    operands: Vec<Operand>,
    out: Value,
}

/// Steps that become one loop.
pub(super) struct Loop {
    items: Vec<Item>,
    kind: Kind,
    /// Elements that each step writes.
    elements: i64,
    /// Elements of a row, if an operand is one.
    row: Option<i64>,
}

impl Loop {
    /// The longest loop that starts with step `at`.
    pub(super) fn at(plan: &Plan, at: usize) -> Option<Self> {
        let mut made: Option<Self> = None;
        for step in &plan.steps[at..] {
            let Some((item, kind, shape)) = item(step, &plan.slots) else {
                break;
            };
            let elements: i64 = shape.iter().product();
            let mut rows = item.operands.iter().filter_map(|o| match o {
                Operand::Tensor(_, Shape::Row(n)) => Some(*n),
                _ => None,
            });
            let row = rows.next();
            if !(1..=MOST_ELEMENTS).contains(&elements) || rows.any(|n| Some(n) != row) {
                break;
            }
            match &mut made {
                None => {
                    made = Some(Self {
                        items: vec![item],
                        kind,
                        elements,
                        row,
                    });
                }
                Some(made) => {
                    let same = plan.slots[made.items[0].out.index()] == plan.slots[item.out.index()];
                    if !same || (row.is_some() && made.row.is_some() && made.row != row) {
                        break;
                    }
                    made.row = made.row.or(row);
                    made.items.push(item);
                }
            }
        }
        made
    }

    /// How many steps it is.
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// The tensors that it touches, those that it writes first, and how many these are.
    fn tensors(&self) -> (Vec<Value>, usize) {
        let mut tensors: Vec<Value> = vec![];
        let mut add = |v: Value| {
            if !tensors.contains(&v) {
                tensors.push(v);
            }
        };
        let written = self.written();
        written.iter().for_each(|v| add(*v));
        for operand in self.items.iter().flat_map(|i| &i.operands) {
            if let Operand::Tensor(v, _) = operand {
                add(*v);
            }
        }
        (tensors, written.len())
    }

    fn written(&self) -> Vec<Value> {
        let mut written: Vec<Value> = vec![];
        for item in &self.items {
            if !written.contains(&item.out) {
                written.push(item.out);
            }
        }
        written
    }
}

/// The step as part of a loop, with the kind and the sizes of what it writes.
fn item<'p>(step: &Step, types: &'p [Type]) -> Option<(Item, Kind, &'p [i64])> {
    let (_, operation, skip) = OPERATIONS.iter().find(|(name, ..)| *name == step.op.name)?;
    let out = *step.results.first().filter(|_| step.in_place)?;
    let Type::Tensor(Some(whole)) = &types[out.index()] else {
        return None;
    };
    let kind = whole.kind;
    if !matches!(kind, Kind::F32 | Kind::F64) {
        return None;
    }
    let operand = |arg: &Arg| match arg {
        Arg::Value(v) => match &types[v.index()] {
            Type::Tensor(Some(part)) if part.kind == kind => {
                Some(Operand::Tensor(*v, shape(&part.shape, &whole.shape)?))
            }
            _ => None,
        },
        number => number::exact(number).map(Operand::Number),
    };
    let operands = step.args[*skip..].iter().map(operand).collect::<Option<Vec<_>>>()?;
    let item = Item {
        operation: *operation,
        operands,
        out,
    };
    Some((item, kind, &whole.shape))
}

fn shape(part: &[i64], whole: &[i64]) -> Option<Shape> {
    let ones = part.iter().take_while(|n| **n == 1).count();
    match &part[ones..] {
        _ if part == whole => Some(Shape::Full),
        [] => Some(Shape::One),
        rest if rest == whole => Some(Shape::Full),
        rest if whole.ends_with(rest) => Some(Shape::Row(rest.iter().product())),
        _ => None,
    }
}

impl Emitter<'_> {
    /// The steps of a loop, from step `at`: as a loop, or as LibTorch's kernels.
    pub(super) fn dense(&mut self, at: usize, steps: &[Step], body: &Loop) -> Result<(), LowerError> {
        let (tensors, written) = body.tensors();
        let handles: Vec<String> = tensors.iter().map(|v| format!("%v{}", v.0)).collect();
        let handles = self.array("ptr", &handles);
        let data = self.alloca(&format!("[{} x ptr]", tensors.len()));
        let args = [
            format!("ptr {handles}"),
            format!("ptr {data}"),
            format!("i32 {written}"),
            format!("i32 {}", tensors.len()),
        ];
        let dense = self.call("i32", "cotangent_dense", &args);
        let is = self.temp();
        self.line(&format!("{is} = icmp ne i32 {dense}, 0"));
        let [looped, kernels, after] = ["loop", "kernels", "after"].map(|what| format!("{what}{at}"));
        self.line(&format!("br i1 {is}, label %{looped}, label %{kernels}, !prof !0"));

        self.begin(&kernels);
        for (k, step) in steps.iter().enumerate() {
            self.step(at + k, step)?;
        }
        self.line(&format!("br label %{after}"));

        self.begin(&looped);
        let data = tensors.iter().enumerate().map(|(k, v)| {
            let place = self.element("ptr", &data, k);
            let address = self.temp();
            self.line(&format!("{address} = load ptr, ptr {place}"));
            (*v, address)
        });
        let data = data.collect();
        self.nest(body, &data, &looped);
        self.line(&format!("br label %{after}"));
        self.begin(&after);
        Ok(())
    }

    /// Rows, in each its vectors, then the elements that are left.
    fn nest(&mut self, body: &Loop, data: &HashMap<Value, String>, name: &str) {
        let row = body.row.unwrap_or(body.elements);
        let (float, bytes) = match body.kind {
            Kind::F64 => ("double", 8),
            _ => ("float", 4),
        };
        let lanes = (VECTOR / bytes) as i64;
        let vectors = row / lanes * lanes;
        self.count(&format!("{name}.rows"), 0, body.elements, row, &mut |s, base| {
            let part = |s: &mut Self, what: &str, from: i64, to: i64, lanes: i64| {
                let ty = match lanes {
                    1 => float.to_owned(),
                    n => format!("<{n} x {float}>"),
                };
                s.count(&format!("{name}.{what}"), from, to, lanes, &mut |s, column| {
                    let element = s.temp();
                    s.line(&format!("{element} = add nuw nsw i64 {base}, {column}"));
                    s.elements(
                        body,
                        data,
                        &Part {
                            float,
                            ty: &ty,
                            bytes,
                            lanes,
                            column,
                            element: &element,
                        },
                    );
                });
            };
            part(s, "vectors", 0, vectors, lanes);
            part(s, "rest", vectors, row, 1);
        });
    }

    /// A loop that counts from `from` to below `to`.
    fn count(&mut self, name: &str, from: i64, to: i64, by: i64, body: &mut dyn FnMut(&mut Self, &str)) {
        if from >= to {
            return;
        }
        if from + by >= to {
            return body(self, &from.to_string());
        }
        let (before, at, next) = (self.block().to_owned(), self.temp(), self.temp());
        self.line(&format!("br label %{name}"));
        self.begin(name);
        let phi = self.hold(&format!("{at} = phi i64 [ {from}, %{before} ], [ {next}, %"));
        body(self, &at);
        self.fill(phi, &format!("{} ]", self.block()));
        self.line(&format!("{next} = add nuw nsw i64 {at}, {by}"));
        let more = self.temp();
        self.line(&format!("{more} = icmp slt i64 {next}, {to}"));
        self.line(&format!("br i1 {more}, label %{name}, label %{name}.end"));
        self.begin(&format!("{name}.end"));
    }

    /// All steps on one element or one vector of them.
    fn elements(&mut self, body: &Loop, data: &HashMap<Value, String>, part: &Part<'_>) {
        let mut known: HashMap<Value, String> = HashMap::new();
        for item in &body.items {
            let operands: Vec<String> = item
                .operands
                .iter()
                .map(|operand| match operand {
                    Operand::Number(x) => part.number(*x),
                    Operand::Tensor(v, shape) => {
                        let known_already = known.get(v).cloned();
                        known_already.unwrap_or_else(|| {
                            let loaded = self.read(&data[v], *shape, part);
                            known.insert(*v, loaded.clone());
                            loaded
                        })
                    }
                })
                .collect();
            let result = self.operation(item.operation, &operands, part);
            known.insert(item.out, result);
        }
        for v in body.written() {
            let at = self.address(&data[&v], part.element, part);
            self.line(&format!(
                "store {} {}, ptr {at}, align {}",
                part.ty, known[&v], part.bytes
            ));
        }
    }

    fn read(&mut self, data: &str, shape: Shape, part: &Part<'_>) -> String {
        let at = match shape {
            Shape::Full => self.address(data, part.element, part),
            Shape::Row(_) => self.address(data, part.column, part),
            Shape::One => data.to_owned(),
        };
        let loaded = self.temp();
        if shape == Shape::One && part.lanes > 1 {
            let one = self.temp();
            self.line(&format!("{one} = load {}, ptr {at}, align {}", part.float, part.bytes));
            let first = self.temp();
            self.line(&format!(
                "{first} = insertelement {} poison, {} {one}, i64 0",
                part.ty, part.float
            ));
            let zeros = format!("<{} x i32> zeroinitializer", part.lanes);
            self.line(&format!(
                "{loaded} = shufflevector {0} {first}, {0} poison, {zeros}",
                part.ty
            ));
        } else {
            self.line(&format!("{loaded} = load {}, ptr {at}, align {}", part.ty, part.bytes));
        }
        loaded
    }

    fn address(&mut self, data: &str, index: &str, part: &Part<'_>) -> String {
        let at = self.temp();
        self.line(&format!(
            "{at} = getelementptr inbounds {}, ptr {data}, i64 {index}",
            part.float
        ));
        at
    }

    fn operation(&mut self, operation: Operation, operands: &[String], part: &Part<'_>) -> String {
        let (ty, zero) = (part.ty, part.number(0.0));
        let result = self.temp();
        match (operation, operands) {
            (Operation::Binary(name), [a, b]) => self.line(&format!("{result} = {name} {ty} {a}, {b}")),
            (Operation::Neg, [a]) => self.line(&format!("{result} = fneg {ty} {a}")),
            (Operation::Relu, [a]) => self.choose(&result, ("olt", a, &zero), (&zero, a), part),
            (Operation::Threshold, [a, b, t]) => self.choose(&result, ("ole", b, t), (&zero, a), part),
            _ => unreachable!("the op has so many operands"),
        }
        result
    }

    fn choose(&mut self, result: &str, (how, x, y): (&str, &str, &str), (yes, no): (&str, &str), part: &Part<'_>) {
        let (is, ty) = (self.temp(), part.ty);
        let bit = match part.lanes {
            1 => "i1".to_owned(),
            n => format!("<{n} x i1>"),
        };
        self.line(&format!("{is} = fcmp {how} {ty} {x}, {y}"));
        self.line(&format!("{result} = select {bit} {is}, {ty} {yes}, {ty} {no}"));
    }
}

/// Which elements of a loop are computed together.
struct Part<'a> {
    float: &'a str,
    ty: &'a str,
    bytes: usize,
    lanes: i64,
    /// Index in the row.
    column: &'a str,
    /// Index in the whole.
    element: &'a str,
}

impl Part<'_> {
    /// A number as a constant, rounded to the kind.
    fn number(&self, x: f64) -> String {
        let x = if self.bytes == 4 { f64::from(x as f32) } else { x };
        let mut text = format!("0x{:016X}", x.to_bits());
        if self.lanes > 1 {
            let lanes: Vec<String> = (0..self.lanes).map(|_| format!("{} {text}", self.float)).collect();
            text.clear();
            _ = write!(text, "<{}>", lanes.join(", "));
        }
        text
    }
}
