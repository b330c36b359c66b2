//! What a compiled function returns lies in memory of the program's own allocator. Alone in its process: the allocator
//! counts.
//!
//! Needs the pass: `cargo cotangent test`.

use cotangent::differentiable;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};
use tch::{Kind, Tensor};

/// The system's, with a mark before each block that only its own blocks have.
struct Marked;

static LIVE: AtomicIsize = AtomicIsize::new(0);
const MARK: usize = 0x5ca1_ab1e;

/// The system's block for a block, and how far behind its start that is entered.
fn whole(layout: Layout) -> (Layout, usize) {
    let room = layout.align().max(size_of::<usize>());
    let whole = Layout::from_size_align(layout.size() + room, room).expect("no test asks for that much");
    (whole, room)
}

// SAFETY: each block is one of the system's, entered behind its start by a multiple of its alignment.
unsafe impl GlobalAlloc for Marked {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (whole, room) = whole(layout);
        LIVE.fetch_add(layout.size() as isize, Relaxed);
        // SAFETY: the size is not zero, and the mark lies inside of the block.
        unsafe {
            let start = System.alloc(whole);
            if start.is_null() {
                return start;
            }
            start.cast::<usize>().write(MARK);
            start.add(room)
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let (whole, room) = whole(layout);
        LIVE.fetch_sub(layout.size() as isize, Relaxed);
        // SAFETY: the caller got the block from `alloc` with this layout: that is what the mark is checked for.
        unsafe {
            let start = block.sub(room);
            if start.cast::<usize>().read() != MARK {
                std::process::abort();
            }
            start.cast::<usize>().write(0);
            System.dealloc(start, whole);
        }
    }
}

#[global_allocator]
static ALLOCATOR: Marked = Marked;

#[differentiable(wrt(x))]
fn powers(x: &Tensor, names: Vec<u8>) -> (Vec<Tensor>, Box<i64>) {
    let mut all = vec![x.shallow_clone()];
    for _ in 1..names.len() {
        let next = all.last().map(|p| p * x).unwrap();
        all.push(next);
    }
    (all, Box::new(names.len() as i64))
}

#[test]
fn results_come_from_the_programs_allocator_and_go_back_to_it() {
    let x = Tensor::from_slice(&[2.0, 3.0]);
    let call = || {
        let ((all, n), pullback) = powers::vjp(&x, vec![0; 3]);
        assert_eq!((all.len(), *n), (3, 3));
        let seeds = (all.iter().map(|t| t.ones_like()).collect::<Vec<_>>(), Box::new(0));
        let c = pullback.call(seeds).x;
        assert!(c.equal(&(1 + &x * 2 + &x * &x * 3)));
    };
    call();
    call();
    let before = LIVE.load(Relaxed);
    for _ in 0..100 {
        call();
    }
    assert_eq!(LIVE.load(Relaxed), before, "nothing is left");
    assert_eq!(x.sum(Kind::Double).double_value(&[]), 5.0);
}
