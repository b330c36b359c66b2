//! Functionalization: in-place ops and writes through views become pure values and final writes.

mod twin;

pub(crate) use twin::{changes_metadata, infer_any, twin};
