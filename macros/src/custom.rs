//! Attributes that say what the derivative of a function is: `#[custom_vjp]`, `#[inactive]`, `#[op]`. Each leaves a
//! marker in the function for the pass; a plain call runs the body.

use crate::module::{cotangent_of, description};
use crate::signature::{Options, Signature};
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Error, FnArg, Ident, ItemFn, Pat, Path, Token};

/// `forward = f_fwd, backward = f_bwd`.
struct Rule {
    forward: Path,
    backward: Path,
}

impl Parse for Rule {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let (mut forward, mut backward) = (None, None);
        while !input.is_empty() {
            let word: Ident = input.parse()?;
            input.parse::<Token![=]>()?;
            let place = match word.to_string().as_str() {
                "forward" => &mut forward,
                "backward" => &mut backward,
                _ => return Err(Error::new(word.span(), "expected `forward = ..` and `backward = ..`")),
            };
            if place.replace(input.parse::<Path>()?).is_some() {
                return Err(Error::new(word.span(), format!("`{word}` is given twice")));
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        match (forward, backward) {
            (Some(forward), Some(backward)) => Ok(Rule { forward, backward }),
            _ => Err(input.error("a rule has both halves: `#[custom_vjp(forward = f_fwd, backward = f_bwd)]`")),
        }
    }
}

/// Expands `#[custom_vjp]`.
pub(crate) fn custom_vjp(arguments: TokenStream, item: TokenStream) -> TokenStream {
    or_error(item.clone(), || {
        let rule = syn::parse2::<Rule>(arguments)?;
        let function = syn::parse2::<ItemFn>(item)?;
        with_rule(&rule, &function)
    })
}

/// The function with its body in a function of its own, to which a marker call leads.
fn with_rule(rule: &Rule, function: &ItemFn) -> syn::Result<TokenStream> {
    if let Some(receiver) = function.sig.receiver() {
        return Err(Error::new(
            receiver.span(),
            "a method cannot have a rule: give it to a free function",
        ));
    }
    let signature = Signature::new(Options::default(), &function.attrs, &function.vis, &function.sig, None)?;
    if let Some(param) = signature.params.iter().find(|param| param.mutable) {
        let what = "a function with a rule returns its result: it takes no `&mut` parameter";
        return Err(Error::new(param.ty.span(), what));
    }
    let mut names = Vec::new();
    for input in &function.sig.inputs {
        match input {
            FnArg::Typed(typed) => match &*typed.pat {
                Pat::Ident(pat) => names.push(pat.ident.clone()),
                other => return Err(Error::new(other.span(), "give the parameter a name")),
            },
            FnArg::Receiver(_) => unreachable!("refused above"),
        }
    }
    let ItemFn { attrs, vis, sig, block } = function;
    let mut primal = sig.clone();
    primal.ident = Ident::new("__primal", proc_macro2::Span::mixed_site());
    let primal_name = &primal.ident;
    let mut outer = sig.clone();
    for input in &mut outer.inputs {
        if let FnArg::Typed(typed) = input
            && let Pat::Ident(pat) = &mut *typed.pat
        {
            pat.mutability = None;
        }
    }
    let types: Vec<_> = sig
        .inputs
        .iter()
        .filter_map(|input| match input {
            FnArg::Typed(typed) => Some(&typed.ty),
            FnArg::Receiver(_) => None,
        })
        .collect();
    let ret = match &sig.output {
        syn::ReturnType::Default => quote!(()),
        syn::ReturnType::Type(_, ty) => ty.to_token_stream(),
    };
    let cotangents: Vec<TokenStream> = signature
        .params
        .iter()
        .zip(&types)
        .filter(|(param, _)| param.wrt)
        .map(|(_, ty)| cotangent_of(ty))
        .collect();
    let gives = match cotangents.as_slice() {
        [one] => one.clone(),
        many => quote!((#(#many),*)),
    };
    let turbofish = &signature.turbofish;
    let Rule { forward, backward } = rule;
    let description = description(&signature, &format!("::{}", sig.ident));
    Ok(quote! {
        #(#attrs)*
        #[inline(never)]
        #vis #outer {
            #[allow(clippy::all)]
            #primal #block
            let rule = const {
                &::cotangent::__private::rule_of::<(#(#types,)*), #ret, _, #gives, _, _, _>(
                    #description,
                    #primal_name #turbofish,
                    #forward,
                    #backward,
                )
            };
            ::cotangent::__private::call_with_rule::<(#(#types,)*), #ret>(rule, (#(#names,)*))
        }
    })
}

/// Expands `#[inactive]`.
pub(crate) fn inactive(arguments: TokenStream, item: TokenStream) -> TokenStream {
    or_error(item.clone(), || {
        if !arguments.is_empty() {
            return Err(Error::new(arguments.span(), "`#[inactive]` has no arguments"));
        }
        marked(syn::parse2(item)?, &quote!(::cotangent::__private::inactive();))
    })
}

/// Expands `#[op]`.
pub(crate) fn op(arguments: TokenStream, item: TokenStream) -> TokenStream {
    or_error(item.clone(), || {
        let name = syn::parse2::<Ident>(arguments)?.to_string();
        marked(syn::parse2(item)?, &quote!(::cotangent::__private::op(#name);))
    })
}

/// The function with a marker at its start. It stays a function of its own, which the pass knows by the marker.
fn marked(mut function: ItemFn, marker: &TokenStream) -> syn::Result<TokenStream> {
    let block = &function.block;
    function.block = syn::parse2(quote!({ #marker #block }))?;
    Ok(quote!(#[inline(never)] #function))
}

fn or_error(item: TokenStream, make: impl FnOnce() -> syn::Result<TokenStream>) -> TokenStream {
    make().unwrap_or_else(|error| {
        let error = error.into_compile_error();
        quote!(#item #error)
    })
}
