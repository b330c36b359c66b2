//! The code that kernels reach, from all the modules of a program, in one module.
//!
//! Modules are parsed when a body of theirs is wanted. A module's own symbols get names that no other module has. What is
//! reached within a module is copied in one piece; what the piece only names is looked for in the other modules. An
//! indirect call reaches those functions whose addresses are taken in what is reached.
//!
//! Not followed are: functions that never return (panics: the program's own), allocators (known to the engine by their
//! attributes), the runtime and what it calls for users' rules, and functions of the standard library that use state of
//! their own, whose code the program has natively.

use super::pointed::Taken;
use crate::capture::Bitcode;
use crate::kernel::prepare::{closure, name_all};
use crate::llvm::{Context, Function, Linkage, Mod, OwnedMod, Value, empty_like, parse};
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};

/// How LibTorch's functions begin, as `torch-sys` calls them.
const OF_TENSORS: [&str; 8] = ["atg_", "at_", "ato_", "ati_", "atm_", "atc_", "ats_", "atd_"];
/// How symbols of the runtime and of the pass begin.
const OWN: &str = "cotangent";
/// In the mangled names of the runtime's functions for programs over tensors. An entry point that a kernel calls has them
/// beside the kernel's, and does not come to them.
const PROGRAMS: &str = "17cotangent_runtime5entry7program";
/// In the mangled names of the runtime's functions that call what users wrote for a rule. Nothing in them is differentiated:
/// derivatives call the program's own, by their symbols.
pub(super) const RULES: &str = "17cotangent_runtime6kernel4rule";

/// A module that grows.
pub(crate) struct Assembly<'c> {
    context: &'c Context,
    pub(super) bitcode: &'c Bitcode,
    pub(super) parsed: HashMap<usize, OwnedMod<'c>>,
    /// What was copied, still apart.
    pieces: Vec<OwnedMod<'c>>,
    /// What each symbol that was looked for reaches in its module.
    reached: HashMap<String, Reached>,
    defined: HashSet<String>,
    /// Where the linked crate's own objects define symbols.
    exports: Option<HashMap<String, usize>>,
    pub(super) taken: Option<Taken>,
}

/// What a symbol reaches in its module.
#[derive(Default)]
struct Reached {
    /// Symbols that it names only.
    names: Vec<String>,
    /// Types of the functions that are called through pointers.
    called: Vec<String>,
}

/// A function that was added.
pub(crate) struct Added {
    /// Its name here.
    pub(crate) name: String,
    /// Types of the functions that are called through pointers by what it reaches.
    pub(crate) called: BTreeSet<String>,
}

impl<'c> Assembly<'c> {
    pub(crate) fn new(context: &'c Context, bitcode: &'c Bitcode) -> Self {
        Self {
            context,
            bitcode,
            parsed: HashMap::new(),
            pieces: Vec::new(),
            reached: HashMap::new(),
            defined: HashSet::new(),
            exports: None,
            taken: None,
        }
    }

    /// Adds all that a function reaches. `None`: it reaches LibTorch, and is no kernel.
    ///
    /// # Errors
    /// If bitcode cannot be read.
    pub(crate) fn add(&mut self, symbol: &str) -> Result<Option<Added>, String> {
        let root = match symbol
            .split_once('!')
            .and_then(|(k, name)| Some((k.parse().ok()?, name)))
        {
            Some((k, name)) => {
                let root = local_name(k, name);
                if !self.reached.contains_key(&root) {
                    let reached = self.piece(k, &root)?;
                    self.reached.insert(root.clone(), reached);
                }
                root
            }
            None => symbol.to_owned(),
        };
        let (mut seen, mut work) = (HashSet::from([root.clone()]), vec![root.clone()]);
        let mut called = BTreeSet::new();
        while let Some(symbol) = work.pop() {
            if OF_TENSORS.iter().any(|begin| symbol.starts_with(begin)) {
                return Ok(None);
            }
            if !self.reached.contains_key(&symbol) {
                let reached = match self.definition(&symbol)? {
                    Some(k) => self.piece(k, &symbol)?,
                    None => Reached::default(),
                };
                self.reached.insert(symbol.clone(), reached);
            }
            let reached = &self.reached[&symbol];
            called.extend(reached.called.iter().cloned());
            work.extend(reached.names.iter().filter(|n| seen.insert((*n).clone())).cloned());
        }
        Ok(Some(Added { name: root, called }))
    }

