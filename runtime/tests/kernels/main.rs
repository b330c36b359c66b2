//! Kernels without the pass: derivatives written by hand, called through the entry points.

mod native;

use cotangent_runtime::Differentiable;
use cotangent_runtime::differentiable::{Leaf, Leaves, Source};
use cotangent_runtime::engine::Function;
use cotangent_runtime::entry::{Given, Name, Pull, attached, caught, jvp, value_and_grad, vjp};
use native::{DOT, FAILING, GROW, SCALE};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Mutex;
use tch::Tensor;

/// Counts blocks of memory, for each thread.
struct Counting;

thread_local! {
    static BLOCKS: Cell<isize> = const { Cell::new(0) };
}

// SAFETY: all is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BLOCKS.set(BLOCKS.get() + 1);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        BLOCKS.set(BLOCKS.get() - 1);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Memory is counted for the whole process: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn no_program() -> &'static Function {
    unreachable!("kernels need no program")
}

type Slices<'a> = (&'a [f64], &'a [f64]);

fn vectors(args: &Slices<'_>, source: &mut Source) -> Vectors {
    (args.0.cotangent(source), args.1.cotangent(source))
}

fn reach(args: &Slices<'_>, leaves: &mut Leaves) {
    leaves.of(0, &args.0);
    leaves.of(1, &args.1);
}

#[test]
fn a_float_result_is_differentiated_in_one_call() {
    let _alone = ALONE.lock();
    let (x, y) = ([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]);
    let (value, (gx, gy)) =
        value_and_grad::<Slices<'_>, f64, _>(Some(&DOT), no_program, (&x, &y), reach, vectors, |_, _| {})
            .expect("it runs");
    assert_eq!((value, gx, gy), (32.0, y.to_vec(), x.to_vec()));
}

#[test]
fn aliased_slices_have_a_cotangent_each() {
    let _alone = ALONE.lock();
    let x = [1.0, 2.0, 3.0];
    let call = |a, b| {
        value_and_grad::<Slices<'_>, f64, _>(Some(&DOT), no_program, (a, b), reach, vectors, |_, _| {})
            .expect("it runs")
            .1
    };
    assert_eq!(call(&x, &x), (x.to_vec(), x.to_vec()));
    assert_eq!(call(&x[..2], &x[1..]), (vec![2.0, 3.0], vec![1.0, 2.0]));
    assert_eq!(call(&[], &[]), (vec![], vec![]));
}

type Vectors = (Vec<f64>, Vec<f64>);

#[test]
fn the_cotangent_of_a_large_slice_is_right_and_freed() {
    let _alone = ALONE.lock();
    let x: Vec<f64> = (0..1000).map(f64::from).collect();
    let y: Vec<f64> = x.iter().map(|x| x * 0.5).collect();
    let call = |a, b| {
        value_and_grad::<Slices<'_>, f64, _>(Some(&DOT), no_program, (a, b), reach, vectors, |_, _| {})
            .expect("it runs")
            .1
    };
    let blocks = BLOCKS.get();
    for _ in 0..10 {
        assert!(call(&x, &y) == (y.clone(), x.clone()) && call(&x, &x) == (x.clone(), x.clone()));
        assert_eq!(call(&x[..300], &x[700..]), (x[700..].to_vec(), x[..300].to_vec()));
    }
    assert_eq!(BLOCKS.get(), blocks);
}

fn pullback(x: &[f64], y: &[f64]) -> (f64, Pull<Vectors>) {
    vjp::<Slices<'_>, f64, _>(Some(&DOT), no_program, (x, y), reach, vectors, |_, _| {}).expect("it runs")
}

#[test]
fn a_pullback_outlives_its_arguments_and_serves_any_thread() {
    let _alone = ALONE.lock();
    let arguments = (vec![1.0, 2.0], vec![3.0, 4.0]);
    let (value, pull) = pullback(&arguments.0, &arguments.1);
    drop(arguments);
    assert_eq!(value, 11.0);
    std::thread::scope(|scope| {
        for seed in [1.0, 10.0, -2.0, 0.0] {
            let pull = &pull;
            scope.spawn(move || {
                for _ in 0..50 {
                    let (x, y) = pull.call(|leaves| leaves.of(Leaf::RETURN, &seed)).expect("it runs");
                    assert_eq!((x, y), (vec![3.0 * seed, 4.0 * seed], vec![seed, 2.0 * seed]));
                }
            });
        }
    });
}

