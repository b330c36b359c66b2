//! Stand-ins for a function's arguments, so that the stages of the run time can be shown without a run.

use anyhow::{Context, Result, bail};
use cotangent_graph::ir::{Kind, TensorType};
use cotangent_graph::program::Program;
use cotangent_graph::specialize::{Host, TensorFacts};
use serde::Deserialize;
use std::collections::HashMap;

/// Bytes of made-up memory for each argument.
const ROOM: u64 = 0x1000;

/// What the macro wrote about a function.
#[derive(Debug, Deserialize)]
pub(crate) struct Description {
    /// Source file.
    #[serde(default)]
    pub(crate) file: String,
    /// Line of the function.
    #[serde(default)]
    pub(crate) line: u32,
    /// Its parameters.
    pub(crate) params: Vec<Parameter>,
    /// Type of its result.
    #[serde(default)]
    pub(crate) ret: String,
}

/// A parameter.
#[derive(Debug, Deserialize)]
pub(crate) struct Parameter {
    /// Its name.
    pub(crate) name: String,
    /// Its type as the user wrote it.
    pub(crate) ty: String,
    /// Whether a cotangent is asked for.
    #[serde(default)]
    pub(crate) wrt: bool,
}

impl Description {
    /// Reads the description of a program.
    pub(crate) fn of(program: &Program) -> Result<Description> {
        Self::read(&program.key, &program.description)
    }

    /// Reads the description of the function with that key.
    pub(crate) fn read(key: &str, description: &str) -> Result<Description> {
        serde_json::from_str(description).with_context(|| format!("the description of `{key}` cannot be read"))
    }

    /// The `--input` options that the function needs, as an example.
    pub(crate) fn example(&self) -> String {
        let option = |input: String| match input.contains('[') {
            true => format!("--input '{input}'"),
            false => format!("--input {input}"),
        };
        self.inputs(&[]).into_iter().map(option).collect::<Vec<_>>().join(" ")
    }

    /// One input for each parameter, as `--input` takes them: the one that is told, or a made-up one.
    pub(crate) fn inputs(&self, told: &[String]) -> Vec<String> {
        let input = |p: &Parameter| {
            let own = |t: &&String| t.split_once('=').is_some_and(|(name, _)| name == p.name);
            let value = match p.passing() {
                Passing::Number("bool") => "true",
                Passing::Number("f64" | "f32") => "1.0",
                Passing::Number(_) => "1",
                Passing::Slice(_) => "f32[8,8] f32[8]",
                _ => "f32[8,8]",
            };
            let told = told.iter().find(own).cloned();
            told.unwrap_or_else(|| format!("{}={value}", p.name))
        };
        self.params.iter().map(input).collect()
    }
}

/// How an argument lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Passing {
    /// A tensor behind so many references.
    Tensor(u32),
    /// A reference to a tensor that may be missing.
    Option,
    /// A slice of tensors, each behind so many references.
    Slice(u32),
    /// A number of a primitive type.
    Number(&'static str),
    /// Something whose layout the text of the type does not tell.
    Unknown,
}

const NUMBERS: [&str; 13] = [
    "f64", "f32", "i64", "u64", "isize", "usize", "i32", "u32", "i16", "u16", "u8", "i8", "bool",
];

impl Parameter {
    fn passing(&self) -> Passing {
        let (ty, references) = referred(&self.ty);
        if let Some(inner) = ty.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
            let (ty, inner) = referred(inner);
            return match (references, last(ty)) {
                (1, "Tensor") => Passing::Slice(inner),
                _ => Passing::Unknown,
            };
        }
        let generic = ty
            .split_once('<')
            .and_then(|(name, rest)| Some((last(name), rest.strip_suffix('>')?)));
        if let Some(("Option", inner)) = generic {
            let (ty, inner) = referred(inner);
            return match (references, last(ty), inner) {
                (0, "Tensor", 1) => Passing::Option,
                _ => Passing::Unknown,
            };
        }
        match last(ty) {
            "Tensor" => Passing::Tensor(references),
            name if references == 0 => NUMBERS
                .into_iter()
                .find(|n| *n == name)
                .map_or(Passing::Unknown, Passing::Number),
            _ => Passing::Unknown,
        }
    }
}

/// A type without its references, and how many those were.
fn referred(ty: &str) -> (&str, u32) {
    let (mut ty, mut references) = (ty.trim(), 0);
    while let Some(inner) = ty.strip_prefix('&') {
        ty = inner.trim_start();
        if let Some(lifetime) = ty.strip_prefix('\'') {
            ty = lifetime
                .trim_start_matches(|c: char| c.is_alphanumeric() || c == '_')
                .trim_start();
        }
        ty = ty.strip_prefix("mut ").unwrap_or(ty).trim_start();
        references += 1;
    }
    (ty, references)
}

/// The last part of a path.
fn last(ty: &str) -> &str {
    ty.rsplit("::").next().unwrap_or(ty).trim()
}

/// A made-up program state with one argument per parameter.
#[derive(Debug, Default)]
pub(crate) struct StandIn {
    words: HashMap<u64, u64>,
    tensors: HashMap<u64, TensorFacts>,
}

