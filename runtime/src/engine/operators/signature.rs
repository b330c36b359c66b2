//! Signatures of Rust functions in terms of LibTorch's schemas.

use super::super::function::Description;
use super::given_away;
use crate::torch::operators::{REAL, Value};
use std::mem::MaybeUninit;
use tch::Tensor;

/// A type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// `&Tensor`.
    Tensor,
    /// `Option<&Tensor>`.
    OptTensor,
    /// `&[Tensor]`.
    Tensors,
    /// `&[&Tensor]`.
    TensorRefs,
    F64,
    F32,
    I64,
    I32,
    Usize,
    Bool,
}

/// A type of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gives {
    Tensors(usize),
    F64,
}

/// The most tensors in a tuple that is returned.
const MOST_RESULTS: usize = 8;

/// Receives a tuple of tensors.
macro_rules! tuple {
    (@ $name:ident) => { Tensor };
    ($call:expr, $($name:ident)+) => {{
        let ($($name,)+) = receive::<($(tuple!(@ $name),)+)>($call)?;
        vec![$(given_away($name)),+]
    }};
}

/// What a function takes and gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Signature {
    /// Names and types of the parameters.
    pub(super) params: Vec<(String, Takes)>,
    gives: Gives,
}

/// The type without white space, paths and lifetimes.
fn plain(ty: &str) -> String {
    let text: String = ty.replace("tch ::", "").replace("tch::", "");
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' => while chars.next_if(|c| c.is_alphanumeric() || *c == '_').is_some() {},
            c if c.is_whitespace() => {}
            c => out.push(c),
        }
    }
    out.trim_start_matches("::").replace("&::", "&")
}

impl Signature {
    /// The signature of a function.
    ///
    /// # Errors
    /// If LibTorch's schemas cannot express it: what is in the way.
    pub(super) fn of(description: &Description) -> Result<Self, String> {
        let takes = |ty: &str| {
            Some(match plain(ty).as_str() {
                "&Tensor" => Takes::Tensor,
                "Option<&Tensor>" => Takes::OptTensor,
                "&[Tensor]" => Takes::Tensors,
                "&[&Tensor]" => Takes::TensorRefs,
                "f64" => Takes::F64,
                "f32" => Takes::F32,
                "i64" => Takes::I64,
                "i32" => Takes::I32,
                "usize" => Takes::Usize,
                "bool" => Takes::Bool,
                _ => return None,
            })
        };
        let mut params = vec![];
        for p in &description.params {
            let Some(takes) = takes(&p.ty) else {
                let ty = plain(&p.ty);
                return Err(match p.mutable {
                    true => format!("`{}` is a `{ty}`: an operator does not write to its arguments", p.name),
                    false => format!("`{}` is a `{ty}`, which is no argument of an operator", p.name),
                });
            };
            params.push((p.name.clone(), takes));
        }
        let ret = plain(&description.ret);
        let gives = match ret.strip_prefix('(').and_then(|r| r.strip_suffix(')')) {
            Some(items) => {
                let items: Vec<&str> = items.trim_end_matches(',').split(',').collect();
                let tensors = items.iter().all(|i| *i == "Tensor") && items.len() <= MOST_RESULTS;
                tensors.then_some(Gives::Tensors(items.len()))
            }
            None if ret == "Tensor" => Some(Gives::Tensors(1)),
            None if ret == "f64" => Some(Gives::F64),
            None => None,
        };
        let gives = gives.ok_or_else(|| {
            format!(
                "it gives `{ret}`; an operator gives a `Tensor`, a tuple of {MOST_RESULTS} of them at most, or an `f64`"
            )
        })?;
        // A one-element tuple has the layout of its element.
        Ok(Self { params, gives })
    }

    /// LibTorch's schema.
    pub(super) fn schema(&self, name: &str) -> String {
        let ty = |t: &Takes| match t {
            Takes::Tensor => "Tensor",
            Takes::OptTensor => "Tensor?",
            Takes::Tensors | Takes::TensorRefs => "Tensor[]",
            Takes::F64 | Takes::F32 => "float",
            Takes::I64 | Takes::I32 | Takes::Usize => "int",
            Takes::Bool => "bool",
        };
        let params: Vec<String> = self.params.iter().map(|(n, t)| format!("{} {n}", ty(t))).collect();
        let gives = match self.gives {
            Gives::Tensors(n) => format!("({})", vec!["Tensor"; n].join(", ")),
            Gives::F64 => "float".into(),
        };
        format!("{name}({}) -> {gives}", params.join(", "))
    }

