//! From the bitcode of a link to what becomes of its requests: programs over tensors, and derivatives of kernels.

use crate::capture::Bitcode;
use crate::kernel::Tape;
use crate::llvm::{Context, Locations, Module};
use crate::weave::{self, Assembly, KERNEL_MARKER, Kernel};
use cotangent_graph::ir::{Arg, Loc};
use cotangent_graph::kernel::KernelNote;
use cotangent_graph::program::{Artifact, Named, Program, Refusal, Tree};
use cotangent_graph::specialize::check;
use cotangent_raise::archive::Archive;
use cotangent_raise::code::{Func, Global, Loader, Signature, Symbol};
use cotangent_raise::explore::{self, Request};
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

/// The runtime's function that a request calls: the marker in the bitcode.
pub const MARKER: &str = "cotangent_request";
/// Stack of the thread that evaluates: calls of the user's program nest on it.
const STACK: usize = 1 << 30;

/// What became of the requests of a program.
#[derive(Debug, Default)]
pub struct Raised {
    /// All functions, with the code that their trees grow from.
    pub artifact: Artifact,
    /// Every place that cannot be raised, of all functions.
    pub refusals: Vec<Refusal>,
    /// The derivatives of kernels: an archive of objects, to be linked whole.
    pub native: Option<Vec<u8>>,
}

