//! A requested function, and its call.

use super::call::{Done, Failure, call};
use super::chain::{Stopped, Way};
use super::counters;
use super::growth::specialize_growing;
use super::host::Memory;
use super::mask::Mask;
use super::run::{Run, unexpected};
use super::special::{After, Path, Special};
use crate::differentiable::Leaf;
use crate::entry::Shim;
use crate::error::Error;
use crate::exec::Meta;
use crate::torch::facts;
use cotangent_graph::program::Program;
use cotangent_graph::specialize::Inputs;
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

/// What the macro says about a function, in its request.
#[derive(Clone, Debug, Deserialize)]
pub struct Description {
    /// Path of the function, starting with the crate.
    pub name: String,
    /// Source file.
    pub file: String,
    /// Line of the function.
    pub line: u32,
    /// Its parameters, in order.
    pub params: Vec<Param>,
    /// Its return type as written.
    pub ret: String,
}

/// A parameter.
#[derive(Clone, Debug, Deserialize)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// Its type as written.
    pub ty: String,
    /// Whether it is differentiated.
    pub wrt: bool,
    /// Whether it is behind `&mut`.
    pub mutable: bool,
}

/// The most specializations that a function keeps; those used least recently go first.
const MOST_SPECIALIZATIONS: usize = 256;

/// Why the original function runs, where specialization says so.
pub(super) const FAILS: &str = "its arguments make it fail";

/// A requested function.
pub struct Function {
    name: Arc<str>,
    description: Description,
    /// The program, or why there is none.
    program: Result<&'static Program, String>,
    /// The original function, from the first request of it.
    original: OnceLock<Shim>,
    /// Most recently used first.
    specials: RwLock<Vec<Arc<Special>>>,
    /// The program as far as it has grown. Held while a specialization is made, so that threads do not make the same
    /// one twice.
    growing: Mutex<Option<Cow<'static, Program>>>,
    /// The code from which it grows.
    code: &'static [u8],
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the differentiable function `{}`", self.name)
    }
}

/// Which inputs of a region are differentiated, of those that are the caller's.
pub(super) type Active<'a> = dyn Fn(&Special, &Inputs) -> Result<Mask, Error> + 'a;

/// Keeps a specialization, and gives up the one that was used least recently if there are too many.
fn insert(list: &RwLock<Vec<Arc<Special>>>, special: Arc<Special>) {
    let mut list = list.write().unwrap_or_else(PoisonError::into_inner);
    list.insert(0, special);
    list.truncate(MOST_SPECIALIZATIONS);
}

/// The inputs that the leaves are.
fn selected(special: &Special, table: &Inputs, leaves: &[Leaf]) -> Mask {
    Mask::of_members(special.match_leaves(table, leaves).into_iter().flatten())
}

/// A specialization for a call.
enum Found {
    Special(Arc<Special>, Inputs),
    /// The original function fails on these arguments.
    Replay,
}

impl Function {
    pub(super) fn new(
        description: Description,
        program: Result<&'static Program, String>,
        code: &'static [u8],
        original: Option<Shim>,
    ) -> Self {
        Self {
            original: original.map_or_else(OnceLock::new, OnceLock::from),
            name: description.name.as_str().into(),
            description,
            program,
            specials: RwLock::default(),
            growing: Mutex::default(),
            code,
        }
    }

    pub(super) fn set_original(&self, shim: Shim) {
        // Every request of one function has the same shim.
        let _ = self.original.set(shim);
    }

    /// Path of the function.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the macro says about it.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Whether the function can be called at all.
    ///
    /// # Errors
    /// If the program was built without the pass, or its artifact cannot be used.
    pub fn ready(&self) -> Result<(), Error> {
        self.program().map(|_| ())
    }

