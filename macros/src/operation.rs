//! `#[op(matmul)]`: the function has the derivative of a known operation, whatever its body is made of.

use crate::custom::{Rule, with_rule};
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::spanned::Spanned;
use syn::{Error, FnArg, Ident, ItemFn, ReturnType, Type, parse_quote};

/// Types of parameters, and of the result, by operation; `T` stands for the float.
const OPERATIONS: [(&str, &[&str], &str); 11] = [
    ("relu", &["& [T]"], "Vec < T >"),
    ("tanh", &["& [T]"], "Vec < T >"),
    ("sigmoid", &["& [T]"], "Vec < T >"),
    ("softplus", &["& [T]"], "Vec < T >"),
    ("sum", &["& [T]"], "T"),
    ("mean", &["& [T]"], "T"),
    ("logsumexp", &["& [T]"], "T"),
    ("dot", &["& [T]", "& [T]"], "T"),
    ("softmax", &["& [T]", "usize"], "Vec < T >"),
    ("matmul", &["& [T]", "& [T]", "usize", "usize", "usize"], "Vec < T >"),
    ("conv2d", &["& [T]", "& [T]", "[usize ; 3]", "[usize ; 3]"], "Vec < T >"),
];

/// The function, with the rule of an operation.
pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> syn::Result<TokenStream> {
    let name: Ident = syn::parse2(arguments)?;
    let function: ItemFn = syn::parse2(item)?;
    let Some((_, params, ret)) = OPERATIONS.iter().find(|(known, ..)| name == known) else {
        let known: Vec<&str> = OPERATIONS.iter().map(|(known, ..)| *known).collect();
        let what = format!("no operation is called `{name}`; there are: {}", known.join(", "));
        return Err(Error::new(name.span(), what));
    };
    let float = float_of(&function, &name, params, ret)?;
    let part = |half: &str| {
        let half = Ident::new(half, proc_macro2::Span::call_site());
        parse_quote!(::cotangent::__private::operations::#name::#half::<#float>)
    };
    let rule = Rule {
        reverse: Some((part("forward"), part("backward"))),
        tangent: Some(part("tangent")),
    };
    with_rule(&rule, &function)
}

/// The float that a function is over, if it has an operation's signature.
fn float_of(function: &ItemFn, name: &Ident, params: &[&str], ret: &str) -> syn::Result<Ident> {
    let types: Vec<&Type> = function.sig.inputs.iter().filter_map(type_of).collect();
    let given = match &function.sig.output {
        ReturnType::Default => quote!(()),
        ReturnType::Type(_, ty) => ty.to_token_stream(),
    };
    let result = given.to_string();
    let wrong = |at: proc_macro2::Span| {
        let plain = |ty: &str| ty.replace(' ', "").replace(";", "; ");
        let params: Vec<String> = params.iter().map(|ty| plain(ty)).collect();
        let what = format!(
            "the operation `{name}` is `fn({}) -> {}`, where `T` is `f32` or `f64`",
            params.join(", "),
            plain(ret)
        );
        Err(Error::new(at, what))
    };
    let first = types
        .first()
        .map_or(String::new(), |ty| ty.to_token_stream().to_string());
    let Some(float) = ["f32", "f64"].into_iter().find(|float| first.contains(float)) else {
        return wrong(types.first().map_or(function.sig.span(), |ty| ty.span()));
    };
    let fits = |given: &str, wanted: &str| given.replace(float, "T").replace(' ', "") == wanted.replace(' ', "");
    if types.len() != params.len() || function.sig.inputs.len() != params.len() {
        return wrong(function.sig.inputs.span());
    }
    for (ty, wanted) in types.iter().zip(params) {
        if !fits(&ty.to_token_stream().to_string(), wanted) {
            return wrong(ty.span());
        }
    }
    match fits(&result, ret) {
        true => Ok(Ident::new(float, proc_macro2::Span::call_site())),
        false => wrong(function.sig.output.span()),
    }
}

fn type_of(input: &FnArg) -> Option<&Type> {
    match input {
        FnArg::Typed(typed) => Some(&typed.ty),
        FnArg::Receiver(_) => None,
    }
}
