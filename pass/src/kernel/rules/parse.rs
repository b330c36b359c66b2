//! Reads the table: lines into rules, formulas into [`Exprs`].

use super::expr::{Binary, Compare, Expr, Exprs, Id};
use super::table::{Class, Name, Rule};
use std::collections::HashMap;

/// The table's rules and formulas.
///
/// # Errors
/// The first line that does not read, with what is wrong with it.
pub(super) fn table(text: &str) -> Result<(Vec<Rule>, Exprs), String> {
    let mut reader = Reader::default();
    let mut rules = vec![];
    let mut class = None;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        let fail = |e: String| format!("line {}: {e}: {line}", number + 1);
        if line.is_empty() || line.starts_with('#') {
        } else if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            class = Some(Class::named(name).ok_or_else(|| fail("no such class".into()))?);
        } else if let Some(def) = line.strip_prefix("def ") {
            reader.def(def).map_err(fail)?;
        } else {
            let class = class.ok_or_else(|| fail("a rule before the first class".into()))?;
            rules.push(reader.rule(class, line).map_err(fail)?);
        }
    }
    Ok((rules, reader.exprs))
}

#[derive(Default)]
struct Reader {
    exprs: Exprs,
    defs: HashMap<String, (usize, Id)>,
}

impl Reader {
    fn def(&mut self, line: &str) -> Result<(), String> {
        let (head, body) = line.split_once('=').ok_or("a def has a formula")?;
        let (name, operands) = signature(head)?;
        let formula = self.formula(&operands, body)?;
        self.defs.insert(name, (operands.len(), formula));
        Ok(())
    }

    fn rule(&mut self, class: Class, line: &str) -> Result<Rule, String> {
        let (rule, names) = line.split_once(" @ ").map_or((line, None), |(r, n)| (r, Some(n)));
        let (head, body) = split_head(rule);
        let (name, operands) = signature(head)?;
        let names = match names {
            Some(list) => list.split_whitespace().map(Name::read).collect(),
            None => vec![Name::Intrinsic(format!("llvm.{name}")), Name::Library(name.clone())],
        };
        let partials = match body {
            None => vec![],
            Some(body) => {
                let parts: Vec<&str> = match body.trim().strip_prefix('[').and_then(|b| b.strip_suffix(']')) {
                    Some(list) => split(list),
                    None => vec![body],
                };
                parts
                    .into_iter()
                    .map(|p| self.partial(&operands, p))
                    .collect::<Result<_, _>>()?
            }
        };
        let formulas = matches!(class, Class::Linear | Class::Bilinear | Class::Elementwise);
        match (formulas, partials.len()) {
            (true, n) if n != operands.len() => Err(format!("{} operands, {n} formulas", operands.len())),
            (false, n) if n > 0 => Err("formulas in a class that has none".into()),
            _ => Ok(Rule {
                name,
                class,
                operands,
                partials,
                names,
            }),
        }
    }

    /// The contribution of one operand to each part of the result.
    fn partial(&mut self, operands: &[String], text: &str) -> Result<Vec<Option<Id>>, String> {
        let parts: Vec<&str> = match text.trim().strip_prefix('{').and_then(|b| b.strip_suffix('}')) {
            Some(list) => split(list),
            None => vec![text],
        };
        parts
            .into_iter()
            .map(|p| self.formula(operands, p).map(|f| self.contribution(f)))
            .collect()
    }

    /// A partial derivative as a map of the seed; `None` for zero.
    fn contribution(&mut self, formula: Id) -> Option<Id> {
        if self.exprs.is(formula, "0") {
            return None;
        }
        if self.exprs.has_seed(formula) {
            return Some(formula);
        }
        let d = self.exprs.add(Expr::Seed);
        if self.exprs.is(formula, "1") {
            return Some(d);
        }
        Some(self.exprs.add(Expr::Binary(Binary::Mul, d, formula)))
    }

    fn formula(&mut self, operands: &[String], text: &str) -> Result<Id, String> {
        let tokens = tokens(text)?;
        let mut parser = Parser {
            reader: self,
            operands,
            tokens: &tokens,
            at: 0,
        };
        let formula = parser.or()?;
        match tokens.get(parser.at) {
            Some(t) => Err(format!("unexpected `{t}`")),
            None => Ok(formula),
        }
    }
}

/// Splits at the `=` that follows the operands.
fn split_head(rule: &str) -> (&str, Option<&str>) {
    match rule.split_once(") =") {
        Some((head, body)) => (&rule[..head.len() + 1], Some(body)),
        None => (rule, None),
    }
}

/// `name(a, b)`.
fn signature(head: &str) -> Result<(String, Vec<String>), String> {
    let (name, rest) = head.trim().split_once('(').ok_or("no operands")?;
    let list = rest.strip_suffix(')').ok_or("no `)` after the operands")?;
    Ok((
        name.trim().into(),
        list.split(',').map(|o| o.trim().to_owned()).collect(),
    ))
}

