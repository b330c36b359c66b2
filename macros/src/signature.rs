//! A function as the entry points need it: named parameters, and which of them are differentiated.

use crate::types;
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit_mut::VisitMut;
use syn::{
    Attribute, Error, FnArg, GenericParam, Generics, Ident, Pat, ReceiverKind, ReturnType, Token, Type, Visibility,
    parse_quote,
};

/// The most parameters that the runtime's tuples take.
const MOST_PARAMETERS: usize = 24;

/// What stands in the parentheses of `#[differentiable(..)]`.
#[derive(Default)]
pub(crate) struct Options {
    /// The parameters to differentiate; by default all that can carry a derivative.
    pub(crate) wrt: Option<Vec<Ident>>,
}

impl Parse for Options {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let mut options = Options::default();
        while !input.is_empty() {
            let word: Ident = input.parse()?;
            if word != "wrt" || options.wrt.is_some() {
                return Err(Error::new(
                    word.span(),
                    "expected `wrt(..)`, once: `#[differentiable(wrt(x, y))]`",
                ));
            }
            let names;
            syn::parenthesized!(names in input);
            let names = names.call(Punctuated::<Ident, Token![,]>::parse_terminated_with_self)?;
            options.wrt = Some(names.into_iter().collect());
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(options)
    }
}

/// `self` is a keyword, so that it is not parsed as an identifier of a list.
trait Names {
    fn parse_terminated_with_self(input: ParseStream) -> syn::Result<Punctuated<Ident, Token![,]>>;
}

impl Names for Punctuated<Ident, Token![,]> {
    fn parse_terminated_with_self(input: ParseStream) -> syn::Result<Self> {
        input.parse_terminated(
            |input| {
                if input.peek(Token![self]) {
                    let this: Token![self] = input.parse()?;
                    return Ok(Ident::new("this", this.span));
                }
                input.parse()
            },
            Token![,],
        )
    }
}

/// A parameter.
pub(crate) struct Param {
    /// Its name (`this` for `self`).
    pub(crate) name: Ident,
    /// Its type, as seen from the entry points.
    pub(crate) ty: Type,
    /// Whether it is differentiated.
    pub(crate) wrt: bool,
    /// Whether it is `&mut`.
    pub(crate) mutable: bool,
    /// Whether its final value is an output that takes a seed.
    pub(crate) seeded: bool,
}

/// A function.
pub(crate) struct Signature {
    /// The name of the module of entry points.
    pub(crate) module: Ident,
    /// The function, as seen from the entry points, without generic arguments.
    pub(crate) callee: TokenStream,
    /// Visibility of the function and the module.
    pub(crate) vis: Visibility,
    /// Its `#[cfg]`s.
    pub(crate) cfgs: Vec<Attribute>,
    /// Its generic parameters, those of the `impl` block included.
    pub(crate) generics: Generics,
    /// Generic arguments to call it with.
    pub(crate) turbofish: TokenStream,
    /// Its parameters.
    pub(crate) params: Vec<Param>,
    /// What it returns.
    pub(crate) ret: Type,
}

/// The `impl` block around a method.
pub(crate) struct Block<'a> {
    pub(crate) this: &'a Type,
    pub(crate) generics: &'a Generics,
    /// The name of the type, in snake case.
    pub(crate) prefix: &'a str,
}

