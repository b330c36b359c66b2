//! Types and constants of LLVM as `Copy` handles.

use super::value::{Context, Value, wrap};
pub use llvm_sys::LLVMTypeKind as TypeKind;
use llvm_sys::core as c;
use llvm_sys::prelude::*;
use std::marker::PhantomData;

/// A type, valid as long as the context that made it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Type<'m>(pub(super) LLVMTypeRef, pub(super) PhantomData<&'m ()>);

pub(super) fn ty<'m>(raw: LLVMTypeRef) -> Type<'m> {
    Type(raw, PhantomData)
}

wrap! { Type:
    /// What sort of type it is.
    c::LLVMGetTypeKind as kind() -> TypeKind = |r| r;
    /// Bits of an integer type.
    c::LLVMGetIntTypeWidth as int_width() -> u32 = |r| r;
    /// Element of an array or vector type.
    c::LLVMGetElementType as element() -> Type<'m> = |r| ty(r);
    /// Number of fields of a structure type.
    c::LLVMCountStructElementTypes as fields() -> u32 = |r| r;
    /// Type of a field of a structure type.
    c::LLVMStructGetTypeAtIndex as field(i: u32) -> Type<'m> = |r| ty(r);
    /// Is the structure packed?
    c::LLVMIsPackedStruct as is_packed() -> bool = |r| r != 0;
    /// Has the type a size?
    c::LLVMTypeIsSized as is_sized() -> bool = |r| r != 0;
    /// Result of a function type.
    c::LLVMGetReturnType as result() -> Type<'m> = |r| ty(r);
    /// Takes the function type more arguments than it names?
    c::LLVMIsFunctionVarArg as is_variadic() -> bool = |r| r != 0;
    /// The context.
    c::LLVMGetTypeContext as context() -> Context<'m> = |r| Context(r, PhantomData);
    /// Zero of the type.
    c::LLVMConstNull as zero() -> Value<'m> = |r| Value(r, PhantomData);
    /// All bits set.
    c::LLVMConstAllOnes as all_ones() -> Value<'m> = |r| Value(r, PhantomData);
    /// Any value of the type.
    c::LLVMGetPoison as poison() -> Value<'m> = |r| Value(r, PhantomData);
}

impl std::fmt::Debug for Type<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text())
    }
}

impl<'m> Type<'m> {
    /// Is it one of the floating-point types?
    pub fn is_float(self) -> bool {
        use TypeKind::*;
        matches!(
            self.kind(),
            LLVMHalfTypeKind
                | LLVMBFloatTypeKind
                | LLVMFloatTypeKind
                | LLVMDoubleTypeKind
                | LLVMX86_FP80TypeKind
                | LLVMFP128TypeKind
                | LLVMPPC_FP128TypeKind
        )
    }

    /// Is it an integer type?
    pub fn is_int(self) -> bool {
        self.kind() == TypeKind::LLVMIntegerTypeKind
    }

    /// Is it a pointer type?
    pub fn is_pointer(self) -> bool {
        self.kind() == TypeKind::LLVMPointerTypeKind
    }

    /// Is it `void`?
    pub fn is_void(self) -> bool {
        self.kind() == TypeKind::LLVMVoidTypeKind
    }

    /// Is it a structure?
    pub fn is_struct(self) -> bool {
        self.kind() == TypeKind::LLVMStructTypeKind
    }

    /// Is it an array?
    pub fn is_array(self) -> bool {
        self.kind() == TypeKind::LLVMArrayTypeKind
    }

    /// Is it a vector of fixed length?
    pub fn is_vector(self) -> bool {
        self.kind() == TypeKind::LLVMVectorTypeKind
    }

    /// Number of elements of an array or vector type; 1 for others.
    pub fn length(self) -> u64 {
        // SAFETY: the kind of the type was checked.
        unsafe {
            match self.kind() {
                TypeKind::LLVMArrayTypeKind => c::LLVMGetArrayLength2(self.0),
                TypeKind::LLVMVectorTypeKind => c::LLVMGetVectorSize(self.0).into(),
                _ => 1,
            }
        }
    }

