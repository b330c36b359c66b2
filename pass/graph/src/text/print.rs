//! Printing. See the [module](super) for the form.

use crate::ir::{Arg, Graph, Inst, Loc, Type};
use std::fmt::{self, Display, Formatter, Write};

pub(super) fn graph(f: &mut Formatter<'_>, g: &Graph) -> fmt::Result {
    f.write_str("graph @")?;
    name(f, &g.name)?;
    f.write_str("(")?;
    separated(f, &g.inputs, |f, i| {
        write!(f, "{}: {} ", i.value, g.ty(i.value))?;
        quoted(f, &i.name)
    })?;
    f.write_str(") {\n")?;
    for i in &g.insts {
        f.write_str("  ")?;
        inst(f, g, i)?;
        f.write_str("\n")?;
    }
    f.write_str("  return")?;
    for (i, v) in g.outputs.iter().enumerate() {
        write!(f, "{} {v}", if i == 0 { "" } else { "," })?;
    }
    f.write_str("\n")?;
    let unused: Vec<_> = g.undefined().collect();
    if !unused.is_empty() {
        f.write_str("  unused ")?;
        separated(f, &unused, |f, v| write!(f, "{v}: {}", g.ty(*v)))?;
        f.write_str("\n")?;
    }
    f.write_str("}\n")
}

fn inst(f: &mut Formatter<'_>, g: &Graph, inst: &Inst) -> fmt::Result {
    separated(f, &inst.results, |f, r| write!(f, "{r}: {}", g.ty(*r)))?;
    if !inst.results.is_empty() {
        f.write_str(" = ")?;
    }
    write!(f, "{}(", inst.op)?;
    separated(f, &inst.args, arg)?;
    f.write_str(")")?;
    match &inst.loc {
        Some(at) => loc(f, at),
        None => Ok(()),
    }
}

fn loc(f: &mut Formatter<'_>, at: &Loc) -> fmt::Result {
    f.write_str(" @ ")?;
    match at.file.starts_with('"') || at.file.contains(char::is_control) {
        true => quoted(f, &at.file)?,
        false => f.write_str(&at.file)?,
    }
    write!(f, ":{}:{}", at.line, at.column)
}

pub(super) fn ty(f: &mut Formatter<'_>, ty: &Type) -> fmt::Result {
    match ty {
        Type::Tensor(Some(t)) => {
            write!(f, "{}[", t.kind.name())?;
            for (i, n) in t.shape.iter().enumerate() {
                write!(f, "{}{n}", if i == 0 { "" } else { "," })?;
            }
            f.write_str("]")
        }
        Type::Tensor(None) => f.write_str("tensor"),
        Type::List => f.write_str("list"),
        Type::Tape => f.write_str("tape"),
        Type::Int(bits) => write!(f, "i{bits}"),
        Type::Float(bits) => write!(f, "f{bits}"),
        Type::Ptr => f.write_str("ptr"),
    }
}

pub(super) fn arg(f: &mut Formatter<'_>, arg: &Arg) -> fmt::Result {
    match arg {
        Arg::None => f.write_str("none"),
        Arg::Value(v) => Display::fmt(v, f),
        Arg::List(vs) => {
            f.write_str("{")?;
            separated(f, vs, |f, v| match v {
                Some(v) => Display::fmt(v, f),
                None => f.write_str("none"),
            })?;
            f.write_str("}")
        }
        Arg::Int(i) => Display::fmt(i, f),
        Arg::Float(x) => float(f, *x),
        Arg::Bool(b) => Display::fmt(b, f),
        Arg::Ints(items) => {
            f.write_str("[")?;
            separated(f, items, self::arg)?;
            f.write_str("]")
        }
        Arg::Floats(items) => {
            f.write_str("floats[")?;
            separated(f, items, self::arg)?;
            f.write_str("]")
        }
        Arg::Kind(k) => f.write_str(k.name()),
        Arg::Device(-1) => f.write_str("cpu"),
        Arg::Device(n) => write!(f, "device:{n}"),
        Arg::Str(s) => quoted(f, s),
    }
}

/// The shortest text that reads back as the same float; a NaN shows its bits.
fn float(f: &mut Formatter<'_>, x: f64) -> fmt::Result {
    match x.is_nan() {
        true => write!(f, "nan:{:#x}", x.to_bits()),
        false => write!(f, "{x:?}"),
    }
}

/// A name after `@`: plain where it reads back as one word, quoted otherwise.
pub(super) fn name(f: &mut Formatter<'_>, name: &str) -> fmt::Result {
    match !name.is_empty() && name.chars().all(is_plain) {
        true => f.write_str(name),
        false => quoted(f, name),
    }
}

/// Characters of names that need no quotes.
pub(super) fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | ':' | '<' | '>' | '-')
}

fn quoted(f: &mut Formatter<'_>, s: &str) -> fmt::Result {
    f.write_char('"')?;
    for c in s.chars() {
        match c {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            c if c.is_control() => write!(f, "\\u{{{:x}}}", u32::from(c))?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}

pub(super) fn separated<T>(
    f: &mut Formatter<'_>,
    items: &[T],
    mut each: impl FnMut(&mut Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        each(f, item)?;
    }
    Ok(())
}
