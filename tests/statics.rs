//! A compiled function shares the program's statics and thread-locals: it reads what stands there when it is called,
//! and leaves what the function would.
//!
//! Needs the pass: `cargo cotangent test`.

use cotangent::differentiable;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use tch::{Kind, Tensor};

static CALLS: AtomicUsize = AtomicUsize::new(0);
static BITS: AtomicU64 = AtomicU64::new(0);
static LAST: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static OWN: Cell<u32> = const { Cell::new(7) };
    static LATE: Cell<f64> = Cell::new(start());
}

fn start() -> f64 {
    0.25
}

fn ones() -> Tensor {
    Tensor::ones([2], (Kind::Double, tch::Device::Cpu))
}

#[differentiable(wrt(x))]
fn counted(x: &Tensor) -> Tensor {
    CALLS.fetch_add(3, Relaxed);
    x * 2.0
}

#[test]
fn updates_of_a_static_by_several_threads_are_all_there() {
    let before = CALLS.load(Relaxed);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let x = ones();
                for _ in 0..500 {
                    assert_eq!(counted::grad(&x.sum(Kind::Double)).x.double_value(&[]), 2.0);
                }
            });
        }
    });
    assert_eq!(CALLS.load(Relaxed) - before, 4 * 500 * 3);
}

#[differentiable(wrt(x))]
fn scaled(x: &Tensor) -> Tensor {
    let scale = f64::from_bits(BITS.load(Relaxed));
    LAST.store((scale + 1.0).to_bits(), Relaxed);
    x * scale
}

#[test]
fn a_static_is_read_at_each_call_and_written_at_its_end() {
    for scale in [2.0, -0.5, 3.0] {
        BITS.store(f64::to_bits(scale), Relaxed);
        let (y, pullback) = scaled::vjp(&ones());
        assert!(y.equal(&(ones() * scale)));
        BITS.store(0, Relaxed);
        assert!(
            pullback.call(ones()).x.equal(&(ones() * scale)),
            "the pullback is of that call"
        );
        assert_eq!(f64::from_bits(LAST.load(Relaxed)), scale + 1.0);
    }
}

#[differentiable(wrt(x))]
fn numbered(x: &Tensor) -> Tensor {
    let n = OWN.get();
    OWN.set(n + 1);
    let late = LATE.get();
    LATE.set(late * 2.0);
    x * f64::from(n) * late
}

#[test]
fn each_thread_has_its_own_thread_locals() {
    let factors = || {
        let factor = |_| numbered::grad(&ones().sum(Kind::Double)).x.double_value(&[]);
        let factors: Vec<f64> = (0..3).map(factor).collect();
        assert_eq!((OWN.get(), LATE.get()), (10, 2.0));
        factors
    };
    let threads: Vec<_> = (0..2).map(|_| std::thread::spawn(factors)).collect();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), [7.0 * 0.25, 8.0 * 0.5, 9.0]);
    }
}