/// Raises every request of a program.
///
/// # Errors
/// If bitcode cannot be read.
pub fn raise_requests(bitcode: &Bitcode) -> Result<Raised, String> {
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .stack_size(STACK)
            .spawn_scoped(scope, || on_this_thread(bitcode))
            .map_err(|e| format!("cannot start a thread: {e}"))?
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn on_this_thread(bitcode: &Bitcode) -> Result<Raised, String> {
    let context = Context::new();
    let library = Library::new(&context, bitcode);
    let mut raised = Raised::default();
    let mut assembly = Assembly::new(&context, bitcode);
    let mut kernels: Vec<Kernel> = Vec::new();
    let mut requests: Vec<(Request, bool)> = Vec::new();
    for (thunk, request) in requests_of(&library, MARKER)? {
        if requests.iter().any(|(r, _)| r.key == request.key) {
            continue; // One instance of a generic function in several crates.
        }
        let shim = assembly.add(&request.shim).map_err(|why| format!("`{thunk}`: {why}"))?;
        requests.push((request, shim.is_some()));
    }
    let markers = requests_of(&library, KERNEL_MARKER)?;
    let has_kernels = !markers.is_empty();
    let mut descriptions: HashMap<String, String> = HashMap::new();
    let mut given_pointers: Vec<(usize, BTreeSet<String>)> = Vec::new();
    for (thunk, request) in markers {
        descriptions.insert(request.key.clone(), request.description.clone());
        let (Some(added), Some(mode)) = (assembly.add(&request.shim)?, request.mode) else {
            continue;
        };
        let thunk = weave::name_of(&thunk);
        match kernels.iter_mut().find(|k| k.key == request.key) {
            Some(kernel) => {
                kernel.modes |= mode;
                kernel.thunks.push((thunk, mode));
            }
            None => {
                if weave::may_hold(&request.description) {
                    given_pointers.push((kernels.len(), added.called));
                }
                kernels.push(Kernel {
                    key: request.key,
                    shim: added.name,
                    modes: mode,
                    thunks: vec![(thunk, mode)],
                    pointed: vec![],
                    plain: weave::plain(&request.description),
                    float: weave::float(&request.description),
                });
            }
        }
    }
    for (k, called) in given_pointers {
        kernels[k].pointed = assembly.add_pointed(&called)?;
    }
    let woven = weave::weave(assembly, &kernels)?;
    raised.native = woven.archive;
    let note = |(key, tapes): (String, Vec<Tape>)| KernelNote {
        description: descriptions.remove(&key).unwrap_or_default(),
        key,
        tapes,
    };
    raised.artifact.kernels = woven.tapes.into_iter().map(note).collect();
    let programs = &mut raised.artifact.programs;
    for (request, is_kernel) in &requests {
        let asked = kernels.iter().any(|k| k.key == request.key);
        let refused = woven
            .refused
            .iter()
            .find(|(key, _)| *key == request.key)
            .map(|(_, why)| why);
        if *is_kernel && refused.is_none() && (asked || has_kernels) {
            continue; // Its derivatives are native, or nobody wants any.
        }
        let mut program = explore::raise(request, &library);
        let name = short(&program.key);
        let underivable = check(&program, &selected(&program.description));
        let found = explore::refusals(&program.tree).into_iter().chain(underivable);
        let mut found: Vec<_> = found
            .map(|r| Refusal {
                message: format!("cannot differentiate `{name}`: {}", r.message),
                at: r.at,
            })
            .collect();
        // The evaluator takes functions of plain numbers, too; of those that it does not, the engine knows better why.
        let unlowered = refused.map(|why| why.iter().map(|r| r.for_users(name)).collect());
        program.unlowered = unlowered.unwrap_or_default();
        if !found.is_empty() && !program.unlowered.is_empty() {
            found.clone_from(&program.unlowered);
            program.tree = Tree::Refused(found.clone());
            program.leaves.clear();
        }
        raised.refusals.extend(found);
        programs.push(program);
    }
    let growing = programs
        .iter()
        .filter(|p| explore::grows(&p.tree))
        .map(|p| Symbol::from(p.shim.as_str()));
    let growing: Vec<Symbol> = growing.collect();
    let mut symbols: BTreeSet<Named> = programs.iter().flat_map(|p| named(p, &library)).collect();
    symbols.extend(woven.exports.iter().map(Named::constant));
    if !growing.is_empty() {
        let archive = Archive::collect(growing, &library);
        symbols.extend(archive.rules().map(|rule| Named::constant(&**rule)));
        symbols.extend(
            archive
                .statics()
                .map(|(symbol, thread_local)| library.named(symbol, thread_local)),
        );
        raised.artifact.code = archive.encode();
    }
    raised.artifact.symbols = symbols.into_iter().collect();
    match library.failure.take() {
        Some(failure) => Err(failure),
        None => Ok(raised),
    }
}

/// The requests that call a marker, each with the function that it stands in.
fn requests_of(library: &Library<'_>, marker: &str) -> Result<Vec<(Symbol, Request)>, String> {
    let read = |thunk: Symbol| {
        let request = explore::find_request(&thunk, library).map_err(|why| format!("`{thunk}`: {why}"))?;
        Ok((thunk, request))
    };
    library.requesting(marker)?.into_iter().map(read).collect()
}

/// Symbols of the rules that a program calls, and of the statics that it uses.
fn named(program: &Program, library: &Library<'_>) -> impl Iterator<Item = Named> {
    let insts = program.leaves.iter().flat_map(|leaf| &leaf.graph.insts);
    insts.filter_map(|i| match (i.op.name, i.args.as_slice()) {
        ("rule.call", [Arg::Str(symbol), ..]) => Some(Named::constant(symbol.as_str())),
        ("host.global", [Arg::Str(symbol), Arg::Int(thread_local)]) => Some(library.named(symbol, *thread_local != 0)),
        _ => None,
    })
}

/// Positions of the parameters that are differentiated for.
fn selected(description: &str) -> Vec<usize> {
    let json: serde_json::Value = serde_json::from_str(description).unwrap_or_default();
    let params = json["params"].as_array().cloned().unwrap_or_default();
    let wrt = params.iter().enumerate().filter(|(_, p)| p["wrt"] == true);
    wrt.map(|(i, _)| i).collect()
}

/// The function's own name in its path.
fn short(key: &str) -> &str {
    let path = key.split('<').next().unwrap_or(key);
    path.rsplit("::").next().unwrap_or(path)
}

/// All modules of a link, parsed on demand.
struct Library<'c> {
    context: &'c Context,
    bitcode: &'c Bitcode,
    locations: Rc<Locations<'c>>,
    modules: Vec<OnceCell<Module<'c>>>,
    /// Where a symbol with external linkage is defined, as far as modules were parsed.
    exports: RefCell<HashMap<String, usize>>,
    functions: RefCell<HashMap<Symbol, Option<Rc<Func>>>>,
    signatures: RefCell<HashMap<Symbol, Signature>>,
    globals: RefCell<HashMap<Symbol, Option<Rc<Global>>>>,
    /// The first module that could not be read.
    failure: RefCell<Option<String>>,
    local_parsed: OnceCell<()>,
}

impl<'c> Library<'c> {
    fn new(context: &'c Context, bitcode: &'c Bitcode) -> Self {
        Self {
            context,
            bitcode,
            locations: Rc::default(),
            modules: bitcode.modules().iter().map(|_| OnceCell::new()).collect(),
            exports: RefCell::default(),
            functions: RefCell::default(),
            signatures: RefCell::default(),
            globals: RefCell::default(),
            failure: RefCell::default(),
            local_parsed: OnceCell::new(),
        }
    }

