//! Reading a folder of cases.

use crate::case::{Case, CaseArg, Flag, Input, Layout, Stored};
use crate::format::{RawArg, RawCase, RawOp, RawValue, float};
use anyhow::{Context, Result, anyhow, bail};
use cotangent_graph::interp::Tensor;
use cotangent_graph::ir::Kind;
use cotangent_graph::ops::{Op, ParamKind};
use safetensors::{Dtype, SafeTensors};
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// Every case of a folder.
///
/// # Errors
/// If a file is missing or malformed, or a case names a tensor or a function that the folder lacks.
pub fn load(folder: &Path) -> Result<Vec<Case>> {
    let ops: Vec<RawOp> = lines(&folder.join("ops.jsonl"))?;
    let ops: HashMap<&str, &RawOp> = ops.iter().map(|o| (o.atg.as_str(), o)).collect();
    let path = folder.join("tensors.safetensors");
    let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let tensors = SafeTensors::deserialize(&bytes).with_context(|| format!("{} is malformed", path.display()))?;
    lines(&folder.join("cases.jsonl"))?
        .into_iter()
        .map(|raw: RawCase| {
            let id = raw.id.clone();
            case(raw, &ops, &tensors).with_context(|| format!("case {id}"))
        })
        .collect()
}

/// The lines of a file of JSON lines.
pub(crate) fn lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    text.lines()
        .enumerate()
        .map(|(n, line)| serde_json::from_str(line).with_context(|| format!("{}:{}", path.display(), n + 1)))
        .collect()
}

fn case(raw: RawCase, ops: &HashMap<&str, &RawOp>, tensors: &SafeTensors<'_>) -> Result<Case> {
    let reader = Reader { raw: &raw, tensors };
    let name = ["atg_", "at_"].iter().find_map(|p| raw.atg.strip_prefix(p));
    let name = name.unwrap_or(&raw.atg).to_string();
    let op = Op::find(&name);
    let schema = ops.get(raw.atg.as_str()).context("the function is not in ops.jsonl")?;
    let mut inputs = Inputs {
        reader: &reader,
        list: vec![],
    };
    // Inputs are numbered as they appear among the schema's arguments.
    for arg in raw.args.iter().flatten() {
        match arg {
            RawValue::Tensor { tensor } => {
                inputs.number(tensor)?;
            }
            RawValue::Tensors { tensors } => {
                for key in tensors.iter().flatten() {
                    inputs.number(key)?;
                }
            }
            _ => {}
        }
    }
    let args = match op {
        Some(op) => arguments(op, &raw, schema, &mut inputs)?,
        None => vec![],
    };
    let inputs = inputs.list;
    let output = |key: &Option<String>| key.as_ref().map(|k| reader.plain(k)).transpose();
    Ok(Case {
        op,
        name,
        args,
        outputs: raw.outputs.iter().map(output).collect::<Result<_>>()?,
        cotangents: raw
            .cotangents
            .iter()
            .map(|key| key.as_ref().map(|k| reader.stored(k)).transpose())
            .collect::<Result<_>>()?,
        grads: raw.grads.iter().map(output).collect::<Result<_>>()?,
        flags: raw.flags.iter().map(|f| flag(f)).collect::<Result<_>>()?,
        inputs,
        id: raw.id,
        tier: raw.tier,
        group: raw.group,
        dtype: raw.dtype,
        output_list: raw.output_list,
        out_requires_grad: raw.out_requires_grad,
        inplace: raw.inplace,
        out_alias: raw.out_alias,
    })
}

fn flag(name: &str) -> Result<Flag> {
    Ok(match name {
        "sensitive" => Flag::Sensitive,
        "gauge" => Flag::Gauge,
        "dynamic_shape" => Flag::DynamicShape,
        "no_derivative" => Flag::NoDerivative,
        other => bail!("unknown flag `{other}`"),
    })
}

/// Tensors of the case by key.
struct Reader<'a> {
    raw: &'a RawCase,
    tensors: &'a SafeTensors<'a>,
}

impl Reader<'_> {
    fn plain(&self, key: &str) -> Result<Tensor> {
        let view = self.tensors.tensor(key).with_context(|| format!("no tensor `{key}`"))?;
        let shape: Vec<i64> = view.shape().iter().map(|n| *n as i64).collect();
        decode(view.dtype(), &shape, view.data())
    }

    fn stored(&self, key: &str) -> Result<Stored> {
        let tensor = self.plain(key)?;
        let Some(l) = self.raw.strided.get(key) else {
            return Ok(Stored { tensor, layout: None });
        };
        Ok(Stored {
            tensor: tensor.strided(&l.size, &l.stride, l.offset),
            layout: Some(Layout {
                storage: tensor,
                size: l.size.clone(),
                stride: l.stride.clone(),
                offset: l.offset,
            }),
        })
    }
}

