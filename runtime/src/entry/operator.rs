//! Kernels as operators of LibTorch's dispatcher.

use super::tensors::Returned;
use crate::engine::{define, given_away};
use crate::error::Error;
use crate::torch::operators::{Operator, Value};
use crate::torch::{Handle, Raw};
use tch::Tensor;

/// The arguments of a call.
pub struct Values<'a>(&'a [Value]);

impl Values<'_> {
    /// The tensor that is argument `at`.
    pub fn tensor(&self, at: usize) -> Tensor {
        let raw: Raw = self.0[at].tensor;
        match raw.is_null() {
            true => Tensor::new(),
            // SAFETY: the dispatcher gives valid handles, for the call.
            false => unsafe { Handle::share_raw(raw) }.into_tensor(),
        }
    }

    /// The float that is argument `at`.
    pub fn real(&self, at: usize) -> f64 {
        self.0[at].real
    }

    /// The flag that is argument `at`.
    pub fn flag(&self, at: usize) -> bool {
        self.0[at].integer != 0
    }

    /// The integer that is argument `at`, the parameter of that name.
    ///
    /// # Errors
    /// If the type does not hold it.
    pub fn integer<T: TryFrom<i64>>(&self, at: usize, name: &str) -> Result<T, Error> {
        let integer = self.0[at].integer;
        let ty = std::any::type_name::<T>();
        T::try_from(integer).map_err(|_| Error::new(format!("`{name}` is {integer}, which is no {ty}")))
    }
}

/// What an operator does with its arguments.
type Body = fn(&Values<'_>) -> Result<Vec<Tensor>, Error>;

/// Tensors, and tuples of them, as a list.
pub trait Listed {
    /// How many.
    const COUNT: usize;
    /// The list.
    fn listed(self) -> Vec<Tensor>;
}

impl Listed for Tensor {
    const COUNT: usize = 1;
    fn listed(self) -> Vec<Tensor> {
        vec![self]
    }
}

macro_rules! listed {
    ($($name:ident $index:tt),+) => {
        impl<$($name: Listed),+> Listed for ($($name,)+) {
            const COUNT: usize = 0 $(+ $name::COUNT)+;
            fn listed(self) -> Vec<Tensor> {
                let mut all = vec![];
                $(all.extend(self.$index.listed());)+
                all
            }
        }
    };
}
listed!(A 0);
listed!(A 0, B 1);
listed!(A 0, B 1, C 2);
listed!(A 0, B 1, C 2, D 3);

/// A registered kernel.
struct Registered(Body);

impl Operator for Registered {
    unsafe fn call(&self, args: &[Value], recorded: bool) -> Result<Vec<Value>, String> {
        let run = || (self.0)(&Values(args));
        let results = if recorded { run() } else { tch::no_grad(run) };
        Ok(results
            .map_err(|e| e.to_string())?
            .into_iter()
            .map(given_away)
            .collect())
    }
}

/// Makes a kernel an operator. `function` is its path, `params` are its parameters as LibTorch's schemas spell them.
pub fn register<R>(namespace: &str, function: &str, params: &str, body: Body) -> Result<(), Error>
where
    R: Returned<Tensors: Listed>,
{
    let name = function.rsplit("::").next().unwrap_or_default();
    let returns = vec!["Tensor"; R::Tensors::COUNT].join(", ");
    let schema = format!("{name}({params}) -> ({returns})");
    define(namespace, name, &schema, Registered(body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_reach_a_kernel_by_their_types_or_are_refused() {
        let integer = |integer| Value { integer, ..Value::NONE };
        let real = Value {
            real: 0.5,
            ..Value::NONE
        };
        let values = [integer(300), integer(1), real, Value::NONE];
        let values = Values(&values);
        assert_eq!(values.integer::<usize>(0, "n").ok(), Some(300));
        let error = values.integer::<u8>(0, "n").expect_err("too large").to_string();
        assert_eq!(error, "`n` is 300, which is no u8");
        assert!(values.flag(1));
        assert_eq!(values.real(2), 0.5);
        assert!(!values.tensor(3).defined());
    }

    #[test]
    fn results_are_listed_in_order_through_tuples() {
        let t = |x: f64| Tensor::from(x);
        let all = (t(1.0), (t(2.0), t(3.0))).listed();
        let numbers: Vec<f64> = all.iter().map(|t| t.double_value(&[])).collect();
        assert_eq!(numbers, [1.0, 2.0, 3.0]);
        assert_eq!(<(Tensor, (Tensor, Tensor)) as Listed>::COUNT, 3);
    }
}