impl StandIn {
    /// Builds the state from `--input` options.
    pub(crate) fn new(description: &Description, inputs: &[String]) -> Result<StandIn> {
        let mut given = HashMap::new();
        for input in inputs {
            let (name, value) = input
                .split_once('=')
                .with_context(|| format!("`--input {input}` has no `=`"))?;
            given.insert(name.trim(), value.trim());
        }
        let mut state = StandIn::default();
        for (k, parameter) in description.params.iter().enumerate() {
            let name = parameter.name.as_str();
            let Some(value) = given.remove(name) else {
                bail!(
                    "this stage depends on the arguments, and `{name}` is missing; for example: {}",
                    description.example()
                );
            };
            state
                .add(k, parameter, value)
                .with_context(|| format!("`--input {name}={value}`"))?;
        }
        match given.keys().next() {
            Some(name) => bail!("there is no parameter `{name}`; for example: {}", description.example()),
            None => Ok(state),
        }
    }

    fn add(&mut self, k: usize, parameter: &Parameter, value: &str) -> Result<()> {
        let base = place(k);
        match parameter.passing() {
            Passing::Tensor(references) => self.tensor(base, references, value)?,
            // A missing reference is null.
            Passing::Option if value == "none" => {}
            Passing::Option => self.tensor(base, 1, value)?,
            Passing::Slice(references) => {
                // Where the items lie and how many they are; then the items, each with what it points at.
                let items: Vec<&str> = value.split_whitespace().collect();
                let (start, room) = (base + 16, 8 * (u64::from(references) + 2));
                if 16 + items.len() as u64 * room > ROOM {
                    bail!("too many tensors");
                }
                self.words.insert(base, start);
                self.words.insert(base + 8, items.len() as u64);
                let beyond = start + 8 * items.len() as u64;
                for (k, item) in (0..).zip(items) {
                    let own = beyond + k * (room - 8);
                    match references {
                        0 => self.handle(start + 8 * k, own, item)?,
                        _ => {
                            self.words.insert(start + 8 * k, own);
                            self.tensor(own, references - 1, item)?;
                        }
                    }
                }
            }
            Passing::Number(ty) => {
                self.words.insert(base, number(ty, value)?);
            }
            Passing::Unknown => bail!(
                "the layout of `{}` is not known here: only functions of tensors, optional tensors, slices of tensors and numbers can be shown at this stage",
                parameter.ty
            ),
        }
        Ok(())
    }
}

impl StandIn {
    /// A chain of references at an address, then the tensor, which is one C handle.
    fn tensor(&mut self, at: u64, references: u32, value: &str) -> Result<()> {
        let chain = 8 * u64::from(references);
        for link in (0..chain).step_by(8) {
            self.words.insert(at + link, at + link + 8);
        }
        self.handle(at + chain, at + chain + 8, value)
    }

    /// A handle that lies at an address, of a tensor.
    fn handle(&mut self, at: u64, handle: u64, value: &str) -> Result<()> {
        self.words.insert(at, handle);
        self.tensors
            .insert(handle, TensorFacts::contiguous(tensor_type(value)?, handle));
        Ok(())
    }
}

/// Where statics lie: what is read there is zero.
const GLOBALS: u64 = u64::MAX / 2;

/// Address of argument `k`.
fn place(k: usize) -> u64 {
    (k as u64 + 1) * ROOM
}

/// Reads `f32[128,784]`.
fn tensor_type(text: &str) -> Result<TensorType> {
    let parts = text
        .split_once('[')
        .and_then(|(kind, rest)| Some((kind, rest.strip_suffix(']')?)));
    let (kind, sizes) = parts.context("not a kind and sizes, such as `f32[128,784]`")?;
    let kind = Kind::from_name(kind.trim())
        .with_context(|| format!("no kind `{kind}`; there are {}", Kind::ALL.map(Kind::name).join(", ")))?;
    let sizes = sizes.split(',').map(str::trim).filter(|s| !s.is_empty());
    let shape = sizes.map(|s| {
        s.parse::<i64>()
            .ok()
            .filter(|n| *n >= 0)
            .with_context(|| format!("no size `{s}`"))
    });
    Ok(TensorType::new(kind, shape.collect::<Result<Vec<_>>>()?))
}

/// The bits of a number.
fn number(ty: &str, value: &str) -> Result<u64> {
    let wrong = || format!("`{value}` is no {ty}");
    Ok(match ty {
        "f64" => value.parse::<f64>().with_context(wrong)?.to_bits(),
        "f32" => value.parse::<f32>().with_context(wrong)?.to_bits().into(),
        "bool" => value.parse::<bool>().with_context(wrong)?.into(),
        "u64" | "usize" => value.parse::<u64>().with_context(wrong)?,
        _ => value.parse::<i64>().with_context(wrong)?.cast_unsigned(),
    })
}

impl Host for StandIn {
    fn global(&self, _: &str) -> Option<u64> {
        Some(GLOBALS)
    }

    fn argument(&self, index: usize) -> u64 {
        place(index)
    }

