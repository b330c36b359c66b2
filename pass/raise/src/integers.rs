//! Integers of any width up to 128 bits, as LLVM's intrinsics compute with them. The bits above the width are zero.

use crate::value::{mask, sign_extend};

/// Does the exact result of `x op y` (`add`, `sub` or `mul`) not fit?
pub(crate) fn overflows(op: &str, signed: bool, x: u128, y: u128, n: u32) -> bool {
    if signed {
        let (a, b) = (sign_extend(x, n), sign_extend(y, n));
        let exact = match op {
            "add" => a.checked_add(b),
            "sub" => a.checked_sub(b),
            _ => a.checked_mul(b),
        };
        exact.is_none_or(|e| sign_extend(e as u128, n) != e)
    } else {
        let exact = match op {
            "add" => x.checked_add(y),
            "sub" => x.checked_sub(y),
            _ => x.checked_mul(y),
        };
        exact.is_none_or(|e| mask(e, n) != e)
    }
}

/// `x op y` (`add` or `sub`), held at the limits of the width.
pub(crate) fn saturate(op: &str, signed: bool, x: u128, y: u128, n: u32) -> u128 {
    let wrapped = match op {
        "add" => x.wrapping_add(y),
        _ => x.wrapping_sub(y),
    };
    let lowest = 1u128 << (n - 1);
    let limit = match (overflows(op, signed, x, y, n), signed) {
        (false, _) => wrapped,
        (true, false) if op == "add" => u128::MAX,
        (true, false) => 0,
        // It leaves the range on the side of its first operand.
        (true, true) if sign_extend(x, n) < 0 => lowest,
        (true, true) => lowest - 1,
    };
    mask(limit, n)
}

/// An intrinsic that looks at the bits of one integer: `ctpop`, `ctlz`, `cttz`, `bswap`, `bitreverse`.
pub(crate) fn bits(what: &str, x: u128, n: u32) -> Option<u128> {
    Some(match what {
        "ctpop" => x.count_ones().into(),
        "ctlz" => (x.leading_zeros() - (128 - n)).into(),
        "cttz" => x.trailing_zeros().min(n).into(),
        "bswap" => x.swap_bytes() >> (128 - n),
        "bitreverse" => x.reverse_bits() >> (128 - n),
        _ => return None,
    })
}

/// `fshl` or `fshr`: `x` above `y`, shifted to the left or right; the upper or lower half.
pub(crate) fn funnel(left: bool, x: u128, y: u128, shift: u128, n: u32) -> u128 {
    let s = (shift % u128::from(n)) as u32;
    let both = match (left, s) {
        (true, 0) => x,
        (false, 0) => y,
        (true, _) => (x << s) | (y >> (n - s)),
        (false, _) => (x << (n - s)) | (y >> s),
    };
    mask(both, n)
}

