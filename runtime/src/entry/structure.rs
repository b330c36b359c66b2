//! Runs of leaves as a whole: whether two lists have one structure, and numbers copied from one to the other.

use crate::differentiable::LeafKind;
use crate::kernel::shadow::Run;
use std::fmt::Write;

/// Neighbouring leaves of one parameter and type, counted.
fn counted(runs: &[Run]) -> Vec<(usize, LeafKind, usize)> {
    let mut counted: Vec<(usize, LeafKind, usize)> = vec![];
    for run in runs {
        let kind = run.place.kind();
        match counted.last_mut() {
            Some((param, last, count)) if (*param, *last) == (run.param, kind) => *count += run.count,
            _ => counted.push((run.param, kind, run.count)),
        }
    }
    counted
}

/// What the first list is made of and what the second, if that is not the same.
pub(crate) fn difference(given: &[Run], wanted: &[Run]) -> Option<String> {
    let (given, wanted) = (counted(given), counted(wanted));
    if given == wanted {
        return None;
    }
    Some(format!("({}), the value of ({})", describe(&given), describe(&wanted)))
}

fn describe(counted: &[(usize, LeafKind, usize)]) -> String {
    let mut text = String::new();
    for (i, (_, kind, count)) in counted.iter().enumerate() {
        let name = match kind {
            LeafKind::Tensor => "Tensor",
            LeafKind::F64 => "f64",
            LeafKind::F32 => "f32",
        };
        let comma = if i > 0 { ", " } else { "" };
        let times = if *count > 1 {
            format!("{count} × ")
        } else {
            String::new()
        };
        let _ = write!(text, "{comma}{times}{name}");
    }
    text
}

/// Zeroes the shadows of leaves.
pub(crate) fn zero(runs: &[Run]) {
    for run in runs.iter().filter(|run| !run.shadow.is_null()) {
        let size = match run.place.kind() {
            LeafKind::F32 => size_of::<f32>(),
            _ => size_of::<f64>(),
        };
        // SAFETY: the shadow of a run has room for so many numbers.
        unsafe { run.shadow.write_bytes(0, run.count * size) };
    }
}

/// Copies numbers to the shadows of leaves of the same structure.
pub(crate) fn copy(from: &[Run], to: &[Run]) {
    transfer(from, to, |to, from| *to = from, |to, from| *to = from);
}

/// Adds numbers to the shadows of leaves of the same structure.
pub(crate) fn add(from: &[Run], to: &[Run]) {
    transfer(from, to, |to, from| *to += from, |to, from| *to += from);
}

fn transfer(from: &[Run], to: &[Run], f64s: impl Fn(&mut f64, f64), f32s: impl Fn(&mut f32, f32)) {
    let mut rest = from.iter();
    let (mut source, mut left) = (std::ptr::null::<u8>(), 0);
    for run in to {
        let mut done = 0;
        while done < run.count {
            if left == 0 {
                let Some(next) = rest.next() else { return };
                (source, left) = (next.place.pointer(), next.count);
            }
            let part = left.min(run.count - done);
            source = match run.place.kind() {
                LeafKind::F32 => each(source.cast(), run.shadow.cast(), done, part, &f32s),
                _ => each(source.cast(), run.shadow.cast(), done, part, &f64s),
            };
            left -= part;
            done += part;
        }
    }
}

fn each<T: Copy>(from: *const T, to: *mut T, done: usize, count: usize, put: &impl Fn(&mut T, T)) -> *const u8 {
    if !to.is_null() {
        for i in 0..count {
            // SAFETY: both runs hold so many numbers of the type, one after the other.
            unsafe { put(&mut *to.add(done + i), from.add(i).read()) };
        }
    }
    from.wrapping_add(count).cast()
}
