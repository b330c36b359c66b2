//! One call: the compiled forward, then its effects in the program's memory.

use super::code::{Code, Datum, Operand};
use super::derivative::{Derivative, Source};
use super::outputs::{Output, Root};
use super::pass::{Pass, label};
use super::route::Before;
use super::saved::Saved;
use super::special::{Lies, Path, Special, address};
use super::update::update;
use crate::torch::{Handle, Raw, facts, node};
use cotangent_graph::program::How;
use cotangent_graph::specialize::{ClosedBase, ClosedDatum, Inputs};
use std::alloc::Layout;
use std::collections::HashMap;
use std::sync::Arc;

/// Why a call failed.
pub(super) enum Failure {
    /// Before it had any effect: the original function can run instead.
    Before(String),
    /// When some of its effects had happened.
    After(String),
}

/// What a call leaves.
pub(super) struct Done {
    pub(super) pass: Arc<Pass>,
    /// Addresses of what can be seeded, with the number of the output; later ones win.
    pub(super) places: Vec<(u64, usize)>,
}

/// Calls a function by a specialization that fits.
///
/// `before` is what earlier regions of the call did, where this is the last of several.
///
/// # Safety
/// `table` is what the prologue of `special` read for a call with the place `out` for its result; nothing was freed
/// or changed since.
pub(super) unsafe fn call(
    special: &Special,
    derivative: &Arc<Derivative>,
    path: Path,
    table: &Inputs,
    before: Option<Before>,
    out: *mut (),
) -> Result<Done, Failure> {
    let given = special.given(table);
    let tensor = |i: usize| match given[i] {
        Operand::Tensor(raw) => raw,
        _ => unreachable!("only tensors are written to or viewed"),
    };
    let attach = path == Path::Attached && derivative.active() > 0;
    let fresh = special.outputs.fresh.len();
    for (j, i) in special.finals.iter().enumerate() {
        let differentiable = attach && derivative.varies[fresh + j];
        // SAFETY: the function itself writes to this tensor.
        unsafe { facts::check_write(tensor(*i), differentiable) }.map_err(Failure::Before)?;
    }
    let made = derivative.run(&given).map_err(Failure::Before)?;
    let mut made: Vec<Option<Datum>> = made.into_iter().map(Some).collect();
    // SAFETY: the handles are the caller's, alive during the call.
    let mut saved = unsafe { Saved::keep(derivative, &given, &mut made) };
    // What an earlier region made is no tensor of the caller's yet: it leaves as a place of its own in LibTorch's graph.
    let leaving: HashMap<usize, Handle> = (0..fresh)
        .filter_map(|k| match derivative.made[k] {
            Source::Given(i) if special.inputs[i].internal => {
                // SAFETY: the caller's promise: the handles of a call are alive.
                Some((k, unsafe { Handle::share_raw(tensor(i)) }.plain()))
            }
            _ => None,
        })
        .collect();
    for i in &special.finals {
        // SAFETY: as above.
        let storage = unsafe { facts::storage(tensor(*i)) };
        saved.part_from(storage).map_err(Failure::Before)?;
    }

    // What was made: fresh outputs, final values, floats.
    let source = |k: usize| match derivative.made[k] {
        Source::Given(i) => given[i],
        Source::Made(i) => made[i].as_ref().expect("an output stays among what was made").lend(),
    };
    let raw = |k: usize| match (leaving.get(&k), source(k)) {
        (Some(handle), _) => handle.raw(),
        (None, Operand::Tensor(raw)) => raw,
        _ => unreachable!("outputs before the floats are tensors"),
    };
    let finals: Vec<Raw> = (0..special.finals.len()).map(|j| raw(fresh + j)).collect();

    let (mut attached, mut node_outputs) = (vec![], vec![]);
    if attach {
        for k in 0..fresh + finals.len() {
            // An op may have returned an input after all (dropout when evaluating): that has its own history.
            let own = matches!(derivative.made[k], Source::Made(_)) || leaving.contains_key(&k);
            let own = own && !is_given(raw(k), &given);
            if own && derivative.varies[k] && !attached.contains(&raw(k)) {
                attached.push(raw(k));
                node_outputs.push(k);
            }
        }
    }
    let from: Vec<Raw> = match &before {
        _ if attached.is_empty() => vec![],
        None => derivative.active_given().iter().map(|i| tensor(*i)).collect(),
        Some(before) => before.roots.iter().map(|slot| table.word(*slot) as Raw).collect(),
    };
    let pass = Arc::new(Pass::new(derivative.clone(), saved, node_outputs, before));
    if !attached.is_empty() {
        // SAFETY: the inputs are the caller's; the outputs were made just now.
        unsafe { node::attach(pass.clone(), &label(&special.name), None, &from, &attached) }
            .map_err(Failure::Before)?;
    }

    for (n, (i, value)) in special.finals.iter().zip(&finals).enumerate() {
        let fail = if n == 0 { Failure::Before } else { Failure::After };
        // SAFETY: both handles are alive.
        unsafe { facts::write(tensor(*i), *value, attach) }.map_err(fail)?;
    }
    let effects = !special.finals.is_empty();
    let fail = if effects { Failure::After } else { Failure::Before };
    let root = |root: &Root| match root {
        Root::Input(i) => tensor(*i),
        Root::Fresh(k) => raw(*k),
    };
    let views = views(special.replay.as_ref(), special.outputs.starts.iter().map(root), attach).map_err(fail)?;

    let handle = |k: usize| match &special.outputs.tensors[k] {
        // SAFETY: the handles are alive.
        Output::Is(r) => unsafe { Handle::share_raw(root(r)) },
        Output::View(v) => views[*v].share(),
    };
    let float = |k: usize| match source(fresh + finals.len() + k - special.tensors) {
        Operand::Float(x) => x,
        _ => unreachable!("outputs after the tensors are floats"),
    };
    // SAFETY: the caller's promise.
    let blocks = unsafe { write_image(special, table, out, &handle, &float) };
    let places = special.places.iter().map(|(lies, output)| {
        let at = match lies {
            Lies::At(base, offset) => base_address(*base, table, out, &blocks).wrapping_add_signed(*offset),
            Lies::Host(pointer) => address(table, *pointer),
        };
        (at, *output)
    });
    let places = match path {
        Path::Direct => places.collect(),
        Path::Attached => vec![],
    };
    Ok(Done { pass, places })
}

