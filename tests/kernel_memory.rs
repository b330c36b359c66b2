//! What a thousand calls of a kernel's derivatives leave behind: nothing, whether they end or panic. Alone in its process:
//! it counts the process's memory.
//!
//! Needs the pass: `cargo cotangent test`.

use cotangent::differentiable;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Grows a vector, sorts it, and keeps lists of lists.
#[differentiable]
fn grown(x: &[f64], rounds: usize) -> f64 {
    let mut all: Vec<Vec<f64>> = vec![];
    for round in 0..rounds {
        let mut next = vec![];
        for (i, x) in x.iter().enumerate() {
            next.push(x * (i + round) as f64);
            if i % 3 == 2 {
                next.push(x.sin());
            }
        }
        next.sort_by(f64::total_cmp);
        all.push(next);
    }
    all.iter().flatten().map(|x| x * x).sum()
}

struct Tree {
    value: f64,
    children: [Option<Box<Tree>>; 2],
}

fn tree(x: &[f64], depth: usize) -> Tree {
    let child = |more: usize| (more > 0).then(|| Box::new(tree(x, depth - 1)));
    Tree {
        value: x[depth % x.len()],
        children: [child(depth), child(depth)],
    }
}

fn product(tree: &Tree) -> f64 {
    tree.children.iter().flatten().map(|c| product(c)).sum::<f64>() * tree.value + tree.value
}

/// Recursion over boxes.
#[differentiable]
fn recursive(x: &[f64], depth: usize) -> f64 {
    product(&tree(x, depth))
}

trait Shape {
    fn area(&self) -> f64;
}

struct Disc(f64);
struct Square(Rc<f64>);

impl Shape for Disc {
    fn area(&self) -> f64 {
        3.0 * self.0 * self.0
    }
}

impl Shape for Square {
    fn area(&self) -> f64 {
        *self.0 * *self.0
    }
}

/// Trait objects and shared values.
#[differentiable]
fn shapes(x: &[f64]) -> f64 {
    let shared = Rc::new(x[0]);
    let mut all: Vec<Box<dyn Shape>> = vec![Box::new(Square(shared.clone())), Box::new(Square(shared))];
    all.extend(x.iter().map(|x| Box::new(Disc(*x)) as Box<dyn Shape>));
    all.iter().map(|s| s.area()).sum()
}

/// Panics in the middle, with memory in hand.
#[differentiable]
fn fails(x: &[f64], at: usize) -> f64 {
    let mut kept: Vec<Vec<f64>> = vec![];
    let mut sum = 0.0;
    for i in 0..x.len() {
        kept.push(x[..=i].to_vec());
        let boxed: Box<f64> = Box::new(kept[i].iter().sum());
        sum += *boxed * kept[i][0];
        assert!(i != at, "told to fail");
    }
    sum
}

/// Bytes that the process has from its allocator.
fn bytes() -> usize {
    // SAFETY: the function has no precondition.
    let info = unsafe { libc::mallinfo2() };
    info.uordblks + info.hblkhd
}

/// Bytes that a thousand calls leave, after a few that may fill what is kept for later calls.
fn left(call: &dyn Fn()) -> isize {
    (0..20).for_each(|_| call());
    let before = bytes();
    (0..1000).for_each(|_| call());
    bytes().cast_signed() - before.cast_signed()
}

#[test]
fn a_thousand_calls_leave_nothing() {
    std::panic::set_hook(Box::new(|_| {}));
    let x: Vec<f64> = (0..40).map(|i| f64::from(i) * 0.1 - 1.7).collect();
    let x = &x[..];
    let calls: [(&str, &dyn Fn()); 12] = [
        ("grown::grad", &|| drop(grown::grad(x, 5))),
        ("grown::vjp", &|| {
            let (_, pullback) = grown::vjp(x, 5);
            assert_eq!(pullback.call(1.0).x, pullback.call(1.0).x);
        }),
        ("grown::vjp, never called", &|| drop(grown::vjp(x, 5))),
        ("grown::jvp", &|| {
            _ = grown::jvp(x, 5, grown::Tangents { x: x.to_vec() });
        }),
        ("recursive::grad", &|| drop(recursive::grad(x, 6))),
        ("recursive::vjp", &|| drop(recursive::vjp(x, 6).1.call(2.0))),
        ("shapes::grad", &|| drop(shapes::grad(x))),
        ("shapes::jvp", &|| {
            _ = shapes::jvp(x, shapes::Tangents { x: x.to_vec() });
        }),
        ("fails::grad, which ends", &|| drop(fails::grad(x, 99))),
        ("fails::grad, which panics", &|| {
            assert!(fails::try_grad(x, 20).is_err())
        }),
        ("fails::vjp, which panics", &|| assert!(fails::try_vjp(x, 20).is_err())),
        ("fails::jvp, which panics", &|| {
            assert!(fails::try_jvp(x, 20, fails::Tangents { x: x.to_vec() }).is_err());
        }),
    ];
    let sums: BTreeMap<&str, isize> = calls.into_iter().map(|(name, call)| (name, left(call))).collect();
    // A thousand leaks of one byte each are a thousand bytes; the allocator's own lists may move by a few blocks.
    let leaks: Vec<_> = sums.iter().filter(|(_, bytes)| **bytes >= 1000).collect();
    assert!(leaks.is_empty(), "{leaks:?}");
}
