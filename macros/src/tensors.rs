//! `autograd` of a kernel: tensors in the place of slices and floats.
//!
//! A function is a kernel here if all its types are spelled as floats, slices, arrays and vectors of floats, and
//! constants: what else there may be could hold tensors, and keeps its own types.

use crate::signature::{Param, Signature, plain};
use crate::types;
use proc_macro2::TokenStream;
use quote::quote;
use syn::{Expr, GenericArgument, Generics, Ident, PathArguments, Type, parse_quote};

/// How LibTorch gives a parameter.
enum Taken<'a> {
    /// As it is.
    Constant,
    Slice(&'a Type),
    Array(&'a Type, &'a Expr),
    ArrayRef(&'a Type, &'a Expr),
    Vector(&'a Type),
    Float(&'a Type),
}

/// Parameters, result and body of `autograd` as tensors see it.
pub(crate) struct Attached {
    pub(crate) generics: Generics,
    pub(crate) params: Vec<TokenStream>,
    pub(crate) ret: TokenStream,
    pub(crate) body: TokenStream,
    /// The function that registers it with LibTorch, if a schema can express its parameters.
    pub(crate) register: Option<TokenStream>,
}

/// `autograd` of a kernel; nothing for other functions.
pub(crate) fn attached(signature: &Signature, kernel: &Ident, closures: [&TokenStream; 3]) -> Option<Attached> {
    if signature.is_generic() || !returned(&signature.ret) {
        return None;
    }
    let taken: Vec<Taken<'_>> = signature.params.iter().map(taken).collect::<Option<_>>()?;
    let pairs = || signature.params.iter().zip(&taken);
    let params = pairs().map(|(Param { name, ty, .. }, taken)| match taken {
        Taken::Constant => quote!(#name: #ty),
        Taken::Float(_) => quote!(#name: impl ::core::convert::Into<::cotangent::__private::Scalar<'tensors>>),
        _ => quote!(#name: &::cotangent::__private::Tensor),
    });
    let held = pairs().filter_map(|(param, taken)| {
        let (name, wrt, text) = (&param.name, param.wrt, plain(&param.name));
        let (make, element) = match taken {
            Taken::Constant => return None,
            Taken::Float(element) => (quote!(scalar), element),
            Taken::Slice(element) | Taken::Array(element, _) | Taken::ArrayRef(element, _) | Taken::Vector(element) => {
                (quote!(tensor), element)
            }
        };
        let about = quote!(::cotangent::__private::Name { function: super::__NAME, param: #text, wrt: #wrt });
        Some(quote!(let #name = ::cotangent::__private::Given::<#element>::#make(#about, #name)?;))
    });
    let arguments = pairs().map(|(Param { name, .. }, taken)| match taken {
        Taken::Constant => quote!(#name),
        Taken::Slice(_) => quote!(#name.slice()),
        Taken::Array(_, length) => quote!(*#name.array::<{ #length }>()?),
        Taken::ArrayRef(_, length) => quote!(#name.array::<{ #length }>()?),
        Taken::Vector(_) => quote!(#name.slice().to_vec()),
        Taken::Float(_) => quote!(#name.number()),
    });
    let wrt: Vec<&Ident> = signature
        .params
        .iter()
        .filter(|param| param.wrt)
        .map(|param| &param.name)
        .collect();
    let names: Vec<&Ident> = signature.params.iter().map(|param| &param.name).collect();
    let (ret, callee) = (&signature.ret, &signature.callee);
    let [reach, shape, finals] = closures;
    let mut generics = signature.generics.clone();
    generics.params.insert(0, parse_quote!('tensors));
    Some(Attached {
        register: register(signature, &taken),
        generics,
        params: params.collect(),
        ret: quote!(<#ret as ::cotangent::__private::Returned>::Tensors),
        body: quote!((move || -> ::core::result::Result<_, ::cotangent::Error> {
            #(#held)*
            ::cotangent::__private::attached::<_, #ret, _>(
                #kernel(), __function, (#(#arguments,)*), #reach, #shape, #finals,
                ::std::vec![#(#wrt.edge()),*],
                |cotangents: &__Cotangents, each| { #(each(&cotangents.#wrt);)* },
                |(#(#names,)*)| #callee(#(#names),*),
            )
        })()),
    })
}

/// A function that makes the kernel an operator of LibTorch's. Floats that the kernel is differentiated for are tensors
/// there, as numbers have no gradients.
fn register(signature: &Signature, taken: &[Taken<'_>]) -> Option<TokenStream> {
    let of = |(at, (param, taken)): (usize, (&Param, &Taken<'_>))| {
        let (schema, value) = match taken {
            Taken::Constant => constant(param, at)?,
            Taken::Float(_) if !param.wrt => ("float", quote!(values.real(#at))),
            _ => ("Tensor", quote!(&values.tensor(#at))),
        };
        let text = format!("{schema} {}", plain(&param.name));
        Some((text, value))
    };
    let params: Vec<(String, TokenStream)> = signature
        .params
        .iter()
        .zip(taken)
        .enumerate()
        .map(of)
        .collect::<Option<_>>()?;
    let (texts, values): (Vec<_>, Vec<_>) = params.into_iter().unzip();
    let (schema, ret) = (texts.join(", "), &signature.ret);
    Some(quote! {
        #[doc = "Makes the kernel the operator `torch.ops.NAMESPACE.NAME` of LibTorch's, with the gradient of `autograd`: a"]
        #[doc = "tensor for each slice, array and vector of floats and for each float that it is differentiated for; numbers"]
        #[doc = "for the others. Fails if the name is taken. An operator stays for as long as the program runs."]
        #[inline]
        pub fn register(namespace: &str) -> ::core::result::Result<(), ::cotangent::Error> {
            ::cotangent::__private::register::<#ret>(namespace, super::__NAME, #schema, |values| {
                ::core::result::Result::Ok(::cotangent::__private::Listed::listed(try_autograd(#(#values),*)?))
            })
        }
    })
}

/// A number that is not differentiated: its type in a schema, and the value.
fn constant(Param { name, ty, .. }: &Param, at: usize) -> Option<(&'static str, TokenStream)> {
    const INTEGERS: [&str; 10] = ["i8", "i16", "i32", "i64", "isize", "u8", "u16", "u32", "u64", "usize"];
    let Type::Path(path) = ty else { return None };
    if path.path.is_ident("bool") {
        return Some(("bool", quote!(values.flag(#at))));
    }
    let integer = INTEGERS.iter().any(|name| path.path.is_ident(name));
    let name = plain(name);
    integer.then(|| ("int", quote!(values.integer::<#ty>(#at, #name)?)))
}

fn taken(param: &Param) -> Option<Taken<'_>> {
    if param.mutable {
        return None;
    }
    if types::is_constant(&param.ty) {
        return Some(Taken::Constant);
    }
    match &param.ty {
        Type::Reference(reference) => match &*reference.elem {
            Type::Slice(slice) => float(&slice.elem).map(Taken::Slice),
            Type::Array(array) => Some(Taken::ArrayRef(float(&array.elem)?, &array.len)),
            _ => None,
        },
        Type::Array(array) => Some(Taken::Array(float(&array.elem)?, &array.len)),
        ty => float(ty).map(Taken::Float).or_else(|| vector(ty).map(Taken::Vector)),
    }
}

/// Whether a result becomes tensors.
fn returned(ty: &Type) -> bool {
    match ty {
        Type::Tuple(tuple) => (1..=4).contains(&tuple.elems.len()) && tuple.elems.iter().all(returned),
        Type::Array(array) => float(&array.elem).is_some(),
        ty => float(ty).is_some() || vector(ty).is_some(),
    }
}

fn float(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    ["f64", "f32"].iter().any(|name| path.path.is_ident(name)).then_some(ty)
}

/// The elements of a vector of floats.
fn vector(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == "Vec")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return None;
    };
    match arguments.args.first() {
        Some(GenericArgument::Type(element)) if arguments.args.len() == 1 => float(element),
        _ => None,
    }
}
