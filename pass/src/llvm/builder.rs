//! Emits instructions.

use super::function::Function;
use super::instruction::Location;
use super::types::Type;
use super::value::{Block, Context, IntPredicate, Opcode, RealPredicate, Value};
use llvm_sys::core as c;
use llvm_sys::prelude::*;
use std::marker::PhantomData;

/// Emits instructions at a position.
pub struct Builder<'m>(LLVMBuilderRef, PhantomData<&'m ()>);

impl Drop for Builder<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `new`, disposed of once.
        unsafe { c::LLVMDisposeBuilder(self.0) }
    }
}

/// One method per C function that takes values, types and blocks, and a name, and gives a value.
macro_rules! build {
    ($($(#[$doc:meta])* $c:ident as $name:ident($($arg:ident: $ty:ident),*);)*) => {
        impl<'m> Builder<'m> {
            $($(#[$doc])*
            pub fn $name(&self $(, $arg: $ty<'m>)*) -> Value<'m> {
                // SAFETY: the builder stands in a block; operands are live and of the types that LLVM asks for.
                Value(unsafe { c::$c(self.0 $(, $arg.0)*, c"".as_ptr()) }, PhantomData)
            })*
        }
    };
}

build! {
    /// `fadd`.
    LLVMBuildFAdd as fadd(a: Value, b: Value);
    /// `fsub`.
    LLVMBuildFSub as fsub(a: Value, b: Value);
    /// `fmul`.
    LLVMBuildFMul as fmul(a: Value, b: Value);
    /// `fdiv`.
    LLVMBuildFDiv as fdiv(a: Value, b: Value);
    /// `fneg`.
    LLVMBuildFNeg as fneg(a: Value);
    /// `add`.
    LLVMBuildAdd as add(a: Value, b: Value);
    /// `add nsw`.
    LLVMBuildNSWAdd as add_nsw(a: Value, b: Value);
    /// `add nuw`.
    LLVMBuildNUWAdd as add_nuw(a: Value, b: Value);
    /// `sub`.
    LLVMBuildSub as sub(a: Value, b: Value);
    /// `mul`.
    LLVMBuildMul as mul(a: Value, b: Value);
    /// `mul nuw`.
    LLVMBuildNUWMul as mul_nuw(a: Value, b: Value);
    /// `and`.
    LLVMBuildAnd as and(a: Value, b: Value);
    /// `or`.
    LLVMBuildOr as or(a: Value, b: Value);
    /// `xor`.
    LLVMBuildXor as xor(a: Value, b: Value);
    /// `shl`.
    LLVMBuildShl as shl(a: Value, b: Value);
    /// `lshr`.
    LLVMBuildLShr as lshr(a: Value, b: Value);
    /// `load`, aligned as the type; see [`Builder::load_aligned`].
    LLVMBuildLoad2 as load(ty: Type, from: Value);
    /// `alloca`, where the builder stands.
    LLVMBuildAlloca as alloca(ty: Type);
    /// `alloca` of several.
    LLVMBuildArrayAlloca as alloca_array(ty: Type, count: Value);
    /// `phi` without predecessors.
    LLVMBuildPhi as phi(ty: Type);
    /// `select`.
    LLVMBuildSelect as select(condition: Value, yes: Value, no: Value);
    /// `extractelement`.
    LLVMBuildExtractElement as extract_element(vector: Value, index: Value);
    /// `insertelement`.
    LLVMBuildInsertElement as insert_element(vector: Value, element: Value, index: Value);
    /// `shufflevector`; the mask is a constant vector of `i32`.
    LLVMBuildShuffleVector as shuffle(a: Value, b: Value, mask: Value);
    /// `bitcast`.
    LLVMBuildBitCast as bitcast(a: Value, ty: Type);
    /// `trunc`.
    LLVMBuildTrunc as trunc(a: Value, ty: Type);
    /// `zext`.
    LLVMBuildZExt as zext(a: Value, ty: Type);
    /// `sext`.
    LLVMBuildSExt as sext(a: Value, ty: Type);
    /// `fptrunc`.
    LLVMBuildFPTrunc as fptrunc(a: Value, ty: Type);
    /// `fpext`.
    LLVMBuildFPExt as fpext(a: Value, ty: Type);
    /// `sitofp`.
    LLVMBuildSIToFP as sitofp(a: Value, ty: Type);
    /// `uitofp`.
    LLVMBuildUIToFP as uitofp(a: Value, ty: Type);
    /// `ptrtoint`.
    LLVMBuildPtrToInt as ptrtoint(a: Value, ty: Type);
    /// `inttoptr`.
    LLVMBuildIntToPtr as inttoptr(a: Value, ty: Type);
    /// `freeze`.
    LLVMBuildFreeze as freeze(a: Value);
}

impl<'m> Builder<'m> {
    /// A builder without a position.
    pub fn new(context: Context<'m>) -> Self {
        // SAFETY: the context is live.
        Self(unsafe { c::LLVMCreateBuilderInContext(context.0) }, PhantomData)
    }

    /// Stands at the end of a block.
    pub fn at_end(&self, block: Block<'m>) {
        // SAFETY: the block is live.
        unsafe { c::LLVMPositionBuilderAtEnd(self.0, block.0) }
    }

    /// Stands before an instruction.
    pub fn before(&self, instruction: Value<'m>) {
        // SAFETY: the instruction is in a block. The older C call also leaves the location of what follows alone.
        unsafe { c::LLVMPositionBuilderBefore(self.0, instruction.0) }
    }

    /// The block in which it stands.
    pub fn block(&self) -> Block<'m> {
        // SAFETY: callers have given the builder a position.
        Block(unsafe { c::LLVMGetInsertBlock(self.0) }, PhantomData)
    }

    /// Location of what is emitted from now on.
    pub fn set_location(&self, location: Option<Location<'m>>) {
        // SAFETY: null takes the location away.
        unsafe { c::LLVMSetCurrentDebugLocation2(self.0, location.map_or(std::ptr::null_mut(), |l| l.0)) }
    }

    /// Inserts an instruction that has no place yet, such as a duplicate.
    pub fn insert(&self, instruction: Value<'m>) {
        // SAFETY: the instruction is in no block.
        unsafe { c::LLVMInsertIntoBuilder(self.0, instruction.0) }
    }

    /// A binary operation by its opcode.
    pub fn binary(&self, op: Opcode, a: Value<'m>, b: Value<'m>) -> Value<'m> {
        // SAFETY: operands are of the type that the operation asks for.
        Value(
            unsafe { c::LLVMBuildBinOp(self.0, op, a.0, b.0, c"".as_ptr()) },
            PhantomData,
        )
    }

    /// A conversion by its opcode.
    pub fn cast(&self, op: Opcode, a: Value<'m>, ty: Type<'m>) -> Value<'m> {
        // SAFETY: operand and type are those that the operation asks for.
        Value(
            unsafe { c::LLVMBuildCast(self.0, op, a.0, ty.0, c"".as_ptr()) },
            PhantomData,
        )
    }

    /// An integer as one of another width: without sign.
    pub fn cast_int(&self, a: Value<'m>, ty: Type<'m>) -> Value<'m> {
        match a.ty().int_width().cmp(&ty.int_width()) {
            std::cmp::Ordering::Less => self.zext(a, ty),
            std::cmp::Ordering::Equal => a,
            std::cmp::Ordering::Greater => self.trunc(a, ty),
        }
    }

    /// `icmp`.
    pub fn icmp(&self, predicate: IntPredicate, a: Value<'m>, b: Value<'m>) -> Value<'m> {
        // SAFETY: operands are of one integer or pointer type.
        Value(
            unsafe { c::LLVMBuildICmp(self.0, predicate, a.0, b.0, c"".as_ptr()) },
            PhantomData,
        )
    }

    /// `fcmp`.
    pub fn fcmp(&self, predicate: RealPredicate, a: Value<'m>, b: Value<'m>) -> Value<'m> {
        // SAFETY: operands are of one float type.
        Value(
            unsafe { c::LLVMBuildFCmp(self.0, predicate, a.0, b.0, c"".as_ptr()) },
            PhantomData,
        )
    }

    /// `store`, aligned as the type.
    pub fn store(&self, value: Value<'m>, to: Value<'m>) -> Value<'m> {
        // SAFETY: `to` is a pointer.
        Value(unsafe { c::LLVMBuildStore(self.0, value.0, to.0) }, PhantomData)
    }

    /// `load` with an alignment.
    pub fn load_aligned(&self, ty: Type<'m>, from: Value<'m>, alignment: u32) -> Value<'m> {
        let v = self.load(ty, from);
        v.set_alignment(alignment);
        v
    }

    /// `store` with an alignment.
    pub fn store_aligned(&self, value: Value<'m>, to: Value<'m>, alignment: u32) -> Value<'m> {
        let v = self.store(value, to);
        v.set_alignment(alignment);
        v
    }

    /// `getelementptr`, without promises.
    pub fn gep(&self, ty: Type<'m>, base: Value<'m>, indices: &[Value<'m>]) -> Value<'m> {
        let mut raw: Vec<_> = indices.iter().map(|v| v.0).collect();
        // SAFETY: the indices are integers that fit the type, passed with their number.
        let raw = unsafe { c::LLVMBuildGEP2(self.0, ty.0, base.0, raw.as_mut_ptr(), raw.len() as u32, c"".as_ptr()) };
        Value(raw, PhantomData)
    }

    /// `getelementptr inbounds`.
    pub fn gep_inbounds(&self, ty: Type<'m>, base: Value<'m>, indices: &[Value<'m>]) -> Value<'m> {
        let mut raw: Vec<_> = indices.iter().map(|v| v.0).collect();
        let n = raw.len() as u32;
        // SAFETY: as above.
        Value(
            unsafe { c::LLVMBuildInBoundsGEP2(self.0, ty.0, base.0, raw.as_mut_ptr(), n, c"".as_ptr()) },
            PhantomData,
        )
    }

    /// Address of a field of a structure in memory.
    pub fn field(&self, ty: Type<'m>, base: Value<'m>, i: u32) -> Value<'m> {
        // SAFETY: the type is a structure with that field.
        Value(
            unsafe { c::LLVMBuildStructGEP2(self.0, ty.0, base.0, i, c"".as_ptr()) },
            PhantomData,
        )
    }

    /// Address `bytes` after `base`.
    pub fn offset(&self, base: Value<'m>, bytes: Value<'m>) -> Value<'m> {
        self.gep(base.ty().context().int(8), base, &[bytes])
    }

    /// `extractvalue`.
    pub fn extract(&self, aggregate: Value<'m>, i: u32) -> Value<'m> {
        // SAFETY: the aggregate has that part.
        Value(
            unsafe { c::LLVMBuildExtractValue(self.0, aggregate.0, i, c"".as_ptr()) },
            PhantomData,
        )
    }

    /// `insertvalue`.
    pub fn insert_value(&self, aggregate: Value<'m>, part: Value<'m>, i: u32) -> Value<'m> {
        // SAFETY: the aggregate has that part, of that type.
        Value(
            unsafe { c::LLVMBuildInsertValue(self.0, aggregate.0, part.0, i, c"".as_ptr()) },
            PhantomData,
        )
    }

    /// Call of a function.
    pub fn call(&self, f: Function<'m>, arguments: &[Value<'m>]) -> Value<'m> {
        let call = self.call_value(f.ty(), f.value(), arguments);
        call.set_call_convention(f.call_convention());
        call
    }

    /// Call of a pointer.
    pub fn call_value(&self, ty: Type<'m>, f: Value<'m>, arguments: &[Value<'m>]) -> Value<'m> {
        let mut raw: Vec<_> = arguments.iter().map(|v| v.0).collect();
        let n = raw.len() as u32;
        // SAFETY: the arguments fit the function type.
        Value(
            unsafe { c::LLVMBuildCall2(self.0, ty.0, f.0, raw.as_mut_ptr(), n, c"".as_ptr()) },
            PhantomData,
        )
    }

    /// Invoke of a function or pointer.
    pub fn invoke(
        &self,
        ty: Type<'m>,
        f: Value<'m>,
        arguments: &[Value<'m>],
        normal: Block<'m>,
        unwind: Block<'m>,
    ) -> Value<'m> {
        let mut raw: Vec<_> = arguments.iter().map(|v| v.0).collect();
        let (p, n) = (raw.as_mut_ptr(), raw.len() as u32);
        // SAFETY: the arguments fit the function type; `unwind` begins with a landing pad.
        Value(
            unsafe { c::LLVMBuildInvoke2(self.0, ty.0, f.0, p, n, normal.0, unwind.0, c"".as_ptr()) },
            PhantomData,
        )
    }

    /// A landing pad that is a clean-up.
    pub fn cleanup_pad(&self, ty: Type<'m>, personality: Value<'m>) -> Value<'m> {
        // SAFETY: the type is that of landing pads, the personality a function.
        unsafe {
            let pad = c::LLVMBuildLandingPad(self.0, ty.0, personality.0, 0, c"".as_ptr());
            c::LLVMSetCleanup(pad, 1);
            Value(pad, PhantomData)
        }
    }

    /// `resume`.
    pub fn resume(&self, value: Value<'m>) -> Value<'m> {
        // SAFETY: the value is a landing pad's.
        Value(unsafe { c::LLVMBuildResume(self.0, value.0) }, PhantomData)
    }

    /// `br`.
    pub fn br(&self, to: Block<'m>) -> Value<'m> {
        // SAFETY: the block is of the function.
        Value(unsafe { c::LLVMBuildBr(self.0, to.0) }, PhantomData)
    }

    /// `br` with a condition.
    pub fn cond_br(&self, condition: Value<'m>, yes: Block<'m>, no: Block<'m>) -> Value<'m> {
        // SAFETY: the condition is an `i1`, the blocks are of the function.
        Value(
            unsafe { c::LLVMBuildCondBr(self.0, condition.0, yes.0, no.0) },
            PhantomData,
        )
    }

    /// `switch`; cases are added with [`Value::add_case`].
    pub fn switch(&self, value: Value<'m>, default: Block<'m>, cases: u32) -> Value<'m> {
        // SAFETY: the value is an integer.
        Value(
            unsafe { c::LLVMBuildSwitch(self.0, value.0, default.0, cases) },
            PhantomData,
        )
    }

    /// `ret`.
    pub fn ret(&self, value: Option<Value<'m>>) -> Value<'m> {
        // SAFETY: the value is of the function's result type; none if that is `void`.
        let raw = unsafe {
            match value {
                Some(v) => c::LLVMBuildRet(self.0, v.0),
                None => c::LLVMBuildRetVoid(self.0),
            }
        };
        Value(raw, PhantomData)
    }

    /// `unreachable`.
    pub fn unreachable(&self) -> Value<'m> {
        // SAFETY: no preconditions.
        Value(unsafe { c::LLVMBuildUnreachable(self.0) }, PhantomData)
    }

    /// `memset`.
    pub fn memset(&self, to: Value<'m>, byte: Value<'m>, bytes: Value<'m>, alignment: u32) -> Value<'m> {
        // SAFETY: operands are of the types that the intrinsic asks for.
        Value(
            unsafe { c::LLVMBuildMemSet(self.0, to.0, byte.0, bytes.0, alignment) },
            PhantomData,
        )
    }

    /// `memcpy`.
    pub fn memcpy(&self, to: Value<'m>, from: Value<'m>, bytes: Value<'m>, alignment: u32) -> Value<'m> {
        // SAFETY: operands are of the types that the intrinsic asks for.
        let raw = unsafe { c::LLVMBuildMemCpy(self.0, to.0, alignment, from.0, alignment, bytes.0) };
        Value(raw, PhantomData)
    }
}
