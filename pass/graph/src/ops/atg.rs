//! LibTorch's C functions, read from the generated table `atg.tsv`.

use super::{Facts, OpDef, Param, ParamKind, Results};

const TABLE: &str = include_str!("atg.tsv");

/// Functional twins of in-place random ops: LibTorch's own records do not say that they draw.
const UNMARKED_RANDOM: &[&str] = &[
    "cauchy",
    "exponential",
    "geometric",
    "log_normal",
    "random",
    "rrelu_with_noise_functional",
    "uniform",
];

/// Every function of the table.
pub(super) fn table() -> Vec<OpDef> {
    TABLE
        .lines()
        .filter(|l| !l.starts_with('#') && !l.is_empty())
        .map(row)
        .collect()
}

fn row(line: &'static str) -> OpDef {
    let mut columns = line.split('\t');
    let mut next = || {
        columns
            .next()
            .unwrap_or_else(|| panic!("atg.tsv: too few columns in `{line}`"))
    };
    let (name, base, params, results, facts) = (next(), next(), next(), next(), next());
    let mut facts = read_facts(facts);
    facts.random |= UNMARKED_RANDOM.contains(&base);
    OpDef {
        name,
        base,
        params: params.split(',').filter(|p| !p.is_empty()).map(param).collect(),
        results: match results {
            "*" => Results::List,
            n => Results::Count(n.parse().expect("atg.tsv: a number of results")),
        },
        facts,
        own: None,
    }
}

fn param(text: &'static str) -> Param {
    let (name, kind) = text.split_once(':').expect("atg.tsv: name:kind");
    let kind = match kind {
        "t" => ParamKind::Tensor,
        "t?" => ParamKind::OptTensor,
        "T" => ParamKind::Tensors,
        "T?" => ParamKind::OptTensors,
        "s" => ParamKind::Scalar,
        "i" => ParamKind::Int,
        "i?" => ParamKind::OptInt,
        "I" => ParamKind::Ints,
        "I?" => ParamKind::OptInts,
        "f" => ParamKind::Float,
        "f?" => ParamKind::OptFloat,
        "F" => ParamKind::Floats,
        "F?" => ParamKind::OptFloats,
        "b" => ParamKind::Bool,
        "k" => ParamKind::Kind,
        "k?" => ParamKind::OptKind,
        "d" => ParamKind::Device,
        "str" => ParamKind::Str,
        other => panic!("atg.tsv: unknown parameter kind `{other}`"),
    };
    Param { name, kind }
}

fn read_facts(text: &str) -> Facts {
    let mut facts = Facts::default();
    for fact in text.split_whitespace() {
        match fact {
            "view" => facts.view = true,
            "rand" => facts.random = true,
            "dyn" => facts.dynamic_shape = true,
            "pointwise" => facts.pointwise = true,
            other => match other.strip_prefix("mut=") {
                Some(list) => {
                    facts.mutates = list
                        .split('+')
                        .map(|i| i.parse().expect("atg.tsv: a position"))
                        .collect()
                }
                None => panic!("atg.tsv: unknown fact `{other}`"),
            },
        }
    }
    facts
}
