//! Calls: which go into a body, and what those without one do.

use crate::code::{Symbol, Ty};
use crate::eval::{Eval, Flow, Stop};
use crate::explore::Request;
use crate::memory::Object;
use crate::value::{Base, Ptr, Val};
use cotangent_graph::ir::Arg;

/// Bits of LLVM's `allockind`.
const REALLOC: u64 = 2;
const FREE: u64 = 4;
const ZEROED: u64 = 16;

/// Functions of libm that a region may call on floats, by their C name without the `f` of the single version.
const LIBM: &[&str] = &[
    "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "exp",
    "exp2", "expm1", "log", "log2", "log10", "log1p", "pow", "sqrt", "cbrt", "hypot", "fabs", "floor", "ceil", "trunc",
    "round", "rint", "fmod", "fma", "fmin", "fmax", "copysign", "erf", "erfc", "tgamma", "lgamma",
];

impl Eval<'_> {
    /// Calls a function by its symbol.
    pub(crate) fn dispatch(&mut self, symbol: &Symbol, args: Vec<Val>, ret: &Ty, noreturn: bool) -> Flow<Val> {
        let name: &str = symbol;
        if let Some(rest) = name.strip_prefix("llvm.") {
            return self.intrinsic(rest, args, ret);
        }
        let signature = self.loader.signature(symbol);
        if let Some(kind) = signature.alloc_kind {
            return self.allocator(kind, &args);
        }
        if noreturn || signature.noreturn {
            return Err(Stop::Replay);
        }
        if name.starts_with("atg_") || name.starts_with("at_") || name.starts_with("ats_") {
            return self.libtorch(name, &args, ret);
        }
        match name {
            "get_and_reset_last_err" => return Ok(Val::null()),
            "memcpy" | "memmove" => {
                let n = self.number(&args[2])?;
                self.copy(&args[0], &args[1], n as u64)?;
                return Ok(args[0].clone());
            }
            "memset" => {
                self.fill(&args[0], &args[1], &args[2])?;
                return Ok(args[0].clone());
            }
            "memcmp" | "bcmp" => return self.memcmp(&args),
            "strlen" => return self.strlen(&args[0]),
            "free" => return self.c_free(&args[0]),
            "cotangent_stop_gradient_f64" | "cotangent_stop_gradient_f32" => return self.stop_gradient(&args[0], ret),
            "cotangent_custom_jvp" => {
                return self.refuse(
                    "it calls a function with a tangent rule (`custom_jvp`), which a tensor function cannot use; give the \
                     function a `custom_vjp`, or differentiate the parts around it",
                );
            }
            "cotangent_custom_vjp" => return self.rule(&args),
            "cotangent_leaf" => return self.leaf(&args),
            "cotangent_inactive" => {
                self.marked_inactive = true;
                return Ok(Val::Undef);
            }
            "cotangent_request" | "cotangent_kernel" if self.seeks_request => return self.read_request(&args),
            "cotangent_request" | "cotangent_kernel" => {
                return self.refuse(
                    "it asks for a derivative of another function: nested differentiation of tensor functions is not \
                     supported yet; call the function itself",
                );
            }
            _ => {}
        }
        if name.contains("no_alloc_shim_is_unstable") {
            return Ok(Val::Undef);
        }
        if let Some(v) = self.libm(name, &args, ret) {
            return v;
        }
        if let Some(func) = self.loader.function(symbol) {
            return self.call(&func, args);
        }
        self.refuse(format!(
            "it calls `{}`, whose code Cotangent does not have; move the call out of the differentiable function",
            demangle(name)
        ))
    }

    /// A marker: description, instance, shim; of a kernel also what is asked for.
    fn read_request(&mut self, args: &[Val]) -> Flow<Val> {
        let description = self.text(&args[0], &args[1])?;
        let instance = self.text(&args[2], &args[3])?;
        let Val::Ptr(Ptr {
            base: Base::Func(shim),
            off: 0,
        }) = &args[4]
        else {
            return self.refuse("the shim is not a function of the program");
        };
        let Ok(json) = serde_json::from_str::<serde_json::Value>(&description) else {
            return self.refuse("the description is not JSON");
        };
        let mode = match args.get(5) {
            Some(mode) => Some(self.number(mode)? as u32),
            None => None,
        };
        let name = json["name"].as_str().unwrap_or_default();
        self.request = Some(Request {
            key: if instance.is_empty() {
                name.to_string()
            } else {
                format!("{name}<{instance}>")
            },
            description,
            shim: shim.clone(),
            mode,
        });
        Err(Stop::Replay)
    }

    fn allocator(&mut self, kind: u64, args: &[Val]) -> Flow<Val> {
        if kind & FREE != 0 {
            return self.deallocate(args);
        }
        if kind & REALLOC != 0 {
            let new = self.allocate(&args[3], &args[2], false)?;
            let (old, fresh) = (self.number(&args[1])?, self.number(&args[3])?);
            self.copy(&new, &args[0], old.min(fresh) as u64)?;
            self.deallocate(&[args[0].clone(), args[1].clone(), args[2].clone()])?;
            return Ok(new);
        }
        self.allocate(&args[0], &args[1], kind & ZEROED != 0)
    }

    fn allocate(&mut self, size: &Val, align: &Val, zeroed: bool) -> Flow<Val> {
        let known = match size {
            Val::Int(x, _) => Some(*x as u64),
            Val::Sym(v, _) => self.trace.known.get(v).map(|x| *x as u64),
            _ => None,
        };
        let align = match align {
            Val::Int(a, _) => *a as u64,
            _ => 16,
        };
        let mut object = Object::new(known, align);
        object.heap = true;
        object.zeroed = zeroed;
        self.objects.push(object);
        Ok(Val::Ptr(Ptr::to(Base::Object(self.objects.len() - 1))))
    }

    fn deallocate(&mut self, args: &[Val]) -> Flow<Val> {
        match &args[0] {
            Val::Ptr(Ptr {
                base: Base::Object(o),
                off: 0,
            }) => self.objects[*o].live = false,
            Val::Ptr(Ptr {
                base: Base::Host(v),
                off: 0,
            }) => {
                let (v, size) = (*v, self.number(&args[1])?);
                let align = match args.get(2) {
                    Some(a) => self.number(&a.clone())?,
                    None => 16,
                };
                self.freed.push((v, size as u64, align as u64));
            }
            other => return self.c_free(other),
        }
        Ok(Val::Undef)
    }

    /// C's `free`, by name or by attribute: lists of tensors and error texts.
    fn c_free(&mut self, p: &Val) -> Flow<Val> {
        match p {
            Val::Ptr(Ptr {
                base: Base::List(l), ..
            }) => {
                self.release(self.lists[*l]);
                Ok(Val::Undef)
            }
            Val::Ptr(Ptr {
                base: Base::Absolute, ..
            }) => Ok(Val::Undef),
            Val::Ptr(Ptr {
                base: Base::Object(o),
                off: 0,
            }) => {
                self.objects[*o].live = false;
                Ok(Val::Undef)
            }
            other => self.refuse(format!("memory is freed through {other}")),
        }
    }

    /// `memset`.
    pub(crate) fn fill(&mut self, to: &Val, byte: &Val, n: &Val) -> Flow<()> {
        let n = self.number(n)?;
        if n == 0 {
            return Ok(());
        }
        let (o, off) = self.writable(to, n as u64)?;
        let done = match byte {
            Val::Undef => self.objects[o].clear(off, n as u64),
            byte => {
                let byte = self.number(byte)? as u8;
                self.objects[o].write_bytes(off, &vec![byte; n as usize])
            }
        };
        self.plain(done)
    }

    fn memcmp(&mut self, args: &[Val]) -> Flow<Val> {
        let n = self.number(&args[2])?;
        for i in 0..n {
            let (a, b) = (self.offset(args[0].clone(), i)?, self.offset(args[1].clone(), i)?);
            let (x, y) = (self.load(&a, &Ty::Int(8))?, self.load(&b, &Ty::Int(8))?);
            let (x, y) = (self.number(&x)? as u8, self.number(&y)? as u8);
            if x != y {
                return Ok(Val::signed(i128::from(x) - i128::from(y), 32));
            }
        }
        Ok(Val::int(0, 32))
    }

    fn strlen(&mut self, p: &Val) -> Flow<Val> {
        for i in 0.. {
            let at = self.offset(p.clone(), i)?;
            let c = self.load(&at, &Ty::Int(8))?;
            if self.number(&c)? == 0 {
                return Ok(Val::int(i as u128, 64));
            }
        }
        unreachable!("the loop ends only by returning")
    }

    pub(crate) fn stop_gradient(&mut self, x: &Val, ret: &Ty) -> Flow<Val> {
        if x.is_concrete() {
            return Ok(x.clone());
        }
        let args = vec![Arg::Str("stop_gradient".into()), self.arg(x)?, Arg::None, Arg::None];
        let r = self.arith().emit("scalar.call", args, ret);
        self.modelled(r)
    }

    fn libm(&mut self, name: &str, args: &[Val], ret: &Ty) -> Option<Flow<Val>> {
        let base = match ret {
            Ty::F32 => name.strip_suffix('f').unwrap_or(name),
            Ty::F64 => name,
            _ => return None,
        };
        LIBM.contains(&base).then(|| self.float_call(base, args, ret))
    }

    /// A function of floats by name: computed now if the arguments are known.
    pub(crate) fn float_call(&mut self, name: &str, args: &[Val], ret: &Ty) -> Flow<Val> {
        let numbers: Option<Vec<f64>> = args
            .iter()
            .map(|a| match a {
                Val::F64(x) => Some(*x),
                Val::F32(x) => Some(f64::from(*x)),
                _ => None,
            })
            .collect();
        if let Some(v) = numbers.and_then(|n| compute(name, &n)) {
            return Ok(match ret {
                Ty::F32 => Val::F32(v as f32),
                _ => Val::F64(v),
            });
        }
        let mut call = vec![Arg::Str(name.into())];
        for a in args {
            call.push(self.arg(a)?);
        }
        call.resize(4, Arg::None);
        let r = self.arith().emit("scalar.call", call, ret);
        self.modelled(r)
    }
}

/// Functions that are exact, or the same in Rust and C.
fn compute(name: &str, a: &[f64]) -> Option<f64> {
    Some(match (name, a) {
        ("sqrt", [x]) => x.sqrt(),
        ("fabs", [x]) => x.abs(),
        ("floor", [x]) => x.floor(),
        ("ceil", [x]) => x.ceil(),
        ("trunc", [x]) => x.trunc(),
        ("round", [x]) => x.round(),
        ("copysign", [x, y]) => x.copysign(*y),
        ("fma", [x, y, z]) => x.mul_add(*y, *z),
        ("exp", [x]) => x.exp(),
        ("log", [x]) => x.ln(),
        ("sin", [x]) => x.sin(),
        ("cos", [x]) => x.cos(),
        ("tanh", [x]) => x.tanh(),
        ("pow", [x, y]) => x.powf(*y),
        _ => return None,
    })
}

/// A readable form of a symbol: the path without hashes.
pub(crate) fn demangle(symbol: &str) -> String {
    let name = symbol.split_once('!').map_or(symbol, |(_, name)| name);
    format!("{:#}", rustc_demangle::demangle(name))
}
