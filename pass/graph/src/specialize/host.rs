//! What specialization asks of the running program.

use crate::ir::TensorType;

/// The running program, as the runtime shows it: memory at addresses that the function itself would read, and facts
/// about the tensors behind C handles.
///
/// Every address and handle that is passed in came out of an earlier answer (or is an offset from one), and is
/// passed only after the checks that the function itself makes before it reads there.
pub trait Host {
    /// Address of argument `index`: what `args[index]` points at in the call of the shim.
    fn argument(&self, index: usize) -> u64;

    /// Address of a static of the program, or of the calling thread's copy of a thread-local; `None` if the program does
    /// not show it.
    fn global(&self, symbol: &str) -> Option<u64>;

    /// Reads 1, 2, 4 or 8 bytes at an address, zero-extended.
    fn load(&self, address: u64, bytes: u8) -> u64;

    /// Facts about the tensor of a C handle; `None` for the undefined tensor.
    ///
    /// # Errors
    /// If Cotangent cannot work with such a tensor (a sparse or quantized one): the text says what it is.
    fn tensor(&self, handle: u64) -> Result<Option<TensorFacts>, String>;

    /// Is the tensor of that handle defined, strided, and of that kind, shape and device? Runs on every call.
    fn matches(&self, handle: u64, ty: &TensorType, device: i32) -> bool;

    /// Is the tensor of that handle defined?
    fn defined(&self, handle: u64) -> bool;

    /// Does the tensor of that handle require grad?
    fn requires_grad(&self, handle: u64) -> bool;

    /// Are these the tensor's strides?
    fn has_strides(&self, handle: u64, strides: &[i64]) -> bool;

    /// Address of the `TensorImpl` behind a handle.
    fn identity(&self, handle: u64) -> u64;

    /// Address of the storage behind a handle.
    fn storage(&self, handle: u64) -> u64;
}

/// What is known of a tensor of the running program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorFacts {
    /// Kind and shape.
    pub ty: TensorType,
    /// Strides, in elements.
    pub strides: Vec<i64>,
    /// Device, in `torch-sys` numbering.
    pub device: i32,
    /// Does it require grad?
    pub requires_grad: bool,
    /// Address of its `TensorImpl`.
    pub identity: u64,
    /// Address of its storage.
    pub storage: u64,
}

impl TensorFacts {
    /// Facts about a contiguous CPU tensor of its own.
    pub fn contiguous(ty: TensorType, identity: u64) -> Self {
        Self {
            strides: contiguous_strides(&ty.shape),
            ty,
            device: -1,
            requires_grad: false,
            identity,
            storage: identity,
        }
    }
}

/// Strides of a contiguous tensor of that shape.
pub fn contiguous_strides(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    for d in (1..shape.len()).rev() {
        strides[d - 1] = strides[d] * shape[d].max(1);
    }
    strides
}
