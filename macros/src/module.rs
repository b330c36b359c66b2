//! The module of entry points that stands beside a differentiable function.
//!
//! ```text
//! mod f {
//!     const __DESCRIPTION: &str = ..;              // its `module_path!()` is the path of the function
//!     mod imp { use super::super::*; .. }          // sees what the function sees; nothing else is named there
//!     pub use imp::{grad, vjp, .., __Cotangents as Cotangents};
//! }
//! ```
//!
//! Types of the signature are resolved in `imp`, where only names with two underscores are defined: a user's own type
//! may be called `Cotangents` or `Seed`.

use crate::signature::{Param, Signature, plain};
use crate::types;
use proc_macro2::{Literal, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Ident, Type};

/// Writes the module.
pub(crate) fn expand(signature: &Signature) -> TokenStream {
    let Signature { module, vis, cfgs, .. } = signature;
    let description = description(signature, "");
    let request = request(signature);
    let types = value_types(signature);
    let entries = entries(signature);
    let seed = signature
        .params
        .iter()
        .any(|param| param.seeded)
        .then(|| quote!(__Seed as Seed,));
    let doc = format!("Derivatives of the function `{}`.", plain(module));
    quote! {
        #(#cfgs)*
        #[doc = #doc]
        #[allow(
            dead_code,
            unused_imports,
            unreachable_pub,
            private_interfaces,
            private_bounds,
            non_snake_case,
            non_camel_case_types,
            clippy::all,
            clippy::pedantic
        )]
        #vis mod #module {
            const __DESCRIPTION: &str = #description;
            mod imp {
                use super::super::*;
                #request
                #types
                #entries
            }
            pub use imp::{
                __Cotangents as Cotangents, __Pullback as Pullback, __Tangents as Tangents, #seed
                autograd, grad, jvp, try_autograd, try_grad, try_jvp, try_value_and_grad, try_vjp, value_and_grad, vjp,
            };
        }
    }
}