    /// The element of a vector type, another type itself.
    pub fn scalar(self) -> Type<'m> {
        if self.is_vector() { self.element() } else { self }
    }

    /// Parameters of a function type.
    pub fn params(self) -> Vec<Type<'m>> {
        // SAFETY: callers apply it to function types; LLVM fills as many places as it counted.
        unsafe {
            let n = c::LLVMCountParamTypes(self.0) as usize;
            let mut raw = vec![std::ptr::null_mut(); n];
            c::LLVMGetParamTypes(self.0, raw.as_mut_ptr());
            raw.into_iter().map(ty).collect()
        }
    }

    /// Fields of a structure type, or the elements of an array or vector type.
    pub fn parts(self) -> Vec<Type<'m>> {
        if self.is_struct() {
            (0..self.fields()).map(|i| self.field(i)).collect()
        } else {
            vec![self.element(); self.length() as usize]
        }
    }

    /// An array of `n` of the type.
    pub fn array(self, n: u64) -> Type<'m> {
        // SAFETY: the type is live.
        ty(unsafe { c::LLVMArrayType2(self.0, n) })
    }

    /// A vector of `n` of the type.
    pub fn vector(self, n: u32) -> Type<'m> {
        // SAFETY: the type is live.
        ty(unsafe { c::LLVMVectorType(self.0, n) })
    }

    /// A constant of an integer type (or of a vector of integers: every element), of up to 64 bits.
    pub fn int(self, value: u64) -> Value<'m> {
        if self.is_vector() {
            return self.splat(self.element().int(value));
        }
        // SAFETY: callers apply it to integer types.
        Value(unsafe { c::LLVMConstInt(self.0, value, 0) }, PhantomData)
    }

    /// The constant pointer with that address; of a vector of pointers: every element.
    pub fn address(self, at: u64) -> Value<'m> {
        if self.is_vector() {
            return self.splat(self.element().address(at));
        }
        let at = self.context().int(64).int(at);
        // SAFETY: callers apply it to pointer types.
        Value(unsafe { c::LLVMConstIntToPtr(at.0, self.0) }, PhantomData)
    }

    /// A constant of an integer type by its words, the lowest first.
    pub fn int_words(self, words: &[u64]) -> Value<'m> {
        // SAFETY: callers apply it to integer types; the words are passed with their number.
        let raw = unsafe { c::LLVMConstIntOfArbitraryPrecision(self.0, words.len() as u32, words.as_ptr()) };
        Value(raw, PhantomData)
    }

    /// A constant of a float type, or of a vector of floats: every element.
    pub fn real(self, value: f64) -> Value<'m> {
        if self.is_vector() {
            return self.splat(self.element().real(value));
        }
        // SAFETY: callers apply it to float types.
        Value(unsafe { c::LLVMConstReal(self.0, value) }, PhantomData)
    }

    /// The constant of a float type that a decimal number is nearest to; of a vector of floats: every element.
    pub fn real_text(self, decimal: &str) -> Value<'m> {
        if self.is_vector() {
            return self.splat(self.element().real_text(decimal));
        }
        // SAFETY: callers apply it to float types; the text is passed with its length.
        let raw = unsafe { c::LLVMConstRealOfStringAndSize(self.0, decimal.as_ptr().cast(), decimal.len() as u32) };
        Value(raw, PhantomData)
    }

    /// The constant of this vector type with every element `x`.
    pub fn splat(self, x: Value<'m>) -> Value<'m> {
        let mut elements = vec![x.0; self.length() as usize];
        // SAFETY: the elements are constants of the element type.
        Value(
            unsafe { c::LLVMConstVector(elements.as_mut_ptr(), elements.len() as u32) },
            PhantomData,
        )
    }

    /// LLVM's text of the type.
    pub fn text(self) -> String {
        // SAFETY: the string is LLVM's to free, which is done after it is copied.
        unsafe { super::value::message(c::LLVMPrintTypeToString(self.0)) }
    }
}

