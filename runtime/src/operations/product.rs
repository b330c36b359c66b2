//! Products of matrices: LibTorch's BLAS, or loops where a call of it would take longer than the product.

use super::Real;
use tch::{Device, Kind, Tensor};

/// Multiplications from which on a product is LibTorch's.
const MANY: usize = 16 * 1024;

/// A matrix in a slice, rows after rows, perhaps to be read as its transpose.
#[derive(Clone, Copy)]
pub(super) struct Matrix<'a, T> {
    data: &'a [T],
    rows: usize,
    columns: usize,
    /// Elements from one row, and from one column, to the next.
    strides: [usize; 2],
}

impl<'a, T: Real> Matrix<'a, T> {
    pub(super) fn new(data: &'a [T], rows: usize, columns: usize) -> Self {
        assert_eq!(data.len(), rows * columns, "callers have looked at the dimensions");
        Self {
            data,
            rows,
            columns,
            strides: [columns, 1],
        }
    }

    pub(super) fn transposed(self) -> Self {
        Self {
            rows: self.columns,
            columns: self.rows,
            strides: [self.strides[1], self.strides[0]],
            ..self
        }
    }

    fn tensor(&self) -> Result<Tensor, tch::TchError> {
        let [size, strides] = [[self.rows, self.columns], self.strides].map(|pair| pair.map(|n| n as i64));
        let kind: Kind = T::KIND;
        // SAFETY: sizes and strides stay within the slice, by `new`; the tensor is only read, and gone before the slice.
        unsafe { Tensor::f_from_blob(self.data.as_ptr().cast(), &size, &strides, kind, Device::Cpu) }
    }
}

/// The product of two matrices, rows after rows.
pub(super) fn product<T: Real>(a: Matrix<'_, T>, b: Matrix<'_, T>) -> Vec<T> {
    let mut out = vec![T::NONE; a.rows * b.columns];
    if a.rows * a.columns * b.columns >= MANY && by_libtorch(a, b, &mut out).is_ok() {
        return out;
    }
    for (i, row) in out.chunks_mut(b.columns.max(1)).enumerate() {
        for k in 0..a.columns {
            let factor = a.data[i * a.strides[0] + k * a.strides[1]];
            for (j, sum) in row.iter_mut().enumerate() {
                *sum += factor * b.data[k * b.strides[0] + j * b.strides[1]];
            }
        }
    }
    out
}

fn by_libtorch<T: Real>(a: Matrix<'_, T>, b: Matrix<'_, T>, out: &mut [T]) -> Result<(), tch::TchError> {
    let (a, b) = (a.tensor()?, b.tensor()?);
    let product = tch::no_grad(|| a.f_mm(&b))?;
    product.f_contiguous()?.f_copy_data(out, out.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_and_libtorch_agree_on_matrices_and_their_transposes() {
        let numbers = |n: usize, k: usize| (0..n).map(|i| ((i * k) % 17) as f64 - 8.0).collect::<Vec<_>>();
        let (a, b) = (numbers(35 * 20, 5), numbers(20 * 30, 7));
        let (at, bt) = (numbers(20 * 35, 3), numbers(30 * 20, 11));
        let (a, b) = (Matrix::new(&a, 35, 20), Matrix::new(&b, 20, 30));
        let (at, bt) = (
            Matrix::new(&at, 20, 35).transposed(),
            Matrix::new(&bt, 30, 20).transposed(),
        );
        for (a, b) in [(a, b), (at, b), (a, bt), (at, bt)] {
            let mut by_blas = vec![0.0; 35 * 30];
            by_libtorch(a, b, &mut by_blas).unwrap();
            for (i, row) in by_blas.chunks(30).enumerate() {
                let strip = Matrix {
                    data: &a.data[i * a.strides[0]..],
                    rows: 1,
                    ..a
                };
                assert_eq!(product(strip, b), row);
            }
            assert_eq!(product(a, b), by_blas);
        }
    }
}
