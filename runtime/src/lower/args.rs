//! The argument list of a C function, from a step's arguments.

use super::emit::Emitter;
use super::{LowerError, Scalar};
use cotangent_graph::ir::{Arg, Type, Value};
use cotangent_graph::ops::ParamKind;
use cotangent_graph::plan::Step;
use std::collections::HashSet;

/// Typed operands of a call.
#[derive(Default)]
pub(super) struct CArgs {
    pub(super) list: Vec<String>,
    /// LibTorch scalars that were made for this call.
    pub(super) scalars: Vec<String>,
}

impl Emitter<'_> {
    /// The operands after `out`. With a tape, tensors are exchanged for the tape's copies.
    pub(super) fn c_args(&mut self, step: &Step, tape: Option<&str>) -> Result<CArgs, LowerError> {
        let mut out = CArgs::default();
        let active = active_places(step, tape.is_some());
        if step.args.len() != step.op.params.len() + usize::from(tape.is_some()) {
            return Err(self.error(step, "it has a wrong number of arguments"));
        }
        for (i, (param, arg)) in step.op.params.iter().zip(&step.args).enumerate() {
            let mismatch = |s: &Self| s.error(step, format!("`{}` cannot be {arg:?}", param.name));
            let handle = |s: &mut Self, v: Value, k: usize| match tape {
                Some(tape) => {
                    let flag = i32::from(active.contains(&(i, k)));
                    let args = [format!("ptr {tape}"), format!("ptr %v{}", v.0), format!("i32 {flag}")];
                    s.call("ptr", "cotangent_tape_arg", &args)
                }
                None => format!("%v{}", v.0),
            };
            match (param.kind, arg) {
                (ParamKind::OptTensor, Arg::None) => out.list.push("ptr null".to_owned()),
                (ParamKind::Tensor | ParamKind::OptTensor, Arg::Value(v)) if self.ty(*v).is_tensor() => {
                    let handle = handle(self, *v, 0);
                    out.list.push(format!("ptr {handle}"));
                }
                (ParamKind::Tensors | ParamKind::OptTensors, Arg::List(items)) => {
                    if param.kind == ParamKind::Tensors && items.contains(&None) {
                        return Err(mismatch(self));
                    }
                    let handles: Vec<String> = items
                        .iter()
                        .enumerate()
                        .map(|(k, v)| v.map_or("null".to_owned(), |v| handle(self, v, k)))
                        .collect();
                    let array = match handles.is_empty() {
                        true => "null".to_owned(),
                        false => self.array("ptr", &handles),
                    };
                    out.list
                        .extend([format!("ptr {array}"), format!("i32 {}", items.len())]);
                }
                (ParamKind::Scalar, arg) => {
                    let scalar = self.scalar_arg(arg, &mut out).ok_or_else(|| mismatch(self))?;
                    out.list.push(format!("ptr {scalar}"));
                }
                (ParamKind::OptInt, Arg::None) => out.list.extend(absent("i64 0")),
                (ParamKind::OptFloat, Arg::None) => out.list.extend(absent("double 0.0")),
                (ParamKind::Int | ParamKind::OptInt, arg) => {
                    let value = self.int_operand(arg).ok_or_else(|| mismatch(self))?;
                    out.list.push(format!("i64 {value}"));
                    if param.kind == ParamKind::OptInt {
                        out.list.push("i8 zeroext 0".to_owned());
                    }
                }
                (ParamKind::Float | ParamKind::OptFloat, arg) => {
                    if !self.is_number(arg) {
                        return Err(mismatch(self));
                    }
                    let value = self.as_double(arg);
                    out.list.push(format!("double {value}"));
                    if param.kind == ParamKind::OptFloat {
                        out.list.push("i8 zeroext 0".to_owned());
                    }
                }
                (ParamKind::OptInts | ParamKind::OptFloats, Arg::None) => {
                    out.list.extend(["ptr null".to_owned(), "i32 -1".to_owned()]);
                }
                (ParamKind::Ints | ParamKind::OptInts, Arg::Ints(items)) => {
                    let values: Option<Vec<String>> = items.iter().map(|a| self.int_operand(a)).collect();
                    let values = values.ok_or_else(|| mismatch(self))?;
                    let array = self.list("i64", &values, param.kind == ParamKind::OptInts);
                    out.list
                        .extend([format!("ptr {array}"), format!("i32 {}", items.len())]);
                }
                (ParamKind::Floats | ParamKind::OptFloats, Arg::Floats(items)) => {
                    let values: Vec<String> = items.iter().map(|a| self.as_double(a)).collect();
                    let array = self.list("double", &values, param.kind == ParamKind::OptFloats);
                    out.list
                        .extend([format!("ptr {array}"), format!("i32 {}", items.len())]);
                }
                (ParamKind::Bool, Arg::Bool(b)) => out.list.push(format!("i32 {}", i32::from(*b))),
                (ParamKind::Bool, Arg::Int(i)) => out.list.push(format!("i32 {}", i32::from(*i != 0))),
                (ParamKind::OptKind, Arg::None) => out.list.push("i32 -1".to_owned()),
                (ParamKind::Kind | ParamKind::OptKind, Arg::Kind(k)) => out.list.push(format!("i32 {}", *k as i32)),
                (ParamKind::Device, Arg::Device(d)) => out.list.push(format!("i32 {d}")),
                (ParamKind::Str, Arg::Str(s)) => {
                    let bytes: Vec<String> = s.bytes().map(|b| format!("i8 {b}")).collect();
                    // Never null: C++ makes a `string_view` of it.
                    let text = match s.is_empty() {
                        true => self.constant("i8", &["i8 0".to_owned()]),
                        false => self.constant("i8", &bytes),
                    };
                    out.list.extend([format!("ptr {text}"), format!("i32 {}", s.len())]);
                }
                _ => return Err(mismatch(self)),
            }
        }
        Ok(out)
    }

    /// An array of numbers: constant where all of them are. An empty optional list must not look absent.
    fn list(&mut self, ty: &str, values: &[String], optional: bool) -> String {
        if values.is_empty() && optional {
            return self.constant(ty, &[format!("{ty} {}", if ty == "i64" { "0" } else { "0.0" })]);
        }
        match values.iter().all(|v| !v.starts_with('%')) {
            true => {
                let items: Vec<String> = values.iter().map(|v| format!("{ty} {v}")).collect();
                self.constant(ty, &items)
            }
            false => self.array(ty, values),
        }
    }

    /// A LibTorch scalar: made at load if constant, else for this call.
    fn scalar_arg(&mut self, arg: &Arg, out: &mut CArgs) -> Option<String> {
        let constant = match arg {
            Arg::Int(i) => Scalar::Int(*i),
            Arg::Bool(b) => Scalar::Int(i64::from(*b)),
            Arg::Float(x) => Scalar::Float(*x),
            Arg::Value(v) => {
                let scalar = match self.ty(*v) {
                    Type::Float(_) => {
                        let value = self.as_double(arg);
                        self.call("ptr", "ats_float", &[format!("double {value}")])
                    }
                    Type::Int(_) => {
                        let value = self.int_operand(arg)?;
                        self.call("ptr", "ats_int", &[format!("i64 {value}")])
                    }
                    _ => return None,
                };
                out.scalars.push(scalar.clone());
                return Some(scalar);
            }
            _ => return None,
        };
        Some(self.constant_scalar(constant))
    }
}

/// The places to which the step's tape leads: (argument, item).
fn active_places(step: &Step, tape: bool) -> HashSet<(usize, usize)> {
    let Some(Arg::Ints(places)) = step.args.last().filter(|_| tape) else {
        return HashSet::new();
    };
    let numbers: Vec<usize> = places
        .iter()
        .map(|a| usize::try_from(cotangent_graph::ops::constant_int(a)).expect("a place is not negative"))
        .collect();
    numbers.chunks_exact(2).map(|p| (p[0], p[1])).collect()
}

fn absent(zero: &str) -> [String; 2] {
    [zero.to_owned(), "i8 zeroext 1".to_owned()]
}
