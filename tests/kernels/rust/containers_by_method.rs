//! Shape: what vectors, maps, queues and sets offer.
//! Hard: elements are moved by whole blocks and found by keys, in memory that is taken and given back.
use cotangent::differentiable;

fn agree(f: impl Fn(&[f64]) -> f64, x: &[f64], value: f64, grad: &[f64]) {
    assert_eq!(f(x).to_bits(), value.to_bits(), "value");
    assert_eq!(x.len(), grad.len(), "length");
    for i in 0..x.len() {
        let h = 1e-6 * x[i].abs().max(1.0);
        let (mut a, mut b) = (x.to_vec(), x.to_vec());
        a[i] += h;
        b[i] -= h;
        let d = (f(&a) - f(&b)) / (2.0 * h);
        assert!(
            (d - grad[i]).abs() <= 2e-6 * d.abs().max(1.0),
            "element {i}: got {}, differences {d}",
            grad[i]
        );
    }
}

macro_rules! case {
    ($test:ident, $f:ident, $x:expr) => {
        #[test]
        fn $test() {
            let x: Vec<f64> = $x;
            for _ in 0..2 {
                let (v, c) = $f::value_and_grad(&x);
                agree($f, &x, v, &c.x);
            }
            let t: Vec<f64> = (0..x.len()).map(|i| (i as f64 * 0.7 + 0.3).sin()).collect();
            let (v, dot) = $f::jvp(&x, $f::Tangents { x: t.clone() });
            let c = $f::grad(&x);
            let want: f64 = c.x.iter().zip(&t).map(|(a, b)| a * b).sum();
            assert_eq!(v.to_bits(), $f(&x).to_bits());
            assert!(
                (dot - want).abs() <= 1e-9 * want.abs().max(1.0),
                "forward {dot}, reverse {want}"
            );
        }
    };
}

fn ramp(n: usize) -> Vec<f64> {
    (0..n).map(|i| 0.4 + 0.31 * i as f64 - 0.011 * (i * i) as f64).collect()
}
use std::collections::{BTreeMap, BTreeSet, HashMap, LinkedList, VecDeque};
#[differentiable]
fn vecs(x: &[f64]) -> f64 {
    let mut v = x.to_vec();
    v.dedup_by(|a, b| (*a - *b).abs() < 0.05);
    v.dedup_by_key(|a| (*a * 4.0) as i32);
    let cut: Vec<f64> = v.drain(1..3).collect();
    v.splice(0..1, cut.iter().map(|c| c * 2.0));
    let tail = v.split_off(v.len() / 2);
    v.resize(v.len() + 2, x[0]);
    v.resize_with(v.len() + 1, || x[1] * x[1]);
    v.extend(tail.iter().rev());
    v.swap(0, 2);
    v.retain_mut(|a| {
        *a *= 1.5;
        *a < 4.0
    });
    let (a, b) = v.split_at_mut(3);
    a[0] += b[0] * b[1];
    std::mem::swap(&mut a[1], &mut b[0]);
    a.copy_from_slice(&[x[2], x[3], a[0]]);
    b[..2].clone_from_slice(&x[..2]);
    let i = v
        .binary_search_by(|p| p.partial_cmp(&0.9).unwrap())
        .unwrap_or_else(|i| i)
        .min(v.len() - 1);
    let pp = x.partition_point(|p| *p < 1.0);
    v.sort_unstable_by(|a, b| b.total_cmp(a));
    v.select_nth_unstable_by(2, |a, b| a.total_cmp(b));
    v.rotate_right(2);
    let fill = v[0] * 0.1 + v[1];
    v[3..6].fill(fill);
    v[1..].iter_mut().for_each(|a| *a += 1.0);
    v.chunks_exact_mut(2).for_each(|c| c.swap(0, 1));
    v.copy_within(0..2, 2);
    let c = [v.clone(), cut.clone()].concat();
    let j = [&x[..2], &x[2..4]]
        .iter()
        .map(|s| s.iter().sum::<f64>())
        .product::<f64>();
    let rep = x[..2].repeat(3);
    let bx: Box<[f64]> = c.into_boxed_slice();
    let (f, rest) = bx.split_first().unwrap();
    let l = rest.last().unwrap();
    f * l
        + j
        + rep.iter().enumerate().map(|(i, r)| r * i as f64).sum::<f64>()
        + x[i] * pp as f64
        + bx.iter().map(|v| v * v).sum::<f64>()
        + tail.iter().sum::<f64>()
}
case!(methods_of_vectors, vecs, ramp(10));

#[differentiable]
fn maps(x: &[f64]) -> f64 {
    let mut m: BTreeMap<(u8, i64), f64> = BTreeMap::new();
    for (i, v) in x.iter().enumerate() {
        m.entry(((i % 3) as u8, -(i as i64)))
            .and_modify(|e| *e += v)
            .or_insert(*v);
    }
    let firsts: f64 = m.range((1, i64::MIN)..(2, i64::MIN)).map(|(k, v)| v * k.1 as f64).sum();
    let mut h: HashMap<&str, Vec<f64>> = HashMap::new();
    for (i, v) in x.iter().enumerate() {
        h.entry(["a", "bb", "ccc"][i % 3]).or_default().push(v * v);
    }
    let bb = h.remove("bb").unwrap();
    if let Some(a) = h.get_mut("a") {
        a[0] *= x[1];
    }
    let mut keys: Vec<_> = h.keys().copied().collect();
    keys.sort();
    let hs: f64 = keys.iter().map(|k| h[k].iter().sum::<f64>() * k.len() as f64).sum();
    let mut dq: VecDeque<(usize, f64)> = VecDeque::with_capacity(4);
    for (i, v) in x.iter().enumerate() {
        while dq.back().is_some_and(|b| b.1 < *v * 0.9) {
            dq.pop_back();
        }
        dq.push_back((i, *v));
        if dq.len() > 3 {
            dq.pop_front();
        }
    }
    dq.rotate_left(1);
    dq.make_contiguous().reverse();
    let ds: f64 = dq.iter().map(|(i, v)| v * *i as f64).sum();
    let mut ll: LinkedList<f64> = x.iter().copied().collect();
    let mut back = ll.split_off(2);
    back.push_front(x[0] * x[1]);
    ll.append(&mut back);
    let ls = ll.iter().rev().fold(0.0, |a, v| a * 0.5 + v);
    let set: BTreeSet<i32> = x.iter().map(|v| (v * 3.0) as i32).collect();
    let hm: HashMap<usize, f64> = x.iter().copied().enumerate().collect();
    let hv = (0..x.len()).filter_map(|i| hm.get(&(i * 2))).sum::<f64>();
    if let Some((k, v)) = m.pop_first() {
        return v * k.1 as f64
            + firsts
            + hs
            + bb.iter().sum::<f64>()
            + ds
            + ls
            + set.len() as f64 * x[0]
            + hv
            + m.into_values().map(|v| v * v).sum::<f64>();
    }
    0.0
}
case!(maps_and_queues, maps, ramp(10));
