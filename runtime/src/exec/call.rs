//! One LibTorch function called without compiled code: for shape inference and tests.

use crate::torch::{shim, take_error};
use crate::{kernels, torch};
use cotangent_graph::ir::{Arg, Value};
use cotangent_graph::ops::{Op, ParamKind, Results, constant_int};
use tch::Tensor;
use torch_sys::{C_scalar, C_tensor};

/// Longest argument list, in integers and pointers, that the shim passes on.
const WORDS: usize = 64;
/// Most doubles that a function takes.
const DOUBLES: usize = 4;
/// Most results of a function that gives a fixed number of them.
const RESULTS: usize = 8;

/// Calls `op` on arguments of a closed graph, below autograd. `tensor` gives the tensor behind a value; floats that
/// only run time knows are taken as one.
///
/// # Errors
/// LibTorch's message.
pub fn call_op<'a>(op: Op, args: &[Arg], tensor: &dyn Fn(Value) -> Option<&'a Tensor>) -> Result<Vec<Tensor>, String> {
    let address = kernels::find(op.name).ok_or_else(|| format!("`{op}` is not a LibTorch function"))?;
    let mut call = Call::default();
    let mut out = [std::ptr::null_mut::<C_tensor>(); RESULTS];
    if let Results::Count(_) = op.results {
        call.words.push(out.as_mut_ptr() as u64);
    }
    for (param, arg) in op.params.iter().zip(args) {
        call.push(param.kind, arg, tensor)
            .ok_or_else(|| format!("`{}` of `{op}` cannot be {arg:?}", param.name))?;
    }
    if call.words.len() > WORDS || call.doubles.len() > DOUBLES {
        return Err(format!("`{op}` takes too many arguments"));
    }
    call.words.resize(WORDS, 0);
    call.doubles.resize(DOUBLES, 0.0);
    torch::take_error();
    // SAFETY: the argument list is the function's own, by the op table; the arrays it points at live in `call`.
    let list = unsafe { shim::cotangent_call(address.0, call.words.as_ptr(), call.doubles.as_ptr()) };
    let handles = match op.results {
        Results::Count(n) => out[..n].to_vec(),
        Results::List => take_list(list.cast()),
    };
    if let Some(message) = take_error() {
        return Err(message);
    }
    if handles.iter().any(|h| h.is_null()) {
        return Err(format!("`{op}` gave no result"));
    }
    // SAFETY: the function gave fresh handles, and nothing else owns them.
    Ok(handles.into_iter().map(|h| unsafe { Tensor::from_ptr(h) }).collect())
}

/// The handles of a null-terminated list that a C function allocated.
fn take_list(list: *mut *mut C_tensor) -> Vec<*mut C_tensor> {
    let mut handles = vec![];
    if list.is_null() {
        return handles;
    }
    // SAFETY: the list is null-terminated and was allocated with `malloc`.
    unsafe {
        while !(*list.add(handles.len())).is_null() {
            handles.push(*list.add(handles.len()));
        }
        libc::free(list.cast());
    }
    handles
}

/// An argument list in C's form, and what it points at.
#[derive(Default)]
struct Call {
    words: Vec<u64>,
    doubles: Vec<f64>,
    handles: Vec<Vec<*mut C_tensor>>,
    ints: Vec<Vec<i64>>,
    floats: Vec<Vec<f64>>,
    texts: Vec<String>,
    scalars: Vec<*mut C_scalar>,
}

impl Call {
    fn push<'a>(&mut self, kind: ParamKind, arg: &Arg, tensor: &dyn Fn(Value) -> Option<&'a Tensor>) -> Option<()> {
        let handle = |v: Value| tensor(v).map(|t| t.as_ptr().cast_mut());
        match (kind, arg) {
            (ParamKind::OptTensor, Arg::None) => self.words.push(0),
            (ParamKind::Tensor | ParamKind::OptTensor, Arg::Value(v)) => self.words.push(handle(*v)? as u64),
            (ParamKind::Tensors | ParamKind::OptTensors, Arg::List(items)) => {
                let handles: Option<Vec<_>> = items
                    .iter()
                    .map(|v| v.map_or(Some(std::ptr::null_mut()), handle))
                    .collect();
                let handles = handles?;
                self.words.extend([handles.as_ptr() as u64, handles.len() as u64]);
                self.handles.push(handles);
            }
            (ParamKind::Scalar, arg) => {
                // SAFETY: these constructors have no precondition; the scalars are freed with the call.
                let scalar = unsafe {
                    match arg {
                        Arg::Int(_) | Arg::Bool(_) => torch_sys::ats_int(constant_int(arg)),
                        Arg::Float(_) | Arg::Value(_) => torch_sys::ats_float(float(arg)?),
                        _ => return None,
                    }
                };
                self.scalars.push(scalar);
                self.words.push(scalar as u64);
            }
            (ParamKind::OptInt, Arg::None) => self.words.extend([0, 1]),
            (ParamKind::Int | ParamKind::OptInt, Arg::Int(_) | Arg::Bool(_)) => {
                self.words.push(constant_int(arg) as u64);
                if kind == ParamKind::OptInt {
                    self.words.push(0);
                }
            }
            (ParamKind::OptFloat, Arg::None) => {
                self.doubles.push(0.0);
                self.words.push(1);
            }
            (ParamKind::Float | ParamKind::OptFloat, arg) => {
                self.doubles.push(float(arg)?);
                if kind == ParamKind::OptFloat {
                    self.words.push(0);
                }
            }
            (ParamKind::OptInts | ParamKind::OptFloats, Arg::None) => self.words.extend([0, -1i64 as u64]),
            (ParamKind::Ints | ParamKind::OptInts, Arg::Ints(items)) => {
                let ints: Vec<i64> = items.iter().map(constant_int).collect();
                self.words.extend([ints.as_ptr() as u64, ints.len() as u64]);
                self.ints.push(ints);
            }
            (ParamKind::Floats | ParamKind::OptFloats, Arg::Floats(items)) => {
                let floats: Option<Vec<f64>> = items.iter().map(float).collect();
                let floats = floats?;
                self.words.extend([floats.as_ptr() as u64, floats.len() as u64]);
                self.floats.push(floats);
            }
            (ParamKind::Bool, Arg::Bool(_) | Arg::Int(_)) => self.words.push(constant_int(arg) as u64),
            (ParamKind::OptKind, Arg::None) => self.words.push(-1i64 as u64),
            (ParamKind::Kind | ParamKind::OptKind, Arg::Kind(k)) => self.words.push(*k as u64),
            (ParamKind::Device, Arg::Device(d)) => self.words.push(i64::from(*d) as u64),
            (ParamKind::Str, Arg::Str(s)) => {
                self.words.extend([s.as_ptr() as u64, s.len() as u64]);
                self.texts.push(s.clone());
                let text = self.texts.last()?;
                let at = self.words.len() - 2;
                self.words[at] = text.as_ptr() as u64;
            }
            _ => return None,
        }
        Some(())
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        for s in &self.scalars {
            // SAFETY: we made them and nothing else frees them.
            unsafe { torch_sys::ats_free(*s) };
        }
    }
}

/// A float; one where only run time knows it, for shapes do not depend on it.
fn float(arg: &Arg) -> Option<f64> {
    match arg {
        Arg::Float(x) => Some(*x),
        Arg::Int(i) => Some(*i as f64),
        Arg::Value(_) => Some(1.0),
        _ => None,
    }
}