/// Splits at commas outside brackets.
fn split(list: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0, 0, vec![]);
    for (i, c) in list.char_indices() {
        match c {
            '(' | '{' => depth += 1,
            ')' | '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&list[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    parts.push(&list[start..]);
    parts
}

fn tokens(text: &str) -> Result<Vec<String>, String> {
    let mut tokens = vec![];
    let mut chars = text.chars().peekable();
    while let Some(&c) = chars.peek() {
        let mut token = String::new();
        if c.is_whitespace() {
            chars.next();
            continue;
        } else if c.is_alphanumeric() {
            while let Some(&c) = chars.peek().filter(|c| c.is_alphanumeric() || **c == '_' || **c == '.') {
                token.push(c);
                chars.next();
            }
        } else {
            token.push(c);
            chars.next();
            if "=!<>".contains(c) && chars.peek() == Some(&'=') {
                token.push('=');
                chars.next();
            } else if !"+-*/(),&|<>".contains(c) {
                return Err(format!("unexpected `{c}`"));
            }
        }
        tokens.push(token);
    }
    Ok(tokens)
}

/// Recursive descent, loosest operator first.
struct Parser<'a> {
    reader: &'a mut Reader,
    operands: &'a [String],
    tokens: &'a [String],
    at: usize,
}

impl Parser<'_> {
    fn peek(&self) -> &str {
        self.tokens.get(self.at).map_or("", String::as_str)
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.peek() == token;
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        if self.eat(token) {
            Ok(())
        } else {
            Err(format!("`{token}` expected before `{}`", self.peek()))
        }
    }

    fn add(&mut self, node: Expr) -> Id {
        self.reader.exprs.add(node)
    }

    fn or(&mut self) -> Result<Id, String> {
        let mut left = self.and()?;
        while self.eat("|") {
            let right = self.and()?;
            left = self.add(Expr::Or(left, right));
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Id, String> {
        let mut left = self.compare()?;
        while self.eat("&") {
            let right = self.compare()?;
            left = self.add(Expr::And(left, right));
        }
        Ok(left)
    }

    fn compare(&mut self) -> Result<Id, String> {
        let left = self.sum()?;
        let op = match self.peek() {
            "==" => Compare::Eq,
            "!=" => Compare::Ne,
            "<" => Compare::Lt,
            "<=" => Compare::Le,
            ">" => Compare::Gt,
            ">=" => Compare::Ge,
            _ => return Ok(left),
        };
        self.at += 1;
        let right = self.sum()?;
        Ok(self.add(Expr::Compare(op, left, right)))
    }

    fn sum(&mut self) -> Result<Id, String> {
        let mut left = self.product()?;
        loop {
            let op = match self.peek() {
                "+" => Binary::Add,
                "-" => Binary::Sub,
                _ => return Ok(left),
            };
            self.at += 1;
            let right = self.product()?;
            left = self.add(Expr::Binary(op, left, right));
        }
    }

    fn product(&mut self) -> Result<Id, String> {
        let mut left = self.factor()?;
        loop {
            let op = match self.peek() {
                "*" => Binary::Mul,
                "/" => Binary::Div,
                _ => return Ok(left),
            };
            self.at += 1;
            let right = self.factor()?;
            left = self.add(Expr::Binary(op, left, right));
        }
    }

    fn factor(&mut self) -> Result<Id, String> {
        if self.eat("-") {
            let e = self.factor()?;
            return Ok(match self.reader.exprs.node(e).clone() {
                Expr::Number(n) => self.reader.exprs.number(&format!("-{n}")),
                _ => self.add(Expr::Neg(e)),
            });
        }
        if self.eat("(") {
            let e = self.or()?;
            self.expect(")")?;
            return Ok(e);
        }
        let word = self.peek().to_owned();
        self.at += 1;
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(self.reader.exprs.number(&word));
        }
        if !word.starts_with(char::is_alphabetic) {
            return Err(format!("unexpected `{word}`"));
        }
        if self.eat("(") {
            let mut args = vec![self.or()?];
            while self.eat(",") {
                args.push(self.or()?);
            }
            self.expect(")")?;
            return self.call(word, args);
        }
        self.word(&word)
    }

    fn word(&mut self, word: &str) -> Result<Id, String> {
        if let Some(i) = self.operands.iter().position(|o| o == word) {
            return Ok(self.add(Expr::Operand(i)));
        }
        let node = match word {
            "d" => Expr::Seed,
            "r" => Expr::Result(None),
            "r0" => Expr::Result(Some(0)),
            "r1" => Expr::Result(Some(1)),
            "pi" => Expr::Number("3.14159265358979323846264338327950288419717".into()),
            "ln2" => Expr::Number("0.69314718055994530941723212145817656807550".into()),
            "ln10" => Expr::Number("2.30258509299404568401799145468436420760110".into()),
            _ => return Err(format!("unknown `{word}`")),
        };
        Ok(self.add(node))
    }

    fn call(&mut self, name: String, args: Vec<Id>) -> Result<Id, String> {
        if let Some((operands, formula)) = self.reader.defs.get(&name).copied() {
            if operands != args.len() {
                return Err(format!("`{name}` has {operands} operands"));
            }
            return Ok(self.reader.exprs.substitute(formula, &args));
        }
        let node = match (name.as_str(), args.as_slice()) {
            ("select", &[c, a, b]) => Expr::Select(c, a, b),
            ("float", &[n]) => Expr::Float(n),
            _ => Expr::Call(name, args),
        };
        Ok(self.add(node))
    }
}
