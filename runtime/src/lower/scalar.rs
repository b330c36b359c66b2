//! Arithmetic on the scalars that only run time knows.

use super::LowerError;
use super::emit::Emitter;
use cotangent_graph::ir::{Arg, Type};
use cotangent_graph::plan::Step;

/// Functions of `scalar.call` that are LLVM intrinsics on floats, by their name there.
const INTRINSICS: &[(&str, &str)] = &[
    ("sqrt", "sqrt"),
    ("fabs", "fabs"),
    ("floor", "floor"),
    ("ceil", "ceil"),
    ("trunc", "trunc"),
    ("round", "round"),
    ("rint", "rint"),
    ("nearbyint", "nearbyint"),
    ("roundeven", "roundeven"),
    ("copysign", "copysign"),
    ("minnum", "minnum"),
    ("maxnum", "maxnum"),
    ("fmin", "minnum"),
    ("fmax", "maxnum"),
    ("fma", "fma"),
    ("fmuladd", "fma"),
];

/// Functions of `scalar.call` that are calls into libm.
pub(crate) const LIBM: &[&str] = &[
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
    "cosh", "tanh", "asinh", "acosh", "atanh", "cbrt", "pow", "atan2", "hypot", "fmod",
];

impl Emitter<'_> {
    /// A step on scalars.
    pub(super) fn scalar(&mut self, step: &Step) -> Result<(), LowerError> {
        let [result] = step.results.as_slice() else {
            return Err(self.error(step, "it has not one result"));
        };
        let ty = self.ty(*result).clone();
        let name = step.op.name.strip_prefix("scalar.").unwrap_or_default();
        let (word, operands) = match &step.args[0] {
            Arg::Str(word) => (word.as_str(), &step.args[1..]),
            _ => ("", &step.args[..]),
        };
        // Constants take the type of a value beside them. Where there is none, the result tells, if it is of their type.
        let own = match (name, operands) {
            ("icmp" | "fcmp" | "cast", [Arg::Float(_), ..]) => Type::Float(64),
            ("icmp" | "fcmp" | "cast", _) => Type::Int(64),
            _ => ty.clone(),
        };
        let from = operands
            .iter()
            .filter(|_| name != "select")
            .find_map(|a| match a {
                Arg::Value(v) => Some(self.ty(*v).clone()),
                _ => None,
            })
            .unwrap_or(own);
        let (to, of) = (llvm(&ty), llvm(&from));
        let x: Vec<String> = operands
            .iter()
            .take_while(|a| **a != Arg::None)
            .map(|a| self.operand(a, &from))
            .collect();
        let r = format!("%v{}", result.0);
        let line = match (name, x.as_slice()) {
            ("fneg", [a]) => format!("{r} = fneg {to} {a}"),
            ("icmp" | "fcmp", [a, b]) => format!("{r} = {name} {word} {of} {a}, {b}"),
            ("cast", [a]) => format!("{r} = {word} {of} {a} to {to}"),
            ("select", _) => {
                let condition = self.operand(&operands[0], &Type::Int(1));
                let (a, b) = (self.operand(&operands[1], &ty), self.operand(&operands[2], &ty));
                format!("{r} = select i1 {condition}, {to} {a}, {to} {b}")
            }
            ("call", [a]) if word == "stop_gradient" => format!("{r} = bitcast {to} {a} to {to}"),
            ("call", args) => {
                let typed: Vec<String> = args.iter().map(|a| format!("{of} {a}")).collect();
                let word = word.strip_prefix("llvm.").unwrap_or(word);
                let symbol = if let Some((_, intrinsic)) = INTRINSICS.iter().find(|(n, _)| *n == word) {
                    format!("llvm.{intrinsic}.{}", if of == "float" { "f32" } else { "f64" })
                } else if LIBM.contains(&word) {
                    format!("{word}{}", if of == "float" { "f" } else { "" })
                } else {
                    return Err(self.error(step, format!("the function `{word}` is not known here")));
                };
                if of != to || !matches!(to, "float" | "double") {
                    return Err(self.error(step, format!("`{word}` is not a function of floats here")));
                }
                self.call_as(&r, to, &symbol, &typed);
                return Ok(());
            }
            (plain, [a, b]) if PLAIN.contains(&plain) => format!("{r} = {plain} {to} {a}, {b}"),
            _ => return Err(self.error(step, "it is not known here")),
        };
        self.line(&line);
        Ok(())
    }

    /// A scalar as an operand of that type, without the type.
    fn operand(&self, arg: &Arg, ty: &Type) -> String {
        match (arg, ty) {
            (Arg::Value(v), _) => format!("%v{}", v.0),
            (Arg::Float(x), Type::Float(32)) => double(f64::from(*x as f32)),
            (Arg::Float(x), _) => double(*x),
            (Arg::Int(i), Type::Float(_)) => double(*i as f64),
            (Arg::Int(i), _) => i.to_string(),
            (Arg::Bool(b), _) => i32::from(*b).to_string(),
            (other, _) => unreachable!("{other:?} is not a scalar"),
        }
    }

    /// A 64-bit integer operand.
    pub(super) fn int_operand(&mut self, arg: &Arg) -> Option<String> {
        match arg {
            Arg::Int(i) => Some(i.to_string()),
            Arg::Bool(b) => Some(i32::from(*b).to_string()),
            Arg::Value(v) => match self.ty(*v) {
                Type::Int(64) => Some(format!("%v{}", v.0)),
                Type::Int(bits) => {
                    let extend = if *bits == 1 { "zext" } else { "sext" };
                    let (wide, bits) = (self.temp(), *bits);
                    self.line(&format!("{wide} = {extend} i{bits} %v{} to i64", v.0));
                    Some(wide)
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Is the argument a float or an integer constant?
    pub(super) fn is_number(&self, arg: &Arg) -> bool {
        match arg {
            Arg::Float(_) | Arg::Int(_) => true,
            Arg::Value(v) => matches!(self.ty(*v), Type::Float(_)),
            _ => false,
        }
    }

    /// A float as an operand of type double, without the type.
    pub(super) fn as_double(&mut self, arg: &Arg) -> String {
        match arg {
            Arg::Value(v) if *self.ty(*v) == Type::Float(32) => {
                let wide = self.temp();
                self.line(&format!("{wide} = fpext float %v{} to double", v.0));
                wide
            }
            other => self.operand(other, &Type::Float(64)),
        }
    }
}

/// Two-operand instructions whose operands and result have one type.
const PLAIN: &[&str] = &[
    "add", "sub", "mul", "sdiv", "udiv", "srem", "urem", "and", "or", "xor", "shl", "lshr", "ashr", "fadd", "fsub",
    "fmul", "fdiv", "frem",
];

fn llvm(ty: &Type) -> &'static str {
    match ty {
        Type::Float(32) => "float",
        Type::Float(_) => "double",
        Type::Int(1) => "i1",
        Type::Int(8) => "i8",
        Type::Int(16) => "i16",
        Type::Int(32) => "i32",
        Type::Int(_) => "i64",
        _ => "ptr",
    }
}

/// A constant double, exactly.
fn double(x: f64) -> String {
    format!("0x{:016X}", x.to_bits())
}
