//! Compiled code in decoded form: what the evaluator reads instead of LLVM's own data structures.
//!
//! The decoder (`cotangent-pass`) writes it from bitcode, function by function, on demand. Types are reduced to what
//! layout needs, constant expressions to symbol plus offset, debug locations to file, line and column.

use cotangent_graph::ir::Loc;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::rc::Rc;

/// A function or global, unique over all modules of the program: symbols local to a module carry its number.
pub type Symbol = Rc<str>;

/// A first-class type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ty {
    /// No value.
    Void,
    /// An integer of that many bits.
    Int(u32),
    /// Single precision.
    F32,
    /// Double precision.
    F64,
    /// A pointer.
    Ptr,
    /// A structure: fields with their offsets, total size.
    Struct(Vec<(u64, Ty)>, u64),
    /// So many elements of one type at that stride.
    Array(u64, Box<Ty>, u64),
    /// Something that the evaluator does not model (vectors, other floats), by name.
    Other(String, u64),
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Void => write!(f, "nothing"),
            Self::Int(1) => write!(f, "a boolean"),
            Self::Int(bits) => write!(f, "an integer of {bits} bits"),
            Self::F32 => write!(f, "a float of 32 bits"),
            Self::F64 => write!(f, "a float of 64 bits"),
            Self::Ptr => write!(f, "an address"),
            Self::Struct(..) => write!(f, "a structure"),
            Self::Array(..) => write!(f, "an array"),
            Self::Other(name, _) => write!(f, "`{name}`"),
        }
    }
}

impl Ty {
    /// Bytes that a store of the type writes.
    pub fn size(&self) -> u64 {
        match self {
            Self::Void => 0,
            Self::Int(bits) => u64::from(bits.div_ceil(8)),
            Self::F32 => 4,
            Self::F64 | Self::Ptr => 8,
            Self::Struct(_, size) | Self::Other(_, size) => *size,
            Self::Array(n, _, stride) => n * stride,
        }
    }

    /// Element `i` of an aggregate, with its offset.
    pub fn element(&self, i: usize) -> Option<(u64, &Self)> {
        match self {
            Self::Struct(fields, _) => fields.get(i).map(|(o, t)| (*o, t)),
            Self::Array(n, t, stride) if (i as u64) < *n => Some((i as u64 * stride, t)),
            _ => None,
        }
    }

    /// Number of elements of an aggregate.
    pub fn elements(&self) -> usize {
        match self {
            Self::Struct(fields, _) => fields.len(),
            Self::Array(n, ..) => usize::try_from(*n).unwrap_or(0),
            _ => 0,
        }
    }
}

/// A constant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Const {
    /// An integer; bits above the width are zero.
    Int(u128),
    /// A single, by its bits.
    F32(u32),
    /// A double, by its bits.
    F64(u64),
    /// The null pointer or an address made of an integer.
    Address(u64),
    /// Address of a global, plus an offset.
    Global(Symbol, i64),
    /// Address of a function.
    Func(Symbol),
    /// Undefined or poison.
    Undef,
    /// All zeros.
    Zero,
    /// An aggregate.
    Aggregate(Vec<Const>),
    /// Raw bytes (an array of `i8`).
    Bytes(Vec<u8>),
    /// A constant the evaluator does not model, by description.
    Other(String),
}

/// An operand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Operand {
    /// A parameter or the result of an instruction.
    Local(u32),
    /// A constant of that type.
    Const(Const, Ty),
}

/// What is called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Callee {
    /// A named function.
    Symbol(Symbol),
    /// A function pointer.
    Pointer(Operand),
    /// Inline assembly.
    Asm(String),
}

/// A multi-way branch or phi source.
pub type BlockId = u32;

