//! The tensor graph: straight-line SSA over tensors and scalars.
//!
//! A [`Graph`] is a list of instructions. Each applies an [`Op`] to arguments and defines new values; no value is
//! ever redefined, and a value is used only after its definition. There is no control flow: the pass chooses paths
//! before it makes a graph (see `program`).
//!
//! A graph is *open* while it may mention run-time facts (sizes, host memory) as scalar values, and *closed* once
//! `specialize` has turned every integer into a constant and given every tensor its shape and kind. Derivative rules
//! see closed graphs only.

use crate::ops::{Op, Results};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A value of a graph: a graph input or a result of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Value(pub u32);

impl Value {
    /// Position in per-value tables.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.0)
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Element type of a tensor. The discriminants are LibTorch's `ScalarType` numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, Serialize, Deserialize)]
#[repr(u8)]
pub enum Kind {
    /// Unsigned byte.
    U8 = 0,
    /// Signed byte.
    I8 = 1,
    /// 16-bit integer.
    I16 = 2,
    /// 32-bit integer.
    I32 = 3,
    /// 64-bit integer.
    I64 = 4,
    /// IEEE half precision.
    F16 = 5,
    /// Single precision.
    F32 = 6,
    /// Double precision.
    F64 = 7,
    /// Complex of halves.
    C32 = 8,
    /// Complex of singles.
    C64 = 9,
    /// Complex of doubles.
    C128 = 10,
    /// Boolean, one byte.
    Bool = 11,
    /// bfloat16.
    BF16 = 15,
}

impl Kind {
    /// Every kind, in the order of the discriminants.
    pub const ALL: [Self; 13] = [
        Self::U8,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::F16,
        Self::F32,
        Self::F64,
        Self::C32,
        Self::C64,
        Self::C128,
        Self::Bool,
        Self::BF16,
    ];

    /// The kind with LibTorch's `ScalarType` number `n`; `None` for kinds Cotangent does not know (quantized ones).
    pub fn from_number(n: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|k| *k as i64 == n)
    }

    /// Name in the text form.
    pub fn name(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::F16 => "f16",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::C32 => "c32",
            Self::C64 => "c64",
            Self::C128 => "c128",
            Self::Bool => "bool",
            Self::BF16 => "bf16",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|k| k.name() == name)
    }

    /// Bytes of one element.
    pub fn bytes(self) -> u64 {
        match self {
            Self::U8 | Self::I8 | Self::Bool => 1,
            Self::I16 | Self::F16 | Self::BF16 => 2,
            Self::I32 | Self::F32 | Self::C32 => 4,
            Self::I64 | Self::F64 | Self::C64 => 8,
            Self::C128 => 16,
        }
    }

    /// Real floating point.
    pub fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::F32 | Self::F64 | Self::BF16)
    }

    /// Complex.
    pub fn is_complex(self) -> bool {
        matches!(self, Self::C32 | Self::C64 | Self::C128)
    }

    /// Tensors of this kind can carry a derivative.
    pub fn is_differentiable(self) -> bool {
        self.is_float() || self.is_complex()
    }
}

/// Kind and shape of a tensor.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct TensorType {
    /// Element type.
    pub kind: Kind,
    /// Extent of each dimension, outermost first; empty for a 0-dim tensor.
    pub shape: Vec<i64>,
}

impl TensorType {
    /// A tensor type.
    pub fn new(kind: Kind, shape: impl Into<Vec<i64>>) -> Self {
        Self {
            kind,
            shape: shape.into(),
        }
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Number of elements.
    pub fn numel(&self) -> i64 {
        self.shape.iter().product()
    }

    /// Bytes of contiguous storage.
    pub fn bytes(&self) -> u64 {
        u64::try_from(self.numel()).unwrap_or(0) * self.kind.bytes()
    }
}

/// Type of a value.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Type {
    /// A tensor; its kind and shape are known in closed graphs only.
    Tensor(Option<TensorType>),
    /// A list of tensors of a length known at run time (open graphs only).
    List,
    /// LibTorch's own record of one opaque op, kept for that op's derivative.
    Tape,
    /// An integer of that many bits (1 = boolean).
    Int(u8),
    /// A float of that many bits: 32 or 64.
    Float(u8),
    /// An address in the host program (open graphs only).
    Ptr,
}

impl Type {
    /// A tensor of known kind and shape.
    pub fn tensor(kind: Kind, shape: impl Into<Vec<i64>>) -> Self {
        Self::Tensor(Some(TensorType::new(kind, shape)))
    }

    /// Is it a tensor?
    pub fn is_tensor(&self) -> bool {
        matches!(self, Self::Tensor(_))
    }
}

/// An argument of an instruction. Which forms an op takes is told by its [`crate::ops::Param`]s.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Arg {
    /// An optional argument that is absent.
    None,
    /// A tensor, scalar, list, tape or pointer value.
    Value(Value),
    /// A list of tensors; an entry may be absent where the op allows it.
    List(Vec<Option<Value>>),
    /// A constant integer.
    Int(i64),
    /// A constant float.
    Float(f64),
    /// A constant flag.
    Bool(bool),
    /// A list of integers, each [`Arg::Int`] or [`Arg::Value`].
    Ints(Vec<Arg>),
    /// A list of floats, each [`Arg::Float`] or [`Arg::Value`].
    Floats(Vec<Arg>),
    /// An element type.
    Kind(Kind),
    /// A device, in `torch-sys` numbering (-1 is the CPU).
    Device(i32),
    /// A string.
    Str(String),
}

impl Arg {
    /// A list of constant integers.
    pub fn ints(v: &[i64]) -> Self {
        Self::Ints(v.iter().map(|i| Self::Int(*i)).collect())
    }

