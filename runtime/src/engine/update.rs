//! Atomic updates that a call leaves in memory that other threads see.

use cotangent_graph::program::Update;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::AcqRel};

/// Applies an update with these bytes (1, 2, 4 or 8) as its operand.
///
/// # Safety
/// An integer of that size lies at `at`, aligned, and every other access to it is atomic.
pub(super) unsafe fn update(how: Update, at: *mut u8, bytes: &[u8]) {
    macro_rules! apply {
        ($atomic:ty, $unsigned:ty, $signed:ty) => {{
            let operand = <$unsigned>::from_le_bytes(bytes.try_into().expect("as many bytes as matched"));
            // SAFETY: the caller's promise.
            let place = unsafe { <$atomic>::from_ptr(at.cast()) };
            let signed = |pick: fn($signed, $signed) -> $signed| {
                let pick = |old| Some(pick(old as $signed, operand as $signed) as $unsigned);
                place
                    .fetch_update(AcqRel, std::sync::atomic::Ordering::Acquire, pick)
                    .unwrap_or_else(|old| old)
            };
            match how {
                Update::Exchange => place.swap(operand, AcqRel),
                Update::Add => place.fetch_add(operand, AcqRel),
                Update::Sub => place.fetch_sub(operand, AcqRel),
                Update::And => place.fetch_and(operand, AcqRel),
                Update::Or => place.fetch_or(operand, AcqRel),
                Update::Xor => place.fetch_xor(operand, AcqRel),
                Update::UMax => place.fetch_max(operand, AcqRel),
                Update::UMin => place.fetch_min(operand, AcqRel),
                Update::Max => signed(Ord::max),
                Update::Min => signed(Ord::min),
            };
        }};
    }
    match bytes.len() {
        1 => apply!(AtomicU8, u8, i8),
        2 => apply!(AtomicU16, u16, i16),
        4 => apply!(AtomicU32, u32, i32),
        8 => apply!(AtomicU64, u64, i64),
        n => unreachable!("an integer of {n} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after<const N: usize>(how: Update, start: [u8; N], operand: [u8; N]) -> [u8; N] {
        let mut place = [0u64; 1];
        let at = place.as_mut_ptr().cast::<u8>();
        // SAFETY: the place has eight bytes and is aligned for any integer.
        unsafe {
            std::ptr::copy_nonoverlapping(start.as_ptr(), at, N);
            update(how, at, &operand);
            at.cast::<[u8; N]>().read()
        }
    }

    #[test]
    fn updates_are_those_of_integers_of_their_width() {
        assert_eq!(after(Update::Add, [250], [10]), [4]);
        assert_eq!(
            after(Update::Sub, 3u16.to_le_bytes(), 5u16.to_le_bytes()),
            (-2i16).to_le_bytes()
        );
        assert_eq!(
            after(Update::Exchange, 1u32.to_le_bytes(), 7u32.to_le_bytes()),
            7u32.to_le_bytes()
        );
        assert_eq!(after(Update::And, [0b1100], [0b1010]), [0b1000]);
        assert_eq!(after(Update::Or, [0b1100], [0b1010]), [0b1110]);
        assert_eq!(after(Update::Xor, [0b1100], [0b1010]), [0b0110]);
        let (less, more) = ((-1i64).to_le_bytes(), 1i64.to_le_bytes());
        assert_eq!(after(Update::Max, less, more), more);
        assert_eq!(after(Update::Min, less, more), less);
        assert_eq!(after(Update::UMax, less, more), less);
        assert_eq!(after(Update::UMin, less, more), more);
    }
}
