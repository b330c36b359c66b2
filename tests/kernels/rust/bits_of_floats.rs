//! Shape: bits of floats as integers: moved, masked by their sign, compared, and computed with.
//! Hard: what is computed from bits and becomes a float again has no derivative that is told by the code. It is refused,
//! whether memory is read as floats or as integers alone, and whatever evaluates the function.

use cotangent::differentiable;

#[differentiable]
fn kept(x: &[f64]) -> f64 {
    f64::from_bits(x[1].to_bits())
}

#[differentiable]
fn negated(x: &[f64]) -> f64 {
    f64::from_bits(x[1].to_bits() ^ (1 << 63))
}

#[differentiable]
fn compared(x: &[f64]) -> f64 {
    x.iter().map(|v| if v.to_bits() >> 52 > 1022 { v * v } else { 3.0 * v }).sum()
}

#[test]
fn bits_that_are_moved_or_compared_have_their_derivative() {
    assert_eq!(kept::grad(&[0.5, 0.7]).x, [0.0, 1.0]);
    assert_eq!(negated::grad(&[0.5, 0.7]).x, [0.0, -1.0]);
    assert_eq!(compared::grad(&[0.4, 1.5]).x, [3.0, 3.0]);
}

macro_rules! refused {
    ($($test:ident $f:ident $kernel:item)*) => {
        $(
            #[differentiable]
            $kernel

            #[test]
            fn $test() {
                let x = [0.7, 5.3];
                let forward = $f::try_jvp(&x, $f::Tangents { x: vec![1.0, 0.0] }).map(|(_, t)| t.to_string());
                let reverse = $f::try_grad(&x).map(|g| format!("{:?}", g.x));
                for result in [reverse, forward] {
                    let error = result.expect_err("what is computed from bits").to_string();
                    assert!(error.contains("bits of a"), "{error}");
                }
            }
        )*
    };
}

refused! {
    one_power_of_two_more_is_refused scaled
    fn scaled(x: &[f64]) -> f64 { f64::from_bits(x[0].to_bits() + (3 << 52)) }

    another_exponent_is_refused mantissa
    fn mantissa(x: &[f64]) -> f64 { f64::from_bits((x[0].to_bits() & !(0x7ff << 52)) | (1022 << 52)) }

    the_next_number_is_refused next
    fn next(x: &[f64]) -> f64 { x.iter().map(|v| v.next_up() * 3.0).sum() }

    a_sum_of_such_is_refused all
    fn all(x: &[f64]) -> f64 { x.iter().map(|v| f64::from_bits(v.to_bits() + (3 << 52))).sum() }

    mantissa_and_exponent_apart_are_refused apart
    fn apart(x: &[f64]) -> f64 {
        let parts = x.iter().map(|v| {
            let bits = v.to_bits();
            let exponent = (bits >> 52 & 0x7ff) as i64 - 1022;
            f64::from_bits((bits & !(0x7ff << 52)) | (1022 << 52)).ln() + exponent as f64 * std::f64::consts::LN_2
        });
        parts.sum()
    }

    sorted_keys_are_refused keys
    fn keys(x: &[f64]) -> f64 {
        let key = |v: &f64| { let b = v.to_bits(); if b >> 63 == 1 { !b } else { b | 1 << 63 } };
        let mut all: Vec<u64> = x.iter().map(key).collect();
        all.sort_unstable();
        let back = |k: u64| f64::from_bits(if k >> 63 == 1 { k & !(1 << 63) } else { !k });
        all.into_iter().enumerate().map(|(i, k)| back(k) * (i + 1) as f64).sum()
    }

    a_fast_inverse_root_is_refused inverse_root
    fn inverse_root(x: &[f64]) -> f64 {
        let root = |v: &f64| {
            let y = f64::from_bits(0x5fe6_eb50_c7b5_37a9 - (v.to_bits() >> 1));
            y * (1.5 - 0.5 * v * y * y)
        };
        x.iter().map(root).sum()
    }
}
