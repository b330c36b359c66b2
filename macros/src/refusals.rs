//! Tests: what is refused, with which words, and where.

use crate::{attribute, custom, derive, operation};
use proc_macro2::TokenStream;
use quote::quote;
use std::str::FromStr;

/// The message of the `compile_error!` in an expansion, and the source at its span.
fn error(expansion: TokenStream) -> (String, String) {
    let mut tokens = expansion
        .into_iter()
        .skip_while(|token| token.to_string() != "compile_error");
    let name = tokens.next().expect("an error");
    let group = tokens.nth(1).expect("its arguments").to_string();
    let place = name.span().source_text().unwrap_or_default();
    (group.trim_matches(['{', '}', ' ', '"']).replace("\\\"", "\""), place)
}

#[track_caller]
fn refuses(arguments: &str, item: &str, place: &str, message: &str) {
    let [arguments, item] = [arguments, item].map(|text| TokenStream::from_str(text).expect("tokens"));
    let kept = item.to_string();
    let expansion = attribute::expand(arguments, item);
    assert!(expansion.to_string().starts_with(&kept), "the item is kept");
    let (text, at) = error(expansion);
    assert!(text.contains(message), "{text}");
    assert_eq!(at, place, "{text}");
}

#[test]
fn parameters_to_differentiate_are_checked() {
    refuses(
        "wrt(y)",
        "fn f(x: f64) -> f64 { x }",
        "y",
        "`f` has no parameter `y`; it has `x`",
    );
    refuses(
        "wrt(n)",
        "fn f(x: f64, n: usize) -> f64 { x }",
        "n",
        "`n: usize` has no derivative",
    );
    refuses("wrt(x, x)", "fn f(x: f64) -> f64 { x }", "x", "named twice");
    refuses("by(x)", "fn f(x: f64) -> f64 { x }", "by", "expected `wrt(..)`");
    refuses(
        "",
        "fn f(n: &[usize], s: &str) -> f64 { 1.0 }",
        "(n: &[usize], s: &str)",
        "no parameter that can carry",
    );
    refuses("", "fn f() -> f64 { 1.0 }", "()", "without parameters");
    refuses("", "fn f((a, b): (f64, f64)) -> f64 { a }", "(a, b)", "needs a name");
    refuses("", "fn f(ret: &mut f64) {}", "ret", "rename the parameter");
}

#[test]
fn functions_without_entry_points_are_refused() {
    refuses("", "async fn f(x: f64) -> f64 { x }", "async", "`async`");
    refuses("", "unsafe fn f(x: f64) -> f64 { x }", "unsafe", "`unsafe`");
    refuses(
        "",
        "fn f(x: impl Fn()) -> f64 { 1.0 }",
        "impl Fn()",
        "write a generic parameter",
    );
    refuses(
        "",
        "fn f(x: f64) -> impl Fn() { || () }",
        "impl Fn()",
        "a type that can be named",
    );
    refuses(
        "",
        "fn f<T>(x: T) -> f64 { 1.0 }",
        "T",
        "the cotangent of `x` would depend on the generic parameter `T`",
    );
    refuses(
        "",
        "fn f<const N: usize>(x: &[f64; N]) -> f64 { x[0] }",
        "&[f64; N]",
        "generic parameter `N`",
    );
    refuses(
        "wrt(x)",
        "fn f<T>(x: f64, y: T) -> T { y }",
        "T",
        "the seed would depend",
    );
}

#[test]
fn methods_need_the_attribute_on_their_block() {
    refuses(
        "",
        "fn f(&self, x: f64) -> f64 { x }",
        "&self",
        "on its `impl` block, too",
    );
    refuses(
        "",
        "fn f(&self, x: f64) -> f64;",
        "f",
        "trait methods are not differentiable",
    );
    refuses(
        "",
        "impl Law for A { #[differentiable] fn f(x: f64) -> f64 { x } }",
        "A",
        "trait methods",
    );
    refuses(
        "",
        "impl A { fn f(x: f64) -> f64 { x } }",
        "A",
        "no method of this block",
    );
    refuses(
        "wrt(x)",
        "impl A { #[differentiable] fn f(x: f64) -> f64 { x } }",
        "wrt(x)",
        "they go on its methods",
    );
}