/// An instruction, less its result.
#[expect(
    missing_docs,
    reason = "the fields are the operands of LLVM's instruction, named as there"
)]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Code {
    /// Stack memory of that many bytes.
    Alloca { size: u64, align: u64 },
    /// Reads memory.
    Load { ptr: Operand },
    /// Writes memory.
    Store { value: Operand, ty: Ty, ptr: Operand },
    /// Address arithmetic: constant part, then (index, stride) pairs.
    Gep {
        base: Operand,
        offset: i64,
        dynamic: Vec<(Operand, i64)>,
    },
    /// Arithmetic by LLVM's opcode (`add`, `fmul`, …).
    Binary { op: String, a: Operand, b: Operand },
    /// Negation of a float.
    FNeg { a: Operand },
    /// Integer or pointer comparison with LLVM's predicate.
    ICmp {
        pred: String,
        ty: Ty,
        a: Operand,
        b: Operand,
    },
    /// Float comparison with LLVM's predicate.
    FCmp { pred: String, a: Operand, b: Operand },
    /// A cast by LLVM's opcode from that type.
    Cast { op: String, a: Operand, from: Ty },
    /// Choice of a value.
    Select { cond: Operand, a: Operand, b: Operand },
    /// Element of an aggregate.
    Extract { a: Operand, path: Vec<u32> },
    /// An aggregate with one element replaced.
    Insert {
        a: Operand,
        v: Operand,
        vty: Ty,
        path: Vec<u32>,
    },
    /// A call; `normal` is where an invoke goes on.
    Call {
        callee: Callee,
        args: Vec<Operand>,
        normal: Option<BlockId>,
        noreturn: bool,
    },
    /// Value by predecessor.
    Phi { from: Vec<(BlockId, Operand)> },
    /// Unconditional branch.
    Br(BlockId),
    /// Two-way branch.
    CondBr { cond: Operand, yes: BlockId, no: BlockId },
    /// Multi-way branch.
    Switch {
        on: Operand,
        cases: Vec<(u128, BlockId)>,
        default: BlockId,
    },
    /// Return.
    Ret(Option<Operand>),
    /// Cannot be reached, or a path that unwinds.
    Unreachable,
    /// The operand itself (`freeze`).
    Same { a: Operand },
    /// An atomic read-modify-write, by LLVM's operation name.
    AtomicRmw { op: String, ptr: Operand, value: Operand },
    /// Compare and exchange.
    CmpXchg {
        ptr: Operand,
        expected: Operand,
        new: Operand,
        ty: Ty,
    },
    /// Nothing.
    Nop,
    /// An instruction that the evaluator does not model, by LLVM's name.
    Other(String),
}

/// An instruction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Inst {
    /// What it does.
    pub code: Code,
    /// The local that it defines.
    pub dst: u32,
    /// Type of the result.
    pub ty: Ty,
    /// Where it comes from: a number that [`Loader::locations`] knows.
    pub at: u32,
}

/// A function body.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Func {
    /// Its symbol.
    pub symbol: Symbol,
    /// Types of the parameters: locals `0..params.len()`.
    pub params: Vec<Ty>,
    /// Number of locals.
    pub locals: u32,
    /// Blocks; the first is the entry.
    pub blocks: Vec<Vec<Inst>>,
}

/// What is known of a function without looking at its body.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Signature {
    /// LLVM's `allockind` of an allocation function: 1 alloc, 2 realloc, 4 free, 8 uninitialized, 16 zeroed.
    pub alloc_kind: Option<u64>,
    /// Never returns.
    pub noreturn: bool,
}

/// A global variable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Global {
    /// Size in bytes.
    pub size: u64,
    /// Its value at start.
    pub init: Const,
    /// Type of that value.
    pub ty: Ty,
    /// Never written to.
    pub constant: bool,
    /// One copy for each thread.
    pub thread_local: bool,
}

/// Where decoded code comes from.
pub trait Loader {
    /// Body of a function; `None` if the program has none for it.
    fn function(&self, symbol: &Symbol) -> Option<Rc<Func>>;
    /// Facts about a function.
    fn signature(&self, symbol: &Symbol) -> Signature;
    /// A global with its initial value; `None` if it is defined elsewhere.
    fn global(&self, symbol: &Symbol) -> Option<Rc<Global>>;
    /// Can the run find where this global lies? Not if it is a thread's own, or its module's own, in a library that is
    /// linked as it was compiled.
    fn has_address(&self, _symbol: &Symbol, _thread_local: bool) -> bool {
        true
    }
    /// The source locations of that number, innermost inlined frame first; none for number zero.
    fn locations(&self, at: u32) -> Rc<[Loc]>;
}