    /// Runs a call on a place for the result, and gives what the call left there.
    pub(super) fn returned(&self, call: impl FnOnce(*mut ()) -> Result<(), String>) -> Result<Vec<Value>, String> {
        Ok(match self.gives {
            Gives::Tensors(1) => vec![given_away(receive::<Tensor>(call)?)],
            Gives::Tensors(2) => tuple!(call, a b),
            Gives::Tensors(3) => tuple!(call, a b c),
            Gives::Tensors(4) => tuple!(call, a b c d),
            Gives::Tensors(5) => tuple!(call, a b c d e),
            Gives::Tensors(6) => tuple!(call, a b c d e f),
            Gives::Tensors(7) => tuple!(call, a b c d e f g),
            Gives::Tensors(_) => tuple!(call, a b c d e f g h),
            Gives::F64 => vec![Value {
                tag: REAL,
                real: receive::<f64>(call)?,
                ..Value::NONE
            }],
        })
    }
}

fn receive<T>(call: impl FnOnce(*mut ()) -> Result<(), String>) -> Result<T, String> {
    let mut out = MaybeUninit::<T>::uninit();
    call(out.as_mut_ptr().cast())?;
    // SAFETY: a call that succeeds writes its result, which has this type by the signature.
    Ok(unsafe { out.assume_init() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::function::Param;

    fn description(params: &[(&str, &str)], ret: &str) -> Description {
        let param = |(name, ty): &(&str, &str)| Param {
            name: (*name).into(),
            ty: (*ty).into(),
            wrt: true,
            mutable: false,
        };
        Description {
            name: "a::f".into(),
            file: String::new(),
            line: 0,
            params: params.iter().map(param).collect(),
            ret: ret.into(),
        }
    }

    #[test]
    fn schemas_follow_from_types_as_written() {
        let d = description(
            &[
                ("x", "& Tensor"),
                ("b", "Option < & 'a tch :: Tensor >"),
                ("ws", "& [Tensor]"),
                ("p", "f64"),
                ("n", "i64"),
                ("t", "bool"),
            ],
            "(Tensor , Tensor)",
        );
        let schema = Signature::of(&d).unwrap().schema("f");
        assert_eq!(
            schema,
            "f(Tensor x, Tensor? b, Tensor[] ws, float p, int n, bool t) -> (Tensor, Tensor)"
        );
    }

    #[test]
    fn what_schemas_cannot_express_is_left_out_for_a_reason() {
        let reason = |d: Description| Signature::of(&d).unwrap_err();
        assert!(reason(description(&[("m", "& Model")], "Tensor")).contains("`m` is a `&Model`"));
        let mut written = description(&[("x", "& mut Tensor")], "Tensor");
        written.params[0].mutable = true;
        assert!(reason(written).contains("does not write to its arguments"));
        assert!(reason(description(&[("x", "& Tensor")], "Vec < Tensor >")).contains("it gives `Vec<Tensor>`"));
    }

    #[test]
    fn a_tuple_of_eight_tensors_is_a_result_and_one_of_nine_is_not() {
        let tuple = |n: usize| description(&[("x", "& Tensor")], &format!("({})", vec!["Tensor"; n].join(", ")));
        let signature = Signature::of(&tuple(8)).unwrap();
        assert!(
            signature
                .schema("f")
                .ends_with("(Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)")
        );
        assert!(Signature::of(&tuple(9)).is_err());
        let values = signature.returned(|out| {
            let numbers: [Tensor; 8] = std::array::from_fn(|k| Tensor::from(k as i64));
            // SAFETY: a place for eight tensors, which lie as in an array.
            unsafe { out.cast::<[Tensor; 8]>().write(numbers) };
            Ok(())
        });
        assert_eq!(values.unwrap().len(), 8);
    }
}
