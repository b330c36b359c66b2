//! Floats of the program: arithmetic, libm and LLVM's conversions.

use super::table;
use crate::differentiate::Vjp;
use crate::ir::{Arg, Type, Value};
use crate::ops::Rule::{Constant, Custom, Elementwise, Linear};
use crate::ops::RuleError;
use crate::ops::shapes::scalar;
use std::cell::RefCell;
use std::f64::consts::{LN_2, LN_10};
use std::ops::{Add, Div, Mul, Neg, Sub};

/// A rule as a table of formulas on numbers, one per argument.
macro_rules! numbers {
    (|$m:ident| $($i:literal => $formula:expr),* $(,)?) => {
        |cx: &mut Vjp<'_>| {
            let $m = &Numbers { cx: RefCell::new(cx) };
            $(if $m.wants($i) {
                $m.give($i, $formula);
            })*
            Ok(())
        }
    };
}
table! {
    "scalar.fadd": scalar, Linear(numbers!(|m| 0 => m.g(), 1 => m.g())), "$ $ | $ 1.5";
    "scalar.fsub": scalar, Linear(numbers!(|m| 0 => m.g(), 1 => -m.g())), "$ $ | 1.5 $";
    "scalar.fmul": scalar, Elementwise(numbers!(|m| 0 => m.g() * m.x(1), 1 => m.g() * m.x(0))), "$ $ | $ 1.5";
    "scalar.fdiv": scalar, Elementwise(numbers!(|m|
        0 => m.g() / m.x(1),
        1 => -m.g() * (m.x(0) / m.x(1) / m.x(1)))), "$ $ | 1.5 $";
    "scalar.frem": scalar, Elementwise(numbers!(|m|
        0 => m.g(),
        1 => -m.g() * (m.x(0) / m.x(1)).call("trunc"))), "$ $";
    "scalar.fneg": scalar, Linear(numbers!(|m| 0 => -m.g())), "$";
    "scalar.cast": scalar, Linear(numbers!(|m| 1 => m.g().converted(m.reverse(), m.value(1)))),
        "'fptrunc' $ | 'fpext' $~";
    "scalar.select": scalar, Linear(numbers!(|m|
        1 => m.select(m.raw(0), m.g(), m.constant(0.0)),
        2 => m.select(m.raw(0), m.constant(0.0), m.g()))), "true $ $ | false $ $";
    "scalar.call": scalar, Custom(call),
        "'exp' $ | 'sqrt' $+ | 'pow' $+ $ | 'fma' $ $ $ | 'fabs' $ | 'fmax' $ $ | 'tanh' $ | 'log' $+ | 'sin' $ \
         | 'cos' $ | 'tan' $ | 'atan2' $ $ | 'hypot' $ $ | 'powi' $ 3 | 'fmin' $ $ | 'copysign' $ $ | 'exp2' $ \
         | 'expm1' $ \
         | 'log2' $+ | 'log10' $+ | 'log1p' $+ | 'asin' $% | 'acos' $% | 'atan' $ | 'sinh' $ | 'cosh' $ | 'asinh' $ \
         | 'atanh' $% | 'cbrt' $ | 'fmod' $ 2.5 | 'fmod' 5.3 $+ | 'floor' $ | 'round' $";
    "scalar.icmp": scalar, Constant, "";
    "scalar.fcmp": scalar, Constant, "";
}

/// A rule on numbers under construction.
struct Numbers<'a, 'b> {
    cx: RefCell<&'a mut Vjp<'b>>,
}

/// A number in a formula.
#[derive(Clone, Copy)]
struct Number<'m> {
    m: &'m dyn Emit,
    atom: Atom,
}

#[derive(Clone, Copy)]
enum Atom {
    Value(Value),
    Constant(f64),
}

impl From<Number<'_>> for Arg {
    fn from(n: Number<'_>) -> Self {
        match n.atom {
            Atom::Value(v) => Self::Value(v),
            Atom::Constant(x) => Self::Float(x),
        }
    }
}

/// Appends a scalar op whose result has the type of the derivative's op, or of another value.
trait Emit {
    fn emit(&self, op: &str, args: Vec<Arg>) -> Value;
    fn emit_like(&self, op: &str, args: Vec<Arg>, like: Value) -> Value;
}

impl Emit for Numbers<'_, '_> {
    fn emit(&self, op: &str, args: Vec<Arg>) -> Value {
        let y = self.cx.borrow().y(0);
        self.emit_like(op, args, y)
    }
    fn emit_like(&self, op: &str, args: Vec<Arg>, like: Value) -> Value {
        self.cx.borrow_mut().emit_scalar(op, args, like)
    }
}

