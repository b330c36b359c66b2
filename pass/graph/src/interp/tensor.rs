//! The interpreter's tensor: contiguous, row-major, on the heap.
//!
//! Floats of every width are held as `f64` and rounded to the tensor's kind whenever a tensor is made; integers and
//! booleans are held as `i64` and wrapped to the width of the kind. So a value can never be one that the kind lacks.

use super::InterpError;
use crate::ir::{Kind, TensorType};
use std::sync::Arc;

/// Elements of a tensor, row-major.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// Of the floating kinds.
    Float(Vec<f64>),
    /// Of the integer kinds and booleans (0 and 1).
    Int(Vec<i64>),
}

/// A dense tensor of a real kind. Cloning shares the elements.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    kind: Kind,
    shape: Vec<i64>,
    data: Arc<Data>,
}

impl Tensor {
    /// A tensor from floats, converted to `kind` as LibTorch converts doubles.
    ///
    /// # Panics
    /// If the number of elements is not that of the shape.
    pub fn from_f64(kind: Kind, shape: &[i64], values: Vec<f64>) -> Self {
        if !kind.is_float() {
            return Self::from_i64(kind, shape, values.iter().map(|x| float_to_int(kind, *x)).collect());
        }
        let mut values = values;
        values.iter_mut().for_each(|x| *x = round(kind, *x));
        Self::new(kind, shape, Data::Float(values))
    }

    /// A tensor from integers, converted to `kind` as LibTorch converts 64-bit integers.
    ///
    /// # Panics
    /// If the number of elements is not that of the shape.
    pub fn from_i64(kind: Kind, shape: &[i64], values: Vec<i64>) -> Self {
        if kind.is_float() {
            return Self::from_f64(kind, shape, values.iter().map(|i| *i as f64).collect());
        }
        let mut values = values;
        values.iter_mut().for_each(|i| *i = wrap(kind, *i));
        Self::new(kind, shape, Data::Int(values))
    }

    /// A boolean tensor.
    pub fn from_bool(shape: &[i64], values: impl IntoIterator<Item = bool>) -> Self {
        Self::new(
            Kind::Bool,
            shape,
            Data::Int(values.into_iter().map(i64::from).collect()),
        )
    }

    /// A tensor whose elements all equal `value`.
    pub fn full(kind: Kind, shape: &[i64], value: f64) -> Self {
        Self::from_f64(kind, shape, vec![value; count(shape)])
    }

    fn new(kind: Kind, shape: &[i64], data: Data) -> Self {
        let length = match &data {
            Data::Float(v) => v.len(),
            Data::Int(v) => v.len(),
        };
        assert_eq!(length, count(shape), "elements of a tensor of shape {shape:?}");
        Self {
            kind,
            shape: shape.to_vec(),
            data: Arc::new(data),
        }
    }