    fn program(&self) -> Result<&'static Program, Error> {
        self.program.as_ref().copied().map_err(|text| Error::new(text.as_str()))
    }

    /// Calls the function and keeps what the pullback needs. The arguments are moved out of, as by the function itself.
    ///
    /// # Errors
    /// If the function itself fails (the panic or LibTorch's message), or cannot be differentiated.
    ///
    /// # Safety
    /// `args` are the addresses of the function's arguments, `out` is a place for its result, `wrt` are leaves of the
    /// arguments.
    pub unsafe fn forward(&'static self, args: &[*const ()], out: *mut (), wrt: &[Leaf]) -> Result<Run, Error> {
        // SAFETY: the caller's promise.
        let (special, table) = match unsafe { self.find(args) }? {
            Found::Special(special, table) => (special, table),
            Found::Replay => {
                // SAFETY: the caller's promise; nothing has happened yet.
                unsafe { self.replay(args, out, FAILS) }?;
                return Ok(Run::original(self.name.clone(), FAILS.into(), wrt));
            }
        };
        let matched = |special: &Special, table: &Inputs| Ok(selected(special, table, wrt));
        // SAFETY: the caller's promise; the table was read just now.
        let way = unsafe { self.regions(special, table, args, Path::Direct, &matched) };
        let (special, table, before) = match way {
            Ok(way) => (way.special, way.table, way.before),
            Err(Stopped::Replay(because)) => {
                // SAFETY: the caller's promise; nothing has happened yet.
                unsafe { self.replay(args, out, &because) }?;
                return Ok(Run::original(self.name.clone(), because, wrt));
            }
            Err(Stopped::Error(error)) => return Err(error),
        };
        let matched = special.match_leaves(&table, wrt);
        let mut active = Mask::of_members(matched.iter().flatten().copied());
        let ranks: Vec<usize> = (0..special.inputs.len()).filter(|i| active.has(*i)).collect();
        let (before, after_effects, _made) = Way::last(before, &special, &mut active, &ranks);
        let derivative = special.derivative(Path::Direct, &active, &Meta)?;
        // SAFETY: the caller's promise; the table was read just now.
        match unsafe { call(&special, &derivative, Path::Direct, &table, before, out) } {
            Ok(Done { pass, places }) => {
                let rank = |i: usize| ranks.binary_search(&i).expect("every matched input is active");
                let leaves = wrt.iter().zip(matched);
                let leaves = leaves.map(|(leaf, inputs)| (leaf.place.kind(), inputs.into_iter().map(rank).collect()));
                Ok(Run::compiled(self.name.clone(), pass, places, leaves.collect()))
            }
            Err(Failure::Before(because)) if !after_effects => {
                // SAFETY: the caller's promise; the compiled function has had no effect.
                unsafe { self.replay(args, out, &because) }?;
                Ok(Run::original(self.name.clone(), because, wrt))
            }
            Err(Failure::Before(text) | Failure::After(text)) => Err(Error::new(text)),
        }
    }

    /// Calls the function with its outputs attached to LibTorch's graph.
    ///
    /// # Errors
    /// As [`Function::forward`]; and if a tensor requires grad for which the function is not differentiated.
    ///
    /// # Safety
    /// As for [`Function::forward`].
    pub unsafe fn autograd(&'static self, args: &[*const ()], out: *mut (), wrt: &[Leaf]) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let (special, table) = match unsafe { self.find(args) }? {
            Found::Special(special, table) => (special, table),
            // SAFETY: the caller's promise; nothing has happened yet.
            Found::Replay => return unsafe { self.replay(args, out, FAILS) },
        };
        let recording = |special: &Special, table: &Inputs| self.recording(special, table, wrt);
        // SAFETY: the caller's promise; the table was read just now.
        unsafe { self.attached(special, table, &recording, args, out) }
    }

    /// Calls the function below autograd: nothing is recorded, whatever requires grad.
    ///
    /// # Errors
    /// If the function itself fails.
    ///
    /// # Safety
    /// As for [`Function::forward`].
    pub(super) unsafe fn plain(&'static self, args: &[*const ()], out: *mut ()) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        match unsafe { self.find(args) }? {
            // SAFETY: the caller's promise; the table was read just now.
            Found::Special(special, table) => unsafe {
                self.attached(special, table, &|_, _| Ok(Mask::default()), args, out)
            },
            // SAFETY: the caller's promise; nothing has happened yet.
            Found::Replay => unsafe { self.replay(args, out, FAILS) },
        }
    }

    /// # Safety
    /// As for [`Function::forward`]; `table` was read for these arguments.
    unsafe fn attached(
        &self,
        special: Arc<Special>,
        table: Inputs,
        recording: &Active<'_>,
        args: &[*const ()],
        out: *mut (),
    ) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let way = unsafe { self.regions(special, table, args, Path::Attached, recording) };
        let failed = match way {
            Ok(Way { special, table, before }) => {
                let mut active = recording(&special, &table)?;
                let ranks: Vec<usize> = (0..special.inputs.len()).filter(|i| active.has(*i)).collect();
                let (before, after_effects, _made) = Way::last(before, &special, &mut active, &ranks);
                let derivative = special.derivative(Path::Attached, &active, &Meta)?;
                // SAFETY: the caller's promise.
                match unsafe { call(&special, &derivative, Path::Attached, &table, before, out) } {
                    Ok(_) => return Ok(()),
                    Err(Failure::Before(because)) if !after_effects => because,
                    Err(Failure::Before(text) | Failure::After(text)) => return Err(Error::new(text)),
                }
            }
            Err(Stopped::Replay(because)) => because,
            Err(Stopped::Error(error)) => return Err(error),
        };
        // SAFETY: the caller's promise; the compiled function has had no effect.
        unsafe { self.replay(args, out, &failed) }?;
        match self.returns_result() || failed == FAILS {
            true => Ok(()),
            false => Err(unexpected(&self.name, &failed)),
        }
    }

    /// The inputs that LibTorch is to have gradients of.
    fn recording(&self, special: &Special, table: &Inputs, wrt: &[Leaf]) -> Result<Mask, Error> {
        if !facts::grad_enabled() {
            return Ok(Mask::default());
        }
        let selected = selected(special, table, wrt);
        let mut active = Mask::default();
        for (i, info) in special.inputs.iter().enumerate() {
            // SAFETY: the prologue read this handle for the call in progress.
            let wants =
                info.facts.is_some() && !info.internal && unsafe { facts::requires_grad(table.word(info.slot) as _) };
            if wants && selected.has(i) {
                active.insert(i);
            } else if wants {
                let param = info.place.and_then(|p| self.description.params.get(p.argument));
                let param = param.map_or("an argument", |p| p.name.as_str());
                return Err(Error::new(format!(
                    "`{}`: `{param}` requires grad, but the function is not differentiated for it: add it to `wrt(..)`, \
                     or pass it detached (a layer's variables: `VarStore::freeze`)",
                    self.name
                )));
            }
        }
        Ok(active)
    }

    /// The specialization for these arguments; makes it if there is none.
    ///
    /// # Safety
    /// `args` are the addresses of the function's arguments.
    unsafe fn find(&self, args: &[*const ()]) -> Result<Found, Error> {
        facts::refuse_autocast().map_err(|why| Error::new(format!("`{}`: {why}", self.name)))?;
        // SAFETY: the caller's promise.
        let memory = unsafe { Memory::of(args) };
        let known = |memory: &Memory<'_>| {
            let specials = self.specials.read().unwrap_or_else(PoisonError::into_inner);
            let mut fitting = specials.iter().enumerate();
            fitting.find_map(|(i, s)| Some((i, s.clone(), s.prologue.run(memory)?)))
        };
        if let Some((i, special, table)) = known(&memory) {
            if i > 0
                && let Ok(mut specials) = self.specials.try_write()
                && specials.get(i).is_some_and(|s| Arc::ptr_eq(s, &special))
            {
                specials[..=i].rotate_right(1);
            }
            return Ok(Found::Special(special, table));
        }
        self.ready()?;
        let mut growing = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, special, table)) = known(&memory) {
            return Ok(Found::Special(special, table));
        }
        let Some((special, table)) = self.make(&mut growing, None, &memory)? else {
            return Ok(Found::Replay);
        };
        insert(&self.specials, special.clone());
        drop(growing);
        Ok(Found::Special(special, table))
    }

    /// The region after a cut, for what the call knows there; makes it if there is none. `None` where the original
    /// function fails.
    pub(super) fn next(
        &self,
        after: &After,
        table: &Inputs,
        memory: &Memory<'_>,
    ) -> Result<Option<(Arc<Special>, Inputs)>, Error> {
        let known = || {
            let next = after.next.read().unwrap_or_else(PoisonError::into_inner);
            let mut fitting = next.iter();
            fitting.find_map(|s| Some((s.clone(), s.prologue.run_on(table, memory)?)))
        };
        if let Some(found) = known() {
            return Ok(Some(found));
        }
        let mut growing = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known() {
            return Ok(Some(found));
        }
        let made = self.make(&mut growing, Some((after, table)), memory)?;
        if let Some((special, _)) = &made {
            insert(&after.next, special.clone());
        }
        Ok(made)
    }

    /// Specializes the program, or the region after a cut.
    fn make(
        &self,
        growing: &mut Option<Cow<'static, Program>>,
        after: Option<(&After, &Inputs)>,
        memory: &Memory<'_>,
    ) -> Result<Option<(Arc<Special>, Inputs)>, Error> {
        let program = growing.get_or_insert(Cow::Borrowed(self.program()?));
        let from = after.map(|(after, table)| (&after.rest, table));
        let specialized = specialize_growing(program, from, memory, self.code);
        let specialized = match specialized.map_err(|e| Error::new(format!("`{}`: {e}", self.name)))? {
            Some(specialized) => specialized,
            None => return Ok(None),
        };
        let none = HashSet::new();
        let varying = after.map_or(&none, |(after, _)| &after.varying);
        let special = Special::new(self.name.clone(), specialized, &self.description.params, varying, &Meta)?;
        counters::specialized();
        if after.is_none() {
            counters::call(&self.name, &self.description.params, &special.inputs);
        }
        let before = after.map_or_else(Inputs::default, |(_, table)| table.clone());
        let table = special.prologue.run_on(&before, memory).ok_or_else(|| {
            let text = "internal error, please report it: a specialization does not fit the call it was made for";
            Error::new(format!("`{}`: {text}", self.name))
        })?;
        Ok(Some((Arc::new(special), table)))
    }

    /// Calls the original function, which says in its own words what is wrong. Where it was never requested, and so
    /// is not known, the reason has to do.
    ///
    /// # Safety
    /// As for [`Function::forward`]; the arguments have not been moved out of.
    unsafe fn replay(&self, args: &[*const ()], out: *mut (), because: &str) -> Result<(), Error> {
        let original = self.original.get().ok_or_else(|| Error::new(because))?;
        // SAFETY: the caller's promise.
        let work = || unsafe { original(args.as_ptr(), out) };
        catch_unwind(AssertUnwindSafe(work)).map_err(Error::panicked)
    }

    fn returns_result(&self) -> bool {
        self.description.ret.contains("Result")
    }
}
