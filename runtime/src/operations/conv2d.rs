//! The cross-correlation of an image with kernels, where these lie within it: `input` is channels, height and width of
//! the image, `kernel` is how many kernels there are, their height and their width; each has all channels.
//!
//! The windows of the image, as columns of a matrix, make it a product of matrices, and so its derivatives.

use super::product::{Matrix, product};
use super::{Real, expect};
use std::sync::Arc;

/// Windows and kernels, and the dimensions.
pub type Kept<T> = (Arc<[Vec<T>; 2]>, Sizes);

/// Dimensions of a convolution.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    input: [usize; 3],
    kernel: [usize; 3],
}

impl Sizes {
    fn new<T>(x: &[T], w: &[T], input: [usize; 3], kernel: [usize; 3]) -> Self {
        let [channels, height, width] = input;
        let [many, down, across] = kernel;
        expect("the image of `conv2d`", x.len(), &input);
        expect("the kernels of `conv2d`", w.len(), &[many, channels, down, across]);
        assert!(
            down <= height && across <= width,
            "kernels of {down} × {across} do not fit in an image of {height} × {width}"
        );
        Self { input, kernel }
    }

    /// Elements of a window, and how many windows there are.
    fn windows(self) -> (usize, usize) {
        let ([channels, height, width], [_, down, across]) = (self.input, self.kernel);
        (channels * down * across, (height - down + 1) * (width - across + 1))
    }

    /// For each element of the windows, as a matrix with a column per window, the element of the image.
    fn places(self) -> impl Iterator<Item = usize> {
        let ([channels, height, width], [_, down, across]) = (self.input, self.kernel);
        let kernel = (0..channels).flat_map(move |c| (0..down).flat_map(move |i| (0..across).map(move |j| (c, i, j))));
        kernel.flat_map(move |(c, i, j)| {
            let row = move |y: usize| (c * height + y + i) * width + j;
            (0..=height - down).flat_map(move |y| (0..=width - across).map(move |x| row(y) + x))
        })
    }

    fn value<T: Real>(self, windows: &[T], w: &[T]) -> Vec<T> {
        let (size, count) = self.windows();
        product(Matrix::new(w, self.kernel[0], size), Matrix::new(windows, size, count))
    }
}

/// The correlation, and its factors.
pub fn forward<T: Real>(x: &[T], w: &[T], input: [usize; 3], kernel: [usize; 3]) -> (Vec<T>, Kept<T>) {
    let sizes = Sizes::new(x, w, input, kernel);
    let windows: Vec<T> = sizes.places().map(|at| x[at]).collect();
    (sizes.value(&windows, w), (Arc::new([windows, w.to_vec()]), sizes))
}

/// `Wᵀ G`, added up over the windows, and `G` times the transposed windows.
pub fn backward<T: Real>((kept, sizes): Kept<T>, seed: Vec<T>) -> (Vec<T>, Vec<T>) {
    let ([windows, w], (size, count)) = (&*kept, sizes.windows());
    let seed = Matrix::new(&seed, sizes.kernel[0], count);
    let of_windows = product(Matrix::new(w, sizes.kernel[0], size).transposed(), seed);
    let mut of_image = vec![T::NONE; sizes.input.iter().product()];
    sizes.places().zip(of_windows).for_each(|(at, g)| of_image[at] += g);
    (of_image, product(seed, Matrix::new(windows, size, count).transposed()))
}

/// The correlation, and the sum of those with one factor's tangent.
pub fn tangent<T: Real>(
    x: &[T],
    w: &[T],
    input: [usize; 3],
    kernel: [usize; 3],
    dx: Vec<T>,
    dw: Vec<T>,
) -> (Vec<T>, Vec<T>) {
    let left = forward(&dx, w, input, kernel).0;
    let right = forward(x, &dw, input, kernel).0;
    let sum = left.into_iter().zip(right).map(|(l, r)| l + r).collect();
    (forward(x, w, input, kernel).0, sum)
}
