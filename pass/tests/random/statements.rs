//! Statements of random programs: stores, copies, the heap, calls, and control flow around them.

use super::{INPUTS, VARIABLES, Writer};

impl Writer<'_> {
    pub(super) fn statement(&mut self, depth: u32) {
        match self.r.below(if depth == 0 { 14 } else { 19 }) {
            4 if self.narrow => {
                let (value, s) = (self.tame(), self.structure());
                let narrow = self.emit(&format!("fptrunc double {value} to float"));
                let at = self.emit(&format!("getelementptr inbounds %S, ptr {s}, i32 0, i32 2"));
                self.line(&format!("store float {narrow}, ptr {at}"));
            }
            0..=4 => {
                let (value, place) = (self.tame(), self.place());
                self.line(&format!("store double {value}, ptr {place}"));
            }
            5 => {
                let (to, from) = if self.r.below(2) == 0 {
                    ("%s", "%z")
                } else {
                    ("%z", "%s")
                };
                self.line(&format!(
                    "call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {from}, i64 48, i1 false)"
                ));
            }
            6 => self.copies(),
            7 => {
                // A pointer into something that lives as long as the function.
                let target = match self.r.below(3) {
                    0 => format!("%v{}", self.r.below(VARIABLES)),
                    1 => {
                        let i = self.index(4);
                        self.emit(&format!(
                            "getelementptr inbounds [6 x double], ptr %arr, i64 0, i64 {i}"
                        ))
                    }
                    _ => {
                        let i = self.index(INPUTS as u64);
                        self.emit(&format!("getelementptr inbounds double, ptr %x, i64 {i}"))
                    }
                };
                let s = self.structure();
                let at = self.emit(&format!("getelementptr inbounds %S, ptr {s}, i32 0, i32 3"));
                self.line(&format!("store ptr {target}, ptr {at}"));
            }
            8 => self.heap(),
            9 | 10 => self.call(),
            11 => {
                if let Some(exit) = self.exits.last().cloned() {
                    let c = self.condition();
                    let on = self.label();
                    self.line(&format!("br i1 {c}, label %{exit}, label %{on}"));
                    self.begin(&on);
                }
            }
            12 => {
                let (i, globals, pointer) = (self.index(6), self.globals(), self.global_pointer());
                let at = self.emit(&format!(
                    "getelementptr inbounds [6 x double], ptr {globals}, i64 0, i64 {i}"
                ));
                let to = match self.r.below(2) {
                    0 => pointer,
                    _ => {
                        let s = self.structure();
                        self.emit(&format!("getelementptr inbounds %S, ptr {s}, i32 0, i32 3"))
                    }
                };
                self.line(&format!("store ptr {at}, ptr {to}"));
            }
            13 => self.leave(),
            14 | 15 => self.branch(depth),
            16 | 17 => self.repeat(depth),
            _ => self.switch(depth),
        }
    }

    /// Perhaps a return.
    fn leave(&mut self) {
        if self.r.below(3) > 0 {
            return;
        }
        let c = self.condition();
        let (out, on) = (self.label(), self.label());
        self.line(&format!("br i1 {c}, label %{out}, label %{on}"));
        self.begin(&out);
        let block = self.emit("load ptr, ptr %heap");
        let x = self.tame();
        self.line(&format!("call void @free(ptr {block})"));
        self.line(&format!("ret double {x}"));
        self.begin(&on);
    }

    /// Floats copied as integers, within arrays, and cleared.
    fn copies(&mut self) {
        match self.r.below(4) {
            0 => {
                let (to, from) = (self.place(), self.place());
                let bits = self.emit(&format!("load i64, ptr {from}"));
                self.line(&format!("store i64 {bits}, ptr {to}"));
            }
            1 => {
                let pair = self.emit("load <2 x i64>, ptr %arr, align 8");
                let at = self.emit("getelementptr inbounds [6 x double], ptr %other, i64 0, i64 2");
                self.line(&format!("store <2 x i64> {pair}, ptr {at}, align 8"));
            }
            2 => {
                let (i, k) = (self.r.below(2), self.r.below(2));
                let to = self.emit(&format!(
                    "getelementptr inbounds [6 x double], ptr %arr, i64 0, i64 {i}"
                ));
                let from = self.emit(&format!(
                    "getelementptr inbounds [6 x double], ptr %arr, i64 0, i64 {k}"
                ));
                self.line(&format!(
                    "call void @llvm.memmove.p0.p0.i64(ptr {to}, ptr {from}, i64 16, i1 false)"
                ));
            }
            _ => self.line("call void @llvm.memset.p0.i64(ptr %other, i8 0, i64 16, i1 false)"),
        }
    }

    /// The heap block grows, and is used.
    fn heap(&mut self) {
        let old = self.emit("load ptr, ptr %heap");
        let size = 48 + 8 * self.r.below(4);
        let new = self.emit(&format!("call ptr @realloc(ptr {old}, i64 {size})"));
        self.line(&format!("store ptr {new}, ptr %heap"));
        let (i, k) = (self.index(4), self.index(4));
        let (to, from) = (
            self.emit(&format!("getelementptr inbounds double, ptr {new}, i64 {i}")),
            self.emit(&format!("getelementptr inbounds double, ptr {new}, i64 {k}")),
        );
        let before = self.emit(&format!("load double, ptr {from}"));
        let value = self.tame();
        let sum = self.emit(&format!("fadd double {before}, {value}"));
        let bounded = self.emit(&format!("call double @tanh(double {sum})"));
        self.line(&format!("store double {bounded}, ptr {to}"));
        let v = self.r.below(VARIABLES);
        self.line(&format!("store double {bounded}, ptr %v{v}"));
    }

    fn call(&mut self) {
        let pointer = match self.r.below(3) {
            0 => "%x".to_string(),
            1 => "%arr".to_string(),
            _ => self.emit("load ptr, ptr %heap"),
        };
        let x = self.tame();
        let callee = match self.callees {
            [] => return self.recurse(),
            [one] => one.clone(),
            [one, two, ..] if self.r.below(2) == 0 => {
                let c = self.condition();
                self.emit(&format!("select i1 {c}, ptr {one}, ptr {two}"))
            }
            all => all[self.r.below(all.len() as u64) as usize].clone(),
        };
        let y = self.emit(&format!("call double {callee}(ptr {pointer}, i64 %n, double {x})"));
        let place = self.place();
        self.line(&format!("store double {y}, ptr {place}"));
    }

    /// A call of the function itself, as often as `n` says.
    fn recurse(&mut self) {
        let more = self.emit("icmp sgt i64 %n, 0");
        let (deep, on) = (self.label(), self.label());
        self.line(&format!("br i1 {more}, label %{deep}, label %{on}"));
        self.begin(&deep);
        let fewer = self.emit("lshr i64 %n, 1");
        let x = self.tame();
        let own = self.own.clone();
        let y = self.emit(&format!("call double {own}(ptr %x, i64 {fewer}, double {x})"));
        let v = self.r.below(VARIABLES);
        self.line(&format!("store double {y}, ptr %v{v}"));
        self.line(&format!("br label %{on}"));
        self.begin(&on);
    }

    fn branch(&mut self, depth: u32) {
        let c = self.condition();
        let (yes, no, on) = (self.label(), self.label(), self.label());
        self.line(&format!("br i1 {c}, label %{yes}, label %{no}"));
        for side in [yes, no] {
            self.begin(&side);
            self.block(depth - 1);
            self.line(&format!("br label %{on}"));
        }
        self.begin(&on);
    }

    fn switch(&mut self, depth: u32) {
        let i = self.index(3);
        let i = self.emit(&format!("add i64 {i}, 0"));
        let labels: Vec<_> = (0..3).map(|_| self.label()).collect();
        let on = self.label();
        self.line(&format!(
            "switch i64 {i}, label %{} [ i64 1, label %{} i64 2, label %{} ]",
            labels[0], labels[1], labels[2]
        ));
        for (k, side) in labels.iter().enumerate() {
            self.begin(side);
            self.block(depth - 1);
            // One case falls through to the next.
            let next = if k == 1 { labels[2].clone() } else { on.clone() };
            self.line(&format!("br label %{next}"));
        }
        self.begin(&on);
    }

    /// A loop with a counter; its end is a constant, an argument, or decided by floats as well.
    fn repeat(&mut self, depth: u32) {
        let counter = format!("%c{}", self.counters.len());
        if self.counters.len() == 3 {
            return;
        }
        let end = match (self.r.below(4), self.counters.last().cloned()) {
            (0, _) => "%n".to_string(),
            (1, Some(outer)) => {
                let i = self.emit(&format!("load i64, ptr {outer}"));
                self.emit(&format!("add nsw i64 {i}, 1"))
            }
            _ => (1 + self.r.below(4)).to_string(),
        };
        let (head, body, exit) = (self.label(), self.label(), self.label());
        self.line(&format!("store i64 0, ptr {counter}"));
        self.line(&format!("br label %{head}"));
        self.begin(&head);
        let i = self.emit(&format!("load i64, ptr {counter}"));
        let c = self.emit(&format!("icmp slt i64 {i}, {end}"));
        self.line(&format!("br i1 {c}, label %{body}, label %{exit}"));
        self.begin(&body);
        self.counters.push(counter.clone());
        self.exits.push(exit.clone());
        self.block(depth - 1);
        self.counters.pop();
        self.exits.pop();
        let i = self.emit(&format!("load i64, ptr {counter}"));
        let next = self.emit(&format!("add nsw i64 {i}, 1"));
        self.line(&format!("store i64 {next}, ptr {counter}"));
        self.line(&format!("br label %{head}"));
        self.begin(&exit);
    }
}