    /// The functions without parameters that call a marker, directly or through functions that pass their own
    /// parameters on to it.
    fn requesting(&self, marker: &str) -> Result<Vec<Symbol>, String> {
        let (mut thunks, mut callees, mut next) = (vec![], vec![Symbol::from(marker)], 0);
        while let Some(callee) = callees.get(next).cloned() {
            next += 1;
            let (own, name) = match callee.split_once('!') {
                Some((k, name)) => (k.parse().ok(), name.to_string()),
                None => (None, callee.to_string()),
            };
            let modules = match own {
                Some(k) => vec![k],
                None => self.bitcode.mentioning(&name).map_err(|e| e.to_string())?,
            };
            for k in modules {
                for (caller, params) in self.module(k)?.callers(&name) {
                    let list = if params == 0 { &mut thunks } else { &mut callees };
                    if !list.contains(&caller) {
                        list.push(caller);
                    }
                }
            }
        }
        Ok(thunks)
    }

    fn module(&self, k: usize) -> Result<&Module<'c>, String> {
        if let Some(m) = self.modules[k].get() {
            return Ok(m);
        }
        let source = &self.bitcode.modules()[k];
        let in_module = |e: String| format!("cannot read the bitcode of {}: {e}", source.name());
        let bytes = source.bytes().map_err(|e| in_module(e.to_string()))?;
        let module = Module::parse(self.context, self.locations.clone(), k, bytes).map_err(in_module)?;
        let mut exports = self.exports.borrow_mut();
        for name in module.exports() {
            exports.entry(name).or_insert(k);
        }
        Ok(self.modules[k].get_or_init(|| module))
    }

    /// A static or thread-local, for the table of addresses.
    fn named(&self, symbol: &str, thread_local: bool) -> Named {
        let module = || self.definition(symbol).map(|(k, _)| k);
        Named {
            symbol: symbol.to_owned(),
            thread_local: thread_local.then(module).flatten(),
        }
    }

    /// The module that defines a symbol, and the symbol's name in it.
    fn definition<'s>(&self, symbol: &'s str) -> Option<(usize, &'s str)> {
        if let Some((k, name)) = symbol.split_once('!')
            && let Ok(k) = k.parse()
        {
            return Some((k, name));
        }
        self.local_parsed.get_or_init(|| {
            for (k, m) in self.bitcode.modules().iter().enumerate() {
                if m.is_local() {
                    self.parse(k);
                }
            }
        });
        if let Some(k) = self.exports.borrow().get(symbol) {
            return Some((*k, symbol));
        }
        Some((self.bitcode.definition(symbol.as_bytes())?, symbol))
    }

    /// The module, if it can be read; a failure is kept for the end.
    fn parse(&self, k: usize) -> Option<&Module<'c>> {
        match self.module(k) {
            Ok(m) => Some(m),
            Err(e) => {
                self.failure.borrow_mut().get_or_insert(e);
                None
            }
        }
    }
}

impl Loader for Library<'_> {
    fn function(&self, symbol: &Symbol) -> Option<Rc<Func>> {
        if let Some(f) = self.functions.borrow().get(symbol) {
            return f.clone();
        }
        let found = self.definition(symbol).and_then(|(k, name)| {
            let module = self.parse(k)?;
            match module.target(name) {
                Some(target) if target != *symbol => self.function(&target),
                _ => module.function(name),
            }
        });
        self.functions.borrow_mut().insert(symbol.clone(), found.clone());
        found
    }

    fn signature(&self, symbol: &Symbol) -> Signature {
        // Attributes of allocation functions stand on their declarations too: any module that knows the name will do.
        if let Some(s) = self.signatures.borrow().get(symbol) {
            return s.clone();
        }
        let name = symbol.split_once('!').map_or(&**symbol, |(_, n)| n);
        let mut known = Signature::default();
        for m in self.modules.iter().filter_map(OnceCell::get) {
            if let Some(s) = m.signature(name) {
                known.alloc_kind = known.alloc_kind.or(s.alloc_kind);
                known.noreturn |= s.noreturn;
            }
        }
        self.signatures.borrow_mut().insert(symbol.clone(), known.clone());
        known
    }

    fn global(&self, symbol: &Symbol) -> Option<Rc<Global>> {
        if let Some(g) = self.globals.borrow().get(symbol) {
            return g.clone();
        }
        let found = self
            .definition(symbol)
            .and_then(|(k, name)| self.parse(k)?.global(name));
        self.globals.borrow_mut().insert(symbol.clone(), found.clone());
        found
    }

    fn has_address(&self, symbol: &Symbol, thread_local: bool) -> bool {
        match self.definition(symbol) {
            Some((k, _)) if thread_local || symbol.contains('!') => !self.bitcode.modules()[k].is_native(),
            _ => true,
        }
    }

    fn locations(&self, at: u32) -> Rc<[Loc]> {
        self.locations.get(at)
    }
}