#[test]
fn seeds_of_another_structure_are_refused() {
    let _alone = ALONE.lock();
    let (_, pull) = pullback(&[1.0], &[2.0]);
    let error = pull
        .call(|leaves| leaves.of(Leaf::RETURN, &[1.0, 2.0]))
        .expect_err("one seed is wanted");
    assert_eq!(
        error.to_string(),
        "the seed of `dot` has not the structure of its output: the seed is made of (2 × f64), the value of (f64)"
    );
}

type Grow<'a> = (&'a mut Vec<f64>, f64);

#[test]
fn memory_that_the_call_makes_takes_seeds() {
    let _alone = ALONE.lock();
    let mut v = Vec::with_capacity(2);
    v.extend([2.0, 5.0]);
    let (result, pull) = vjp::<Grow<'_>, Vec<f64>, _>(
        Some(&GROW),
        no_program,
        (&mut v, 3.0),
        |args, leaves| {
            leaves.of(0, &args.0);
            leaves.of(1, &args.1);
        },
        |args, source| (args.0.cotangent(source), args.1.cotangent(source)),
        |args, leaves| leaves.of(0, &args.0),
    )
    .expect("it runs");
    assert_eq!((result, v), (vec![9.0], vec![7.0, 5.0, 6.0]));
    for scale in [1.0, 10.0, 1.0] {
        let (ret, last) = ([scale], [100.0, 20.0 * scale, 2.0 * scale]);
        let (v, k) = pull
            .call(|leaves| {
                leaves.of(Leaf::RETURN, &ret);
                leaves.of(0, &last);
            })
            .expect("it runs");
        assert_eq!((v, k), (vec![6.0 * scale, 20.0 * scale], 6.0 * scale + 4.0 * scale));
    }
    let error = pull
        .call(|leaves| leaves.of(Leaf::RETURN, &[1.0]))
        .expect_err("the final value takes a seed, too");
    assert!(
        error
            .to_string()
            .ends_with("made of (f64), the value of (f64, 3 × f64)"),
        "{error}"
    );
}

type Scale<'a> = (&'a mut [f32], f32);

type Scaled = (Option<f32>, Option<(f32, Vec<f32>)>);

fn scaled(x: &mut [f32], k: f32, x_dot: &[f32], k_dot: f32) -> Result<Scaled, String> {
    jvp::<Scale<'_>, Option<f32>, _>(
        Some(&SCALE),
        no_program,
        (x, k),
        |args, leaves| {
            leaves.of(0, &args.0);
            leaves.of(1, &args.1);
        },
        |leaves| {
            leaves.of(0, x_dot);
            leaves.of(1, &k_dot);
        },
        |args, leaves| leaves.of(0, &args.0),
        |args, result, source| Some(Some((result.seed(source)?, args.0.cotangent(source)))),
    )
    .map_err(|error| error.to_string())
}

#[test]
fn tangents_go_in_and_come_out() {
    let _alone = ALONE.lock();
    let mut x = [2.0, 3.0];
    let called = scaled(&mut x, 10.0, &[1.0, -1.0], 0.5);
    assert_eq!(called, Ok((Some(2.0), Some((1.0, vec![11.0, -8.5])))));
    assert_eq!(x, [20.0, 30.0]);
    let error = scaled(&mut x, 10.0, &[1.0], 0.5).expect_err("a tangent is missing");
    assert!(
        error.contains("the tangents are made of (f32, f32), the value of (2 × f32, f32)"),
        "{error}"
    );
    assert_eq!(x, [20.0, 30.0], "nothing ran");
    let error = scaled(&mut [], 10.0, &[], 0.5).expect_err("there is no result");
    assert!(error.contains("gave no result"), "{error}");
}

fn fail(values: Vec<f64>) -> Result<(), String> {
    let call = || {
        vjp::<(Vec<f64>,), f64, _>(
            Some(&FAILING),
            no_program,
            (values,),
            |args, leaves| leaves.of(0, &args.0),
            |args, source| args.0.cotangent(source),
            |_, _| {},
        )
    };
    caught(call).map(|_| ()).map_err(|error| error.to_string())
}

