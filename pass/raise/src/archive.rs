//! Code that travels with the program, for trees that grow at run time.
//!
//! The archive holds everything that the shims can reach by calls and addresses, in decoded form. Functions that never
//! return and blocks that only unwinding reaches are left out: the evaluator stops before them.

use crate::code::{Callee, Code, Const, Func, Global, Loader, Operand, Signature, Symbol};
use crate::rule::MARKER;
use cotangent_graph::ir::Loc;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// Decoded code by symbol.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Archive {
    functions: BTreeMap<Symbol, Rc<Func>>,
    signatures: BTreeMap<Symbol, Signature>,
    globals: BTreeMap<Symbol, Rc<Global>>,
    /// Source locations; only those in the user's own files are kept.
    locations: Vec<Rc<[Loc]>>,
}

impl Archive {
    /// Everything that can be reached from these functions.
    pub fn collect(roots: impl IntoIterator<Item = Symbol>, loader: &dyn Loader) -> Self {
        let mut collector = Collector {
            loader,
            archive: Self::default(),
            numbers: HashMap::from([(0, 0)]),
            pending: roots.into_iter().collect(),
        };
        while let Some(symbol) = collector.pending.pop() {
            collector.visit(&symbol);
        }
        collector.archive
    }

    /// The rules of the user's own among the globals.
    pub fn rules(&self) -> impl Iterator<Item = &Symbol> {
        let is_rule = |g: &Global| match &g.init {
            Const::Aggregate(items) => items.iter().any(|c| matches!(c, Const::Func(f) if &**f == MARKER)),
            _ => false,
        };
        self.globals.iter().filter(move |(_, g)| is_rule(g)).map(|(s, _)| s)
    }

    /// The statics and thread-locals among the globals, and whether each is thread-local.
    pub fn statics(&self) -> impl Iterator<Item = (&Symbol, bool)> {
        let mutable = self.globals.iter().filter(|(_, g)| !g.constant);
        mutable.map(|(s, g)| (s, g.thread_local))
    }

    /// As bytes.
    ///
    /// # Panics
    /// Never: the archive is plain data.
    pub fn encode(&self) -> Vec<u8> {
        postcard::to_stdvec(self).expect("plain data can be encoded")
    }

    /// From bytes.
    ///
    /// # Errors
    /// If the bytes are not an archive.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        postcard::from_bytes(bytes).map_err(|e| format!("the embedded code cannot be read: {e}"))
    }
}

impl Loader for Archive {
    fn function(&self, symbol: &Symbol) -> Option<Rc<Func>> {
        self.functions.get(symbol).cloned()
    }

    fn signature(&self, symbol: &Symbol) -> Signature {
        self.signatures.get(symbol).cloned().unwrap_or_default()
    }

    fn global(&self, symbol: &Symbol) -> Option<Rc<Global>> {
        self.globals.get(symbol).cloned()
    }

    fn locations(&self, at: u32) -> Rc<[Loc]> {
        let index = (at as usize).checked_sub(1);
        index
            .and_then(|i| self.locations.get(i).cloned())
            .unwrap_or_else(|| Rc::new([]))
    }
}

struct Collector<'a> {
    loader: &'a dyn Loader,
    archive: Archive,
    /// Numbers of locations, the loader's to the archive's.
    numbers: HashMap<u32, u32>,
    pending: Vec<Symbol>,
}

