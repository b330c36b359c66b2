//! Types and constants.

use super::module::Module;
use super::raw::{T, V};
use cotangent_raise::code::{Const, Ty};
use llvm_sys::{LLVMOpcode as Op, LLVMTypeKind as TK, LLVMValueKind as VK};

impl<'c> Module<'c> {
    /// A type, reduced to what layout needs.
    pub(super) fn ty(&self, t: T<'c>) -> Ty {
        match t.kind() {
            TK::LLVMVoidTypeKind => Ty::Void,
            TK::LLVMIntegerTypeKind => Ty::Int(t.width()),
            TK::LLVMFloatTypeKind => Ty::F32,
            TK::LLVMDoubleTypeKind => Ty::F64,
            TK::LLVMPointerTypeKind => Ty::Ptr,
            TK::LLVMStructTypeKind => {
                let fields = (0..t.fields())
                    .map(|i| (self.layout.offset(t, i), self.ty(t.field(i))))
                    .collect();
                Ty::Struct(fields, self.layout.abi_size(t))
            }
            TK::LLVMArrayTypeKind => {
                let element = t.element();
                Ty::Array(t.length(), Box::new(self.ty(element)), self.layout.abi_size(element))
            }
            other => Ty::Other(
                format!("{other:?}"),
                if t.is_sized() { self.layout.abi_size(t) } else { 0 },
            ),
        }
    }

    /// A constant.
    pub(super) fn constant(&self, v: V<'c>) -> Const {
        match v.kind() {
            VK::LLVMConstantIntValueKind => Const::Int(self.integer(v)),
            VK::LLVMConstantFPValueKind => match v.ty().kind() {
                TK::LLVMFloatTypeKind => Const::F32((v.real() as f32).to_bits()),
                TK::LLVMDoubleTypeKind => Const::F64(v.real().to_bits()),
                _ => Const::Other(v.text()),
            },
            VK::LLVMConstantPointerNullValueKind => Const::Address(0),
            VK::LLVMUndefValueValueKind | VK::LLVMPoisonValueKind => Const::Undef,
            VK::LLVMConstantAggregateZeroValueKind => Const::Zero,
            VK::LLVMFunctionValueKind => Const::Func(self.symbol(v)),
            VK::LLVMGlobalVariableValueKind => Const::Global(self.symbol(v), 0),
            VK::LLVMGlobalAliasValueKind => self.constant(v.aliasee()),
            VK::LLVMConstantDataArrayValueKind if v.is_string() => Const::Bytes(v.string()),
            VK::LLVMConstantDataArrayValueKind | VK::LLVMConstantArrayValueKind | VK::LLVMConstantStructValueKind => {
                let n = match v.ty().kind() {
                    TK::LLVMStructTypeKind => v.ty().fields(),
                    _ => v.ty().length() as u32,
                };
                Const::Aggregate(
                    (0..n)
                        .map(|i| v.element(i).map_or(Const::Undef, |e| self.constant(e)))
                        .collect(),
                )
            }
            VK::LLVMConstantExprValueKind => self.expression(v),
            _ => Const::Other(v.text()),
        }
    }

    /// A constant integer of up to 128 bits.
    pub(super) fn integer(&self, v: V<'c>) -> u128 {
        let width = v.ty().width();
        if width <= 64 {
            return u128::from(v.zext_value());
        }
        // The C API reads 64 bits; wider constants are read from their text, `i128 -5`.
        let text = v.text();
        let digits = text.split_whitespace().nth(1).unwrap_or("0");
        let value = digits
            .parse::<i128>()
            .map(|x| x as u128)
            .or_else(|_| digits.parse::<u128>())
            .unwrap_or(0);
        if width >= 128 {
            value
        } else {
            value & ((1 << width) - 1)
        }
    }

    fn expression(&self, v: V<'c>) -> Const {
        match v.const_opcode() {
            Op::LLVMGetElementPtr => {
                let (mut offset, dynamic) = self.address(v);
                if !dynamic.is_empty() {
                    return Const::Other(v.text());
                }
                match self.constant(v.operand(0)) {
                    Const::Global(s, o) => {
                        offset += o;
                        Const::Global(s, offset)
                    }
                    Const::Address(a) => Const::Address(a.wrapping_add_signed(offset)),
                    _ => Const::Other(v.text()),
                }
            }
            Op::LLVMBitCast | Op::LLVMAddrSpaceCast | Op::LLVMPtrToInt => self.constant(v.operand(0)),
            Op::LLVMIntToPtr => match self.constant(v.operand(0)) {
                Const::Int(x) => Const::Address(x as u64),
                other => other,
            },
            _ => Const::Other(v.text()),
        }
    }

    /// Offset of a `getelementptr` (instruction or expression): its constant part, and (index, stride) for the rest.
    pub(super) fn address(&self, v: V<'c>) -> (i64, Vec<(V<'c>, i64)>) {
        let mut ty = v.gep_type();
        let (mut offset, mut dynamic) = (0i64, vec![]);
        for i in 1..v.operands() as u32 {
            let index = v.operand(i);
            let constant = (index.kind() == VK::LLVMConstantIntValueKind).then(|| {
                let bits = index.ty().width();
                let x = self.integer(index);
                cotangent_raise::value::sign_extend(x, bits) as i64
            });
            if i > 1 {
                match ty.kind() {
                    TK::LLVMStructTypeKind => {
                        let field = constant.unwrap_or(0) as u32;
                        offset += self.layout.offset(ty, field) as i64;
                        ty = ty.field(field);
                        continue;
                    }
                    _ => ty = ty.element(),
                }
            }
            let stride = self.layout.abi_size(ty) as i64;
            match constant {
                Some(x) => offset += x.wrapping_mul(stride),
                None => dynamic.push((index, stride)),
            }
        }
        (offset, dynamic)
    }
}
