//! Recorded tensors as LibTorch's, and back.

use cotangent_cases::Stored;
use cotangent_graph::interp::{self, Data};
use cotangent_graph::ir::Kind;
use cotangent_runtime::torch::kind;
use tch::{Device, Tensor};

/// The tensor, in memory as it was recorded.
pub(crate) fn tensor(stored: &Stored) -> Tensor {
    match &stored.layout {
        None => dense(&stored.tensor),
        Some(l) => dense(&l.storage).as_strided(&l.size, &l.stride, Some(l.offset)),
    }
}

fn dense(x: &interp::Tensor) -> Tensor {
    let flat = match x.data() {
        Data::Float(values) => Tensor::from_slice(values),
        Data::Int(values) => Tensor::from_slice(values),
    };
    let kind = kind::to_tch(x.kind());
    flat.to_kind(kind).to_device(Device::Cpu).reshape(x.shape())
}

/// What a tensor holds.
///
/// # Errors
/// If it is of a kind that no case has.
pub(crate) fn read(x: &Tensor) -> Result<interp::Tensor, String> {
    let kind = kind::of(x).ok_or("a tensor of an unknown kind")?;
    let flat = x.detach().reshape([-1]);
    let numbers = |e: tch::TchError| e.to_string();
    Ok(match kind {
        k if k.is_complex() => return Err("a complex tensor".to_owned()),
        k if k.is_float() => {
            let values: Vec<f64> = Vec::try_from(flat.to_kind(tch::Kind::Double)).map_err(numbers)?;
            interp::Tensor::from_f64(kind, &x.size(), values)
        }
        Kind::Bool => {
            let values: Vec<i64> = Vec::try_from(flat.to_kind(tch::Kind::Int64)).map_err(numbers)?;
            interp::Tensor::from_bool(&x.size(), values.iter().map(|v| *v != 0))
        }
        _ => {
            let values: Vec<i64> = Vec::try_from(flat.to_kind(tch::Kind::Int64)).map_err(numbers)?;
            interp::Tensor::from_i64(kind, &x.size(), values)
        }
    })
}