/// Is a tensor one of those that the forward was given?
fn is_given(raw: Raw, given: &[Operand<'_>]) -> bool {
    // SAFETY: handles of a call in progress.
    let identity = |raw| unsafe { facts::identity(raw) };
    given
        .iter()
        .any(|g| matches!(g, Operand::Tensor(t) if identity(*t) == identity(raw)))
}

fn views(code: Option<&Code>, starts: impl Iterator<Item = Raw>, recorded: bool) -> Result<Vec<Handle>, String> {
    let Some(code) = code else { return Ok(vec![]) };
    let starts: Vec<Operand<'_>> = starts.map(Operand::Tensor).collect();
    let made = code.replay(&starts, recorded)?;
    Ok(made.into_iter().filter_map(Datum::into_tensor).collect())
}

/// Leaves in memory what the function would: blocks, writes, then what it gave up. Gives the addresses of the blocks.
///
/// # Safety
/// As for [`call`].
unsafe fn write_image(
    special: &Special,
    table: &Inputs,
    out: *mut (),
    handle: &dyn Fn(usize) -> Handle,
    float: &dyn Fn(usize) -> f64,
) -> Vec<u64> {
    let image = &special.image;
    let blocks: Vec<u64> = image.allocations.iter().map(|a| allocate(a.size, a.align)).collect();
    for write in &image.writes {
        let at = base_address(write.base, table, out, &blocks).wrapping_add_signed(write.offset) as *mut u8;
        let put = |bytes: &[u8]| {
            // SAFETY: the function itself writes so many bytes there: to its result, to a block that is as large as
            // its own, or to memory of the caller's.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len()) };
        };
        let put = |bytes: &[u8]| match write.how {
            How::Store => put(bytes),
            // SAFETY: the function itself updates the integer that is aligned there.
            How::Atomic(how) => unsafe { update(how, at, bytes) },
        };
        match &write.datum {
            ClosedDatum::Bytes(bytes) => put(bytes),
            ClosedDatum::Word { from, bytes } => put(&address(table, *from).to_le_bytes()[..usize::from(*bytes)]),
            ClosedDatum::Float { output, bytes: 4 } => put(&(float(*output) as f32).to_le_bytes()),
            ClosedDatum::Float { output, .. } => put(&float(*output).to_le_bytes()),
            ClosedDatum::Tensor(k) => put(&(handle(*k).into_raw() as u64).to_le_bytes()),
            ClosedDatum::Address(base, offset) => {
                put(&base_address(*base, table, out, &blocks)
                    .wrapping_add_signed(*offset)
                    .to_le_bytes());
            }
        }
    }
    for pointer in &image.dropped {
        // SAFETY: the function itself frees this handle, which nothing uses after it.
        drop(unsafe { Handle::own(address(table, *pointer) as Raw) });
    }
    for (pointer, size, align) in &image.freed {
        let block = address(table, *pointer) as *mut u8;
        // SAFETY: the function itself gives this block back to the program's allocator, with this layout.
        unsafe { std::alloc::dealloc(block, layout(*size, *align)) };
    }
    blocks
}

fn base_address(base: ClosedBase, table: &Inputs, out: *mut (), blocks: &[u64]) -> u64 {
    match base {
        ClosedBase::Out => out as u64,
        ClosedBase::Allocation(i) => blocks[i],
        ClosedBase::Host(pointer) => address(table, pointer),
        ClosedBase::Symbol(_) => unreachable!("a result that refers to constants was refused"),
    }
}

fn layout(size: u64, align: u64) -> Layout {
    Layout::from_size_align(size as usize, align as usize).expect("the function itself uses this layout")
}

fn allocate(size: u64, align: u64) -> u64 {
    if size == 0 {
        return align;
    }
    let layout = layout(size, align);
    // SAFETY: the size is not zero.
    let block = unsafe { std::alloc::alloc(layout) };
    if block.is_null() {
        std::alloc::handle_alloc_error(layout);
    }
    block as u64
}