    /// Calls `f` on every value that the argument mentions.
    pub fn for_each_value(&self, f: &mut dyn FnMut(Value)) {
        match self {
            Self::Value(v) => f(*v),
            Self::List(vs) => vs.iter().flatten().for_each(|v| f(*v)),
            Self::Ints(items) | Self::Floats(items) => items.iter().for_each(|a| a.for_each_value(f)),
            Self::None
            | Self::Int(_)
            | Self::Float(_)
            | Self::Bool(_)
            | Self::Kind(_)
            | Self::Device(_)
            | Self::Str(_) => {}
        }
    }

    /// The argument with each value replaced by what `f` gives for it.
    #[must_use]
    pub fn map_values(&self, f: &mut dyn FnMut(Value) -> Self) -> Self {
        match self {
            Self::Value(v) => f(*v),
            Self::List(vs) => Self::List(
                vs.iter()
                    .map(|v| {
                        v.map(|v| match f(v) {
                            Self::Value(v) => v,
                            other => unreachable!("a tensor of a list was replaced by {other:?}"),
                        })
                    })
                    .collect(),
            ),
            Self::Ints(items) => Self::Ints(items.iter().map(|a| a.map_values(f)).collect()),
            Self::Floats(items) => Self::Floats(items.iter().map(|a| a.map_values(f)).collect()),
            other => other.clone(),
        }
    }
}

impl From<Value> for Arg {
    fn from(v: Value) -> Self {
        Self::Value(v)
    }
}

/// A place in the user's source.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Loc {
    /// Path as the compiler recorded it.
    pub file: String,
    /// Line, from one.
    pub line: u32,
    /// Column, from one; zero where unknown.
    pub column: u32,
}

impl fmt::Display for Loc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// One instruction.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Inst {
    /// What it does.
    pub op: Op,
    /// One argument per parameter of the op; one more where the op leaves a tape (see `differentiate`).
    pub args: Vec<Arg>,
    /// The values it defines.
    pub results: Vec<Value>,
    /// Where the user wrote it.
    pub loc: Option<Loc>,
}

/// An input of a graph.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Input {
    /// The value it defines.
    pub value: Value,
    /// A name for readers: a parameter, or a path below one (`model.layers[0].w`).
    pub name: String,
}

/// A straight-line tensor program. See the [module](self).
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Graph {
    /// Name of the function it was made from.
    pub name: String,
    /// Inputs, in order.
    pub inputs: Vec<Input>,
    /// Instructions, in order of execution.
    pub insts: Vec<Inst>,
    /// Outputs, in order; a value may stand there more than once, and may be an input.
    pub outputs: Vec<Value>,
    types: Vec<Type>,
}

impl Graph {
    /// An empty graph.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// Adds an input.
    pub fn input(&mut self, name: impl Into<String>, ty: Type) -> Value {
        let value = self.fresh(ty);
        self.inputs.push(Input {
            value,
            name: name.into(),
        });
        value
    }

    /// A new value of that type, without a definition yet.
    pub fn fresh(&mut self, ty: Type) -> Value {
        let value = Value(u32::try_from(self.types.len()).expect("a graph has fewer than 2^32 values"));
        self.types.push(ty);
        value
    }

    /// Appends an instruction whose result types the caller knows.
    pub fn push(&mut self, op: Op, args: Vec<Arg>, results: Vec<Type>, loc: Option<Loc>) -> Vec<Value> {
        // An opaque op that is differentiated has its tape as one result more.
        debug_assert!(
            !matches!(op.results, Results::Count(n) if results.len() != n && results.len() != n + 1),
            "{} gives another number of results",
            op.name
        );
        let results: Vec<Value> = results.into_iter().map(|t| self.fresh(t)).collect();
        self.insts.push(Inst {
            op,
            args,
            results: results.clone(),
            loc,
        });
        results
    }

    /// Type of a value.
    pub fn ty(&self, v: Value) -> &Type {
        &self.types[v.index()]
    }

    /// Replaces the type of a value.
    pub fn set_ty(&mut self, v: Value, ty: Type) {
        self.types[v.index()] = ty;
    }

    /// Kind and shape of a tensor value of a closed graph.
    ///
    /// # Panics
    /// If the value is not a tensor or its shape is not known: a graph that is not closed has reached a stage after
    /// `specialize`, which the verifier rules out.
    pub fn tensor(&self, v: Value) -> &TensorType {
        match self.ty(v) {
            Type::Tensor(Some(t)) => t,
            other => panic!("{v} of {} is {other:?}, not a tensor of known shape", self.name),
        }
    }

    /// Number of values, defined or not: the length of per-value tables.
    pub fn value_count(&self) -> usize {
        self.types.len()
    }

    /// Values without a definition, in order: what is left of instructions that a stage removed.
    pub fn undefined(&self) -> impl Iterator<Item = Value> {
        let mut defined = vec![false; self.value_count()];
        let inputs = self.inputs.iter().map(|i| i.value);
        for v in inputs.chain(self.insts.iter().flat_map(|i| i.results.iter().copied())) {
            defined[v.index()] = true;
        }
        let numbers = 0u32..;
        numbers.zip(defined).filter(|(_, d)| !d).map(|(i, _)| Value(i))
    }

    /// For each value, the instruction that defines it (`None` for inputs).
    pub fn definitions(&self) -> Vec<Option<usize>> {
        let mut defs = vec![None; self.value_count()];
        for (i, inst) in self.insts.iter().enumerate() {
            for r in &inst.results {
                defs[r.index()] = Some(i);
            }
        }
        defs
    }
}
