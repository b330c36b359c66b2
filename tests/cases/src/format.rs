//! The lines of `cases.jsonl` and `ops.jsonl`, as they stand there.

use serde::Deserialize;
use std::collections::HashMap;

/// A line of `cases.jsonl`.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct RawCase {
    pub(crate) id: String,
    pub(crate) tier: String,
    pub(crate) group: String,
    pub(crate) dtype: String,
    pub(crate) atg: String,
    pub(crate) args: Vec<RawArg>,
    pub(crate) requires_grad: Vec<String>,
    pub(crate) outputs: Vec<Option<String>>,
    #[serde(default)]
    pub(crate) output_list: bool,
    pub(crate) out_requires_grad: Vec<bool>,
    pub(crate) cotangents: Vec<Option<String>>,
    pub(crate) grads: Vec<Option<String>>,
    #[serde(default)]
    pub(crate) inplace: bool,
    #[serde(default)]
    pub(crate) after: HashMap<String, String>,
    #[serde(default)]
    pub(crate) out_alias: Vec<Option<String>>,
    #[serde(default)]
    pub(crate) strided: HashMap<String, RawLayout>,
    #[serde(default)]
    pub(crate) flags: Vec<String>,
}

/// How a tensor lies in its storage.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct RawLayout {
    pub(crate) size: Vec<i64>,
    pub(crate) stride: Vec<i64>,
    pub(crate) offset: i64,
}

/// An argument of the aten schema; `null` stands for an absent one.
pub(crate) type RawArg = Option<RawValue>;

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum RawValue {
    Tensor { tensor: String },
    Tensors { tensors: Vec<Option<String>> },
    Scalar { scalar: serde_json::Value, r#type: String },
    Ints { ints: Vec<i64> },
    Floats { floats: Vec<serde_json::Value> },
    Bools { bools: Vec<bool> },
    Str { string: String },
    Kind { dtype: String },
    Device { device: String },
}

/// A line of `ops.jsonl`.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct RawOp {
    pub(crate) atg: String,
    /// Arguments of the schema, in order.
    pub(crate) names: Vec<String>,
    /// Those that the C function takes, in its order.
    pub(crate) c_args: Vec<String>,
}

/// A float: those that are not finite are written as strings.
pub(crate) fn float(v: &serde_json::Value) -> Option<f64> {
    v.as_f64().or_else(|| v.as_str()?.parse().ok())
}
