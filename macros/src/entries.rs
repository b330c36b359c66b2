//! The entry points of a function, each with its twin that returns a `Result`.

use crate::signature::{Param, Signature};
use crate::tensors;
use crate::types;
use proc_macro2::{Literal, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Generics, Ident};

/// What an entry point needs of a kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mode {
    Pullback,
    Gradient,
    Tangent,
}

impl Mode {
    pub(crate) const ALL: [Mode; 3] = [Mode::Pullback, Mode::Gradient, Mode::Tangent];

    /// The name of the function with the marker.
    pub(crate) fn function(self) -> Ident {
        format_ident!("__kernel_{}", format!("{self:?}").to_lowercase())
    }
}

/// The entry points and their `try_` twins, and the names of those that only some functions have.
pub(crate) fn entries(signature: &Signature) -> (TokenStream, TokenStream) {
    let Signature { ret, turbofish, .. } = signature;
    let tangents = Ident::new("tangents", Span::mixed_site());
    let names: Vec<&Ident> = signature.params.iter().map(|param| &param.name).collect();
    let args = quote!((#(#names,)*));
    let Closures {
        reach,
        shape,
        finals,
        tangents: tangent_leaves,
        output,
    } = Closures::new(signature, &tangents);
    let output_tangent = if signature.params.iter().any(|param| param.seeded) {
        quote!(__Seed)
    } else {
        let ret = types::without_lifetimes(ret);
        quote_spanned!(ret.span()=> <#ret as ::cotangent::Differentiable>::Cotangent)
    };
    let call = |entry: &str, mode: Mode, rest: TokenStream| {
        let (entry, kernel) = (format_ident!("{entry}"), mode.function());
        quote! {
            ::cotangent::__private::#entry::<_, #ret, _>(
                #kernel #turbofish (), __function #turbofish, #args, #reach, #rest
            )
        }
    };
    let value_and_grad = call("value_and_grad", Mode::Gradient, quote!(#shape, #finals));
    let vjp = call("vjp", Mode::Pullback, quote!(#shape, #finals));
    let own = || {
        let params = signature.params.iter();
        params
            .map(|Param { name, ty, .. }| quote!(#name: #ty))
            .collect::<Vec<_>>()
    };
    let attached = tensors::attached(signature, &Mode::Pullback.function(), [&reach, &shape, &finals]);
    let attached = attached.unwrap_or_else(|| tensors::Attached {
        generics: signature.generics.clone(),
        params: own(),
        ret: ret.to_token_stream(),
        body: quote!(::cotangent::__private::autograd::<_, #ret>(__function #turbofish (), #args, #reach)),
        register: None,
    });
    let register = attached.register;
    let names = register.as_ref().map(|_| quote!(register,)).unwrap_or_default();
    let jvp_params = own().into_iter().chain([quote!(#tangents: __Tangents)]).collect();
    let entries: TokenStream = [
        Entry {
            name: "value_and_grad",
            doc: "The result and the cotangents for a seed of one: the result must be one number.",
            generics: signature.generics.clone(),
            params: own(),
            gives: quote!((#ret, __Cotangents)),
            body: value_and_grad.clone(),
        },
        Entry {
            name: "grad",
            doc: "The cotangents for a seed of one: the result must be one number.",
            generics: signature.generics.clone(),
            params: own(),
            gives: quote!(__Cotangents),
            body: quote!(#value_and_grad.map(|(_, cotangents)| cotangents)),
        },
        Entry {
            name: "vjp",
            doc: "The result and its pullback.",
            generics: signature.generics.clone(),
            params: own(),
            gives: quote!((#ret, __Pullback)),
            body: quote!(#vjp.map(|(result, pull)| (result, __Pullback(pull)))),
        },
        Entry {
            name: "jvp",
            doc: "The result and its tangent.",
            generics: signature.generics.clone(),
            params: jvp_params,
            gives: quote!((#ret, #output_tangent)),
            body: call("jvp", Mode::Tangent, quote!(#tangent_leaves, #finals, #output)),
        },
        Entry {
            name: "autograd",
            doc: "The result, attached to LibTorch's graph: `backward` runs the compiled pullback.",
            generics: attached.generics,
            params: attached.params,
            gives: attached.ret,
            body: attached.body,
        },
    ]
    .iter()
    .map(Entry::twins)
    .collect();
    (quote!(#entries #register), names)
}

/// An entry point.
struct Entry {
    name: &'static str,
    doc: &'static str,
    generics: Generics,
    params: Vec<TokenStream>,
    gives: TokenStream,
    /// An expression of type `Result`.
    body: TokenStream,
}

impl Entry {
    /// The entry point and its twin that returns a `Result`.
    fn twins(&self) -> TokenStream {
        let Entry {
            doc,
            generics,
            params,
            gives,
            body,
            ..
        } = self;
        let (name, twin) = (format_ident!("{}", self.name), format_ident!("try_{}", self.name));
        let wheres = &generics.where_clause;
        let twin_doc = format!("{doc} Failures are returned.");
        quote! {
            #[doc = #doc]
            #[inline]
            #[track_caller]
            pub fn #name #generics (#(#params),*) -> #gives #wheres {
                ::cotangent::__private::unwrap(#body)
            }
            #[doc = #twin_doc]
            #[inline]
            pub fn #twin #generics (#(#params),*) -> ::core::result::Result<#gives, ::cotangent::Error> #wheres {
                ::cotangent::__private::caught(move || #body)
            }
        }
    }
}

/// Closures over the tuple of arguments that say where leaves are.
struct Closures {
    /// Leaves of the differentiated parameters, and memory beside them that a kernel may write to.
    reach: TokenStream,
    /// Cotangents with the structure of the arguments.
    shape: TokenStream,
    /// Leaves of final values.
    finals: TokenStream,
    /// Leaves of the tangents.
    tangents: TokenStream,
    /// The tangents of the outputs.
    output: TokenStream,
}

impl Closures {
    fn new(signature: &Signature, tangents: &Ident) -> Closures {
        let params = || {
            let params = signature.params.iter().enumerate();
            params.map(|(at, param)| (Literal::usize_unsuffixed(at), param))
        };
        let reach = params().filter_map(|(at, param)| match param {
            Param { wrt: true, .. } => Some(quote!(leaves.of(#at, &args.#at);)),
            Param { ty, .. } if types::may_be_written(ty) => Some(quote!({
                use ::cotangent::__private::{BesideConstants as _, BesideLeaves as _};
                (&::cotangent::__private::Beside(&args.#at)).list(leaves);
            })),
            _ => None,
        });
        let (wrt, names): (Vec<_>, Vec<_>) = params()
            .filter(|(_, param)| param.wrt)
            .map(|(at, param)| (at, &param.name))
            .unzip();
        let (finals, final_names): (Vec<_>, Vec<_>) = params()
            .filter(|(_, param)| param.seeded)
            .map(|(at, param)| (at, &param.name))
            .unzip();
        let tangent = if finals.is_empty() {
            quote!(::cotangent::Differentiable::cotangent(result, source))
        } else {
            let ret = (!types::is_unit(&signature.ret))
                .then(|| quote!(ret: ::cotangent::Differentiable::seed(result, source)?,));
            quote!(__Seed {
                #ret
                #(#final_names: ::cotangent::Differentiable::cotangent(&args.#finals, source),)*
            })
        };
        Closures {
            reach: quote!(|args, leaves| { #(#reach)* }),
            shape: quote!(|args, source| __Cotangents {
                #(#names: ::cotangent::Differentiable::cotangent(&args.#wrt, source),)*
            }),
            finals: quote!(|args, leaves| { #(leaves.of(#finals, &args.#finals);)* }),
            tangents: quote!(|leaves| { #(leaves.of(#wrt, &#tangents.#names);)* }),
            output: quote!(|args, result, source| ::core::option::Option::Some(#tangent)),
        }
    }
}
