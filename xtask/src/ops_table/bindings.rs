//! torch-sys' C functions: their signatures, and what the code behind them tells.

use anyhow::{Context, Result, bail};
use regex::{Captures, Regex};
use std::collections::{HashMap, HashSet};

/// A C function.
pub(super) struct Function {
    /// Its name, without `atg_`.
    pub(super) name: String,
    /// The function of LibTorch that it calls.
    pub(super) base: String,
    /// Its parameters, without the place for results.
    pub(super) parameters: Vec<Parameter>,
    /// How many tensors it gives; `None` for a list.
    pub(super) results: Option<usize>,
}

/// A parameter, which may stand for several of C's.
pub(super) struct Parameter {
    pub(super) name: String,
    /// As in the table.
    pub(super) kind: &'static str,
}

/// The functions that take and give what the table can tell of.
pub(super) fn functions(header: &str, code: &str) -> Result<Vec<Function>> {
    let bodies = Regex::new(r"(?ms)^(?:void|tensor \*)\s?(atg_\w+)\(.*?^\}")?;
    let bodies: HashMap<&str, &str> = bodies
        .captures_iter(code)
        .map(|c| {
            (
                c.get(1).map_or("", |name| name.as_str()),
                c.get(0).map_or("", |all| all.as_str()),
            )
        })
        .collect();
    let declaration = Regex::new(r"(?m)^(void |tensor \*)atg_(\w+)\((.*)\);$")?;
    let reader = Reader {
        called: Regex::new(r"(?:torch::|\w+->)([A-Za-z_0-9]+)\(")?,
        stored: Regex::new(r"out__\[(\d+)\] =")?,
    };
    let mut functions = vec![];
    for found in declaration.captures_iter(header) {
        let name = &found[2];
        let read = || {
            let body = bodies.get(format!("atg_{name}").as_str()).context("it has no code")?;
            reader.read(&found, body)
        };
        functions.extend(read().with_context(|| format!("`atg_{name}` of torch-sys"))?);
    }
    Ok(functions)
}

struct Reader {
    called: Regex,
    stored: Regex,
}

impl Reader {
    /// `None` for a function that has no place in the table: one that only tells a number, one of layouts, and one
    /// that writes to a list of tensors.
    fn read(&self, declaration: &Captures<'_>, body: &str) -> Result<Option<Function>> {
        let gives_list = &declaration[1] != "void ";
        let mut c: Vec<&str> = declaration[3].split(',').map(str::trim).collect();
        if c.contains(&"int8_t layout") {
            return Ok(None);
        }
        if !gives_list && c.remove(0).strip_prefix("tensor *").is_none() {
            return Ok(None);
        }
        let (_, protected) = body.split_once("PROTECT(").context("its code is not protected")?;
        let called = self
            .called
            .captures(protected)
            .context("it calls nothing of LibTorch")?;
        let stored: HashSet<&str> = self
            .stored
            .captures_iter(body)
            .map(|c| c.get(1).map_or("", |n| n.as_str()))
            .collect();
        let results = (!gives_list).then_some(stored.len());
        if results == Some(0) {
            return Ok(None);
        }
        Ok(Some(Function {
            name: declaration[2].to_owned(),
            base: called[1].to_owned(),
            parameters: parameters(&c, body)?,
            results,
        }))
    }
}

fn parameters(c: &[&str], body: &str) -> Result<Vec<Parameter>> {
    let mut parameters = vec![];
    let mut rest = c;
    while let [first, after @ ..] = rest {
        if first.is_empty() {
            rest = after;
            continue;
        }
        let (ty, name) = first
            .rsplit_once(' ')
            .with_context(|| format!("`{first}` is no parameter"))?;
        let pointer = name.starts_with('*') || ty.ends_with('*');
        let (ty, name) = (ty.trim_end_matches(['*', ' ']), name.trim_start_matches('*'));
        let plain = |end: &str| name.strip_suffix(end).unwrap_or(name);
        let has_null = after
            .first()
            .is_some_and(|n| n.starts_with("uint8_t") && n.ends_with("_null"));
        // What it is called, its kind, and how many of C's parameters it takes.
        let (name, kind, count) = match (ty, pointer) {
            ("tensor", false) if body.contains(&format!("({name} ? ")) => (name, "t?", 1),
            ("tensor", false) => (name, "t", 1),
            ("tensor", true) => {
                let name = plain("_data");
                let optional = body.contains(&format!("of_carray_tensor_opt({name}_data"));
                (name, if optional { "T?" } else { "T" }, 2)
            }
            ("scalar", false) => (name, "s", 1),
            ("int64_t", false) if has_null => (plain("_v"), "i?", 2),
            ("double", false) if has_null => (plain("_v"), "f?", 2),
            ("int64_t", false) => (name, "i", 1),
            ("double", false) => (name, "f", 1),
            ("int64_t" | "double", true) => {
                let name = plain("_data");
                let kind = match (ty, body.contains(&format!("{name}_data == nullptr"))) {
                    ("int64_t", false) => "I",
                    ("int64_t", true) => "I?",
                    (_, false) => "F",
                    (_, true) => "F?",
                };
                (name, kind, 2)
            }
            ("char", true) => (plain("_ptr"), "str", 2),
            ("int", false) if body.contains(&format!("(bool){name}")) => (name, "b", 1),
            ("int", false) if name.ends_with("kind") || body.contains(&format!("at::ScalarType({name})")) => (
                name,
                if body.contains(&format!("{name} < 0")) {
                    "k?"
                } else {
                    "k"
                },
                1,
            ),
            ("int", false) if name.ends_with("device") || body.contains(&format!("device_of_int({name})")) => {
                (name, "d", 1)
            }
            _ => bail!("the parameter `{first}` is of a type that the table does not know"),
        };
        parameters.push(Parameter {
            name: name.to_owned(),
            kind,
        });
        rest = after.get(count - 1..).context("its last parameter is incomplete")?;
    }
    Ok(parameters)
}