#[test]
fn every_way_out_frees_all_memory() {
    let _alone = ALONE.lock();
    std::panic::set_hook(Box::new(|_| {}));
    let round = || {
        assert_eq!(fail(vec![1.0; 7]), Err("no result for 7 values".to_owned()));
        let (_, pull) = pullback(&[1.0, 2.0], &[3.0, 4.0]);
        pull.call(|leaves| leaves.of(Leaf::RETURN, &1.0)).expect("it runs");
        drop(pullback(&[1.0], &[3.0]));
        let _ = scaled(&mut [1.0], 2.0, &[], 1.0);
        let (x, y) = ([1.0], [2.0]);
        value_and_grad::<Slices<'_>, f64, _>(Some(&DOT), no_program, (&x, &y), reach, vectors, |_, _| {})
            .expect("it runs");
    };
    round();
    // SAFETY: glibc says how much memory is in use.
    let used = || unsafe { libc::mallinfo2() }.uordblks;
    let (blocks, bytes) = (BLOCKS.get(), used());
    for _ in 0..1000 {
        round();
    }
    assert_eq!(BLOCKS.get(), blocks);
    assert!(used() < bytes + 20_000, "chunks are freed");
    let _ = std::panic::take_hook();
}

/// `dot` as LibTorch calls it.
fn dot_of_tensors(x: &Tensor, y: &Tensor) -> Result<Tensor, String> {
    let name = |param, wrt| Name {
        function: "dot",
        param,
        wrt,
    };
    let make = || {
        let (x, y) = (
            Given::<f64>::tensor(name("x", true), x)?,
            Given::<f64>::tensor(name("y", true), y)?,
        );
        attached::<Slices<'_>, f64, _>(
            Some(&DOT),
            no_program,
            (x.slice(), y.slice()),
            reach,
            vectors,
            |_, _| {},
            vec![x.edge(), y.edge()],
            |cotangents, each| {
                each(&cotangents.0);
                each(&cotangents.1);
            },
            |(x, y)| native::dot(x, y),
        )
    };
    make().map_err(|error| error.to_string())
}

#[test]
fn a_kernel_is_a_node_of_libtorchs_graph() {
    let _alone = ALONE.lock();
    let x = Tensor::from_slice(&[1.0, 2.0, 3.0, 4.0])
        .reshape([2, 2])
        .set_requires_grad(true);
    let y = Tensor::from_slice(&[5.0, 6.0, 7.0, 8.0]).reshape([2, 2]);
    // Not contiguous: elements are taken in the order of the shape.
    let result = dot_of_tensors(&x.tr(), &y).expect("it runs");
    assert_eq!(
        (result.double_value(&[]), result.size()),
        (5.0 + 18.0 + 14.0 + 32.0, vec![])
    );
    (result * 2.0).backward();
    assert_eq!(x.grad(), y.tr() * 2.0);
    let plain = tch::no_grad(|| dot_of_tensors(&x, &y)).expect("it runs");
    assert!(!plain.requires_grad() && plain.double_value(&[]) == 70.0);
    let error = dot_of_tensors(&x.to_kind(tch::Kind::Float), &y).expect_err("floats of another type");
    assert!(
        error.contains("`dot::autograd`: `x` is of kind Float, and the kernel takes Double"),
        "{error}"
    );
}

#[test]
fn a_seed_can_go_back_twice_while_the_graph_is_kept() {
    let _alone = ALONE.lock();
    let x = Tensor::from_slice(&[1.0, 2.0]).set_requires_grad(true);
    let y = Tensor::from_slice(&[3.0, 4.0]);
    let result = dot_of_tensors(&x, &y).expect("it runs");
    let back = |keep| Tensor::run_backward(&[&result], &[&x], keep, false);
    assert_eq!(back(true), [y.shallow_clone()]);
    assert_eq!(back(false), [y]);
    assert!(
        std::panic::catch_unwind(|| Tensor::f_run_backward(&[&result], &[&x], false, false)).is_ok_and(|r| r.is_err())
    );
}
