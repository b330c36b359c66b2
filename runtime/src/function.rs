//! A requested function, and how it is found in the program's artifact.

use crate::differentiable::{Leaf, Number};
use crate::entry::Shim;
use crate::error::Error;
use serde::Deserialize;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

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

/// A requested function.
#[derive(Debug)]
pub struct Function {
    description: Description,
}

impl Function {
    /// Path of the function.
    pub fn name(&self) -> &str {
        &self.description.name
    }

    /// Whether the function can be called at all.
    pub fn ready(&self) -> Result<(), Error> {
        Err(Error::new(format!(
            "this program was built without the Cotangent pass: `{}` cannot be differentiated; build it with `cargo cotangent build`",
            self.name()
        )))
    }

    /// Calls the function and keeps what the pullback needs.
    ///
    /// # Safety
    /// `args` are the addresses of the function's arguments, `out` is a place for its result, `wrt` are leaves of the
    /// arguments.
    pub unsafe fn forward(&'static self, _: &[*const ()], _: *mut (), _: &[Leaf]) -> Result<Run, Error> {
        self.ready().map(|()| Run { _private: () })
    }

    /// Calls the function with its outputs attached to LibTorch's graph.
    ///
    /// # Safety
    /// As for [`Function::forward`].
    pub unsafe fn autograd(&'static self, _: &[*const ()], _: *mut (), _: &[Leaf]) -> Result<(), Error> {
        self.ready()
    }
}

/// A forward pass that was run.
#[derive(Debug)]
pub struct Run {
    _private: (),
}

impl Run {
    /// Says which leaves the seeds belong to, in order. Their places are looked at now only.
    pub fn outputs(&mut self, _: &[Leaf]) -> Result<(), Error> {
        Ok(())
    }

    /// One seed per output leaf in, one cotangent per differentiated leaf out.
    pub fn pullback(&self, _: Vec<Number>) -> Result<Vec<Number>, Error> {
        Ok(Vec::new())
    }
}

static FUNCTIONS: LazyLock<Mutex<HashMap<String, &'static Function>>> = LazyLock::new(Mutex::default);

/// Finds a function in the program's artifact. The pass looks for calls of this symbol.
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn cotangent_request(
    description: *const u8,
    description_len: usize,
    instance: *const u8,
    instance_len: usize,
    _: Shim,
) -> *const Function {
    // SAFETY: `request` passes the parts of two strings.
    let (text, instance) = unsafe {
        (
            std::slice::from_raw_parts(description, description_len),
            std::slice::from_raw_parts(instance, instance_len),
        )
    };
    let description: Description = serde_json::from_slice(text).expect("the macro writes the description");
    let key = format!("{}<{}>", description.name, String::from_utf8_lossy(instance));
    let mut functions = FUNCTIONS.lock().unwrap_or_else(PoisonError::into_inner);
    *functions
        .entry(key)
        .or_insert_with(|| Box::leak(Box::new(Function { description })))
}
