//! Products: linear in each of two arguments.

use super::table;
use crate::ops::Rule::Bilinear;
use crate::ops::formula::{Formula, Term, grads, op, rule};
use crate::ops::shapes::{Inferred, broadcast, one, refuse};
use crate::ops::{Infer, ShapeError};

table! {
    "mm": mm, Bilinear(grads!(|m|
        0 => op!(mm(m.g(), op!(t(m.x(1))))),
        1 => op!(mm(op!(t(m.x(0))), m.g())))), "2x3 3x4 | 0x3 3x4";
    "bmm": bmm, Bilinear(grads!(|m|
        0 => op!(bmm(m.g(), transposed(m.x(1)))),
        1 => op!(bmm(transposed(m.x(0)), m.g())))), "2x2x3 2x3x4";
    "mv": mv, Bilinear(grads!(|m|
        0 => outer(m.g(), m.x(1)),
        1 => op!(mv(op!(t(m.x(0))), m.g())))), "2x3 3";
    "dot": dot, Bilinear(grads!(|m| 0 => m.g() * m.x(1), 1 => m.g() * m.x(0))), "3 3";
    "outer": outer_shape, Bilinear(grads!(|m|
        0 => op!(mv(m.g(), m.x(1))),
        1 => op!(mv(op!(t(m.g())), m.x(0))))), "2 3";
    "addmm": addmm, Bilinear(grads!(|m|
        0 => m.g(),
        1 => op!(mm(m.g(), op!(t(m.x(2))))),
        2 => op!(mm(op!(t(m.x(1))), m.g())))), "2x4 2x3 3x4 | 4 2x3 3x4 | 2x1 2x3 3x4 | . 2x3 3x4";
    "baddbmm": baddbmm, Bilinear(grads!(|m|
        0 => m.g() * m.arg(3),
        1 => op!(bmm(m.g(), transposed(m.x(2)))) * m.arg(4),
        2 => op!(bmm(transposed(m.x(1)), m.g())) * m.arg(4),
        3 => m.g() * m.x(0),
        4 => m.g() * op!(bmm(m.x(1), m.x(2))))), "2x2x4 2x2x3 2x3x4 1 1 | 4 2x2x3 2x3x4 0.5 2.5 | 4 2x2x3 2x3x4 $ $";
    "addmv": addmv, Bilinear(grads!(|m|
        0 => m.g(),
        1 => outer(m.g(), m.x(2)),
        2 => op!(mv(op!(t(m.x(1))), m.g())))), "2 2x3 3";
    "matmul": matmul, Bilinear(rule!(|m| matmul_rule(m))),
        "3 3 | 2x3 3 | 3 3x4 | 2x3 3x4 | 2x2x3 3 | 2x2x3 3x4 | 3 2x3x4 | 2x3 2x3x4 \
         | 2x2x3 2x3x4 | 2x1x2x3 4x3x2 | 1x2x3 5x3x2";
    "linear": linear, Bilinear(rule!(|m| linear_rule(m))),
        "2x3 4x3 4 | 2x3 4x3 - | 3 4x3 4 | 2x2x3 4x3 4 | 2x3 3 -";
}

fn agree(cx: &Infer<'_>, a: i64, b: i64) -> Result<(), ShapeError> {
    if a == b {
        Ok(())
    } else {
        refuse(format!("{} over extents {a} and {b}", cx.op))
    }
}

/// The ranks that an op asks for.
fn ranks(cx: &Infer<'_>, wanted: &[(usize, usize)]) -> Result<(), ShapeError> {
    for (i, rank) in wanted {
        let have = cx.tensor(*i).rank();
        if have != *rank {
            return refuse(format!("{} of a tensor of rank {have} for {rank}", cx.op));
        }
    }
    Ok(())
}

/// Rows and columns of the product of the matrices in positions `i` and `j`.
fn product(cx: &Infer<'_>, i: usize, j: usize) -> Result<[i64; 2], ShapeError> {
    ranks(cx, &[(i, 2), (j, 2)])?;
    let [a, b] = [cx.tensor(i), cx.tensor(j)];
    agree(cx, a.shape[1], b.shape[0])?;
    Ok([a.shape[0], b.shape[1]])
}