impl<'m> Context<'m> {
    /// Integers of `bits` bits.
    pub fn int(self, bits: u32) -> Type<'m> {
        // SAFETY: the context is live.
        ty(unsafe { c::LLVMIntTypeInContext(self.0, bits) })
    }

    /// `float`.
    pub fn float(self) -> Type<'m> {
        // SAFETY: the context is live.
        ty(unsafe { c::LLVMFloatTypeInContext(self.0) })
    }

    /// `double`.
    pub fn double(self) -> Type<'m> {
        // SAFETY: the context is live.
        ty(unsafe { c::LLVMDoubleTypeInContext(self.0) })
    }

    /// `x86_fp80`.
    pub fn extended(self) -> Type<'m> {
        // SAFETY: the context is live.
        ty(unsafe { c::LLVMX86FP80TypeInContext(self.0) })
    }

    /// `ptr`.
    pub fn ptr(self) -> Type<'m> {
        // SAFETY: the context is live.
        ty(unsafe { c::LLVMPointerTypeInContext(self.0, 0) })
    }

    /// `void`.
    pub fn void(self) -> Type<'m> {
        // SAFETY: the context is live.
        ty(unsafe { c::LLVMVoidTypeInContext(self.0) })
    }

    /// A structure without a name.
    pub fn structure(self, fields: &[Type<'m>]) -> Type<'m> {
        let mut raw: Vec<_> = fields.iter().map(|t| t.0).collect();
        // SAFETY: the fields are types of the context, passed with their number.
        ty(unsafe { c::LLVMStructTypeInContext(self.0, raw.as_mut_ptr(), raw.len() as u32, 0) })
    }

    /// A structure with a name, still without fields.
    pub fn named_structure(self, name: &str) -> Type<'m> {
        let name = super::value::c_string(name);
        // SAFETY: the name is a C string.
        ty(unsafe { c::LLVMStructCreateNamed(self.0, name.as_ptr()) })
    }

    /// A function type.
    pub fn function(self, result: Type<'m>, params: &[Type<'m>]) -> Type<'m> {
        let mut raw: Vec<_> = params.iter().map(|t| t.0).collect();
        // SAFETY: the types are of the context, passed with their number.
        ty(unsafe { c::LLVMFunctionType(result.0, raw.as_mut_ptr(), raw.len() as u32, 0) })
    }

    /// A constant structure.
    pub fn const_structure(self, fields: &[Value<'m>]) -> Value<'m> {
        let mut raw: Vec<_> = fields.iter().map(|v| v.0).collect();
        // SAFETY: the fields are constants of the context, passed with their number.
        let raw = unsafe { c::LLVMConstStructInContext(self.0, raw.as_mut_ptr(), raw.len() as u32, 0) };
        Value(raw, PhantomData)
    }

    /// A constant vector.
    pub fn const_vector(self, elements: &[Value<'m>]) -> Value<'m> {
        let mut raw: Vec<_> = elements.iter().map(|v| v.0).collect();
        // SAFETY: the elements are constants of one type, passed with their number.
        let raw = unsafe { c::LLVMConstVector(raw.as_mut_ptr(), raw.len() as u32) };
        Value(raw, PhantomData)
    }

    /// A constant array of bytes, ended by a zero byte.
    pub fn const_string(self, text: &str) -> Value<'m> {
        // SAFETY: the bytes are passed with their number.
        let raw = unsafe { c::LLVMConstStringInContext2(self.0, text.as_ptr().cast(), text.len(), 0) };
        Value(raw, PhantomData)
    }
}

impl<'m> Type<'m> {
    /// Gives a named structure its fields.
    pub fn set_fields(self, fields: &[Type<'m>]) {
        let mut raw: Vec<_> = fields.iter().map(|t| t.0).collect();
        // SAFETY: callers apply it to a named structure without fields; the types are passed with their number.
        unsafe { c::LLVMStructSetBody(self.0, raw.as_mut_ptr(), raw.len() as u32, 0) }
    }
}

impl<'m> Type<'m> {
    /// The constant of this structure, array or vector type with those parts.
    pub fn aggregate(self, parts: &[Value<'m>]) -> Value<'m> {
        let mut raw: Vec<_> = parts.iter().map(|v| v.0).collect();
        let p = raw.as_mut_ptr();
        // SAFETY: the parts are constants of the types that this type names, passed with their number.
        let raw = unsafe {
            match self.kind() {
                TypeKind::LLVMVectorTypeKind => c::LLVMConstVector(p, raw.len() as u32),
                TypeKind::LLVMArrayTypeKind => c::LLVMConstArray2(self.element().0, p, raw.len() as u64),
                _ if c::LLVMGetStructName(self.0).is_null() => {
                    let packed = self.is_packed().into();
                    c::LLVMConstStructInContext(self.context().0, p, raw.len() as u32, packed)
                }
                _ => c::LLVMConstNamedStruct(self.0, p, raw.len() as u32),
            }
        };
        Value(raw, PhantomData)
    }
}
