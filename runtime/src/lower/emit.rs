//! The emitter: one step after the other, as LLVM text.

use super::args::CArgs;
use super::dense::Loop;
use super::{Held, LowerError, Lowered, Place, SYMBOL, Scalar, held, number};
use cotangent_graph::ir::{Arg, Type, Value};
use cotangent_graph::ops::Results;
use cotangent_graph::plan::{Plan, Step};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

pub(super) struct Emitter<'p> {
    plan: &'p Plan,
    out: Lowered,
    /// External functions by symbol, with their LLVM declaration.
    declared: BTreeMap<String, String>,
    /// Constant arrays.
    globals: String,
    /// Stack slots, all in the entry block.
    allocas: String,
    body: String,
    /// Blocks that branch to the exit on failure, with the number of their step.
    failing: Vec<(String, usize)>,
    /// The block that is being written.
    block: String,
    next: usize,
    slot: HashMap<Value, usize>,
}

impl<'p> Emitter<'p> {
    pub(super) fn new(plan: &'p Plan) -> Result<Self, LowerError> {
        let mut emitter = Self {
            plan,
            out: Lowered {
                function: plan.name.clone(),
                text: String::new(),
                scalars: vec![],
                slots: vec![],
                lent: vec![],
                floats: 0,
                inputs: vec![],
                outputs: vec![],
                steps: plan.steps.iter().map(|i| (i.op, i.loc.clone())).collect(),
            },
            declared: BTreeMap::new(),
            globals: String::new(),
            allocas: String::new(),
            body: String::new(),
            failing: vec![],
            block: "start".to_owned(),
            next: 0,
            slot: HashMap::new(),
        };
        for input in &plan.inputs {
            let place = emitter.place(input.value, "input")?;
            emitter.out.inputs.push(place);
            if let Place::Slot(_) = place {
                emitter.out.lent.push(!plan.consumed.contains(&input.value));
            }
        }
        Ok(emitter)
    }