impl Collector<'_> {
    fn visit(&mut self, symbol: &Symbol) {
        if self.archive.signatures.contains_key(symbol) || symbol.starts_with("llvm.") {
            return;
        }
        let signature = self.loader.signature(symbol);
        let opaque = signature.noreturn || signature.alloc_kind.is_some() || is_libtorch(symbol);
        self.archive.signatures.insert(symbol.clone(), signature);
        if opaque {
            return;
        }
        let Some(func) = self.loader.function(symbol) else {
            return;
        };
        let mut func = (*func).clone();
        let live = live_blocks(&func);
        for (block, live) in func.blocks.iter_mut().zip(live) {
            if !live {
                block.clear();
            }
            for inst in block {
                inst.at = self.number(inst.at);
                self.instruction(&inst.code);
            }
        }
        self.archive.functions.insert(symbol.clone(), Rc::new(func));
    }

    fn number(&mut self, at: u32) -> u32 {
        if let Some(n) = self.numbers.get(&at) {
            return *n;
        }
        let kept: Rc<[Loc]> = self
            .loader
            .locations(at)
            .iter()
            .filter(|l| crate::eval::is_user(l))
            .cloned()
            .collect();
        let n = if kept.is_empty() {
            0
        } else {
            self.archive.locations.push(kept);
            self.archive.locations.len() as u32
        };
        self.numbers.insert(at, n);
        n
    }

    fn instruction(&mut self, code: &Code) {
        if let Code::Call { callee, noreturn, .. } = code {
            match callee {
                Callee::Symbol(s) if !*noreturn => self.pending.push(s.clone()),
                Callee::Pointer(p) => self.operand(p),
                Callee::Symbol(_) | Callee::Asm(_) => {}
            }
        }
        for_each_operand(code, &mut |o| self.operand(o));
    }

    fn operand(&mut self, o: &Operand) {
        if let Operand::Const(c, _) = o {
            self.constant(c);
        }
    }

    fn constant(&mut self, c: &Const) {
        match c {
            Const::Func(s) => self.pending.push(s.clone()),
            Const::Global(s, _) if !self.archive.globals.contains_key(s) => {
                if let Some(g) = self.loader.global(s) {
                    self.archive.globals.insert(s.clone(), g.clone());
                    self.constant(&g.init);
                }
            }
            Const::Aggregate(items) => items.iter().for_each(|c| self.constant(c)),
            _ => {}
        }
    }
}

/// Functions that the evaluator knows by name.
fn is_libtorch(symbol: &str) -> bool {
    ["atg_", "at_", "ats_", "cotangent_"]
        .iter()
        .any(|p| symbol.starts_with(p))
}

/// Which blocks can be reached without unwinding.
fn live_blocks(func: &Func) -> Vec<bool> {
    let mut live = vec![false; func.blocks.len()];
    let mut pending = vec![0u32];
    while let Some(b) = pending.pop() {
        if std::mem::replace(&mut live[b as usize], true) {
            continue;
        }
        for inst in &func.blocks[b as usize] {
            match &inst.code {
                Code::Br(to) => pending.push(*to),
                Code::CondBr { yes, no, .. } => pending.extend([*yes, *no]),
                Code::Switch { cases, default, .. } => {
                    pending.push(*default);
                    pending.extend(cases.iter().map(|(_, b)| *b));
                }
                Code::Call {
                    normal: Some(to),
                    noreturn: false,
                    ..
                } => pending.push(*to),
                _ => {}
            }
        }
    }
    live
}

fn for_each_operand(code: &Code, f: &mut dyn FnMut(&Operand)) {
    match code {
        Code::Load { ptr } => f(ptr),
        Code::Store { value, ptr, .. } => [value, ptr].into_iter().for_each(f),
        Code::Gep { base, dynamic, .. } => {
            f(base);
            dynamic.iter().for_each(|(o, _)| f(o));
        }
        Code::Binary { a, b, .. } | Code::ICmp { a, b, .. } | Code::FCmp { a, b, .. } => [a, b].into_iter().for_each(f),
        Code::FNeg { a } | Code::Cast { a, .. } | Code::Extract { a, .. } | Code::Same { a } => f(a),
        Code::Select { cond, a, b } => [cond, a, b].into_iter().for_each(f),
        Code::Insert { a, v, .. } => [a, v].into_iter().for_each(f),
        Code::Call { args, noreturn, .. } => {
            if !noreturn {
                args.iter().for_each(f);
            }
        }
        Code::Phi { from } => from.iter().for_each(|(_, o)| f(o)),
        Code::CondBr { cond, .. } => f(cond),
        Code::Switch { on, .. } => f(on),
        Code::Ret(v) => v.iter().for_each(f),
        Code::AtomicRmw { ptr, value, .. } => [ptr, value].into_iter().for_each(f),
        Code::CmpXchg { ptr, expected, new, .. } => [ptr, expected, new].into_iter().for_each(f),
        Code::Alloca { .. } | Code::Br(_) | Code::Unreachable | Code::Nop | Code::Other(_) => {}
    }
}