#[test]
fn other_items_are_refused() {
    refuses("", "struct A;", "struct", "`#[derive(Differentiable)]`");
    refuses("", "const A: f64 = 1.0;", "const A: f64 = 1.0;", "goes on a function");
}

#[test]
fn a_block_keeps_its_methods_and_gains_modules() {
    let block = quote!(impl Net { #[differentiable] pub fn loss(&self, x: f64) -> f64 { x } fn other(&self) {} });
    let text = attribute::expand(TokenStream::new(), block).to_string();
    assert!(
        text.starts_with("impl Net { pub fn loss (& self , x : f64) -> f64 { x } fn other (& self) { } }"),
        "{text}"
    );
    assert!(text.contains("pub mod net_loss {"), "{text}");
}

#[test]
fn the_description_is_json() {
    let item = TokenStream::from_str("\n\nfn f(x: &Tensor, s: &mut [f64], n: u8) -> f64 { 1.0 }").expect("tokens");
    let text = attribute::expand(quote!(wrt(x)), item).to_string();
    let expected = r##"","line":3,"params":[{"name":"x","ty":"& Tensor","wrt":true,"mutable":false},{"name":"s","ty":"& mut [f64]","wrt":false,"mutable":true},{"name":"n","ty":"u8","wrt":false,"mutable":false}],"ret":"f64"}"##;
    assert!(text.contains(&format!("{expected:?}")), "{text}");
}

#[test]
fn derives_say_which_field_is_wrong() {
    let (text, at) = error(derive::expand(
        TokenStream::from_str("struct A<'a> { x: &'a Tensor }").expect("tokens"),
    ));
    assert!(
        text.contains("has no references") && at == "&'a Tensor",
        "{text} at {at}"
    );
    let (text, at) = error(derive::expand(
        TokenStream::from_str("union A { x: f64, y: u64 }").expect("tokens"),
    ));
    assert!(text.contains("which of its fields") && at == "union", "{text} at {at}");
}

#[test]
fn rules_have_two_halves_and_stand_on_free_functions() {
    let rule = |arguments: &str, item: &str| {
        let [arguments, item] = [arguments, item].map(|text| TokenStream::from_str(text).expect("tokens"));
        error(custom::custom_vjp(arguments, item)).0
    };
    let item = "fn f(x: f64) -> f64 { x }";
    assert!(rule("forward = a", item).contains("both halves"));
    assert!(rule("forward = a, forward = b", item).contains("given twice"));
    assert!(rule("before = a", item).contains("expected `forward = ..`"));
    assert!(rule("forward = a, backward = b", "fn f(&self) -> f64 { 1.0 }").contains("free function"));
    assert!(rule("forward = a, backward = b", "fn f(x: &mut f64) {}").contains("no `&mut` parameter"));
}

#[test]
fn an_operation_has_a_name_and_a_signature() {
    let refuses = |name: &str, item: &str, place: &str, message: &str| {
        let [name, item] = [name, item].map(|text| TokenStream::from_str(text).expect("tokens"));
        let refused = operation::expand(name, item).expect_err("it is refused");
        assert_eq!(refused.span().source_text().unwrap_or_default(), place);
        assert!(refused.to_string().contains(message), "{refused}");
    };
    refuses(
        "gemm",
        "fn f(x: &[f64]) -> f64 { 0.0 }",
        "gemm",
        "no operation is called `gemm`",
    );
    let wanted = "the operation `dot` is `fn(&[T], &[T]) -> T`, where `T` is `f32` or `f64`";
    refuses("dot", "fn f(x: &[f64], y: &[f32]) -> f64 { 0.0 }", "&[f32]", wanted);
    refuses("dot", "fn f(x: &[f64], y: &[f64]) -> f32 { 0.0 }", "-> f32", wanted);
    refuses("dot", "fn f(x: &[f64]) -> f64 { 0.0 }", "x: &[f64]", wanted);
    refuses("sum", "fn f(x: &[i32]) -> i32 { 0 }", "&[i32]", "`fn(&[T]) -> T`");
    let item = "fn f(a: &[f32], b: &[f32], m: usize, k: usize, n: usize) -> Vec<f32> { vec![] }";
    let [name, item] = ["matmul", item].map(|text| TokenStream::from_str(text).expect("tokens"));
    assert!(operation::expand(name, item).is_ok());
}