impl Signature {
    /// Reads a function, or a method of a block.
    pub(crate) fn new(
        options: Options,
        attrs: &[Attribute],
        vis: &Visibility,
        sig: &syn::Signature,
        block: Option<&Block<'_>>,
    ) -> syn::Result<Signature> {
        refuse_qualifiers(sig)?;
        // The module `imp` of the module of entry points sees items of the function's module by a glob.
        let mut inwards = types::Inwards {
            this: block.map(|block| block.this),
        };
        let mut generics = merged(&sig.generics, block.map(|block| block.generics));
        inwards.visit_generics_mut(&mut generics);
        let this = block.map(|block| {
            let mut this = block.this.clone();
            types::Inwards { this: None }.visit_type_mut(&mut this);
            this
        });
        inwards.this = this.as_ref();
        let mut params = sig
            .inputs
            .iter()
            .enumerate()
            .map(|(at, input)| param(at, input, &mut inwards))
            .collect::<syn::Result<Vec<Param>>>()?;
        if params.is_empty() {
            return Err(Error::new(
                sig.paren_token.span.join(),
                "a function without parameters has no derivative",
            ));
        }
        if params.len() > MOST_PARAMETERS {
            let what = format!(
                "a differentiable function can have at most {MOST_PARAMETERS} parameters: group some in a struct"
            );
            return Err(Error::new(sig.paren_token.span.join(), what));
        }
        select(&mut params, options.wrt.as_deref(), sig)?;
        let mut ret = match &sig.output {
            ReturnType::Default => parse_quote!(()),
            ReturnType::Type(_, ty) => (**ty).clone(),
        };
        if types::has_impl_trait(&ret) || matches!(ret, Type::Never(_)) {
            return Err(Error::new(
                ret.span(),
                "the result of a differentiable function must have a type that can be named",
            ));
        }
        inwards.visit_type_mut(&mut ret);
        independent(&params, &ret, &generics)?;
        let ident = &sig.ident;
        let (module, callee) = match (block, &this) {
            (Some(block), Some(this)) => {
                let module = Ident::new(&format!("{}_{}", block.prefix, plain(ident)), ident.span());
                (module, quote!(<#this>::#ident))
            }
            _ => (ident.clone(), quote!(super::super::#ident)),
        };
        let own: Vec<TokenStream> = sig.generics.params.iter().filter_map(argument).collect();
        Ok(Signature {
            module,
            callee: if own.is_empty() {
                callee
            } else {
                quote!(#callee::<#(#own),*>)
            },
            vis: vis.clone(),
            cfgs: attrs
                .iter()
                .filter(|attr| attr.path().is_ident("cfg"))
                .cloned()
                .collect(),
            turbofish: {
                let all: Vec<TokenStream> = generics.params.iter().filter_map(argument).collect();
                if all.is_empty() {
                    TokenStream::new()
                } else {
                    quote!(::<#(#all),*>)
                }
            },
            generics,
            params,
            ret,
        })
    }

    /// Whether there is one instance only.
    pub(crate) fn is_generic(&self) -> bool {
        !self.turbofish.is_empty()
    }
}

/// An identifier's name without `r#`.
pub(crate) fn plain(ident: &Ident) -> String {
    let name = ident.to_string();
    name.strip_prefix("r#").map(str::to_owned).unwrap_or(name)
}

fn refuse_qualifiers(sig: &syn::Signature) -> syn::Result<()> {
    let refused = [
        (
            sig.asyncness.map(|t| t.span),
            "an `async` function is not differentiable: its body runs elsewhere",
        ),
        (
            match sig.safety {
                syn::Safety::Unsafe(token) => Some(token.span),
                _ => None,
            },
            "an `unsafe` function is not differentiable: its entry points would be safe",
        ),
        (
            sig.variadic.as_ref().map(Spanned::span),
            "a variadic function is not differentiable",
        ),
    ];
    match refused.into_iter().find_map(|(span, why)| Some((span?, why))) {
        Some((span, why)) => Err(Error::new(span, why)),
        None => Ok(()),
    }
}

fn merged(own: &Generics, outer: Option<&Generics>) -> Generics {
    let Some(outer) = outer else { return own.clone() };
    let all = || outer.params.iter().chain(&own.params);
    let lifetime = |param: &&GenericParam| matches!(param, GenericParam::Lifetime(_));
    let params = all()
        .filter(lifetime)
        .chain(all().filter(|param| !lifetime(param)))
        .cloned()
        .collect();
    let predicates = [outer, own]
        .into_iter()
        .filter_map(|g| g.where_clause.as_ref())
        .flat_map(|w| w.predicates.clone());
    let predicates: Punctuated<_, Token![,]> = predicates.collect();
    Generics {
        lt_token: Some(Default::default()),
        params,
        gt_token: Some(Default::default()),
        where_clause: (!predicates.is_empty()).then(|| parse_quote!(where #predicates)),
    }
}

/// A type or const parameter as an argument. Lifetimes are left to inference: some are late bound.
fn argument(param: &GenericParam) -> Option<TokenStream> {
    match param {
        GenericParam::Type(param) => Some(param.ident.to_token_stream()),
        GenericParam::Const(param) => Some(param.ident.to_token_stream()),
        GenericParam::Lifetime(_) => None,
    }
}

/// The type of `self`.
fn receiver_type(receiver: &syn::Receiver) -> syn::Result<Type> {
    match &receiver.kind {
        ReceiverKind::Value => Ok(parse_quote!(Self)),
        ReceiverKind::Reference(and, lifetime, mutability) => Ok(parse_quote!(#and #lifetime #mutability Self)),
        ReceiverKind::Typed(_, ty) => Ok((**ty).clone()),
        _ => Err(Error::new(
            receiver.span(),
            "this form of `self` is not differentiable: write `&self`",
        )),
    }
}

fn param(at: usize, input: &FnArg, inwards: &mut types::Inwards<'_>) -> syn::Result<Param> {
    let (name, mut ty) = match input {
        FnArg::Receiver(receiver) if inwards.this.is_some() => {
            (Ident::new("this", receiver.self_token.span), receiver_type(receiver)?)
        }
        FnArg::Receiver(receiver) => {
            let what = "a method needs `#[differentiable]` on its `impl` block, too; trait methods are not differentiable: \
                        mark a free function that calls them";
            return Err(Error::new(receiver.span(), what));
        }
        FnArg::Typed(typed) => {
            let name = match &*typed.pat {
                Pat::Ident(pat) if pat.subpat.is_none() => pat.ident.clone(),
                other => Ident::new(&format!("argument_{at}"), other.span()),
            };
            (name, (*typed.ty).clone())
        }
    };
    if types::has_impl_trait(&ty) {
        return Err(Error::new(
            ty.span(),
            "`impl Trait` hides the type: write a generic parameter instead",
        ));
    }
    inwards.visit_type_mut(&mut ty);
    Ok(Param {
        name,
        mutable: types::is_mutable(&ty),
        ty,
        wrt: false,
        seeded: false,
    })
}

/// Decides what is differentiated, and which final values are outputs.
fn select(params: &mut [Param], wrt: Option<&[Ident]>, sig: &syn::Signature) -> syn::Result<()> {
    match wrt {
        None => params
            .iter_mut()
            .for_each(|param| param.wrt = !types::is_constant(&param.ty)),
        Some(names) => {
            for name in names {
                let known: Vec<String> = params.iter().map(|param| format!("`{}`", param.name)).collect();
                let Some(param) = params.iter_mut().find(|param| param.name == *name) else {
                    let what = format!("`{}` has no parameter `{name}`; it has {}", sig.ident, known.join(", "));
                    return Err(Error::new(name.span(), what));
                };
                if param.wrt {
                    return Err(Error::new(name.span(), format!("`{name}` is named twice")));
                }
                if types::is_constant(&param.ty) {
                    let ty = param.ty.to_token_stream();
                    return Err(Error::new(name.span(), format!("`{name}: {ty}` has no derivative")));
                }
                param.wrt = true;
            }
        }
    }
    if !params.iter().any(|param| param.wrt) {
        let what = format!("`{}` has no parameter that can carry a derivative", sig.ident);
        return Err(Error::new(sig.paren_token.span.join(), what));
    }
    for param in params.iter_mut() {
        // Unknown types that are not differentiated (a generator of random numbers) need not be differentiable.
        param.seeded = param.mutable && !types::is_constant(&param.ty) && (param.wrt || types::is_known(&param.ty));
    }
    let seeded = params.iter().any(|param| param.seeded);
    if let Some(param) = params
        .iter()
        .find(|param| param.seeded && param.name == "ret")
        .filter(|_| seeded)
    {
        return Err(Error::new(
            param.name.span(),
            "the seed of the result is called `ret`: rename the parameter",
        ));
    }
    let unnamed = |param: &&Param| (param.wrt || param.seeded) && param.name.to_string().starts_with("argument_");
    if let Some(param) = params.iter().find(unnamed) {
        return Err(Error::new(
            param.name.span(),
            "a differentiated parameter needs a name, which its cotangent will have",
        ));
    }
    Ok(())
}

/// Cotangents and seeds do not depend on generic parameters.
fn independent(params: &[Param], ret: &Type, generics: &Generics) -> syn::Result<()> {
    let names: Vec<Ident> = generics
        .params
        .iter()
        .filter_map(|param| match param {
            GenericParam::Type(param) => Some(param.ident.clone()),
            GenericParam::Const(param) => Some(param.ident.clone()),
            GenericParam::Lifetime(_) => None,
        })
        .collect();
    for param in params.iter().filter(|param| param.wrt || param.seeded) {
        if let Some(name) = types::mentions(&param.ty, &names) {
            let what = format!(
                "the cotangent of `{}` would depend on the generic parameter `{name}`: name the parameters to differentiate, \
                 without this one (`wrt(..)`), or differentiate a function that is not generic",
                param.name
            );
            return Err(Error::new(param.ty.span(), what));
        }
    }
    match types::mentions(ret, &names) {
        None => Ok(()),
        Some(name) => {
            let what = format!(
                "the seed would depend on the generic parameter `{name}`: differentiate a function that is not generic"
            );
            Err(Error::new(ret.span(), what))
        }
    }
}
