//! The machine code of a lowered graph: from a library that was loaded, else from the JIT.

use crate::library;
use crate::lower::Lowered;
use crate::torch::shim;
use std::sync::Arc;

/// Why there is no machine code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MachineError {
    /// The JIT failed.
    #[cfg(feature = "jit")]
    #[error(transparent)]
    Jit(#[from] crate::jit::JitError),
    /// There is no JIT.
    #[error(
        "no library of compiled code that was loaded has code for these arguments, and this program has no JIT: let a \
         run with the feature `jit` make the same call and then `cotangent::save_compiled(file)`, and load that with \
         `cotangent::load_compiled(file)`"
    )]
    Missing,
}

/// See the [module](self).
pub(super) struct Machine {
    /// In a library.
    loaded: Option<usize>,
    #[cfg(feature = "jit")]
    jitted: std::sync::OnceLock<Result<crate::jit::Code, crate::jit::JitError>>,
}

impl Machine {
    /// Looks for the code in the libraries. The JIT makes it when it is first called.
    pub(super) fn of(lowered: &Arc<Lowered>) -> Result<Self, MachineError> {
        let loaded = library::find(&lowered.text);
        if cfg!(not(feature = "jit")) && loaded.is_none() {
            return Err(MachineError::Missing);
        }
        library::remember(lowered);
        Ok(Self {
            loaded,
            #[cfg(feature = "jit")]
            jitted: std::sync::OnceLock::new(),
        })
    }

    /// Is it from a library?
    pub(super) fn is_loaded(&self) -> bool {
        self.loaded.is_some()
    }

    /// The code of `lowered`, from which this was made.
    pub(super) fn code(&self, lowered: &Lowered) -> Result<shim::Code, MachineError> {
        let address = match self.loaded {
            Some(address) => address,
            None => self.jit(lowered)?,
        };
        // SAFETY: the function at this address was compiled with this signature. A library is never unloaded, and the
        // JIT's code lives as long as `self`.
        Ok(unsafe { std::mem::transmute::<*const (), shim::Code>(std::ptr::with_exposed_provenance(address)) })
    }

    #[cfg(feature = "jit")]
    fn jit(&self, lowered: &Lowered) -> Result<usize, MachineError> {
        let code = self.jitted.get_or_init(|| crate::jit::Code::compile(lowered));
        let address = code.as_ref().map_err(Clone::clone)?.address()?;
        Ok(usize::try_from(address).expect("an address of this process"))
    }

    #[cfg(not(feature = "jit"))]
    fn jit(&self, _: &Lowered) -> Result<usize, MachineError> {
        Err(MachineError::Missing)
    }
}
