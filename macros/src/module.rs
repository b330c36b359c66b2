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

use crate::entries::{Mode, entries};
use crate::signature::{Param, Signature, plain};
use crate::types;
use proc_macro2::{Literal, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Ident, Type};

/// Writes the module.
pub(crate) fn expand(signature: &Signature) -> TokenStream {
    let Signature { module, vis, cfgs, .. } = signature;
    let description = description(signature, "");
    let request = request(signature);
    let types = value_types(signature);
    let (entries, some) = entries(signature);
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
            const __NAME: &str = ::core::module_path!();
            mod imp {
                use super::super::*;
                #request
                #types
                #entries
            }
            pub use imp::{
                __Cotangents as Cotangents, __Pullback as Pullback, __Tangents as Tangents, #seed #some
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
