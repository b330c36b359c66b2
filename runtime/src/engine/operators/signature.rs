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
    /// The signature of a function; `None` if LibTorch's schemas cannot express it.
    pub(super) fn of(description: &Description) -> Option<Self> {
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
        let params = description.params.iter();
        let params = params
            .map(|p| Some((p.name.clone(), takes(&p.ty)?)))
            .collect::<Option<Vec<_>>>()?;
        let ret = plain(&description.ret);
        let gives = match ret.strip_prefix('(').and_then(|r| r.strip_suffix(')')) {
            Some(items) => {
                let items: Vec<&str> = items.trim_end_matches(',').split(',').collect();
                match items.iter().all(|i| *i == "Tensor") && items.len() <= 4 {
                    true => Gives::Tensors(items.len()),
                    false => return None,
                }
            }
            None if ret == "Tensor" => Gives::Tensors(1),
            None if ret == "f64" => Gives::F64,
            None => return None,
        };
        // A one-element tuple has the layout of its element.
        Some(Self { params, gives })
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
            Gives::Tensors(2) => {
                let (a, b) = receive::<(Tensor, Tensor)>(call)?;
                vec![given_away(a), given_away(b)]
            }
            Gives::Tensors(3) => {
                let (a, b, c) = receive::<(Tensor, Tensor, Tensor)>(call)?;
                vec![given_away(a), given_away(b), given_away(c)]
            }
            Gives::Tensors(_) => {
                let (a, b, c, d) = receive::<(Tensor, Tensor, Tensor, Tensor)>(call)?;
                vec![given_away(a), given_away(b), given_away(c), given_away(d)]
            }
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
    fn what_schemas_cannot_express_is_left_out() {
        assert_eq!(Signature::of(&description(&[("m", "& Model")], "Tensor")), None);
        assert_eq!(Signature::of(&description(&[("x", "& mut Tensor")], "Tensor")), None);
        assert_eq!(
            Signature::of(&description(&[("x", "& Tensor")], "Vec < Tensor >")),
            None
        );
    }
}
