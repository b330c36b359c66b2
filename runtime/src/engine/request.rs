//! Requests: how a function is found in the program's artifact.

use super::function::{Description, Function};
use crate::entry::{Rule, Shim};
use crate::error::Error;
use crate::torch::facts;
use cotangent_graph::artifact::decode;
use cotangent_graph::program::{Artifact, Program};
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError, RwLock};

/// The parts of a request are constants of the program: their addresses tell which one it is.
type Site = (usize, usize, usize);

static BY_SITE: LazyLock<RwLock<HashMap<Site, &'static Function>>> = LazyLock::new(RwLock::default);
static BY_KEY: LazyLock<Mutex<HashMap<String, &'static Function>>> = LazyLock::new(Mutex::default);

/// Finds a function in the program's artifact. The pass looks for calls of this symbol.
#[inline(never)]
#[unsafe(no_mangle)]
#[allow(
    clippy::not_unsafe_ptr_arg_deref,
    reason = "only `request` calls it; safe, so that macro-made code can be"
)]
pub extern "C-unwind" fn cotangent_request(
    description: *const u8,
    description_len: usize,
    instance: *const u8,
    instance_len: usize,
    shim: Shim,
) -> *const Function {
    let site = (description as usize, instance as usize, shim as usize);
    if let Some(function) = BY_SITE.read().unwrap_or_else(PoisonError::into_inner).get(&site) {
        return *function;
    }
    // SAFETY: `request` passes the parts of two strings.
    let (description, instance) = unsafe {
        (
            std::slice::from_raw_parts(description, description_len),
            std::slice::from_raw_parts(instance, instance_len),
        )
    };
    let description: Description = serde_json::from_slice(description).expect("the macro writes the description");
    let function = find(description, &String::from_utf8_lossy(instance), shim);
    BY_SITE
        .write()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(site, function);
    function
}

/// What a function is known by: its path, and its instance if it has several.
pub(crate) fn key(name: &str, instance: &str) -> String {
    match instance {
        "" => name.to_owned(),
        _ => format!("{name}<{instance}>"),
    }
}

fn find(description: Description, instance: &str, shim: Shim) -> &'static Function {
    let key = key(&description.name, instance);
    let mut known = BY_KEY.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(function) = known.get(&key) {
        function.set_original(shim);
        return function;
    }
    let program = program(&key, &description.name);
    let code = embedded().map_or(&[][..], |e| e.code.as_slice());
    let function: &'static Function = Box::leak(Box::new(Function::new(description, program, code, Some(shim))));
    known.insert(key, function);
    function
}

/// What the build embedded.
struct Embedded {
    programs: HashMap<String, Program>,
    code: Vec<u8>,
    /// Per symbol its address, and whether that is of a function that gives a thread's own.
    addresses: HashMap<String, (u64, bool)>,
}

/// The embedded artifact; `None`, or why it is unusable, if there is none.
fn embedded() -> Result<&'static Embedded, Option<String>> {
    static EMBEDDED: LazyLock<Result<Embedded, Option<String>>> = LazyLock::new(|| {
        let bytes = facts::artifact().ok_or(None)?;
        let Artifact {
            programs,
            code,
            symbols,
            kernels: _,
        } = decode(bytes).map_err(|e| Some(e.to_string()))?;
        let addresses = facts::addresses(symbols.len()).iter().copied();
        let addresses = symbols.into_iter().zip(addresses);
        Ok(Embedded {
            programs: programs.into_iter().map(|p| (p.key.clone(), p)).collect(),
            code,
            addresses: addresses
                .map(|(n, address)| (n.symbol, (address, n.thread_local.is_some())))
                .collect(),
        })
    });
    EMBEDDED.as_ref().map_err(Clone::clone)
}

/// The rule of that symbol.
pub(super) fn rule(symbol: &str) -> Option<&'static Rule> {
    // SAFETY: the pass names a rule's symbol only where it is a rule, and rules are constant.
    address(symbol).map(|address| unsafe { &*(address as *const Rule) })
}

/// The address of a symbol that the pass listed; of a thread-local, that of the calling thread's copy.
pub(super) fn address(symbol: &str) -> Option<u64> {
    let (address, thread_local) = *embedded().ok()?.addresses.get(symbol)?;
    match (address, thread_local) {
        (0, _) => None,
        (address, false) => Some(address),
        // SAFETY: for a thread-local, the build put a function of this type there.
        (address, true) => Some(unsafe { std::mem::transmute::<u64, extern "C" fn() -> u64>(address)() }),
    }
}

fn program(key: &str, name: &str) -> Result<&'static Program, String> {
    match embedded() {
        Ok(embedded) => embedded.programs.get(key).ok_or_else(|| {
            format!("the artifact of this program does not have `{key}`; rebuild it with `cargo cotangent build`")
        }),
        Err(None) => Err(format!(
            "this program was built without the Cotangent pass: `{name}` cannot be differentiated; build it with \
             `cargo cotangent build`"
        )),
        Err(Some(error)) => Err(format!("`{name}` cannot be differentiated: {error}")),
    }
}

/// The functions of the artifact; `None` without one.
pub(super) fn keys() -> Option<Vec<&'static str>> {
    let embedded = embedded().ok()?;
    Some(embedded.programs.keys().map(String::as_str).collect())
}

/// Every function of the artifact. One that was not requested yet has no original to fall back on.
pub(super) fn all() -> Result<Vec<&'static Function>, Error> {
    let Embedded { programs, code, .. } = embedded().map_err(|e| {
        Error::new(e.unwrap_or_else(|| {
            "this program was built without the Cotangent pass: there is nothing to register; build it with \
             `cargo cotangent build`"
                .to_owned()
        }))
    })?;
    let mut known = BY_KEY.lock().unwrap_or_else(PoisonError::into_inner);
    let mut all = vec![];
    for (key, program) in programs {
        let function = match known.get(key) {
            Some(function) => *function,
            None => {
                let description: Description = serde_json::from_str(&program.description)
                    .map_err(|e| Error::new(format!("the description of `{key}` cannot be read: {e}")))?;
                let function: &'static Function =
                    Box::leak(Box::new(Function::new(description, Ok(program), code, None)));
                known.insert(key.clone(), function);
                function
            }
        };
        all.push(function);
    }
    Ok(all)
}

impl Function {
    /// A function from a program that was made by hand or read from elsewhere, instead of the embedded artifact.
    pub fn with_program(description: Description, program: &'static Program, shim: Shim) -> &'static Self {
        Box::leak(Box::new(Self::new(description, Ok(program), &[], Some(shim))))
    }
}
