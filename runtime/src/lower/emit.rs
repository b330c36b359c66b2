//! The emitter: one instruction after the other, as LLVM text.

use super::{Held, LowerError, Lowered, Place, Scalar, Schedule, held};
use cotangent_graph::ir::{Arg, Graph, Inst, Type, Value};
use cotangent_graph::ops::Results;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

pub(super) struct Emitter<'g> {
    pub(super) graph: &'g Graph,
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

impl<'g> Emitter<'g> {
    pub(super) fn new(graph: &'g Graph, symbol: &str) -> Result<Self, LowerError> {
        let mut emitter = Self {
            graph,
            out: Lowered {
                symbol: symbol.to_owned(),
                text: String::new(),
                scalars: vec![],
                slots: vec![],
                floats: 0,
                inputs: vec![],
                outputs: vec![],
                steps: graph.insts.iter().map(|i| (i.op, i.loc.clone())).collect(),
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
        for input in &graph.inputs {
            let place = emitter.place(input.value, "input")?;
            emitter.out.inputs.push(place);
        }
        Ok(emitter)
    }

    /// A place for a value that the caller gives or takes.
    fn place(&mut self, v: Value, what: &str) -> Result<Place, LowerError> {
        match self.graph.ty(v) {
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

    pub(super) fn run(mut self, schedule: &Schedule) -> Result<Lowered, LowerError> {
        for (input, place) in self.graph.inputs.iter().zip(self.out.inputs.clone()) {
            self.load_input(input.value, place);
        }
        for (at, inst) in self.graph.insts.iter().enumerate() {
            self.inst(at, inst)?;
            for v in schedule.releases.get(at).into_iter().flatten() {
                self.release(*v);
            }
        }
        for v in &self.graph.outputs {
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
                match self.graph.ty(v) {
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

    fn inst(&mut self, at: usize, inst: &Inst) -> Result<(), LowerError> {
        let name = inst.op.name;
        _ = writeln!(self.body, "; {at}: {name}");
        match name {
            "tape.vjp" => self.tape_vjp(at, inst),
            "item" => self.item(at, inst),
            _ if name.starts_with("scalar.") => self.scalar(inst),
            _ if crate::kernels::find(name).is_some() => self.kernel(at, inst),
            _ => Err(self.error(inst, "it has no place in a closed graph")),
        }
    }

    /// A call of a LibTorch function.
    fn kernel(&mut self, at: usize, inst: &Inst) -> Result<(), LowerError> {
        let tape = inst.results.last().filter(|r| *self.graph.ty(**r) == Type::Tape);
        let tape = tape.map(|tape| self.open_tape(*tape, inst));
        let results = &inst.results[..inst.results.len() - usize::from(tape.is_some())];
        let mut args = self.c_args(inst, tape.as_deref())?;
        let symbol = format!("atg_{}", inst.op.name);
        let out = self.result_array(results);
        let taken = match inst.op.results {
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
        self.take_results(at, results, &out);
        self.bump_versions(inst);
        Ok(())
    }

    /// Where a call leaves its handles: the slot itself, if there is only one. All null before the call.
    fn result_array(&mut self, results: &[Value]) -> String {
        match results {
            [r] => {
                let slot = self.slot_of(*r, Held::Tensor);
                self.element("ptr", "%slots", slot)
            }
            _ => {
                let n = results.len();
                let array = self.alloca(&format!("[{n} x ptr]"));
                self.line(&format!("store [{n} x ptr] zeroinitializer, ptr {array}"));
                array
            }
        }
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
            let ok = self.temp();
            self.line(&format!("{ok} = icmp ne ptr %v{}, null", r.0));
            self.check(at, &ok);
        }
    }

    fn open_tape(&mut self, tape: Value, inst: &Inst) -> String {
        let mut tensors = 0;
        inst.args.iter().for_each(|a| a.for_each_value(&mut |_| tensors += 1));
        let opened = format!("%v{}", tape.0);
        self.call_as(&opened, "ptr", "cotangent_tape_open", &[format!("i32 {tensors}")]);
        let slot = self.slot_of(tape, Held::Tape);
        let at = self.element("ptr", "%slots", slot);
        self.line(&format!("store ptr {opened}, ptr {at}"));
        opened
    }

    /// `tape.vjp(tape, {cotangents})`.
    fn tape_vjp(&mut self, at: usize, inst: &Inst) -> Result<(), LowerError> {
        let [Arg::Value(tape), Arg::List(bars)] = inst.args.as_slice() else {
            return Err(self.error(inst, "its arguments are not a tape and a list"));
        };
        let bars = self.handles(bars);
        let out = self.result_array(&inst.results);
        // A cotangent that other instructions read must be a tensor; one that only leaves the graph may be undefined.
        let mask: Vec<String> = inst
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
        self.take_results(at, &inst.results, &out);
        Ok(())
    }

    /// Does an instruction read the value?
    fn is_read(&self, v: Value) -> bool {
        let mut read = false;
        for inst in &self.graph.insts {
            inst.args.iter().for_each(|a| a.for_each_value(&mut |u| read |= u == v));
        }
        read
    }

    fn item(&mut self, at: usize, inst: &Inst) -> Result<(), LowerError> {
        let (Arg::Value(x), [r]) = (&inst.args[0], inst.results.as_slice()) else {
            return Err(self.error(inst, "its argument is not a tensor"));
        };
        let Type::Float(bits) = self.graph.ty(*r) else {
            return Err(self.error(
                inst,
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

    /// Tensors of the caller that the instruction wrote to.
    fn bump_versions(&mut self, inst: &Inst) {
        for i in &inst.op.facts.mutates {
            if let Some(Arg::Value(v)) = inst.args.get(*i)
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
            if self.graph.inputs.iter().any(|i| i.value == v) {
                return Some(v);
            }
            let def = self.graph.insts.iter().find(|i| i.results.contains(&v))?;
            match (def.op.facts.view || !def.op.facts.mutates.is_empty(), def.args.first()) {
                (true, Some(Arg::Value(base))) => v = *base,
                _ => return None,
            }
        }
    }

    pub(super) fn error(&self, inst: &Inst, why: impl Into<String>) -> LowerError {
        LowerError {
            op: inst.op.name.to_owned(),
            why: why.into(),
        }
    }

    /// The number of a constant LibTorch scalar.
    pub(super) fn constant_scalar(&mut self, scalar: Scalar) -> usize {
        self.out.scalars.push(scalar);
        self.out.scalars.len() - 1
    }

    /// A fresh name.
    pub(super) fn temp(&mut self) -> String {
        self.next += 1;
        format!("%x{}", self.next)
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
            "\ndefine i32 @{}(ptr %slots, ptr %floats, ptr %scalars) uwtable {{\nstart:",
            self.out.symbol
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