    pub(super) fn ty(&self, v: Value) -> &'p Type {
        &self.plan.slots[v.index()]
    }

    /// A place for a value that the caller gives or takes.
    fn place(&mut self, v: Value, what: &str) -> Result<Place, LowerError> {
        match self.ty(v) {
            Type::Float(_) => {
                self.out.floats += 1;
                Ok(Place::Float(self.out.floats - 1))
            }
            ty => match held(ty) {
                Some(held) => Ok(Place::Slot(self.slot_of(v, held))),
                None => Err(LowerError {
                    op: what.to_owned(),
                    why: format!("{v} is of type {ty:?}"),
                }),
            },
        }
    }

    fn slot_of(&mut self, v: Value, held: Held) -> usize {
        *self.slot.entry(v).or_insert_with(|| {
            self.out.slots.push(held);
            self.out.slots.len() - 1
        })
    }

    pub(super) fn run(mut self) -> Result<Lowered, LowerError> {
        for (input, place) in self.plan.inputs.iter().zip(self.out.inputs.clone()) {
            self.load_input(input.value, place);
        }
        let mut at = 0;
        while at < self.plan.steps.len() {
            let dense = Loop::at(self.plan, at);
            let steps = &self.plan.steps[at..at + dense.as_ref().map_or(1, Loop::len)];
            match dense {
                Some(dense) => self.dense(at, steps, &dense)?,
                None => self.step(at, &steps[0])?,
            }
            steps.iter().flat_map(|s| &s.release).for_each(|v| self.release(*v));
            at += steps.len();
        }
        self.plan.release.iter().for_each(|v| self.release(*v));
        for v in &self.plan.outputs {
            let place = match self.slot.get(v) {
                Some(slot) => Place::Slot(*slot),
                None => self.place(*v, "output")?,
            };
            if let Place::Float(k) = place {
                let value = self.as_double(&Arg::Value(*v));
                let at = self.element("double", "%floats", k);
                self.line(&format!("store double {value}, ptr {at}"));
            }
            self.out.outputs.push(place);
        }
        self.line("ret i32 0");
        Ok(self.finish())
    }

    fn load_input(&mut self, v: Value, place: Place) {
        match place {
            Place::Slot(slot) => {
                let at = self.element("ptr", "%slots", slot);
                self.line(&format!("%v{} = load ptr, ptr {at}", v.0));
            }
            Place::Float(k) => {
                let at = self.element("double", "%floats", k);
                match self.ty(v) {
                    Type::Float(32) => {
                        let wide = self.temp();
                        self.line(&format!("{wide} = load double, ptr {at}"));
                        self.line(&format!("%v{} = fptrunc double {wide} to float", v.0));
                    }
                    _ => self.line(&format!("%v{} = load double, ptr {at}", v.0)),
                }
            }
        }
    }

    pub(super) fn step(&mut self, at: usize, step: &Step) -> Result<(), LowerError> {
        let name = step.op.name;
        _ = writeln!(self.body, "; {at}: {name}");
        match name {
            "tape.vjp" => self.tape_vjp(at, step),
            "item" => self.item(at, step),
            _ if name.starts_with("scalar.") => self.scalar(step),
            _ if crate::kernels::find(name).is_some() => self.kernel(at, step),
            _ => Err(self.error(step, "it has no place in a closed graph")),
        }
    }

    /// A call of a LibTorch function.
    fn kernel(&mut self, at: usize, step: &Step) -> Result<(), LowerError> {
        let tape = step.results.last().filter(|r| *self.ty(**r) == Type::Tape);
        let tape = tape.map(|tape| self.open_tape(*tape, step));
        let results = &step.results[..step.results.len() - usize::from(tape.is_some())];
        let (op, mut args) = match number::as_tensor(step, &self.plan.slots) {
            Some((op, x, number)) if tape.is_none() => {
                let number = self.constant_scalar(number);
                let list = vec![format!("ptr %v{}", x.0), format!("ptr {number}")];
                (op, CArgs { list, scalars: vec![] })
            }
            _ => (step.op, self.c_args(step, tape.as_deref())?),
        };
        let symbol = format!("atg_{}", op.name);
        let out = match step.in_place {
            // The op gives one more handle to the tensor that it wrote to: it is freed again below.
            true => self.null_array(1),
            false => self.result_array(results),
        };
        let taken = match step.op.results {
            Results::Count(_) => {
                args.list.insert(0, format!("ptr {out}"));
                self.call("void", &symbol, &args.list);
                None
            }
            Results::List => {
                let list = self.call("ptr", &symbol, &args.list);
                let n = results.len();
                let take = [format!("ptr {list}"), format!("ptr {out}"), format!("i32 {n}")];
                Some(self.call("i32", "cotangent_list_take", &take))
            }
        };
        for scalar in &args.scalars {
            self.call("void", "ats_free", &[format!("ptr {scalar}")]);
        }
        if let Some(tape) = &tape {
            let n = results.len();
            let close = [format!("ptr {tape}"), format!("ptr {out}"), format!("i32 {n}")];
            self.call("void", "cotangent_tape_close", &close);
        }
        if let Some(failed) = taken {
            self.check_zero(at, &failed);
        }
        if step.in_place {
            let again = self.temp();
            self.line(&format!("{again} = load ptr, ptr {out}"));
            self.check_handle(at, &again);
            self.call("void", "at_free", &[format!("ptr {again}")]);
            return Ok(());
        }
        self.take_results(at, results, &out);
        if step.op.own.is_none() {
            results.iter().for_each(|r| self.check_type(at, *r));
        }
        self.bump_versions(step);
        Ok(())
    }

    /// Where a call leaves its handles: the slot itself, if there is only one. All null before the call.
    fn result_array(&mut self, results: &[Value]) -> String {
        match results {
            [r] => {
                let slot = self.slot_of(*r, Held::Tensor);
                self.element("ptr", "%slots", slot)
            }
            _ => self.null_array(results.len()),
        }
    }

    fn null_array(&mut self, n: usize) -> String {
        let array = self.alloca(&format!("[{n} x ptr]"));
        self.line(&format!("store [{n} x ptr] zeroinitializer, ptr {array}"));
        array
    }

    /// Moves handles from the array to slots, and leaves if the call failed.
    fn take_results(&mut self, at: usize, results: &[Value], out: &str) {
        for (k, r) in results.iter().enumerate() {
            let from = self.element("ptr", out, k);
            self.line(&format!("%v{} = load ptr, ptr {from}", r.0));
            if results.len() > 1 {
                let slot = self.slot_of(*r, Held::Tensor);
                let to = self.element("ptr", "%slots", slot);
                self.line(&format!("store ptr %v{}, ptr {to}", r.0));
            }
        }
        if let Some(r) = results.last() {
            self.check_handle(at, &format!("%v{}", r.0));
        }
    }

    /// Shapes of ops without a shape rule of ours come from LibTorch's Meta device, which cannot know shapes that depend
    /// on values: leaves if it was wrong.
    fn check_type(&mut self, at: usize, v: Value) {
        let Type::Tensor(Some(ty)) = self.ty(v) else { return };
        let shape: Vec<String> = ty.shape.iter().map(|n| format!("i64 {n}")).collect();
        let shape = self.constant("i64", &shape);
        let args = [
            format!("ptr %v{}", v.0),
            format!("i32 {}", ty.kind as i32),
            format!("ptr {shape}"),
            format!("i32 {}", ty.rank()),
        ];
        let differs = self.call("i32", "cotangent_differs", &args);
        self.check_zero(at, &differs);
    }

    fn open_tape(&mut self, tape: Value, step: &Step) -> String {
        let mut tensors = 0;
        step.args.iter().for_each(|a| a.for_each_value(&mut |_| tensors += 1));
        let opened = format!("%v{}", tape.0);
        self.call_as(&opened, "ptr", "cotangent_tape_open", &[format!("i32 {tensors}")]);
        let slot = self.slot_of(tape, Held::Tape);
        let at = self.element("ptr", "%slots", slot);
        self.line(&format!("store ptr {opened}, ptr {at}"));
        opened
    }

    /// `tape.vjp(tape, {cotangents})`.
    fn tape_vjp(&mut self, at: usize, step: &Step) -> Result<(), LowerError> {
        let [Arg::Value(tape), Arg::List(bars)] = step.args.as_slice() else {
            return Err(self.error(step, "its arguments are not a tape and a list"));
        };
        let bars = self.handles(bars);
        let out = self.result_array(&step.results);
        // A cotangent that other steps read must be a tensor; one that only leaves the graph may be undefined.
        let mask: Vec<String> = step
            .results
            .iter()
            .map(|r| format!("i8 {}", u8::from(self.is_read(*r))))
            .collect();
        let mask = self.constant("i8", &mask);
        let args = [
            format!("ptr %v{}", tape.0),
            format!("ptr {bars}"),
            format!("ptr {out}"),
            format!("ptr {mask}"),
        ];
        let failed = self.call("i32", "cotangent_tape_vjp", &args);
        self.check_zero(at, &failed);
        self.take_results(at, &step.results, &out);
        Ok(())
    }

    /// Does a step read the value?
    fn is_read(&self, v: Value) -> bool {
        let mut read = false;
        for step in &self.plan.steps {
            step.args.iter().for_each(|a| a.for_each_value(&mut |u| read |= u == v));
        }
        read
    }

    fn item(&mut self, at: usize, step: &Step) -> Result<(), LowerError> {
        let (Arg::Value(x), [r]) = (&step.args[0], step.results.as_slice()) else {
            return Err(self.error(step, "its argument is not a tensor"));
        };
        let Type::Float(bits) = self.ty(*r) else {
            return Err(self.error(
                step,
                "it reads a tensor as an integer, which a closed graph does not do",
            ));
        };
        let place = self.alloca("double");
        let args = [format!("ptr %v{}", x.0), format!("ptr {place}")];
        let failed = self.call("i32", "cotangent_item", &args);
        self.check_zero(at, &failed);
        match bits {
            32 => {
                let wide = self.temp();
                self.line(&format!("{wide} = load double, ptr {place}"));
                self.line(&format!("%v{} = fptrunc double {wide} to float", r.0));
            }
            _ => self.line(&format!("%v{} = load double, ptr {place}", r.0)),
        }
        Ok(())
    }

    fn release(&mut self, v: Value) {
        let Some(&slot) = self.slot.get(&v) else { return };
        let free = match self.out.slots[slot] {
            Held::Tensor => "at_free",
            Held::Tape => "cotangent_tape_free",
        };
        self.call("void", free, &[format!("ptr %v{}", v.0)]);
        let at = self.element("ptr", "%slots", slot);
        self.line(&format!("store ptr null, ptr {at}"));
    }

    /// Tensors of the caller that the step wrote to.
    fn bump_versions(&mut self, step: &Step) {
        for i in &step.op.facts.mutates {
            if let Some(Arg::Value(v)) = step.args.get(*i)
                && let Some(root) = self.input_behind(*v)
            {
                self.call("void", "cotangent_bump_version", &[format!("ptr %v{}", root.0)]);
            }
        }
    }

    /// The input whose storage a value shows, if it is one or a view of one.
    fn input_behind(&self, v: Value) -> Option<Value> {
        let mut v = v;
        loop {
            if self.plan.inputs.iter().any(|i| i.value == v) {
                return Some(v);
            }
            let def = self.plan.steps.iter().find(|i| i.results.contains(&v))?;
            match (def.op.facts.view || !def.op.facts.mutates.is_empty(), def.args.first()) {
                (true, Some(Arg::Value(base))) => v = *base,
                _ => return None,
            }
        }
    }

    pub(super) fn error(&self, step: &Step, why: impl Into<String>) -> LowerError {
        LowerError {
            op: step.op.name.to_owned(),
            why: why.into(),
        }
    }

    /// The handle of a constant number, which is made with the graph.
    pub(super) fn constant_scalar(&mut self, scalar: Scalar) -> String {
        self.out.scalars.push(scalar);
        let at = self.element("ptr", "%scalars", self.out.scalars.len() - 1);
        let handle = self.temp();
        self.line(&format!("{handle} = load ptr, ptr {at}"));
        handle
    }

    /// A fresh name.
    pub(super) fn temp(&mut self) -> String {
        self.next += 1;
        format!("%x{}", self.next)
    }

    /// The block that is being written.
    pub(super) fn block(&self) -> &str {
        &self.block
    }

    /// Begins a block; the one before has its branch.
    pub(super) fn begin(&mut self, block: &str) {
        _ = writeln!(self.body, "{block}:");
        self.block = block.to_owned();
    }

    /// A line whose end is known later; gives where that goes.
    pub(super) fn hold(&mut self, text: &str) -> usize {
        _ = write!(self.body, "  {text}");
        self.body.push('\n');
        self.body.len() - 1
    }

    /// Ends a line that was held.
    pub(super) fn fill(&mut self, at: usize, end: &str) {
        self.body.insert_str(at, end);
    }

    pub(super) fn line(&mut self, text: &str) {
        _ = writeln!(self.body, "  {text}");
    }

    pub(super) fn alloca(&mut self, ty: &str) -> String {
        let name = self.temp();
        _ = writeln!(self.allocas, "  {name} = alloca {ty}, align 8");
        name
    }

    /// Address of element `k`.
    pub(super) fn element(&mut self, ty: &str, array: &str, k: usize) -> String {
        if k == 0 {
            return array.to_owned();
        }
        let at = self.temp();
        self.line(&format!("{at} = getelementptr inbounds {ty}, ptr {array}, i64 {k}"));
        at
    }

    /// A constant array; null if it is empty.
    pub(super) fn constant(&mut self, ty: &str, items: &[String]) -> String {
        if items.is_empty() {
            return "null".to_owned();
        }
        self.next += 1;
        let (name, n) = (format!("@c{}", self.next), items.len());
        let items = items.join(", ");
        _ = writeln!(
            self.globals,
            "{name} = private unnamed_addr constant [{n} x {ty}] [{items}]"
        );
        name
    }

    /// An array of handles on the stack; null if it is empty.
    pub(super) fn handles(&mut self, values: &[Option<Value>]) -> String {
        if values.is_empty() {
            return "null".to_owned();
        }
        let names: Vec<String> = values
            .iter()
            .map(|v| v.map_or("null".to_owned(), |v| format!("%v{}", v.0)))
            .collect();
        self.array("ptr", &names)
    }

    /// An array on the stack.
    pub(super) fn array(&mut self, ty: &str, items: &[String]) -> String {
        let array = self.alloca(&format!("[{} x {ty}]", items.len()));
        for (k, item) in items.iter().enumerate() {
            let at = self.element(ty, &array, k);
            self.line(&format!("store {ty} {item}, ptr {at}"));
        }
        array
    }

    /// Calls an external function; gives the name of its result. `args` are typed operands.
    pub(super) fn call(&mut self, ret: &str, symbol: &str, args: &[String]) -> String {
        let result = self.temp();
        self.call_as(&result, ret, symbol, args);
        result
    }

    /// Calls an external function and names its result.
    pub(super) fn call_as(&mut self, result: &str, ret: &str, symbol: &str, args: &[String]) {
        let types: Vec<&str> = args
            .iter()
            .map(|a| a.rsplit_once(' ').expect("an operand has a type").0)
            .collect();
        let declaration = format!("declare {ret} @{symbol}({})", types.join(", "));
        self.declared.entry(symbol.to_owned()).or_insert(declaration);
        let args = args.join(", ");
        match ret {
            "void" => self.line(&format!("call void @{symbol}({args})")),
            _ => self.line(&format!("{result} = call {ret} @{symbol}({args})")),
        }
    }

    /// Leaves with the number of the step if the handle is null.
    fn check_handle(&mut self, at: usize, handle: &str) {
        let ok = self.temp();
        self.line(&format!("{ok} = icmp ne ptr {handle}, null"));
        self.check(at, &ok);
    }

    /// Leaves with the number of the step unless `failed` is zero.
    fn check_zero(&mut self, at: usize, failed: &str) {
        let ok = self.temp();
        self.line(&format!("{ok} = icmp eq i32 {failed}, 0"));
        self.check(at, &ok);
    }

    /// Leaves with the number of the step unless `ok`.
    fn check(&mut self, at: usize, ok: &str) {
        self.next += 1;
        let next = format!("b{}", self.next);
        self.line(&format!("br i1 {ok}, label %{next}, label %failed, !prof !0"));
        _ = writeln!(self.body, "{next}:");
        self.failing.push((std::mem::replace(&mut self.block, next), at));
    }

    fn finish(mut self) -> Lowered {
        let mut text = String::new();
        _ = writeln!(text, "{}", self.globals);
        for declaration in self.declared.values() {
            _ = writeln!(text, "{declaration}");
        }
        _ = writeln!(
            text,
            "\ndefine i32 {SYMBOL}(ptr %slots, ptr %floats, ptr %scalars) uwtable {{\nstart:"
        );
        text.push_str(&self.allocas);
        text.push_str(&self.body);
        if !self.failing.is_empty() {
            let sources: Vec<String> = self
                .failing
                .iter()
                .map(|(block, at)| format!("[ {}, %{block} ]", at + 1))
                .collect();
            _ = writeln!(
                text,
                "failed:\n  %step = phi i32 {}\n  ret i32 %step",
                sources.join(", ")
            );
        }
        text.push_str("}\n\n!0 = !{!\"branch_weights\", i32 1048576, i32 1}\n");
        self.out.text = text;
        self.out
    }
}
