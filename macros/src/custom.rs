//! Attributes that say what the derivative of a function is: `#[custom_vjp]`, `#[custom_jvp]`, `#[inactive]`. Each
//! leaves a marker in the function for the pass; a plain call runs the body.

use crate::module::{cotangent_of, description};
use crate::signature::{Options, Signature};
use proc_macro2::{Literal, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Error, FnArg, Ident, ItemFn, Pat, Path, Token, Type};

/// `forward = f_fwd, backward = f_bwd, tangent = f_jvp`: the first two or the last, or all.
#[derive(Default)]
pub(crate) struct Rule {
    pub(crate) reverse: Option<(Path, Path)>,
    pub(crate) tangent: Option<Path>,
}

impl Parse for Rule {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let (mut forward, mut backward, mut tangent) = (None, None, None);
        while !input.is_empty() {
            let word: Ident = input.parse()?;
            let place = match word.to_string().as_str() {
                "forward" => &mut forward,
                "backward" => &mut backward,
                "tangent" => &mut tangent,
                _ => {
                    return Err(Error::new(
                        word.span(),
                        "expected `forward = ..` and `backward = ..`, or `tangent = ..`",
                    ));
                }
            };
            input.parse::<Token![=]>()?;
            if place.replace(input.parse::<Path>()?).is_some() {
                return Err(Error::new(word.span(), format!("`{word}` is given twice")));
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        let reverse = match (forward, backward) {
            (Some(forward), Some(backward)) => Some((forward, backward)),
            (None, None) => None,
            _ => {
                return Err(input.error("a rule has both halves: `#[custom_vjp(forward = f_fwd, backward = f_bwd)]`"));
            }
        };
        Ok(Rule { reverse, tangent })
    }
}

/// Expands `#[custom_vjp]`.
pub(crate) fn custom_vjp(arguments: TokenStream, item: TokenStream) -> TokenStream {
    or_error(item.clone(), || {
        let span = arguments.span();
        let rule = syn::parse2::<Rule>(arguments)?;
        if rule.reverse.is_none() {
            let what = "a rule has both halves: `#[custom_vjp(forward = f_fwd, backward = f_bwd)]`";
            return Err(Error::new(span, what));
        }
        with_rule(&rule, &syn::parse2::<ItemFn>(item)?)
    })
}

/// Expands `#[custom_jvp]`.
pub(crate) fn custom_jvp(arguments: TokenStream, item: TokenStream) -> TokenStream {
    or_error(item.clone(), || {
        let span = arguments.span();
        let rule = syn::parse2::<Rule>(arguments)?;
        if rule.tangent.is_none() || rule.reverse.is_some() {
            let what = "a tangent rule is one function: `#[custom_jvp(tangent = f_jvp)]`; where there is a reverse rule, too, \
                        write all in `#[custom_vjp(forward = .., backward = .., tangent = ..)]`";
            return Err(Error::new(span, what));
        }
        with_rule(&rule, &syn::parse2::<ItemFn>(item)?)
    })
}

/// The function with its body in a function of its own, to which a marker call leads.
pub(crate) fn with_rule(rule: &Rule, function: &ItemFn) -> syn::Result<TokenStream> {
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
    let (names, types) = parameters(function)?;
    let ItemFn {
        attrs, vis, sig, block, ..
    } = function;
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
    let ret = match &sig.output {
        syn::ReturnType::Default => quote!(()),
        syn::ReturnType::Type(_, ty) => ty.to_token_stream(),
    };
    let selected: Vec<(usize, &Type)> = types
        .iter()
        .enumerate()
        .filter(|(at, _)| signature.params[*at].wrt)
        .map(|(at, ty)| (at, *ty))
        .collect();
    let (at, ty): (Vec<_>, Vec<_>) = selected
        .iter()
        .map(|(at, ty)| (Literal::usize_unsuffixed(*at), *ty))
        .unzip();
    let reach = quote! {
        |args: &::cotangent::__private::Addresses, leaves: &mut ::cotangent::__private::Leaves| {
            #(args.leaves::<#ty>(#at, leaves);)*
        }
    };
    let jvp = rule.tangent.as_ref().map(|tangent| {
        let tangents: Vec<Ident> = selected.iter().map(|(at, _)| format_ident!("tangent_{at}")).collect();
        let all = (0..types.len()).map(Literal::usize_unsuffixed);
        quote! {
            |args: &::cotangent::__private::Addresses, source: &mut ::cotangent::__private::Source| {
                #(let #tangents = args.tangent::<#ty>(#at, source);)*
                #tangent(#(args.take::<#types>(#all),)* #(#tangents),*)
            }
        }
    });
    let turbofish = &signature.turbofish;
    let description = description(&signature, &format!("::{}", sig.ident));
    let (rule, call) = match &rule.reverse {
        Some((forward, backward)) => {
            let cotangents: Vec<TokenStream> = selected.iter().map(|(_, ty)| cotangent_of(ty)).collect();
            let gives = match cotangents.as_slice() {
                [one] => one.clone(),
                many => quote!((#(#many),*)),
            };
            let tangent = jvp.map(|jvp| quote!(.with_tangent::<#ret, _, _>(#jvp, #reach)));
            let rule = quote! {
                ::cotangent::__private::rule_of::<(#(#types,)*), #ret, _, #gives, _, _, _, _>(
                    #description,
                    #primal_name #turbofish,
                    #forward,
                    #backward,
                    #reach,
                )#tangent
            };
            (rule, quote!(call_with_rule))
        }
        None => {
            let rule = quote! {
                ::cotangent::__private::tangent_rule_of::<(#(#types,)*), #ret, _, _, _>(
                    #description,
                    #primal_name #turbofish,
                    #jvp,
                    #reach,
                )
            };
            (rule, quote!(call_with_tangent_rule))
        }
    };
    Ok(quote! {
        #(#attrs)*
        #[inline(never)]
        #vis #outer {
            #[allow(clippy::all)]
            #primal #block
            let rule = const { &#rule };
            ::cotangent::__private::#call::<(#(#types,)*), #ret>(rule, (#(#names,)*))
        }
    })
}

/// The names and types of the parameters.
fn parameters<'a>(function: &'a ItemFn) -> syn::Result<(Vec<Ident>, Vec<&'a Type>)> {
    let parameter = |input: &'a FnArg| match input {
        FnArg::Typed(typed) => match &*typed.pat {
            Pat::Ident(pat) => Ok((pat.ident.clone(), &*typed.ty)),
            other => Err(Error::new(other.span(), "give the parameter a name")),
        },
        FnArg::Receiver(_) => unreachable!("refused above"),
    };
    function.sig.inputs.iter().map(parameter).collect()
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

/// The function with a marker at its start. It stays a function of its own, which the pass knows by the marker.
fn marked(mut function: ItemFn, marker: &TokenStream) -> syn::Result<TokenStream> {
    let block = &function.block;
    function.block = syn::parse2(quote!({ #marker #block }))?;
    Ok(quote!(#[inline(never)] #function))
}

pub(crate) fn or_error(item: TokenStream, make: impl FnOnce() -> syn::Result<TokenStream>) -> TokenStream {
    make().unwrap_or_else(|error| {
        let error = error.into_compile_error();
        quote!(#item #error)
    })
}
