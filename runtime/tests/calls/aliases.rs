//! Outputs that share storage with inputs or with each other do so for the caller, with LibTorch's own records.

use crate::functions::*;
use crate::support::*;
use tch::{Kind, Tensor};

fn values(t: &Tensor) -> Vec<f64> {
    Vec::try_from(t.contiguous().view(-1)).unwrap()
}

#[test]
fn a_view_of_an_input_is_one_on_both_paths() {
    let k = random(2, &[2]);
    for attached in [false, true] {
        let x = random(1, &[4, 2]);
        let version = x.internal_version();
        let Two(mut view, y) = match attached {
            true => autograd(compiled_window(), &[&&x, &&k]).unwrap(),
            false => vjp(compiled_window(), &[&&x, &&k]).unwrap().0,
        };
        same(&y, &(&x * &k));
        let _ = view.fill_(7.0);
        assert_eq!(values(&x.narrow(0, 1, 2)), [7.0; 4]);
        assert!(x.internal_version() > version);
    }
}

#[test]
fn a_seed_on_a_view_of_an_input_reaches_the_input() {
    let (x, k) = (random(1, &[4, 2]), random(2, &[2]));
    let (_, run) = vjp::<Two>(compiled_window(), &[&&x, &&k]).unwrap();
    let (a, b) = (leaf(&x), leaf(&k));
    let seeds = [random(3, &[2, 2]), random(4, &[4, 2])];
    let Two(v, y) = window(&a, &b);
    let want = native(&[&v, &y], &[share(&seeds[0]), share(&seeds[1])], &[&a, &b]);
    same_all(&pull(&run, &seeds).unwrap(), &want);
    let Two(v, y) = autograd::<Two>(compiled_window(), &[&&a, &&b]).unwrap();
    same_all(&native(&[&v, &y], &seeds, &[&a, &b]), &want);
}

#[test]
fn an_input_returned_as_it_is_keeps_its_identity() {
    let x = leaf(&random(1, &[2, 3]));
    let y = autograd::<Tensor>(compiled_unchanged(), &[&&x]).unwrap();
    (&y * &y).sum(Kind::Double).backward();
    same(&x.grad(), &(x.detach() * 2.0));
    let (y, run) = vjp::<Tensor>(compiled_unchanged(), &[&&x]).unwrap();
    assert_eq!(y.data_ptr(), x.data_ptr());
    let seed = random(2, &[2, 3]);
    same_all(&pull(&run, &[seed.shallow_clone()]).unwrap(), &[seed]);
}

#[test]
fn outputs_on_one_storage_are_views_of_each_other() {
    let run = |compiled: bool| {
        let x = leaf(&random(1, &[2, 3]));
        let Two(t, y) = match compiled {
            true => autograd(compiled_doubled(), &[&&x]).unwrap(),
            false => doubled(&x),
        };
        assert_eq!(t.data_ptr(), y.data_ptr());
        let total = (&t * 3.0).sum(Kind::Double) + (&y * &y).sum(Kind::Double);
        total.backward();
        x.grad()
    };
    same(&run(true), &run(false));
    let x = random(1, &[2, 3]);
    let (Two(t, y), pullback) = vjp::<Two>(compiled_doubled(), &[&&x]).unwrap();
    assert_eq!(t.data_ptr(), y.data_ptr());
    let a = leaf(&x);
    let Two(u, z) = doubled(&a);
    let seeds = [random(2, &[3, 2]), random(3, &[2, 3])];
    let want = native(&[&u, &z], &[share(&seeds[0]), share(&seeds[1])], &[&a]);
    same_all(&pull(&pullback, &seeds).unwrap(), &want);
}
