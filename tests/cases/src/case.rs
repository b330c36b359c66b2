//! A case, loaded.

use cotangent_graph::interp::Tensor;
use cotangent_graph::ir::Kind;
use cotangent_graph::ops::Op;

/// Where the elements of a tensor lie in a storage that is not simply them in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// The flat storage, with fillers where the tensor has no element.
    pub storage: Tensor,
    /// Extents.
    pub size: Vec<i64>,
    /// Strides, in elements; 0 where a dimension is expanded.
    pub stride: Vec<i64>,
    /// The first element.
    pub offset: i64,
}

/// A recorded tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// Its elements, row-major.
    pub tensor: Tensor,
    /// How it lay in memory, if it was not contiguous.
    pub layout: Option<Layout>,
}

/// A distinct input tensor.
#[derive(Clone, Debug)]
pub struct Input {
    /// Its key.
    pub key: String,
    /// What it holds.
    pub value: Stored,
    /// Position in [`Case::grads`] if it requires grad.
    pub grad: Option<usize>,
    /// What it holds after the call, if the call changes it (other than `self` of an in-place op).
    pub after: Option<Tensor>,
}

/// An argument of the C function.
#[derive(Clone, Debug, PartialEq)]
pub enum CaseArg {
    /// Absent.
    None,
    /// The input of that number.
    Tensor(usize),
    /// A list of inputs.
    Tensors(Vec<Option<usize>>),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A flag.
    Bool(bool),
    /// Integers.
    Ints(Vec<i64>),
    /// Floats.
    Floats(Vec<f64>),
    /// A string.
    Str(String),
    /// An element type.
    Kind(Kind),
    /// A device, in `torch-sys` numbering.
    Device(i32),
}

/// What is special about a case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flag {
    /// A tie, a kink, a pole, or an ill-conditioned problem.
    Sensitive,
    /// The result is defined up to signs or a basis.
    Gauge,
    /// The output's shape depends on values.
    DynamicShape,
    /// LibTorch has no derivative here: backward raises an error that names the function.
    NoDerivative,
}

/// One call, with what LibTorch gave for it.
#[derive(Clone, Debug)]
pub struct Case {
    /// Stable name.
    pub id: String,
    /// `P0`, `P1`, `P2` or `other`.
    pub tier: String,
    /// `op_db` or `edge`.
    pub group: String,
    /// Kind of the floating inputs, in words.
    pub dtype: String,
    /// The op's name in the table: the C function without `atg_`.
    pub name: String,
    /// The op, if the table has it.
    pub op: Option<Op>,
    /// Distinct input tensors, in order of appearance.
    pub inputs: Vec<Input>,
    /// Arguments of the C function, in its order.
    pub args: Vec<CaseArg>,
    /// Outputs; `None` where undefined.
    pub outputs: Vec<Option<Tensor>>,
    /// The function gives a list.
    pub output_list: bool,
    /// Per output: does it require grad?
    pub out_requires_grad: Vec<bool>,
    /// Per output: its cotangent, `None` where it gets none.
    pub cotangents: Vec<Option<Stored>>,
    /// Per input that requires grad (see [`Input::grad`]): its gradient, `None` where LibTorch gives none.
    pub grads: Vec<Option<Tensor>>,
    /// The call writes its first argument and gives it back.
    pub inplace: bool,
    /// Per output: the input whose storage it shares. Empty if no output does.
    pub out_alias: Vec<Option<String>>,
    /// What is special.
    pub flags: Vec<Flag>,
}

impl Case {
    /// Does the case have the flag?
    pub fn has(&self, flag: Flag) -> bool {
        self.flags.contains(&flag)
    }

    /// Inputs that require grad, in the order of [`Case::grads`].
    pub fn wrt(&self) -> Vec<usize> {
        let mut wrt = vec![0; self.grads.len()];
        for (i, input) in self.inputs.iter().enumerate() {
            if let Some(g) = input.grad {
                wrt[g] = i;
            }
        }
        wrt
    }
}
