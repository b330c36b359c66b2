//! Addresses of LibTorch's C functions, so that compiled code can call any of them whatever the host's linker kept.

use crate::torch::shim;

/// The address of a C function.
#[derive(Clone, Copy, Debug)]
pub struct Address(pub *const ());

// SAFETY: the address of a function may be read from any thread.
unsafe impl Sync for Address {}
// SAFETY: as above.
unsafe impl Send for Address {}

include!(concat!(env!("OUT_DIR"), "/kernels.rs"));

/// LibTorch ops without an `atg_*` function: the shim gives them one.
static EXTRA: &[(&str, Address)] = &[
    ("copy_", Address(shim::cotangent_copy as *const ())),
    ("get", Address(shim::cotangent_get as *const ())),
    ("shallow_clone", Address(shim::cotangent_shallow_clone as *const ())),
];

/// The C function of the LibTorch op of that name (without `atg_`).
pub fn find(op: &str) -> Option<Address> {
    if let Some((_, address)) = EXTRA.iter().find(|(name, _)| *name == op) {
        return Some(*address);
    }
    let at = KERNELS.binary_search_by(|(name, _)| (*name).cmp(op)).ok()?;
    Some(KERNELS[at].1)
}

/// Every function of the table.
pub fn all() -> impl Iterator<Item = (&'static str, Address)> {
    KERNELS.iter().copied().chain(EXTRA.iter().copied())
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_libtorch_op_of_the_graph_has_an_address() {
        for op in cotangent_graph::ops::Op::all().filter(|op| op.is_libtorch()) {
            assert!(super::find(op.name).is_some(), "{op} has no C function");
        }
    }
}