fn decode(dtype: Dtype, shape: &[i64], bytes: &[u8]) -> Result<Tensor> {
    macro_rules! read {
        ($kind:expr, $t:ty, $from:ident, $as:expr) => {
            Tensor::$from(
                $kind,
                shape,
                bytes
                    .chunks_exact(size_of::<$t>())
                    .map(|c| $as(<$t>::from_le_bytes(c.try_into().expect("whole elements"))))
                    .collect(),
            )
        };
    }
    Ok(match dtype {
        Dtype::F64 => read!(Kind::F64, f64, from_f64, |x| x),
        Dtype::F32 => read!(Kind::F32, f32, from_f64, f64::from),
        Dtype::F16 => read!(Kind::F16, half::f16, from_f64, f64::from),
        Dtype::BF16 => read!(Kind::BF16, half::bf16, from_f64, f64::from),
        Dtype::I64 => read!(Kind::I64, i64, from_i64, |i| i),
        Dtype::I32 => read!(Kind::I32, i32, from_i64, i64::from),
        Dtype::I16 => read!(Kind::I16, i16, from_i64, i64::from),
        Dtype::I8 => read!(Kind::I8, i8, from_i64, i64::from),
        Dtype::U8 => read!(Kind::U8, u8, from_i64, i64::from),
        Dtype::BOOL => read!(Kind::Bool, u8, from_i64, i64::from),
        other => bail!("element type {other:?} is not supported"),
    })
}

/// The distinct inputs so far.
struct Inputs<'a> {
    reader: &'a Reader<'a>,
    list: Vec<Input>,
}

impl Inputs<'_> {
    fn number(&mut self, key: &str) -> Result<usize> {
        if let Some(i) = self.list.iter().position(|input| input.key == key) {
            return Ok(i);
        }
        let raw = self.reader.raw;
        let after = raw.after.get(key).map(|k| self.reader.plain(k)).transpose()?;
        self.list.push(Input {
            key: key.to_string(),
            value: self.reader.stored(key)?,
            grad: raw.requires_grad.iter().position(|k| k == key),
            after,
        });
        Ok(self.list.len() - 1)
    }
}

/// The C function's arguments, in the order of the op's parameters.
fn arguments(op: Op, raw: &RawCase, schema: &RawOp, inputs: &mut Inputs<'_>) -> Result<Vec<CaseArg>> {
    let by_name: HashMap<&str, &RawArg> = schema.names.iter().map(String::as_str).zip(&raw.args).collect();
    let named = |name: &str| by_name.get(name).copied().and_then(Option::as_ref);
    let mut args = vec![];
    for name in &schema.c_args {
        if name == "options" {
            args.push(argument(named("dtype"), ParamKind::Kind, inputs)?);
            args.push(argument(named("device"), ParamKind::Device, inputs)?);
            continue;
        }
        let param = op
            .params
            .get(args.len())
            .with_context(|| format!("`{op}` takes no `{name}`"))?;
        args.push(argument(named(name), param.kind, inputs).with_context(|| format!("argument `{name}`"))?);
    }
    if args.len() != op.params.len() {
        bail!(
            "`{op}` takes {} arguments, the case has {}",
            op.params.len(),
            args.len()
        );
    }
    Ok(args)
}

fn argument(arg: Option<&RawValue>, kind: ParamKind, inputs: &mut Inputs<'_>) -> Result<CaseArg> {
    let Some(arg) = arg else {
        return Ok(match kind {
            ParamKind::Device => CaseArg::Device(-1),
            _ => CaseArg::None,
        });
    };
    Ok(match (arg, kind) {
        (RawValue::Tensor { tensor }, _) => CaseArg::Tensor(inputs.number(tensor)?),
        (RawValue::Tensors { tensors }, _) => CaseArg::Tensors(
            tensors
                .iter()
                .map(|key| key.as_ref().map(|k| inputs.number(k)).transpose())
                .collect::<Result<_>>()?,
        ),
        (RawValue::Scalar { scalar, r#type }, kind) => number(scalar, r#type, kind)?,
        (RawValue::Ints { ints }, _) => CaseArg::Ints(ints.clone()),
        (RawValue::Floats { floats }, _) => CaseArg::Floats(
            floats
                .iter()
                .map(|v| float(v).ok_or_else(|| anyhow!("{v} is not a float")))
                .collect::<Result<_>>()?,
        ),
        (RawValue::Bools { bools }, _) => CaseArg::Ints(bools.iter().map(|b| i64::from(*b)).collect()),
        (RawValue::Str { string }, _) => CaseArg::Str(string.clone()),
        (RawValue::Kind { dtype }, _) => {
            CaseArg::Kind(Kind::from_name(dtype).with_context(|| format!("no element type is called `{dtype}`"))?)
        }
        (RawValue::Device { device }, _) if device == "cpu" => CaseArg::Device(-1),
        (RawValue::Device { device }, _) => bail!("device `{device}` is not supported"),
    })
}

fn number(value: &serde_json::Value, ty: &str, kind: ParamKind) -> Result<CaseArg> {
    let float_wanted = matches!(kind, ParamKind::Float | ParamKind::OptFloat);
    let arg = match ty {
        "bool" => value.as_bool().map(CaseArg::Bool),
        "int" if !float_wanted => value.as_i64().map(CaseArg::Int),
        "int" | "float" => float(value).map(CaseArg::Float),
        _ => None,
    };
    arg.with_context(|| format!("{value} is not a number of type `{ty}`"))
}