    fn load(&self, address: u64, bytes: u8) -> u64 {
        let word = self.words.get(&address).copied().unwrap_or_default();
        match bytes {
            8.. => word,
            _ => word & ((1 << (8 * u32::from(bytes))) - 1),
        }
    }

    fn tensor(&self, handle: u64) -> Result<Option<TensorFacts>, String> {
        Ok(self.tensors.get(&handle).cloned())
    }

    fn matches(&self, handle: u64, ty: &TensorType, device: i32) -> bool {
        self.tensors
            .get(&handle)
            .is_some_and(|t| t.ty == *ty && t.device == device)
    }

    fn defined(&self, handle: u64) -> bool {
        self.tensors.contains_key(&handle)
    }

    fn requires_grad(&self, handle: u64) -> bool {
        self.tensors.get(&handle).is_some_and(|t| t.requires_grad)
    }

    fn has_strides(&self, handle: u64, strides: &[i64]) -> bool {
        self.tensors.get(&handle).is_some_and(|t| t.strides == strides)
    }

    fn identity(&self, handle: u64) -> u64 {
        self.tensors.get(&handle).map_or(0, |t| t.identity)
    }

    fn storage(&self, handle: u64) -> u64 {
        self.tensors.get(&handle).map_or(0, |t| t.storage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameter(ty: &str) -> Parameter {
        Parameter {
            name: "p".into(),
            ty: ty.into(),
            wrt: true,
        }
    }

    #[test]
    fn types_tell_how_an_argument_is_passed() {
        assert_eq!(parameter("& Tensor").passing(), Passing::Tensor(1));
        assert_eq!(parameter("&'a mut tch::Tensor").passing(), Passing::Tensor(1));
        assert_eq!(parameter("tch :: Tensor").passing(), Passing::Tensor(0));
        assert_eq!(parameter("f64").passing(), Passing::Number("f64"));
        assert_eq!(parameter("bool").passing(), Passing::Number("bool"));
        assert_eq!(parameter("& [Tensor]").passing(), Passing::Slice(0));
        assert_eq!(parameter("&[& tch :: Tensor]").passing(), Passing::Slice(1));
        assert_eq!(parameter("Option < & Tensor >").passing(), Passing::Option);
        assert_eq!(parameter("Vec<Tensor>").passing(), Passing::Unknown);
    }

    #[test]
    fn what_a_run_told_takes_the_place_of_what_is_made_up() {
        let mut description = Description {
            file: String::new(),
            line: 0,
            params: vec![parameter("&Tensor"), parameter("f64")],
            ret: String::new(),
        };
        description.params[0].name = "x".into();
        assert_eq!(description.inputs(&[]), ["x=f32[8,8]", "p=1.0"]);
        assert_eq!(description.inputs(&["x=f64[2]".into()]), ["x=f64[2]", "p=1.0"]);
        assert_eq!(description.example(), "--input 'x=f32[8,8]' --input p=1.0");
    }

    #[test]
    fn the_handle_is_at_the_end_of_the_references() {
        let description = Description {
            file: String::new(),
            line: 0,
            params: vec![parameter("&Tensor")],
            ret: String::new(),
        };
        let host = StandIn::new(&description, &["p=f32[2,3]".into()]).unwrap();
        let reference = host.load(host.argument(0), 8);
        let handle = host.load(reference, 8);
        assert_eq!(
            host.tensor(handle).unwrap().unwrap().ty,
            TensorType::new(Kind::F32, vec![2, 3])
        );
    }

    #[test]
    fn the_tensors_of_a_slice_lie_side_by_side() {
        for (ty, references) in [("&[Tensor]", 0), ("&[&Tensor]", 1)] {
            let description = Description {
                file: String::new(),
                line: 0,
                params: vec![parameter(ty)],
                ret: String::new(),
            };
            let host = StandIn::new(&description, &["p=f32[2,3] i64[4]".into()]).unwrap();
            let (start, count) = (host.load(host.argument(0), 8), host.load(host.argument(0) + 8, 8));
            assert_eq!(count, 2);
            for (k, shape) in [vec![2, 3], vec![4]].into_iter().enumerate() {
                let mut word = host.load(start + 8 * k as u64, 8);
                (0..references).for_each(|_| word = host.load(word, 8));
                assert_eq!(*host.tensor(word).unwrap().unwrap().ty.shape, *shape, "{ty} {k}");
            }
        }
    }

    #[test]
    fn a_missing_or_wrong_input_is_named() {
        let description = Description {
            file: String::new(),
            line: 0,
            params: vec![parameter("f64")],
            ret: String::new(),
        };
        let error = |inputs: &[&str]| {
            let inputs: Vec<String> = inputs.iter().map(|s| s.to_string()).collect();
            format!("{:#}", StandIn::new(&description, &inputs).unwrap_err())
        };
        assert!(error(&[]).contains("`p` is missing; for example: --input p=1.0"));
        assert!(error(&["p=x"]).contains("`x` is no f64"));
        assert!(error(&["p=1", "q=2"]).contains("no parameter `q`"));
    }
}
