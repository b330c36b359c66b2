//! Tensor functions as operators of LibTorch's dispatcher.
//!
//! A function whose parameters and results LibTorch's schemas can express becomes `torch.ops.<namespace>.<function>`,
//! with the same autograd as its `autograd` entry point.

mod arguments;
mod signature;

use super::function::Function;
use super::request;
use crate::error::Error;
use crate::torch::operators::{self, Operator, Value};
use crate::torch::{Handle, Raw};
use arguments::Arguments;
use signature::Signature;
use std::ffi::CString;
use tch::Tensor;

/// Registers every function of the program that LibTorch's schemas can express, and gives their names.
/// [`not_registrable`] tells of the others.
///
/// # Errors
/// If the program was built without the pass, or LibTorch refuses a name.
pub fn register(namespace: &str) -> Result<Vec<String>, Error> {
    let mut names = vec![];
    for function in request::all()? {
        if let Some(name) = register_function(namespace, function)? {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// The functions of the program that [`register`] leaves out, each with what is in the way.
///
/// # Errors
/// If the program was built without the pass.
pub fn not_registrable() -> Result<Vec<(String, String)>, Error> {
    let functions = request::all()?.into_iter();
    let reason = |f: &'static Function| Some((f.name().to_owned(), Signature::of(f.description()).err()?));
    let mut left_out: Vec<(String, String)> = functions.filter_map(reason).collect();
    left_out.sort();
    Ok(left_out)
}

/// Registers one function; `None` if a parameter or the result has no counterpart in LibTorch's schemas.
///
/// # Errors
/// If LibTorch refuses: a name that is taken.
pub fn register_function(namespace: &str, function: &'static Function) -> Result<Option<String>, Error> {
    let Ok(signature) = Signature::of(function.description()) else {
        return Ok(None);
    };
    let name = function.name().rsplit("::").next().unwrap_or_default().to_owned();
    let schema = signature.schema(&name);
    define(namespace, &name, &schema, Compiled { function, signature })?;
    Ok(Some(name))
}

/// Defines an operator for as long as the program runs.
///
/// # Errors
/// If LibTorch refuses: a name that is taken.
pub(crate) fn define(namespace: &str, name: &str, schema: &str, operator: impl Operator) -> Result<(), Error> {
    let text = |s: &str| CString::new(s).map_err(|_| Error::new(format!("`{s}` is no name for an operator")));
    let (space, label, schema) = (text(namespace)?, text(name)?, text(schema)?);
    operators::register(&space, &label, &schema, Box::leak(Box::new(operator)))
        .map_err(|e| Error::new(format!("`{namespace}::{name}` cannot be registered: {e}")))
}

/// Calls an operator on tensors by its qualified name (`aten::exp`), through the dispatcher.
///
/// # Errors
/// LibTorch's, or the operator's own.
pub fn dispatch(name: &str, tensors: &[&Tensor], results: usize) -> Result<Vec<Tensor>, Error> {
    let name = CString::new(name).map_err(|e| Error::new(e.to_string()))?;
    let value = |t: &&Tensor| Value {
        tag: operators::TENSOR,
        tensor: t.as_ptr().cast_mut(),
        ..Value::NONE
    };
    let args: Vec<Value> = tensors.iter().map(value).collect();
    // SAFETY: the tensors are alive.
    let results = unsafe { operators::dispatch(&name, &args, results) }.map_err(Error::new)?;
    Ok(results
        .into_iter()
        .map(|h| h.map_or_else(Tensor::new, Handle::into_tensor))
        .collect())
}

/// A registered function.
struct Compiled {
    function: &'static Function,
    signature: Signature,
}

impl Operator for Compiled {
    unsafe fn call(&self, args: &[Value], recorded: bool) -> Result<Vec<Value>, String> {
        // SAFETY: the caller's promise.
        let args = unsafe { Arguments::new(&self.signature, args) }?;
        let leaves = args.leaves(self.function.description());
        let addresses = args.addresses();
        let run = |out: *mut ()| {
            // SAFETY: the arguments have the types of the function's parameters, and `out` is a place for its result.
            let outcome = unsafe {
                match recorded {
                    true => self.function.autograd(&addresses, out, &leaves),
                    false => self.function.plain(&addresses, out),
                }
            };
            outcome.map_err(|e| e.to_string())
        };
        self.signature.returned(run)
    }
}

/// A tensor as a result.
pub(crate) fn given_away(tensor: Tensor) -> Value {
    let raw: Raw = Handle::take(tensor).into_raw();
    Value {
        tag: operators::TENSOR,
        tensor: raw,
        ..Value::NONE
    }
}