fn batched_product(cx: &Infer<'_>, i: usize, j: usize) -> Result<[i64; 3], ShapeError> {
    ranks(cx, &[(i, 3), (j, 3)])?;
    let [a, b] = [cx.tensor(i), cx.tensor(j)];
    agree(cx, a.shape[0], b.shape[0])?;
    agree(cx, a.shape[2], b.shape[1])?;
    Ok([a.shape[0], a.shape[1], b.shape[2]])
}

/// `bias` must broadcast to `shape` and leave it as it is.
fn added(bias: &[i64], shape: &[i64]) -> Result<(), ShapeError> {
    if bias.len() <= shape.len() && broadcast(bias, shape)? == shape {
        Ok(())
    } else {
        refuse(format!("{bias:?} does not broadcast to {shape:?}"))
    }
}

fn mm(cx: &Infer<'_>) -> Inferred {
    one(cx.same_kind(&[0, 1])?, product(cx, 0, 1)?)
}

fn bmm(cx: &Infer<'_>) -> Inferred {
    one(cx.same_kind(&[0, 1])?, batched_product(cx, 0, 1)?)
}

fn mv(cx: &Infer<'_>) -> Inferred {
    ranks(cx, &[(0, 2), (1, 1)])?;
    let [a, v] = [cx.tensor(0), cx.tensor(1)];
    agree(cx, a.shape[1], v.shape[0])?;
    one(cx.same_kind(&[0, 1])?, [a.shape[0]])
}

fn dot(cx: &Infer<'_>) -> Inferred {
    ranks(cx, &[(0, 1), (1, 1)])?;
    agree(cx, cx.tensor(0).shape[0], cx.tensor(1).shape[0])?;
    one(cx.same_kind(&[0, 1])?, [])
}

fn outer_shape(cx: &Infer<'_>) -> Inferred {
    ranks(cx, &[(0, 1), (1, 1)])?;
    one(cx.promoted_kind(), [cx.tensor(0).shape[0], cx.tensor(1).shape[0]])
}

fn addmm(cx: &Infer<'_>) -> Inferred {
    let shape = product(cx, 1, 2)?;
    added(&cx.tensor(0).shape, &shape)?;
    one(cx.same_kind(&[0, 1, 2])?, shape)
}

fn baddbmm(cx: &Infer<'_>) -> Inferred {
    let shape = batched_product(cx, 1, 2)?;
    added(&cx.tensor(0).shape, &shape)?;
    one(cx.same_kind(&[0, 1, 2])?, shape)
}

fn addmv(cx: &Infer<'_>) -> Inferred {
    ranks(cx, &[(1, 2), (2, 1)])?;
    let [a, v] = [cx.tensor(1), cx.tensor(2)];
    agree(cx, a.shape[1], v.shape[0])?;
    added(&cx.tensor(0).shape, &a.shape[..1])?;
    one(cx.same_kind(&[0, 1, 2])?, [a.shape[0]])
}

fn matmul(cx: &Infer<'_>) -> Inferred {
    let [a, b] = [cx.tensor(0), cx.tensor(1)];
    if a.rank() == 0 || b.rank() == 0 {
        return refuse("matmul of a 0-dim tensor");
    }
    // A vector is a row on the left and a column on the right; that dimension is dropped again.
    let left = if a.rank() == 1 {
        vec![1, a.shape[0]]
    } else {
        a.shape.clone()
    };
    let right = if b.rank() == 1 {
        vec![b.shape[0], 1]
    } else {
        b.shape.clone()
    };
    let (left_batch, left) = left.split_at(left.len() - 2);
    let (right_batch, right) = right.split_at(right.len() - 2);
    agree(cx, left[1], right[0])?;
    let mut shape = broadcast(left_batch, right_batch)?;
    if a.rank() > 1 {
        shape.push(left[0]);
    }
    if b.rank() > 1 {
        shape.push(right[1]);
    }
    one(cx.same_kind(&[0, 1])?, shape)
}

