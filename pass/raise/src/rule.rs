//! Functions with a derivative of their own, and inactive ones: the markers that the runtime's `entry::rule` describes.

use crate::code::Ty;
use crate::eval::{Eval, Flow};
use crate::memory::Object;
use crate::value::{Base, Ptr, Val};
use cotangent_graph::ir::{Arg, Type};
use cotangent_graph::ops::Op;
use serde::Deserialize;

/// The marker's symbol: every rule holds its address.
pub(crate) const MARKER: &str = "cotangent_custom_vjp";
/// Where a rule has what the evaluator reads of it: its description's address and length, and the function that says
/// what a result is made of.
const DESCRIPTION: i64 = 0;
const LENGTH: i64 = 8;
const LAYOUT: i64 = 40;

#[derive(Deserialize)]
struct Description {
    name: String,
    params: Vec<Param>,
}

#[derive(Deserialize)]
struct Param {
    name: String,
    ty: String,
    wrt: bool,
}

/// The arguments of a call, as its instruction has them.
#[derive(Default)]
struct Passed {
    codes: Vec<&'static str>,
    tensors: Vec<Option<cotangent_graph::ir::Value>>,
    integers: Vec<Arg>,
    floats: Vec<Arg>,
    wrt: Vec<Arg>,
    /// Handles of tensors that are moved into the call.
    moved: Vec<Val>,
}