/// The description that the pass and the runtime read, as JSON. The name is the path of the module around it, with
/// `suffix`.
pub(crate) fn description(signature: &Signature, suffix: &str) -> TokenStream {
    let text = |tokens: &dyn ToTokens| quoted(&tokens.to_token_stream().to_string());
    let params: Vec<String> = signature
        .params
        .iter()
        .map(|param| {
            let (name, ty) = (quoted(&plain(&param.name)), text(&param.ty));
            format!(
                r#"{{"name":{name},"ty":{ty},"wrt":{},"mutable":{}}}"#,
                param.wrt, param.mutable
            )
        })
        .collect();
    let rest = format!(
        r#"","line":{},"params":[{}],"ret":{}}}"#,
        signature.module.span().start().line,
        params.join(","),
        text(&signature.ret)
    );
    quote! {
        ::core::concat!("{\"name\":\"", ::core::module_path!(), #suffix, "\",\"file\":\"", ::core::file!(), #rest)
    }
}

/// A JSON string.
fn quoted(text: &str) -> String {
    let escaped: String = text
        .chars()
        .flat_map(|c| match c {
            '"' | '\\' => vec!['\\', c],
            '\n' => vec![' '],
            c => vec![c],
        })
        .collect();
    format!("\"{escaped}\"")
}

/// `__request`, the marker, and `__function`, which remembers the answer; and the markers of kernels.
fn request(signature: &Signature) -> TokenStream {
    let Signature {
        callee,
        generics,
        turbofish,
        ret,
        ..
    } = signature;
    let params = signature.params.iter().map(|param| &param.ty);
    let shim = quote!(const { ::cotangent::__private::shim_of::<(#(#params,)*), #ret, _>(#callee) });
    let wheres = &generics.where_clause;
    let instance = if signature.is_generic() {
        quote!(::cotangent::__private::instance_of(#callee))
    } else {
        quote!("")
    };
    // Each stands alone in a function, where the pass reads its constants.
    let kernels = Mode::ALL.into_iter().map(|mode| {
        let (name, mode) = (mode.function(), format_ident!("{mode:?}"));
        quote! {
            #[inline(never)]
            fn #name #generics () -> ::core::option::Option<&'static ::cotangent::__private::Kernel> #wheres {
                let instance = #instance;
                ::cotangent::__private::kernel(
                    super::__DESCRIPTION, instance, #shim, ::cotangent::__private::Mode::#mode,
                )
            }
        }
    });
    let request = quote! {
        #[inline(never)]
        fn __request #generics () -> &'static ::cotangent::__private::Function #wheres {
            let instance = #instance;
            ::cotangent::__private::request(super::__DESCRIPTION, instance, #shim)
        }
    };
    let function = if signature.is_generic() {
        quote! {
            fn __function #generics () -> &'static ::cotangent::__private::Function #wheres {
                __request #turbofish ()
            }
        }
    } else {
        quote! {
            fn __function() -> &'static ::cotangent::__private::Function {
                static FUNCTION: ::std::sync::OnceLock<&'static ::cotangent::__private::Function> =
                    ::std::sync::OnceLock::new();
                FUNCTION.get_or_init(__request)
            }
            // The request stays in the program when nothing calls an entry point: `register` serves the function, too.
            #[used]
            static __REQUESTED: fn() -> &'static ::cotangent::__private::Function = __request;
        }
    };
    quote!(#request #function #(#kernels)*)
}

/// What an entry point needs of a kernel.
#[derive(Clone, Copy, Debug)]
enum Mode {
    Pullback,
    Gradient,
    Tangent,
}

impl Mode {
    const ALL: [Mode; 3] = [Mode::Pullback, Mode::Gradient, Mode::Tangent];

    /// The name of the function with the marker.
    fn function(self) -> Ident {
        format_ident!("__kernel_{}", format!("{self:?}").to_lowercase())
    }
}

/// The type of the cotangent of a value of a type.
pub(crate) fn cotangent_of(ty: &Type) -> TokenStream {
    let ty = types::without_lifetimes(types::behind_references(ty));
    quote_spanned!(ty.span()=> <#ty as ::cotangent::Differentiable>::Cotangent)
}

fn seed_of(ret: &Type) -> TokenStream {
    let ret = types::without_lifetimes(ret);
    quote_spanned!(ret.span()=> <#ret as ::cotangent::Differentiable>::Seed)
}

/// `__Cotangents`, `__Tangents`, `__Seed`, `__Pullback`.
fn value_types(signature: &Signature) -> TokenStream {
    let wrt: Vec<&Param> = signature.params.iter().filter(|param| param.wrt).collect();
    let names: Vec<&Ident> = wrt.iter().map(|param| &param.name).collect();
    let cotangents: Vec<TokenStream> = wrt.iter().map(|param| cotangent_of(&param.ty)).collect();
    let docs = |what: &str| -> Vec<String> { names.iter().map(|name| format!("{what} of `{name}`.")).collect() };
    let (cotangent_docs, tangent_docs) = (docs("Cotangent"), docs("Tangent"));
    let (seed, seed_type, seed_leaves) = seed(signature);
    quote! {
        /// One cotangent for each differentiated parameter.
        pub struct __Cotangents {
            #(#[doc = #cotangent_docs] pub #names: #cotangents,)*
        }
        impl ::cotangent::Differentiable for __Cotangents {
            type Cotangent = Self;
            type Seed = Self;
            fn leaves(&self, leaves: &mut ::cotangent::__private::Leaves) {
                #(::cotangent::Differentiable::leaves(&self.#names, leaves);)*
            }
            fn cotangent(&self, source: &mut ::cotangent::__private::Source) -> Self {
                Self { #(#names: ::cotangent::Differentiable::cotangent(&self.#names, source),)* }
            }
            fn seed(&self, source: &mut ::cotangent::__private::Source) -> ::core::option::Option<Self> {
                ::core::option::Option::Some(::cotangent::Differentiable::cotangent(self, source))
            }
        }
        /// One tangent for each differentiated parameter.
        pub struct __Tangents {
            #(#[doc = #tangent_docs] pub #names: #cotangents,)*
        }
        #seed
        /// A call whose cotangents can be asked for, as often as wanted.
        #[derive(Debug)]
        pub struct __Pullback(::cotangent::__private::Pull<__Cotangents>);
        impl __Pullback {
            /// The cotangents for a seed.
            #[track_caller]
            pub fn call(&self, seed: #seed_type) -> __Cotangents {
                ::cotangent::__private::unwrap(self.0.call(|leaves| { #seed_leaves }))
            }
            /// The cotangents for a seed, or why there are none.
            pub fn try_call(
                &self,
                seed: #seed_type,
            ) -> ::core::result::Result<__Cotangents, ::cotangent::Error> {
                ::cotangent::__private::caught(|| self.0.call(|leaves| { #seed_leaves }))
            }
        }
    }
}

/// The struct of seeds if there is one, the type of seeds, and statements that list the leaves of `seed`.
fn seed(signature: &Signature) -> (TokenStream, TokenStream, TokenStream) {
    let ret = seed_of(&signature.ret);
    let finals = || signature.params.iter().enumerate().filter(|(_, param)| param.seeded);
    if finals().next().is_none() {
        let leaves = quote!(leaves.of(::cotangent::__private::Leaf::RETURN, &seed););
        return (TokenStream::new(), ret, leaves);
    }
    let unit = types::is_unit(&signature.ret);
    let names: Vec<&Ident> = finals().map(|(_, param)| &param.name).collect();
    let cotangents = finals().map(|(_, param)| cotangent_of(&param.ty));
    let docs = names.iter().map(|name| format!("Seed of the final value of `{name}`."));
    let at = finals().map(|(at, _)| Literal::usize_unsuffixed(at));
    let ret_field = (!unit).then(|| quote!(/** Seed of the result. */ pub ret: #ret,));
    let ret_leaves = (!unit).then(|| quote!(leaves.of(::cotangent::__private::Leaf::RETURN, &seed.ret);));
    let seed = quote! {
        /// One seed for each output.
        pub struct __Seed {
            #ret_field
            #(#[doc = #docs] pub #names: #cotangents,)*
        }
    };
    (
        seed,
        quote!(__Seed),
        quote!(#ret_leaves #(leaves.of(#at, &seed.#names);)*),
    )
}

/// The entry points and their `try_` twins.
fn entries(signature: &Signature) -> TokenStream {
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
    let entry = |name: &str, doc: &str, extra: Option<&TokenStream>, gives: TokenStream, body: TokenStream| {
        twins(signature, name, doc, extra, &gives, &body)
    };
    let tangent_param = quote!(#tangents: __Tangents);
    [
        entry(
            "value_and_grad",
            "The result and the cotangents for a seed of one: the result must be one number.",
            None,
            quote!((#ret, __Cotangents)),
            value_and_grad.clone(),
        ),
        entry(
            "grad",
            "The cotangents for a seed of one: the result must be one number.",
            None,
            quote!(__Cotangents),
            quote!(#value_and_grad.map(|(_, cotangents)| cotangents)),
        ),
        entry(
            "vjp",
            "The result and its pullback.",
            None,
            quote!((#ret, __Pullback)),
            quote!(#vjp.map(|(result, pull)| (result, __Pullback(pull)))),
        ),
        entry(
            "jvp",
            "The result and its tangent.",
            Some(&tangent_param),
            quote!((#ret, #output_tangent)),
            call("jvp", Mode::Tangent, quote!(#tangent_leaves, #finals, #output)),
        ),
        entry(
            "autograd",
            "The result, attached to LibTorch's graph: `backward` runs the compiled pullback.",
            None,
            ret.to_token_stream(),
            quote!(::cotangent::__private::autograd::<_, #ret>(__function #turbofish (), #args, #reach)),
        ),
    ]
    .into_iter()
    .collect()
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
            Param { ty, .. } if types::is_writable(ty) => Some(quote!(leaves.beside(&args.#at);)),
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

/// An entry point and its twin that returns a `Result`.
fn twins(
    signature: &Signature,
    name: &str,
    doc: &str,
    extra: Option<&TokenStream>,
    gives: &TokenStream,
    body: &TokenStream,
) -> TokenStream {
    let (name, twin) = (format_ident!("{name}"), format_ident!("try_{name}"));
    let generics = &signature.generics;
    let wheres = &generics.where_clause;
    let params = signature.params.iter().map(|param| {
        let Param { name, ty, .. } = param;
        quote!(#name: #ty)
    });
    let params: Vec<TokenStream> = params.chain(extra.cloned()).collect();
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
