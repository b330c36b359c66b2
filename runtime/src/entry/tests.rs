//! Leaves, cotangents and rules, without the engine.

use super::{rule_of, shim_of};
use crate::differentiable::{Differentiable, Leaf, LeafKind, Leaves, Number, Place, Source};
use crate::kernel::Addresses;
use tch::Tensor;

type Mixed = (Vec<Tensor>, [f64; 2], Option<(f32, usize)>);

fn mixed() -> Mixed {
    (vec![Tensor::from(1.0), Tensor::from(2.0)], [3.0, 4.0], Some((5.0, 6)))
}

fn leaves<T: Differentiable>(value: &T) -> Vec<Leaf> {
    let mut leaves = Leaves::default();
    leaves.of(2, value);
    leaves.into_vec()
}

#[test]
fn leaves_are_places_in_the_value_itself() {
    let value = mixed();
    let found = leaves(&value);
    assert!(found.iter().all(|leaf| leaf.param == 2));
    let places: Vec<Place> = found.iter().map(|leaf| leaf.place).collect();
    let (tensors, floats, single) = &value;
    let expected = [
        Place::Tensor(&tensors[0]),
        Place::Tensor(&tensors[1]),
        Place::F64(&floats[0]),
        Place::F64(&floats[1]),
        Place::F32(&single.as_ref().expect("it is there").0),
    ];
    assert_eq!(places, expected);
}

#[test]
fn cotangents_have_the_structure_of_the_value_and_copy_its_constants() {
    let value = mixed();
    let (tensors, floats, single) = value.cotangent(&mut Source::Nothing);
    assert!(tensors.len() == 2 && tensors.iter().all(|tensor| !tensor.defined()));
    assert_eq!((floats, single), ([0.0; 2], Some((0.0, 6))));
    let numbers = vec![
        Number::Tensor(Tensor::from(10.0)),
        Number::Tensor(Tensor::new()),
        Number::F64(7.0),
        Number::F64(8.0),
        Number::F32(9.0),
    ];
    let (tensors, floats, single) = value.cotangent(&mut Source::numbers(numbers));
    assert_eq!(tensors[0].double_value(&[]), 10.0);
    assert!(!tensors[1].defined());
    assert_eq!((floats, single), ([7.0, 8.0], Some((9.0, 6))));
}

#[test]
fn results_that_are_not_there_are_absent() {
    assert!(None::<f64>.absent() && Err::<f64, ()>(()).absent() && Ok::<Option<f64>, ()>(None).absent());
    assert!(!Some(1.0).absent() && !Ok::<f64, ()>(1.0).absent() && !1.0.absent());
}

fn product(x: &Tensor, k: f64) -> Tensor {
    x * k
}

#[test]
fn a_shim_moves_arguments_out_and_writes_the_result() {
    let shim = shim_of::<(&Tensor, f64), Tensor, _>(product);
    let (x, k) = (&Tensor::from(3.0), 2.0);
    let mut out = std::mem::MaybeUninit::<Tensor>::uninit();
    let args = [(&raw const x).cast(), (&raw const k).cast()];
    // SAFETY: the arguments of `product`, and a place for its result.
    let out = unsafe {
        shim(args.as_ptr(), out.as_mut_ptr().cast());
        out.assume_init()
    };
    assert_eq!(out.double_value(&[]), 6.0);
}

#[test]
fn a_rule_that_was_run_can_be_pulled_back_any_number_of_times() {
    fn forward(x: &Tensor, k: f64) -> (Tensor, (f64, Vec<f64>)) {
        (x * k, (k, vec![x.double_value(&[])]))
    }
    fn backward((k, x): (f64, Vec<f64>), seed: Tensor) -> (Tensor, f64) {
        let slope = seed.double_value(&[]) * x[0];
        (seed * k, slope)
    }
    let reach = |args: &Addresses, leaves: &mut Leaves| {
        args.leaves::<&Tensor>(0, leaves);
        args.leaves::<f64>(1, leaves);
    };
    let rule = rule_of::<(&Tensor, f64), Tensor, _, (Tensor, f64), _, _, _, _>("{}", product, forward, backward, reach);
    let (x, k) = (&Tensor::from(3.0), 2.0);
    let mut out = std::mem::MaybeUninit::<Tensor>::uninit();
    let args = [(&raw const x).cast(), (&raw const k).cast()];
    // SAFETY: the arguments of `product`, and a place for its result.
    let (ran, outputs, out) = unsafe {
        let ran = rule.run(args.as_ptr(), out.as_mut_ptr().cast());
        let outputs = rule.outputs(out.as_ptr().cast());
        (ran, outputs, out.assume_init())
    };
    assert_eq!(out.double_value(&[]), 6.0);
    let kinds: Vec<(usize, LeafKind)> = outputs.iter().map(|leaf| (leaf.param, leaf.place.kind())).collect();
    assert_eq!(kinds, [(Leaf::RETURN, LeafKind::Tensor)]);
    for seed in [1.0, 10.0] {
        match ran.pullback(vec![Number::Tensor(Tensor::from(seed))]).as_slice() {
            [Number::Tensor(x), Number::F64(k)] => assert_eq!((x.double_value(&[]), *k), (2.0 * seed, 3.0 * seed)),
            other => panic!("not the cotangents of `product`: {other:?}"),
        }
    }
}