impl Numbers<'_, '_> {
    fn number(&self, atom: Atom) -> Number<'_> {
        Number { m: self, atom }
    }

    fn constant(&self, x: f64) -> Number<'_> {
        self.number(Atom::Constant(x))
    }

    fn g(&self) -> Number<'_> {
        self.number(Atom::Value(self.cx.borrow().y_bar()))
    }

    fn y(&self) -> Number<'_> {
        self.number(Atom::Value(self.cx.borrow().y(0)))
    }

    fn raw(&self, i: usize) -> Arg {
        self.cx.borrow().arg(i)
    }

    fn value(&self, i: usize) -> Value {
        self.cx.borrow().x(i)
    }

    /// The cast back.
    fn reverse(&self) -> &'static str {
        if self.raw(0) == Arg::Str("fpext".into()) {
            "fptrunc"
        } else {
            "fpext"
        }
    }

    fn x(&self, i: usize) -> Number<'_> {
        self.number(match self.raw(i) {
            Arg::Value(v) => Atom::Value(v),
            Arg::Float(x) => Atom::Constant(x),
            Arg::Int(x) => Atom::Constant(x as f64),
            other => unreachable!("{other:?} is not a number"),
        })
    }

    fn wants(&self, i: usize) -> bool {
        i < self.cx.borrow().arg_count() && self.cx.borrow().wants(i)
    }

    fn give(&self, i: usize, bar: Number<'_>) {
        let bar = match bar.atom {
            Atom::Value(v) => v,
            Atom::Constant(x) => self.emit("scalar.fadd", vec![Arg::Float(x), Arg::Float(0.0)]),
        };
        self.cx.borrow_mut().give(i, bar);
    }

    fn select<'m>(&'m self, condition: Arg, a: Number<'m>, b: Number<'m>) -> Number<'m> {
        self.number(Atom::Value(
            self.emit("scalar.select", vec![condition, a.into(), b.into()]),
        ))
    }

    /// A comparison of floats, in LLVM's words.
    fn compare(&self, predicate: &str, a: Number<'_>, b: Number<'_>) -> Arg {
        let args = vec![Arg::Str(predicate.into()), a.into(), b.into()];
        Arg::Value(self.cx.borrow_mut().emit_typed("scalar.fcmp", args, Type::Int(1)))
    }

    /// One with the sign of `x`.
    fn sign<'m>(&'m self, x: Number<'m>) -> Number<'m> {
        self.constant(1.0).call2("copysign", x)
    }
}

impl<'m> Number<'m> {
    fn of(self, op: &str, args: Vec<Arg>) -> Self {
        Self {
            atom: Atom::Value(self.m.emit(op, args)),
            ..self
        }
    }

    fn call(self, function: &str) -> Self {
        self.of("scalar.call", vec![Arg::Str(function.into()), self.into()])
    }

    fn call2(self, function: &str, other: Self) -> Self {
        self.of(
            "scalar.call",
            vec![Arg::Str(function.into()), self.into(), other.into()],
        )
    }

    fn squared(self) -> Self {
        self * self
    }

    /// The number at the width of another value.
    fn converted(self, how: &str, like: Value) -> Self {
        let args = vec![Arg::Str(how.into()), self.into()];
        Self {
            atom: Atom::Value(self.m.emit_like("scalar.cast", args, like)),
            ..self
        }
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $op:literal;)*) => {$(
        impl<'m> $trait for Number<'m> {
            type Output = Self;
            fn $method(self, other: Self) -> Self {
                self.of($op, vec![self.into(), other.into()])
            }
        }
        impl<'m> $trait<f64> for Number<'m> {
            type Output = Self;
            fn $method(self, other: f64) -> Self {
                self.of($op, vec![self.into(), Arg::Float(other)])
            }
        }
        impl<'m> $trait<Number<'m>> for f64 {
            type Output = Number<'m>;
            fn $method(self, other: Number<'m>) -> Number<'m> {
                other.of($op, vec![Arg::Float(self), other.into()])
            }
        }
    )*};
}
operators! {
    Add add "scalar.fadd";
    Sub sub "scalar.fsub";
    Mul mul "scalar.fmul";
    Div div "scalar.fdiv";
}

impl Neg for Number<'_> {
    type Output = Self;
    fn neg(self) -> Self {
        self.of("scalar.fneg", vec![self.into()])
    }
}