    /// The module with everything.
    ///
    /// # Errors
    /// If pieces do not fit.
    pub(crate) fn finish(self) -> Result<Option<OwnedMod<'c>>, String> {
        let Some(work) = join(self.pieces)? else {
            return Ok(None);
        };
        let module = work.module();
        for f in module.functions().filter(|f| !f.is_declaration()) {
            f.set_linkage(Linkage::LLVMInternalLinkage);
            f.remove_attribute("optnone");
            f.remove_attribute("noinline");
        }
        for g in module.globals().filter(|g| g.initializer().is_some()) {
            g.set_global_linkage(Linkage::LLVMInternalLinkage);
        }
        Ok(Some(work))
    }

    /// The module that defines a symbol.
    fn definition(&mut self, symbol: &str) -> Result<Option<usize>, String> {
        if is_own(symbol) || symbol.contains(RULES) || symbol.starts_with("llvm.") {
            return Ok(None);
        }
        if let Some(k) = local_module(symbol) {
            return Ok(Some(k));
        }
        if let Some(k) = self.bitcode.definition(symbol.as_bytes()) {
            return Ok(Some(k));
        }
        if self.exports.is_none() {
            // Objects of the linked crate have no table of symbols.
            let mut exports = HashMap::new();
            for (k, source) in self.bitcode.modules().iter().enumerate() {
                if source.is_local() {
                    let defined = globals(self.parsed(k)?).filter(|v| is_defined(*v) && !is_local(*v));
                    exports.extend(defined.map(|v| (v.name(), k)));
                }
            }
            self.exports = Some(exports);
        }
        Ok(self.exports.as_ref().and_then(|e| e.get(symbol)).copied())
    }

    pub(super) fn parsed(&mut self, k: usize) -> Result<Mod<'_>, String> {
        if !self.parsed.contains_key(&k) {
            let source = &self.bitcode.modules()[k];
            let in_module = |e: String| format!("cannot read the bitcode of {}: {e}", source.name());
            let bytes = source.bytes().map_err(|e| in_module(e.to_string()))?;
            let module = parse(self.context.handle(), bytes).map_err(in_module)?;
            // Places are told to users; what else debuggers are told is most of a module, and every copy would have it.
            module.module().run_passes("strip-nonlinetable-debuginfo")?;
            name_all(module.module());
            for v in globals(module.module()).filter(|v| is_local(*v)) {
                v.set_name(&local_name(k, &v.name()));
            }
            self.parsed.insert(k, module);
        }
        Ok(self.parsed[&k].module())
    }

    /// Copies what a symbol reaches within its module; gives what that names.
    fn piece(&mut self, k: usize, symbol: &str) -> Result<Reached, String> {
        let native = self.bitcode.modules()[k].is_native();
        self.parsed(k)?;
        let module = self.parsed[&k].module();
        let Some(root) = module
            .function(symbol)
            .map(Function::value)
            .or_else(|| module.global(symbol))
        else {
            return Ok(Reached::default());
        };
        let state = State {
            native,
            known: RefCell::default(),
        };
        let reached = closure::direct(&[root], &|v| state.may_copy(v));
        let told = Reached {
            names: reached.names.iter().map(|v| v.name()).collect(),
            called: reached.indirect.iter().map(|ty| format!("{ty:?}")).collect(),
        };
        let mut new = reached.definitions;
        new.retain(|v| !self.defined.contains(&v.name()));
        if new.is_empty() {
            return Ok(told);
        }
        self.defined.extend(new.iter().map(|v| v.name()));
        let piece = module.copy_of(&new);
        for v in globals(piece.module()) {
            v.set_global_linkage(Linkage::LLVMExternalLinkage);
        }
        let own = empty_like(piece.module(), self.context.handle(), "kernels");
        piece.link_into(own.module())?;
        self.pieces.push(own);
        Ok(told)
    }
}