/// A float as an integer, as Rust's `as` makes it: cut, and held at the limits; nothing where it is no number.
pub(crate) fn from_float(signed: bool, x: f64, n: u32) -> u128 {
    match signed {
        true => {
            let highest = (mask(u128::MAX, n) >> 1) as i128;
            mask((x as i128).clamp(-highest - 1, highest) as u128, n)
        }
        false => (x as u128).min(mask(u128::MAX, n)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::Ty;
    use crate::scalar::{compare, concrete};
    use crate::value::Val;
    use proptest::prelude::*;

    /// Numbers of which many lie at the limits.
    fn number() -> impl Strategy<Value = u128> {
        prop_oneof![
            any::<u128>(),
            (0..128u32, -2..3i128).prop_map(|(k, d)| (1u128 << k).wrapping_add(d as u128)),
            (-3..4i128).prop_map(|x| x as u128),
        ]
    }

    fn float() -> impl Strategy<Value = f64> {
        let special = prop::sample::select(vec![
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            -0.0,
            0.5,
            -0.5,
            1e40,
            -1e40,
        ]);
        prop_oneof![
            any::<f64>(),
            special,
            number().prop_map(|x| x as f64),
            number().prop_map(|x| x as i128 as f64)
        ]
    }

    fn whole(v: crate::scalar::Result<Val>) -> u128 {
        match v {
            Ok(Val::Int(x, _)) => x,
            other => panic!("{other:?}"),
        }
    }

    /// Holds everything against Rust's own arithmetic on one pair of types.
    macro_rules! hold {
        ($u:ty, $i:ty, $x:expr, $y:expr, $f:expr) => {{
            let n = <$u>::BITS;
            let (x, y) = ($x as $u, $y as $u);
            let (a, b) = (x as $i, y as $i);
            let (wx, wy) = (u128::from(x), u128::from(y));
            let signed = |v: $i| u128::from(v as $u);
            let op = |op: &str| whole(concrete(op, &Val::int(wx, n), &Val::int(wy, n)));
            prop_assert_eq!(op("add"), u128::from(x.wrapping_add(y)));
            prop_assert_eq!(op("sub"), u128::from(x.wrapping_sub(y)));
            prop_assert_eq!(op("mul"), u128::from(x.wrapping_mul(y)));
            prop_assert_eq!(op("and"), u128::from(x & y));
            prop_assert_eq!(op("or"), u128::from(x | y));
            prop_assert_eq!(op("xor"), u128::from(x ^ y));
            if y != 0 {
                prop_assert_eq!(op("udiv"), u128::from(x / y));
                prop_assert_eq!(op("urem"), u128::from(x % y));
                prop_assert_eq!(op("sdiv"), signed(a.wrapping_div(b)));
                prop_assert_eq!(op("srem"), signed(a.wrapping_rem(b)));
            } else {
                prop_assert!(concrete("udiv", &Val::int(wx, n), &Val::int(0, n)).is_err());
            }
            let s = (wy % u128::from(n)) as u32;
            let shift = |op: &str| whole(concrete(op, &Val::int(wx, n), &Val::int(s.into(), n)));
            prop_assert_eq!(shift("shl"), u128::from(x << s));
            prop_assert_eq!(shift("lshr"), u128::from(x >> s));
            prop_assert_eq!(shift("ashr"), signed(a >> s));

            for (pred, holds) in [
                ("eq", x == y),
                ("ne", x != y),
                ("ult", x < y),
                ("ule", x <= y),
                ("ugt", x > y),
                ("uge", x >= y),
                ("slt", a < b),
                ("sle", a <= b),
                ("sgt", a > b),
                ("sge", a >= b),
            ] {
                prop_assert_eq!(compare(pred, wx, wy, n), holds, "{}", pred);
            }

            prop_assert_eq!(overflows("add", false, wx, wy, n), x.checked_add(y).is_none());
            prop_assert_eq!(overflows("sub", false, wx, wy, n), x.checked_sub(y).is_none());
            prop_assert_eq!(overflows("mul", false, wx, wy, n), x.checked_mul(y).is_none());
            prop_assert_eq!(overflows("add", true, wx, wy, n), a.checked_add(b).is_none());
            prop_assert_eq!(overflows("sub", true, wx, wy, n), a.checked_sub(b).is_none());
            prop_assert_eq!(overflows("mul", true, wx, wy, n), a.checked_mul(b).is_none());
            prop_assert_eq!(saturate("add", false, wx, wy, n), u128::from(x.saturating_add(y)));
            prop_assert_eq!(saturate("sub", false, wx, wy, n), u128::from(x.saturating_sub(y)));
            prop_assert_eq!(saturate("add", true, wx, wy, n), signed(a.saturating_add(b)));
            prop_assert_eq!(saturate("sub", true, wx, wy, n), signed(a.saturating_sub(b)));

            prop_assert_eq!(bits("ctpop", wx, n), Some(x.count_ones().into()));
            prop_assert_eq!(bits("ctlz", wx, n), Some(x.leading_zeros().into()));
            prop_assert_eq!(bits("cttz", wx, n), Some(x.trailing_zeros().into()));
            prop_assert_eq!(bits("bswap", wx, n), Some(x.swap_bytes().into()));
            prop_assert_eq!(bits("bitreverse", wx, n), Some(x.reverse_bits().into()));
            prop_assert_eq!(funnel(true, wx, wx, wy, n), u128::from(x.rotate_left(s)));
            prop_assert_eq!(funnel(false, wx, wx, wy, n), u128::from(x.rotate_right(s)));
            let above = if s == 0 { x } else { (x << s) | (y >> (n - s)) };
            let below = if s == 0 { y } else { (x << (n - s)) | (y >> s) };
            prop_assert_eq!(funnel(true, wx, wy, wy, n), u128::from(above));
            prop_assert_eq!(funnel(false, wx, wy, wy, n), u128::from(below));

            prop_assert_eq!(from_float(false, $f, n), u128::from($f as $u));
            prop_assert_eq!(from_float(true, $f, n), signed($f as $i));

            let ty = Ty::Int(n);
            let cast = |op: &str, v: Val, to: &Ty| crate::scalar::cast_concrete(op, &v, &ty, to);
            prop_assert_eq!(whole(cast("zext", Val::int(wx, n), &Ty::Int(128))), wx);
            prop_assert_eq!(whole(cast("sext", Val::int(wx, n), &Ty::Int(128))), a as i128 as u128);
            prop_assert_eq!(whole(cast("trunc", Val::int(wx, n), &Ty::Int(8))), u128::from(x as u8));
            prop_assert_eq!(cast("uitofp", Val::int(wx, n), &Ty::F64), Ok(Val::F64(x as f64)));
            prop_assert_eq!(cast("sitofp", Val::int(wx, n), &Ty::F64), Ok(Val::F64(a as f64)));
            prop_assert_eq!(cast("uitofp", Val::int(wx, n), &Ty::F32), Ok(Val::F32(x as f32)));
            prop_assert_eq!(cast("sitofp", Val::int(wx, n), &Ty::F32), Ok(Val::F32(a as f32)));
        }};
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn integers_of_every_width_compute_as_those_of_rust(x in number(), y in number(), f in float()) {
            hold!(u8, i8, x, y, f);
            hold!(u16, i16, x, y, f);
            hold!(u32, i32, x, y, f);
            hold!(u64, i64, x, y, f);
            hold!(u128, i128, x, y, f);
        }

        #[test]
        fn a_bit_computes_as_a_boolean(a: bool, b: bool) {
            let op = |op: &str| concrete(op, &Val::bool(a), &Val::bool(b));
            prop_assert_eq!(op("and"), Ok(Val::bool(a & b)));
            prop_assert_eq!(op("or"), Ok(Val::bool(a | b)));
            prop_assert_eq!(op("xor"), Ok(Val::bool(a ^ b)));
            prop_assert_eq!(op("add"), Ok(Val::bool(a ^ b)));
        }
    }
}