/// Functions of libm and LLVM, by name.
fn call(cx: &mut Vjp<'_>) -> Result<(), RuleError> {
    let Arg::Str(name) = cx.arg(0) else {
        return Err(cx.error("its function has no name"));
    };
    let name = name.strip_prefix("llvm.").unwrap_or(&name).to_string();
    let unknown = cx.error(format!("Cotangent has no derivative for the function `{name}`"));
    let m = &Numbers { cx: RefCell::new(cx) };
    let (x, y, g) = (m.x(1), m.y(), m.g());
    let slope = match name.as_str() {
        "sqrt" => g / (2.0 * y),
        "exp" => g * y,
        "exp2" => g * (y * LN_2),
        "expm1" => g * (y + 1.0),
        "log" => g / x,
        "log2" => g / (x * LN_2),
        "log10" => g / (x * LN_10),
        "log1p" => g / (x + 1.0),
        "sin" => g * x.call("cos"),
        "cos" => -g * x.call("sin"),
        "tan" => g * (1.0 + y.squared()),
        "asin" => g / (1.0 - x.squared()).call("sqrt"),
        "acos" => -g / (1.0 - x.squared()).call("sqrt"),
        "atan" => g / (1.0 + x.squared()),
        "sinh" => g * x.call("cosh"),
        "cosh" => g * x.call("sinh"),
        "tanh" => g * (1.0 - y.squared()),
        "asinh" => g / (x.squared() + 1.0).call("sqrt"),
        "acosh" => g / ((x - 1.0) * (x + 1.0)).call("sqrt"),
        "atanh" => g / (1.0 - x.squared()),
        "cbrt" => g / (3.0 * y.squared()),
        "fabs" => {
            let zero = m.compare("oeq", x, m.constant(0.0));
            m.select(zero, m.constant(0.0), g * m.sign(x))
        }
        "floor" | "ceil" | "trunc" | "round" | "rint" | "nearbyint" | "roundeven" | "stop_gradient" => {
            m.cx.borrow_mut().give_none(1);
            return Ok(());
        }
        "powi" => match m.raw(2) {
            Arg::Int(0) => m.constant(0.0),
            Arg::Int(n) => {
                let power = x.of("scalar.call", vec![Arg::Str(name), x.into(), Arg::Int(n - 1)]);
                g * (power * n as f64)
            }
            _ => return Err(unknown),
        },
        _ => return two(m, &name).ok_or(unknown),
    };
    if m.wants(1) {
        m.give(1, slope);
    }
    Ok(())
}

/// Functions of several numbers.
fn two(m: &Numbers<'_, '_>, name: &str) -> Option<()> {
    if m.cx.borrow().arg_count() < 3 {
        return None;
    }
    let (a, b, y, g) = (m.x(1), m.x(2), m.y(), m.g());
    let zero = m.constant(0.0);
    let bars = match name {
        "pow" => {
            let constant = m.compare("oeq", b, zero);
            let da = m.select(constant, zero, g * (b * a.call2("pow", b - 1.0)));
            // Zero to a power that is not negative stays what it is.
            let settled = m.select(m.compare("oge", b, zero), m.constant(1.0), zero);
            let settled = m.compare("one", m.select(m.compare("oeq", a, zero), settled, zero), zero);
            vec![da, m.select(settled, zero, g * (y * a.call("log")))]
        }
        "atan2" => {
            let square = a.squared() + b.squared();
            let origin = m.compare("oeq", square, zero);
            let scale = m.select(origin, zero, g / square);
            vec![scale * b, -scale * a]
        }
        "hypot" => vec![g * (a / y), g * (b / y)],
        "copysign" => vec![g * m.sign(a) * m.sign(b), zero],
        "fmod" => vec![g, -g * (a / b).call("trunc")],
        "fma" | "fmuladd" => vec![g * b, g * a, g],
        "fmin" | "minnum" | "minimumnum" => chosen(m, "ole"),
        "fmax" | "maxnum" | "maximumnum" => chosen(m, "oge"),
        _ => return None,
    };
    for (i, bar) in bars.into_iter().enumerate() {
        if m.wants(i + 1) {
            m.give(i + 1, bar);
        }
    }
    Some(())
}

/// The cotangent goes to the first number on a tie, and past a NaN.
fn chosen<'m>(m: &'m Numbers<'_, '_>, predicate: &str) -> Vec<Number<'m>> {
    let (a, b, g, zero) = (m.x(1), m.x(2), m.g(), m.constant(0.0));
    let first = m.select(m.compare(predicate, a, b), m.constant(1.0), zero);
    let first = m.select(m.compare("uno", b, b), m.constant(1.0), first);
    let first = m.compare("one", first, zero);
    vec![m.select(first.clone(), g, zero), m.select(first, zero, g)]
}
