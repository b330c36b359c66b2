//! What PyTorch's `native_functions.yaml` says of a function.

use super::bindings::Function;
use anyhow::{Context, Result};
use regex::Regex;
use serde::Deserialize;
use std::collections::HashMap;

/// Functions of LibTorch's C++ interface that have no schema, with what is known of them: `toType` gives the tensor
/// itself where it has the kind already.
const WITHOUT_SCHEMA: &[(&str, &str)] = &[("toType", "view")];

/// Functions that write to running statistics without saying so in their schema.
const STATISTICS: &[&str] = &[
    "batch_norm",
    "native_batch_norm",
    "instance_norm",
    "_native_batch_norm_legit",
    "cudnn_batch_norm",
    "miopen_batch_norm",
    "_batch_norm_impl_index",
    "_batch_norm_with_update",
    "batch_norm_with_update",
];

/// An entry of the file.
#[derive(Deserialize)]
struct Entry {
    func: String,
    #[serde(default)]
    tags: Tags,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Tags {
    One(String),
    Several(Vec<String>),
}

impl Default for Tags {
    fn default() -> Self {
        Self::Several(vec![])
    }
}

/// One overload of a function.
struct Schema {
    /// Its arguments as written.
    arguments: String,
    /// Its result as written.
    result: String,
    tags: Vec<String>,
}

impl Schema {
    fn arguments(&self) -> impl Iterator<Item = &str> {
        self.arguments.split(", ")
    }

    /// Does it have arguments of these names? What `out` forms write to is named differently.
    fn takes(&self, names: &[&str]) -> bool {
        let own: Vec<&str> = self
            .arguments()
            .filter(|a| *a != "*")
            .filter_map(|a| a.split('=').next()?.split_whitespace().last())
            .collect();
        let out = |name: &str| matches!(name, "out" | "out0" | "out1" | "out2" | "out3");
        names
            .iter()
            .all(|n| n.starts_with("options_") || own.contains(n) || out(n))
    }

    fn has_tag(&self, tag: &str) -> bool {
        self.tags.iter().any(|t| t == tag)
    }
}

/// All schemas, by name without the overload's.
pub(super) struct Schemas {
    by_name: HashMap<String, Vec<Schema>>,
    /// An argument that is written to.
    written: Regex,
    /// A result that is an alias.
    alias: Regex,
    /// A list of aliases.
    aliases: Regex,
}

impl Schemas {
    pub(super) fn read(yaml: &str) -> Result<Self> {
        let entries: Vec<Entry> = serde_yaml_ng::from_str(yaml).context("native_functions.yaml is not understood")?;
        let mut by_name: HashMap<String, Vec<Schema>> = HashMap::new();
        for Entry { func, tags } in entries {
            let parts = func.split_once('(').and_then(|(name, rest)| {
                let (arguments, result) = rest.rsplit_once(") ->")?;
                Some((name.split('.').next()?, arguments, result.trim()))
            });
            let (name, arguments, result) = parts.with_context(|| format!("`{func}` is no schema"))?;
            by_name.entry(name.to_owned()).or_default().push(Schema {
                arguments: arguments.to_owned(),
                result: result.to_owned(),
                tags: match tags {
                    Tags::One(tag) => vec![tag],
                    Tags::Several(tags) => tags,
                },
            });
        }
        Ok(Self {
            by_name,
            written: Regex::new(r"^Tensor\(\w+!\)\S* (\w+)")?,
            alias: Regex::new(r"\(\w(?:\s*->\s*\*)?\)")?,
            aliases: Regex::new(r"Tensor\(\w+ -> \*\)")?,
        })
    }

    /// The facts of a function, as in the table.
    pub(super) fn facts(&self, function: &Function) -> String {
        if let Some((_, facts)) = WITHOUT_SCHEMA.iter().find(|(name, _)| *name == function.base) {
            return (*facts).to_owned();
        }
        let names: Vec<&str> = function.parameters.iter().map(|p| p.name.as_str()).collect();
        let all = self.by_name.get(&function.base).map_or(&[][..], Vec::as_slice);
        let mut fitting: Vec<&Schema> = all.iter().filter(|s| s.takes(&names)).collect();
        if fitting.is_empty() {
            fitting.extend(all);
        }
        let mutated = self.mutated(function, &names, all, &fitting);
        let any = |has: &dyn Fn(&Schema) -> bool| fitting.iter().any(|s| has(s));
        let mut facts = vec![];
        if !mutated.is_empty() {
            let places: Vec<String> = mutated.iter().map(usize::to_string).collect();
            facts.push(format!("mut={}", places.join("+")));
        }
        let views = |s: &Schema| {
            !s.result.contains('!') && (self.alias.is_match(&s.result) || self.aliases.is_match(&s.arguments))
        };
        if mutated.is_empty() && any(&views) {
            facts.push("view".into());
        }
        let tagged = |tags: &[&str]| any(&|s| tags.iter().any(|t| s.has_tag(t)));
        for (fact, tags) in [
            ("rand", &["nondeterministic_seeded"][..]),
            ("dyn", &["dynamic_output_shape", "data_dependent_output"]),
            ("pointwise", &["pointwise"]),
        ] {
            if tagged(tags) {
                facts.push(fact.into());
            }
        }
        facts.join(" ")
    }

    /// Positions of the parameters that the function writes to.
    fn mutated(&self, function: &Function, names: &[&str], all: &[Schema], fitting: &[&Schema]) -> Vec<usize> {
        let place = |name: &str| names.iter().position(|n| *n == name);
        let in_place = function.name.ends_with('_') && !function.name.ends_with("__");
        if in_place && all.iter().any(|s| s.arguments.contains('!')) {
            return vec![0];
        }
        if function.base.ends_with("_out") {
            let out = |n: &str| {
                n.strip_prefix("out")
                    .is_some_and(|k| k.bytes().all(|b| b.is_ascii_digit()))
            };
            let places: Vec<usize> = (0..names.len()).filter(|i| out(names[*i])).collect();
            return if places.is_empty() { vec![0] } else { places };
        }
        let mut places = vec![];
        if fitting.iter().all(|s| s.arguments.contains('!'))
            && let Some(schema) = fitting.first()
        {
            let written = schema
                .arguments()
                .filter_map(|a| Some(self.written.captures(a)?.get(1)?.as_str()));
            places.extend(written.filter_map(place));
        }
        if places.is_empty() && STATISTICS.contains(&function.base.as_str()) {
            places.extend(["running_mean", "running_var"].into_iter().filter_map(place));
        }
        places
    }
}