fn linear(cx: &Infer<'_>) -> Inferred {
    let [x, w] = [cx.tensor(0), cx.tensor(1)];
    let Some((last, batch)) = x.shape.split_last() else {
        return refuse("linear of a 0-dim tensor");
    };
    let mut shape = batch.to_vec();
    match w.shape[..] {
        [n] => agree(cx, *last, n)?,
        [m, n] => {
            agree(cx, *last, n)?;
            shape.push(m);
        }
        _ => return refuse(format!("linear with a weight of shape {:?}", w.shape)),
    }
    if let Some(bias) = cx.opt_tensor(2) {
        added(&bias.shape, &shape)?;
    }
    one(cx.same_kind(&[0, 1, 2])?, shape)
}

/// The last two dimensions exchanged.
fn transposed(x: Term<'_>) -> Term<'_> {
    if x.rank() == 2 {
        op!(t(x))
    } else {
        op!(transpose(x, -2, -1))
    }
}

fn outer<'m>(a: Term<'m>, b: Term<'m>) -> Term<'m> {
    op!(outer(a, b))
}

/// All dimensions but the last joined into one.
fn rows(x: Term<'_>) -> Term<'_> {
    let shape = x.shape();
    let (last, batch) = shape.split_last().expect("a matrix or a batch of them");
    x.reshaped(&[batch.iter().product(), *last])
}

/// The transposes of a product of any two ranks. Products with a batch on one side only are one product of matrices:
/// the batch joins the rows, as LibTorch folds it.
fn matmul_rule(m: &Formula<'_, '_>) {
    let (a, b, g) = (m.x(0), m.x(1), m.g());
    match (a.rank(), b.rank()) {
        (1, 1) => {
            give(m, 0, || g * b);
            give(m, 1, || g * a);
        }
        (2, 1) => {
            give(m, 0, || outer(g, b));
            give(m, 1, || op!(mv(op!(t(a)), g)));
        }
        (1, 2) => {
            give(m, 0, || op!(mv(b, g)));
            give(m, 1, || outer(a, g));
        }
        (2, 2) => {
            give(m, 0, || op!(mm(g, op!(t(b)))));
            give(m, 1, || op!(mm(op!(t(a)), g)));
        }
        (_, 1) => {
            let count: i64 = g.shape().iter().product();
            give(m, 0, || op!(unsqueeze(g, -1)) * b);
            give(m, 1, || op!(mv(op!(t(rows(a))), g.reshaped(&[count]))));
        }
        (_, 2) if a.rank() > 2 => {
            give(m, 0, || op!(mm(rows(g), op!(t(b)))).reshaped(&a.shape()));
            give(m, 1, || op!(mm(op!(t(rows(a))), rows(g))));
        }
        (1, _) => {
            // A row times each matrix of the batch.
            let row = op!(unsqueeze(g, -2));
            give(m, 0, || {
                op!(matmul(row, transposed(b))).reshaped(&squeezed(&b.shape(), a.shape()[0]))
            });
            give(m, 1, || op!(unsqueeze(a, -1)) * row);
        }
        _ => {
            // The sweep sums over the batch dimensions that were broadcast.
            give(m, 0, || op!(matmul(g, transposed(b))));
            give(m, 1, || op!(matmul(transposed(a), g)));
        }
    }
}

/// The batch shape of `b`, then `n`.
fn squeezed(b: &[i64], n: i64) -> Vec<i64> {
    let mut shape = b[..b.len() - 2].to_vec();
    shape.push(n);
    shape
}

fn give<'m>(m: &'m Formula<'_, '_>, i: usize, bar: impl FnOnce() -> Term<'m>) {
    if m.wants(i) {
        m.give(i, bar());
    }
}

fn linear_rule(m: &Formula<'_, '_>) {
    let (x, w, g) = (m.x(0), m.x(1), m.g());
    if w.rank() == 1 {
        let count: i64 = g.shape().iter().product();
        give(m, 0, || op!(unsqueeze(g, -1)) * w);
        give(m, 1, || op!(mv(op!(t(rows(x))), g.reshaped(&[count]))));
    } else {
        give(m, 0, || op!(mm(rows(g), w)).reshaped(&x.shape()));
        give(m, 1, || op!(mm(op!(t(rows(g))), rows(x))));
    }
    give(m, 2, || g);
}
