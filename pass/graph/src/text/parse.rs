//! Parsing: a cursor over the text and one function per form. See the [module](super) for the form.

use super::print::is_plain;
use crate::ir::{Arg, Graph, Input, Inst, Kind, Loc, Type, Value};
use crate::ops::Op;

/// What is wrong with a text, and where.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct ParseError {
    /// Line, from one.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

type Result<T> = std::result::Result<T, ParseError>;

pub(super) fn graph(text: &str) -> Result<Graph> {
    let mut p = Cursor {
        text,
        at: 0,
        types: vec![],
    };
    p.word("graph")?;
    p.word("@")?;
    let name = match p.peek() {
        Some('"') => p.string()?,
        _ => p.take_while(is_plain).to_string(),
    };
    let mut g = Graph::new(name);
    p.word("(")?;
    while !p.eat(")") {
        let value = p.definition()?;
        let name = p.string()?;
        g.inputs.push(Input { value, name });
        p.separator(")")?;
    }
    p.word("{")?;
    loop {
        if p.eat("return") {
            g.outputs = p.outputs()?;
        } else if p.eat("unused") {
            p.definition()?;
            while p.eat(",") {
                p.definition()?;
            }
        } else if p.eat("}") {
            break;
        } else {
            g.insts.push(p.inst()?);
        }
    }
    p.skip();
    if p.at < text.len() {
        return p.fail("expected nothing after the graph");
    }
    for (i, ty) in p.types.iter().enumerate() {
        match ty {
            Some(ty) => g.fresh(ty.clone()),
            None => return p.fail(format!("%{i} has no definition; list it under `unused` with its type")),
        };
    }
    Ok(g)
}

struct Cursor<'a> {
    text: &'a str,
    at: usize,
    /// Type of each value defined so far.
    types: Vec<Option<Type>>,
}

