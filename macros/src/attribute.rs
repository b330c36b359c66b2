//! `#[differentiable]`: on a function, and on an `impl` block whose methods have it.

use crate::place::{self, Around};
use crate::signature::{Block, Options, Signature, plain};
use crate::{module, types};
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::spanned::Spanned;
use syn::{Attribute, Error, ImplItem, Item, ItemFn, ItemImpl, Meta, Type};

/// Expands the attribute. What it stands on is kept as it is, in any case.
pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let made = match syn::parse2::<Item>(item.clone()) {
        Ok(Item::Fn(function)) => on_function(arguments, &function).map(|made| quote!(#item #made)),
        Ok(Item::Impl(block)) => on_block(arguments, block),
        Ok(Item::Verbatim(tokens)) => Err(match syn::parse2::<syn::TraitItemFn>(tokens) {
            Ok(method) => Error::new(method.sig.ident.span(), IN_TRAIT),
            Err(error) => error,
        }),
        Ok(other) => Err(refused(&other)),
        Err(error) => Err(error),
    };
    made.unwrap_or_else(|error| {
        let error = error.into_compile_error();
        quote!(#item #error)
    })
}

const IN_TRAIT: &str = "trait methods are not differentiable: mark a free function that calls them";

fn refused(item: &Item) -> Error {
    let span = match item {
        Item::Struct(item) => item.struct_token.span,
        Item::Enum(item) => item.enum_token.span,
        other => other.span(),
    };
    let what = match item {
        Item::Struct(_) | Item::Enum(_) => "a type is made differentiable by `#[derive(Differentiable)]`",
        _ => "`#[differentiable]` goes on a function, or on an `impl` block whose methods have it",
    };
    Error::new(span, what)
}

fn on_function(arguments: TokenStream, function: &ItemFn) -> syn::Result<TokenStream> {
    let options = syn::parse2::<Options>(arguments)?;
    let ident = &function.sig.ident;
    let why = match place::around(ident.span()) {
        Some(Around::Function) => Some(
            "a function inside a function is not differentiable: its entry points could not see it; move it to the module",
        ),
        Some(Around::Impl) => Some("a method needs `#[differentiable]` on its `impl` block, too"),
        Some(Around::Trait) => Some(IN_TRAIT),
        None => None,
    };
    if let Some(why) = why {
        return Err(Error::new(ident.span(), why));
    }
    let signature = Signature::new(options, &function.attrs, &function.vis, &function.sig, None)?;
    Ok(module::expand(&signature))
}

/// The block without the attributes of its methods, and a module for each of them.
fn on_block(arguments: TokenStream, mut block: ItemImpl) -> syn::Result<TokenStream> {
    if !arguments.is_empty() {
        return Err(Error::new(
            arguments.span(),
            "on an `impl` block the attribute has no arguments: they go on its methods",
        ));
    }
    if block.trait_.is_some() {
        return Err(Error::new(block.self_ty.span(), IN_TRAIT));
    }
    let Type::Path(path) = types::behind_references(&block.self_ty) else {
        return Err(Error::new(
            block.self_ty.span(),
            "the methods of a type without a name are not differentiable",
        ));
    };
    let prefix = path
        .path
        .segments
        .last()
        .map(|last| snake(&plain(&last.ident)))
        .unwrap_or_default();
    let (this, generics) = (block.self_ty.clone(), block.generics.clone());
    let around = Block {
        this: &this,
        generics: &generics,
        prefix: &prefix,
    };
    let mut made = Vec::new();
    let mut marked = 0;
    for item in &mut block.items {
        let ImplItem::Fn(method) = item else { continue };
        let Some(at) = method.attrs.iter().position(is_ours) else {
            continue;
        };
        let attribute = method.attrs.remove(at);
        marked += 1;
        made.push(options(&attribute).and_then(|options| {
            let mut attrs: Vec<Attribute> = block.attrs.clone();
            attrs.extend(method.attrs.iter().cloned());
            let signature = Signature::new(options, &attrs, &method.vis, &method.sig, Some(&around))?;
            Ok(module::expand(&signature))
        }));
    }
    if marked == 0 {
        let what = "no method of this block has `#[differentiable]`: put it on those to differentiate, too";
        return Err(Error::new(block.self_ty.span(), what));
    }
    let made: TokenStream = made
        .into_iter()
        .map(|made| made.unwrap_or_else(Error::into_compile_error))
        .collect();
    let block = block.to_token_stream();
    Ok(quote!(#block #made))
}

fn is_ours(attribute: &Attribute) -> bool {
    attribute
        .path()
        .segments
        .last()
        .is_some_and(|last| last.ident == "differentiable")
}

fn options(attribute: &Attribute) -> syn::Result<Options> {
    match &attribute.meta {
        Meta::Path(_) => Ok(Options::default()),
        _ => attribute.parse_args(),
    }
}

/// `LinearLayer` as `linear_layer`.
fn snake(name: &str) -> String {
    let mut out = String::new();
    let mut before = '_';
    for c in name.chars() {
        if c.is_uppercase() && (before.is_lowercase() || before.is_numeric()) {
            out.push('_');
        }
        out.extend(c.to_lowercase());
        before = c;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_types_in_snake_case() {
        for (camel, expected) in [
            ("Model", "model"),
            ("LinearLayer", "linear_layer"),
            ("MLP", "mlp"),
            ("V2Net", "v2_net"),
        ] {
            assert_eq!(snake(camel), expected);
        }
    }
}