/// Is it a function of the runtime's or of the pass's, which is not followed?
fn is_own(symbol: &str) -> bool {
    symbol.starts_with(OWN) || symbol.contains(PROGRAMS)
}

/// Links pieces into one: neighbours first, so that each piece is linked a few times only.
pub(super) fn join(mut pieces: Vec<OwnedMod<'_>>) -> Result<Option<OwnedMod<'_>>, String> {
    while pieces.len() > 1 {
        let mut pairs = pieces.into_iter();
        pieces = Vec::new();
        while let Some(first) = pairs.next() {
            if let Some(second) = pairs.next() {
                second.link_into(first.module())?;
            }
            pieces.push(first);
        }
    }
    Ok(pieces.pop())
}

/// What may be copied out of a module.
struct State<'m> {
    /// The code is in the program natively, and its symbols cannot be changed any more.
    native: bool,
    known: RefCell<HashMap<Value<'m>, bool>>,
}

impl<'m> State<'m> {
    fn may_copy(&self, v: Value<'m>) -> bool {
        let Some(f) = v.as_function() else {
            return true;
        };
        let name = f.name();
        if is_own(&name) || name == "rust_eh_personality" || name.contains(RULES) || f.attribute("allockind").is_some()
        {
            return false;
        }
        if f.attribute("noreturn").is_some() && !is_local(v) {
            return false;
        }
        !self.native || self.is_free_of_state(f)
    }

    /// Does a function of the standard library do without symbols that only its own object knows?
    fn is_free_of_state(&self, f: Function<'m>) -> bool {
        if let Some(known) = self.known.borrow().get(&f.value()) {
            return *known;
        }
        // Recursion is as free as the rest of the function.
        self.known.borrow_mut().insert(f.value(), true);
        let mut work: Vec<_> = f
            .instructions()
            .flat_map(|i| i.operands().collect::<Vec<_>>())
            .collect();
        let mut seen = HashSet::new();
        let mut free = true;
        while let Some(v) = work.pop() {
            if !free || !v.is_constant() || !seen.insert(v) {
                continue;
            }
            free = match v.as_function() {
                Some(g) if is_local(v) => self.is_free_of_state(g),
                Some(_) => true,
                None if v.is_global() && is_local(v) && !v.is_global_constant() => false,
                None => {
                    match v.is_global() {
                        true => work.extend(v.initializer().filter(|_| v.is_global_constant())),
                        false => work.extend(v.operands()),
                    }
                    true
                }
            };
        }
        self.known.borrow_mut().insert(f.value(), free);
        free
    }
}

/// Functions and variables.
pub(super) fn globals<'m>(module: Mod<'m>) -> impl Iterator<Item = Value<'m>> {
    module.functions().map(Function::value).chain(module.globals())
}

/// Has a function a body, or a variable a value?
pub(super) fn is_defined(v: Value<'_>) -> bool {
    match v.as_function() {
        Some(f) => !f.is_declaration(),
        None => v.initializer().is_some(),
    }
}

fn is_local(v: Value<'_>) -> bool {
    matches!(
        v.global_linkage(),
        Linkage::LLVMInternalLinkage | Linkage::LLVMPrivateLinkage
    )
}

/// The module that a symbol is the own one of.
pub(super) fn local_module(symbol: &str) -> Option<usize> {
    symbol.rsplit_once(LOCAL)?.1.parse().ok()
}

/// Between the name of a module's own symbol and the number of the module.
pub(super) const LOCAL: &str = ".of.";

/// The name of a module's own symbol among those of all modules.
pub(crate) fn local_name(module: usize, name: &str) -> String {
    format!("{name}{LOCAL}{module}")
}
