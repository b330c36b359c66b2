//! `derive(Differentiable)`: the leaves of a struct or an enum are those of its fields, its cotangents are of its own
//! type.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Field, Fields, GenericParam, Ident, Type, parse_quote};

/// Expands the derive.
pub(crate) fn expand(item: TokenStream) -> TokenStream {
    syn::parse2::<DeriveInput>(item)
        .and_then(|input| implementation(&input))
        .unwrap_or_else(Error::into_compile_error)
}

fn implementation(input: &DeriveInput) -> syn::Result<TokenStream> {
    let name = &input.ident;
    let arms: Vec<(TokenStream, TokenStream)> = match &input.data {
        Data::Struct(data) => vec![arm(quote!(Self), &data.fields)?],
        Data::Enum(data) => data
            .variants
            .iter()
            .map(|variant| {
                let ident = &variant.ident;
                arm(quote!(Self::#ident), &variant.fields)
            })
            .collect::<syn::Result<_>>()?,
        Data::Union(data) => {
            let what = "a union cannot be differentiable: which of its fields is in use is not known";
            return Err(Error::new(data.union_token.span, what));
        }
    };
    let (leaves, cotangents): (Vec<_>, Vec<_>) = arms.into_iter().unzip();
    let mut generics = input.generics.clone();
    for param in &input.generics.params {
        if let GenericParam::Type(param) = param {
            let ident = &param.ident;
            let bound = parse_quote!(#ident: ::cotangent::Differentiable<Cotangent = #ident>);
            generics.make_where_clause().predicates.push(bound);
        }
    }
    let (params, _, wheres) = generics.split_for_impl();
    let (_, arguments, _) = input.generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #params ::cotangent::Differentiable for #name #arguments #wheres {
            type Cotangent = Self;
            type Seed = Self;
            #[allow(unused_variables)]
            fn leaves(&self, leaves: &mut ::cotangent::__private::Leaves) {
                match *self { #(#leaves)* }
            }
            #[allow(unused_variables)]
            fn cotangent(&self, source: &mut ::cotangent::__private::Source) -> Self {
                match *self { #(#cotangents)* }
            }
            fn seed(&self, source: &mut ::cotangent::__private::Source) -> ::core::option::Option<Self> {
                ::core::option::Option::Some(::cotangent::Differentiable::cotangent(self, source))
            }
        }
    })
}

/// The arms of one variant: its leaves, and a cotangent of it.
fn arm(path: TokenStream, fields: &Fields) -> syn::Result<(TokenStream, TokenStream)> {
    let mut pattern = Vec::new();
    let mut leaves = Vec::new();
    let mut cotangent = Vec::new();
    for (at, field) in fields.iter().enumerate() {
        let local: Ident = format_ident!("field_{at}", span = proc_macro2::Span::mixed_site());
        let member = field
            .ident
            .clone()
            .map_or_else(|| syn::Member::from(at), syn::Member::from);
        let ty = &field.ty;
        pattern.push(quote!(#member: ref #local));
        if is_constant(field)? {
            cotangent.push(quote_spanned!(ty.span()=> #member: ::core::clone::Clone::clone(#local)));
            continue;
        }
        if let Type::Reference(reference) = ty {
            let what = "a cotangent owns its parts, so that a differentiable type has no references: mark the field \
                        `#[constant]`, or own the value";
            return Err(Error::new(reference.span(), what));
        }
        leaves.push(quote_spanned!(ty.span()=> <#ty as ::cotangent::Differentiable>::leaves(#local, leaves);));
        let value = quote_spanned!(ty.span()=> <#ty as ::cotangent::Differentiable>::cotangent(#local, source));
        cotangent.push(quote!(#member: #value));
    }
    Ok((
        quote!(#path { #(#pattern,)* } => { #(#leaves)* }),
        quote!(#path { #(#pattern,)* } => #path { #(#cotangent,)* },),
    ))
}

/// Whether a field is marked as one without a derivative.
fn is_constant(field: &Field) -> syn::Result<bool> {
    let mut marked = false;
    for attribute in field
        .attrs
        .iter()
        .filter(|attribute| attribute.path().is_ident("constant"))
    {
        attribute.meta.require_path_only()?;
        marked = true;
    }
    Ok(marked)
}
