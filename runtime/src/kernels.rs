//! Addresses of LibTorch's C functions, so that compiled code can call any of them whatever the host's linker kept.

/// The address of a C function.
#[derive(Clone, Copy, Debug)]
pub struct Address(pub *const ());

// SAFETY: the address of a function may be read from any thread.
unsafe impl Sync for Address {}
// SAFETY: as above.
unsafe impl Send for Address {}

include!(concat!(env!("OUT_DIR"), "/kernels.rs"));

/// The one LibTorch op without an `atg_` function: the shim gives it one.
const COPY: &str = "copy_";

/// The C function of the LibTorch op of that name (without `atg_`).
pub fn find(op: &str) -> Option<Address> {
    if op == COPY {
        return Some(Address(crate::torch::shim::cotangent_copy as *const ()));
    }
    let at = KERNELS.binary_search_by(|(name, _)| (*name).cmp(op)).ok()?;
    Some(KERNELS[at].1)
}

/// Every function of the table.
pub fn all() -> impl Iterator<Item = (&'static str, Address)> {
    let copy = find(COPY).map(|address| (COPY, address));
    KERNELS.iter().copied().chain(copy)
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
