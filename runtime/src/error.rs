//! Why a call failed.

use std::any::Any;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// Why a call failed: the text names the function, the reason and the next step, or is LibTorch's own.
///
/// It is small: results of calls move through registers, and a failure is no part of what is differentiated.
#[derive(thiserror::Error)]
#[error("{}", .0.message)]
pub struct Error(Box<Failure>);

struct Failure {
    message: String,
    /// What the original function panicked with, if it did: [`Error::raise`] goes on with that panic.
    payload: Mutex<Option<Box<dyn Any + Send>>>,
}

impl Error {
    /// An error with that text.
    pub fn new(message: impl Into<String>) -> Self {
        Self(Box::new(Failure {
            message: message.into(),
            payload: Mutex::new(None),
        }))
    }

    /// The panic of the original function, as an error with its message.
    pub(crate) fn panicked(payload: Box<dyn Any + Send>) -> Self {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
        Self(Box::new(Failure {
            message: text.unwrap_or("the function panicked").to_owned(),
            payload: Mutex::new(Some(payload)),
        }))
    }

    /// Panics with this error: goes on with the panic of the original function where there was one (the panic hook
    /// has reported it already), else starts one with this text.
    #[track_caller]
    pub fn raise(self) -> ! {
        let Failure { message, payload } = *self.0;
        match payload.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(payload) => std::panic::resume_unwind(payload),
            None => panic!("{message}"),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Error").field(&self.0.message).finish()
    }
}

impl From<tch::TchError> for Error {
    fn from(error: tch::TchError) -> Self {
        Self::new(error.to_string())
    }
}