impl<'a> Cursor<'a> {
    fn fail<T>(&self, message: impl Into<String>) -> Result<T> {
        Err(ParseError {
            line: 1 + self.text[..self.at].matches('\n').count(),
            message: message.into(),
        })
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Skips blanks and comment lines.
    fn skip(&mut self) {
        loop {
            let rest = self.rest();
            self.at += rest.len() - rest.trim_start().len();
            match self.rest().starts_with(';') {
                true => self.at += self.rest().find('\n').unwrap_or(self.rest().len()),
                false => return,
            }
        }
    }

    fn peek(&mut self) -> Option<char> {
        self.skip();
        self.rest().chars().next()
    }

    fn eat(&mut self, word: &str) -> bool {
        self.skip();
        let found = self.rest().starts_with(word);
        if found {
            self.at += word.len();
        }
        found
    }

    fn word(&mut self, word: &str) -> Result<()> {
        match self.eat(word) {
            true => Ok(()),
            false => self.expected(&format!("`{word}`")),
        }
    }

    fn expected<T>(&self, what: &str) -> Result<T> {
        let found: String = self.rest().chars().take_while(|c| *c != '\n').take(30).collect();
        match found.is_empty() {
            true => self.fail(format!("expected {what} at the end of the line")),
            false => self.fail(format!("expected {what}, found `{found}`")),
        }
    }

    /// A comma, unless the list ends here.
    fn separator(&mut self, end: &str) -> Result<()> {
        self.skip();
        match self.eat(",") || self.rest().starts_with(end) {
            true => Ok(()),
            false => self.expected(&format!("`,` or `{end}`")),
        }
    }

    fn take_while(&mut self, f: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let n = rest.find(|c| !f(c)).unwrap_or(rest.len());
        self.at += n;
        &rest[..n]
    }

    fn number<N: std::str::FromStr>(&mut self, what: &str) -> Result<N> {
        self.skip();
        let start = self.at;
        match self.take_while(|c| c.is_ascii_alphanumeric() || c == '-').parse() {
            Ok(n) => Ok(n),
            Err(_) => {
                self.at = start;
                self.expected(what)
            }
        }
    }

    fn string(&mut self) -> Result<String> {
        self.word("\"")?;
        let mut out = String::new();
        let mut chars = self.rest().char_indices();
        while let Some((i, c)) = chars.next() {
            match c {
                '"' => {
                    self.at += i + 1;
                    return Ok(out);
                }
                '\\' => match chars.next() {
                    Some((_, 'u')) => {
                        let hex: String = chars.by_ref().map(|(_, c)| c).take_while(|c| *c != '}').collect();
                        let code = u32::from_str_radix(hex.trim_start_matches('{'), 16).ok();
                        match code.and_then(char::from_u32) {
                            Some(c) => out.push(c),
                            None => return self.fail(format!("`{hex}` is not the number of a character")),
                        }
                    }
                    Some((_, c)) => out.push(c),
                    None => break,
                },
                c => out.push(c),
            }
        }
        self.fail("this string does not end")
    }

    /// `%3`, defined or not.
    fn raw_value(&mut self) -> Result<Value> {
        self.word("%")?;
        Ok(Value(self.number("the number of a value")?))
    }

    /// `%3`, which an earlier line defines.
    fn value(&mut self) -> Result<Value> {
        let v = self.raw_value()?;
        match self.types.get(v.index()) {
            Some(Some(_)) => Ok(v),
            _ => self.fail(format!("{v} is not defined before it is used")),
        }
    }

    /// `%3: f32[2,3]`.
    fn definition(&mut self) -> Result<Value> {
        let v = self.raw_value()?;
        self.word(":")?;
        let ty = self.ty()?;
        // A number far beyond the length of the text cannot be one of a complete graph.
        if v.index() > self.text.len() {
            return self.fail(format!("{v} leaves too many numbers without a value"));
        }
        if self.types.len() <= v.index() {
            self.types.resize(v.index() + 1, None);
        }
        match self.types[v.index()].replace(ty) {
            Some(_) => self.fail(format!("{v} is defined twice")),
            None => Ok(v),
        }
    }

    fn ty(&mut self) -> Result<Type> {
        self.skip();
        let start = self.at;
        let word = self.take_while(char::is_alphanumeric);
        if let Some(kind) = Kind::from_name(word)
            && self.rest().starts_with('[')
        {
            self.at += 1;
            let mut shape = vec![];
            while !self.eat("]") {
                shape.push(self.number("an extent")?);
                self.separator("]")?;
            }
            return Ok(Type::tensor(kind, shape));
        }
        let bits = |s: &str| s.parse().ok();
        Ok(match (word, word.strip_prefix('i'), word.strip_prefix('f')) {
            ("tensor", ..) => Type::Tensor(None),
            ("list", ..) => Type::List,
            ("tape", ..) => Type::Tape,
            ("ptr", ..) => Type::Ptr,
            (_, Some(n), _) if bits(n).is_some() => Type::Int(bits(n).expect("just parsed")),
            (_, _, Some("32")) => Type::Float(32),
            (_, _, Some("64")) => Type::Float(64),
            _ => {
                self.at = start;
                return self.expected("a type");
            }
        })
    }

    fn outputs(&mut self) -> Result<Vec<Value>> {
        let mut outputs = vec![];
        if self.peek() == Some('%') {
            outputs.push(self.value()?);
            while self.eat(",") {
                outputs.push(self.value()?);
            }
        }
        Ok(outputs)
    }

    fn inst(&mut self) -> Result<Inst> {
        // The results are defined only after the arguments are read.
        self.skip();
        let start = self.at;
        let line = self.rest().lines().next().unwrap_or("");
        let split = match line.starts_with('%') {
            true => line.find(" = "),
            false => None,
        };
        self.at += split.map_or(0, |n| n + 3);
        self.skip();
        let name = self.take_while(|c| c.is_alphanumeric() || c == '_' || c == '.');
        if name.is_empty() {
            return self.expected("an instruction, `return` or `}`");
        }
        let Some(op) = Op::find(name) else {
            return self.fail(format!("unknown op `{name}`"));
        };
        self.word("(")?;
        let args = self.args(")")?;
        let loc = self.loc()?;
        let end = self.at;
        let mut results = vec![];
        if split.is_some() {
            self.at = start;
            results.push(self.definition()?);
            while self.eat(",") {
                results.push(self.definition()?);
            }
            self.at = end;
        }
        Ok(Inst { op, args, results, loc })
    }

    fn args(&mut self, end: &str) -> Result<Vec<Arg>> {
        let mut args = vec![];
        while !self.eat(end) {
            args.push(self.arg()?);
            self.separator(end)?;
        }
        Ok(args)
    }

    fn arg(&mut self) -> Result<Arg> {
        match self.peek() {
            Some('%') => return Ok(Arg::Value(self.value()?)),
            Some('"') => return Ok(Arg::Str(self.string()?)),
            Some('[') => {
                self.at += 1;
                return Ok(Arg::Ints(self.args("]")?));
            }
            Some('{') => {
                self.at += 1;
                let items = self.args("}")?.into_iter().map(|a| match a {
                    Arg::Value(v) => Ok(Some(v)),
                    Arg::None => Ok(None),
                    other => self.fail(format!("`{other}` cannot stand in a list of tensors")),
                });
                return Ok(Arg::List(items.collect::<Result<_>>()?));
            }
            _ => {}
        }
        let start = self.at;
        let word = self.take_while(|c| c.is_alphanumeric() || matches!(c, '.' | '-' | '+' | ':'));
        let tagged = |tag: &str| word.strip_prefix(tag);
        if word == "floats" {
            self.word("[")?;
            return Ok(Arg::Floats(self.args("]")?));
        }
        let parsed = match word {
            "none" => Some(Arg::None),
            "true" => Some(Arg::Bool(true)),
            "false" => Some(Arg::Bool(false)),
            "cpu" => Some(Arg::Device(-1)),
            _ if tagged("device:").is_some() => tagged("device:").and_then(|n| n.parse().ok()).map(Arg::Device),
            _ if tagged("nan:0x").is_some() => tagged("nan:0x")
                .and_then(|n| u64::from_str_radix(n, 16).ok())
                .map(|bits| Arg::Float(f64::from_bits(bits))),
            _ => (Kind::from_name(word).map(Arg::Kind))
                .or_else(|| word.parse().ok().map(Arg::Int))
                .or_else(|| word.parse().ok().map(Arg::Float)),
        };
        match parsed {
            Some(arg) => Ok(arg),
            None => {
                self.at = start;
                self.expected("an argument")
            }
        }
    }

    /// ` @ file:line:column` up to the end of the line.
    fn loc(&mut self) -> Result<Option<Loc>> {
        let line = self.rest().lines().next().unwrap_or("");
        if !line.trim_start().starts_with('@') {
            return Ok(None);
        }
        self.word("@")?;
        let quoted = match self.peek() {
            Some('"') => Some(self.string()?),
            _ => None,
        };
        let text = self.take_while(|c| c != '\n').trim_end();
        let mut parts = text.rsplitn(3, ':');
        let numbers = (
            parts.next().and_then(|n| n.parse().ok()),
            parts.next().and_then(|n| n.parse().ok()),
        );
        match (numbers, parts.next()) {
            ((Some(column), Some(line)), Some(file)) => Ok(Some(Loc {
                file: quoted.unwrap_or_else(|| file.to_string()),
                line,
                column,
            })),
            _ => self.fail(format!("`{text}` is not of the form file:line:column")),
        }
    }
}