    /// Element type.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Extents.
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// Kind and shape.
    pub fn ty(&self) -> TensorType {
        TensorType::new(self.kind, self.shape.clone())
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Number of elements.
    pub fn numel(&self) -> usize {
        count(&self.shape)
    }

    /// The elements.
    pub fn data(&self) -> &Data {
        &self.data
    }

    /// The elements as floats.
    pub fn to_f64(&self) -> Vec<f64> {
        match &*self.data {
            Data::Float(v) => v.clone(),
            Data::Int(v) => v.iter().map(|i| *i as f64).collect(),
        }
    }

    /// The elements as integers; floats are cut off.
    pub fn to_i64(&self) -> Vec<i64> {
        match &*self.data {
            Data::Float(v) => v.iter().map(|x| *x as i64).collect(),
            Data::Int(v) => v.clone(),
        }
    }

    /// The elements as truth values.
    pub fn to_bool(&self) -> Vec<bool> {
        match &*self.data {
            Data::Float(v) => v.iter().map(|x| *x != 0.0).collect(),
            Data::Int(v) => v.iter().map(|i| *i != 0).collect(),
        }
    }

    /// The tensor converted to another kind.
    #[must_use]
    pub fn cast(&self, kind: Kind) -> Self {
        if kind == self.kind {
            return self.clone();
        }
        match &*self.data {
            Data::Float(v) => Self::from_f64(kind, &self.shape, v.clone()),
            Data::Int(v) => Self::from_i64(kind, &self.shape, v.clone()),
        }
    }

    /// The same elements under another shape of as many.
    pub fn reshape(&self, shape: &[i64]) -> Result<Self, InterpError> {
        if count(shape) != self.numel() {
            return Err(InterpError::invalid(format!(
                "shape {shape:?} is invalid for {:?}",
                self.shape
            )));
        }
        Ok(Self {
            kind: self.kind,
            shape: shape.to_vec(),
            data: self.data.clone(),
        })
    }

    /// Row-major strides.
    pub fn strides(&self) -> Vec<i64> {
        strides(&self.shape)
    }

    /// A tensor of any strided view into this tensor's elements.
    ///
    /// # Panics
    /// If the view leaves the elements.
    #[must_use]
    pub fn strided(&self, shape: &[i64], strides: &[i64], offset: i64) -> Self {
        self.pick(shape, &strided_indices(shape, strides, offset))
    }

    /// A tensor of the elements at these flat positions.
    #[must_use]
    pub fn pick(&self, shape: &[i64], at: &[usize]) -> Self {
        let data = match &*self.data {
            Data::Float(v) => Data::Float(at.iter().map(|i| v[*i]).collect()),
            Data::Int(v) => Data::Int(at.iter().map(|i| v[*i]).collect()),
        };
        Self::new(self.kind, shape, data)
    }

    /// The tensor broadcast to a shape.
    pub fn expand(&self, shape: &[i64]) -> Result<Self, InterpError> {
        if shape == self.shape {
            return Ok(self.clone());
        }
        let refused = || InterpError::invalid(format!("{:?} does not broadcast to {shape:?}", self.shape));
        let extra = shape.len().checked_sub(self.rank()).ok_or_else(refused)?;
        let mut strides = vec![0; extra];
        for (d, stride) in self.strides().into_iter().enumerate() {
            match (self.shape[d], shape[d + extra]) {
                (a, b) if a == b => strides.push(stride),
                (1, _) => strides.push(0),
                _ => return Err(refused()),
            }
        }
        Ok(self.strided(shape, &strides, 0))
    }

    /// Dimensions in another order.
    #[must_use]
    pub fn permute(&self, order: &[usize]) -> Self {
        let strides = self.strides();
        let shape: Vec<i64> = order.iter().map(|d| self.shape[*d]).collect();
        let strides: Vec<i64> = order.iter().map(|d| strides[*d]).collect();
        self.strided(&shape, &strides, 0)
    }
}

/// Number of elements of a shape.
pub fn count(shape: &[i64]) -> usize {
    usize::try_from(shape.iter().product::<i64>()).expect("extents are not negative")
}

/// Row-major strides of a shape.
pub fn strides(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    for d in (1..shape.len()).rev() {
        strides[d - 1] = strides[d] * shape[d].max(1);
    }
    strides
}

/// Flat positions of the elements of a strided view, row-major.
pub fn strided_indices(shape: &[i64], strides: &[i64], offset: i64) -> Vec<usize> {
    let total = count(shape);
    let mut out = Vec::with_capacity(total);
    let mut index = vec![0i64; shape.len()];
    let mut at = offset;
    for _ in 0..total {
        out.push(usize::try_from(at).expect("a view starts inside its storage"));
        for d in (0..shape.len()).rev() {
            index[d] += 1;
            at += strides[d];
            if index[d] < shape[d] {
                break;
            }
            at -= strides[d] * shape[d];
            index[d] = 0;
        }
    }
    out
}

/// The value of `kind` nearest to `x`.
pub fn round(kind: Kind, x: f64) -> f64 {
    match kind {
        Kind::F32 => f64::from(x as f32),
        Kind::F16 => f64::from(half::f16::from_f64(x)),
        Kind::BF16 => f64::from(half::bf16::from_f64(x)),
        _ => x,
    }
}

/// `i` wrapped to the width of an integer kind.
pub fn wrap(kind: Kind, i: i64) -> i64 {
    match kind {
        Kind::U8 => i64::from(i as u8),
        Kind::I8 => i64::from(i as i8),
        Kind::I16 => i64::from(i as i16),
        Kind::I32 => i64::from(i as i32),
        Kind::Bool => i64::from(i != 0),
        _ => i,
    }
}

fn float_to_int(kind: Kind, x: f64) -> i64 {
    match kind {
        Kind::Bool => i64::from(x != 0.0),
        _ => x as i64,
    }
}