impl Eval<'_> {
    /// `cotangent_custom_vjp(rule, args, out)`: one instruction, which only running can follow.
    pub(crate) fn rule(&mut self, call: &[Val]) -> Flow<Val> {
        let symbol = match &call[0] {
            Val::Ptr(Ptr {
                base: Base::Object(o),
                off: 0,
            }) => self.symbol_of(*o),
            _ => None,
        };
        let Some(symbol) = symbol else {
            return self.refuse("it calls a function by a rule that is no constant of the program");
        };
        let (text, length) = (
            self.field(&call[0], DESCRIPTION, &Ty::Ptr)?,
            self.field(&call[0], LENGTH, &Ty::Int(64))?,
        );
        let text = self.text(&text, &length)?;
        let Ok(description) = serde_json::from_str::<Description>(&text) else {
            return self.refuse("internal error, please report it: the description of a rule is not JSON");
        };
        if self.writes_statics() {
            return self.refuse(format!(
                "it writes to a static before it calls `{}`, which has a rule of its own and may read it; write to it after \
                 the call",
                description.name
            ));
        }
        let passed = self.passed(&description, &call[1])?;
        let results = self.layout(&description.name, &call[0], &call[2])?;
        let codes: Vec<String> = results.iter().map(|(code, _, off)| format!("{code}@{off}")).collect();
        let args = vec![
            Arg::Str(symbol.to_string()),
            Arg::Str(passed.codes.join(" ")),
            Arg::List(passed.tensors),
            Arg::Ints(passed.integers),
            Arg::Floats(passed.floats),
            Arg::Ints(passed.wrt),
            Arg::Str(codes.join(" ")),
        ];
        let loc = self.loc();
        let list = self
            .trace
            .tensors(Op::named("rule.call"), args, vec![Type::List], loc.clone())[0];
        for (k, (code, at, _)) in results.into_iter().enumerate() {
            let (ty, in_memory) = match code {
                "f32" => (Type::Float(32), Ty::F32),
                "f64" => (Type::Float(64), Ty::F64),
                _ => (Type::Tensor(None), Ty::Ptr),
            };
            let item = vec![Arg::Value(list), Arg::Int(k as i64)];
            let item = self.trace.scalar("list.get", item, ty.clone(), loc.clone());
            let value = match ty {
                Type::Float(_) => Val::Sym(item, in_memory.clone()),
                _ => self.handle(item),
            };
            self.store(&at, &value, &in_memory)?;
        }
        for handle in passed.moved {
            self.free_handle(&handle)?;
        }
        Ok(Val::Undef)
    }

    fn field(&mut self, base: &Val, off: i64, ty: &Ty) -> Flow<Val> {
        let at = self.offset(base.clone(), off)?;
        self.load(&at, ty)
    }

    fn passed(&mut self, description: &Description, args: &Val) -> Flow<Passed> {
        let mut passed = Passed::default();
        for (i, param) in description.params.iter().enumerate() {
            let place = self.field(args, 8 * i as i64, &Ty::Ptr)?;
            let wrt = param.wrt && self.grad_enabled;
            passed.wrt.push(Arg::Int(i64::from(wrt)));
            let code = match code_of(&param.ty) {
                Some(code) => code,
                None => {
                    return self.refuse(format!(
                        "it calls `{}`, whose parameter `{}` is of type `{}`: in a tensor function, a rule takes tensors \
                         (by reference or by value), floats, integers and flags",
                        description.name, param.name, param.ty
                    ));
                }
            };
            match code {
                "&tensor" => {
                    let tensor = self.load(&place, &Ty::Ptr)?;
                    let handle = self.load(&tensor, &Ty::Ptr)?;
                    let tensor = self.tensor(&handle)?;
                    passed.tensors.push(Some(tensor));
                }
                "tensor" => {
                    let handle = self.load(&place, &Ty::Ptr)?;
                    let tensor = self.tensor(&handle)?;
                    passed.tensors.push(Some(tensor));
                    passed.moved.push(handle);
                }
                "f32" | "f64" => {
                    let ty = if code == "f32" { Ty::F32 } else { Ty::F64 };
                    let value = self.load(&place, &ty)?;
                    let value = self.arg(&value)?;
                    passed.floats.push(value);
                }
                code => {
                    let bits: u32 = code.parse().unwrap_or(64);
                    let value = self.load(&place, &Ty::Int(bits))?;
                    let value = self.arg(&value)?;
                    passed.integers.push(value);
                }
            }
            passed.codes.push(code);
        }
        Ok(passed)
    }

    /// The tensors and floats of the rule's result: what each is, its address and its offset.
    fn layout(&mut self, name: &str, rule: &Val, out: &Val) -> Flow<Vec<(&'static str, Val, i64)>> {
        let Val::Ptr(Ptr {
            base: Base::Func(layout),
            off: 0,
        }) = self.field(rule, LAYOUT, &Ty::Ptr)?
        else {
            return self.refuse("internal error, please report it: a rule without a layout");
        };
        // What a result holds besides tensors and floats is not known before the call: an object of its own tells
        // whether the layout depends on it.
        self.objects.push(Object::new(None, 16));
        let probe = self.objects.len() - 1;
        let outer = std::mem::take(&mut self.leaves);
        let body = self.loader.function(&layout);
        let ran = match body {
            Some(body) => self.call(&body, vec![Val::Ptr(Ptr::to(Base::Object(probe)))]),
            None => self.refuse("internal error, please report it: the layout of a rule has no body"),
        };
        let found = std::mem::replace(&mut self.leaves, outer);
        self.objects[probe].live = false;
        if ran.is_err() {
            self.refusals.clear();
            return self.refuse(format!(
                "it calls `{name}`, whose result has no fixed layout: in a tensor function, a rule returns tensors and \
                 floats, alone or in tuples, arrays and structs"
            ));
        }
        found
            .into_iter()
            .map(|(code, off)| Ok((code, self.offset(out.clone(), off)?, off)))
            .collect()
    }

    /// `cotangent_leaf(kind, place)`: a tensor or float in the result whose layout is asked for.
    pub(crate) fn leaf(&mut self, args: &[Val]) -> Flow<Val> {
        let kind = self.number(&args[0])?;
        let code = match kind {
            1 => "f64",
            2 => "f32",
            _ => "tensor",
        };
        match &args[1] {
            Val::Ptr(Ptr {
                base: Base::Object(_),
                off,
            }) => self.leaves.push((code, *off)),
            _ => return self.refuse("a result that refers to memory"),
        }
        Ok(Val::Undef)
    }
}

/// How a parameter of that type is passed: the integers by their width.
fn code_of(ty: &str) -> Option<&'static str> {
    let mut rest = ty.trim();
    let borrowed = rest.starts_with('&');
    if borrowed {
        rest = rest[1..].trim_start();
        if rest.starts_with('\'') {
            rest = rest.split_once(' ').map_or("", |(_, r)| r).trim_start();
        }
    }
    let name = rest.rsplit("::").next().unwrap_or(rest).trim();
    Some(match (borrowed, name) {
        (true, "Tensor") => "&tensor",
        (true, _) => return None,
        (false, "Tensor") => "tensor",
        (false, "f32") => "f32",
        (false, "f64") => "f64",
        (false, "bool" | "i8" | "u8") => "8",
        (false, "i16" | "u16") => "16",
        (false, "i32" | "u32") => "32",
        (false, "i64" | "u64" | "isize" | "usize") => "64",
        _ => return None,
    })
}
