//! A determinant by expansion into minors, by recursion.

#include "bench.h"

/// The determinant of the rows from `row` on and the columns in the set.
static double minor_of(const double *__restrict a, size_t n, size_t row, uint32_t columns) {
  if (row == n) return 1;
  double sum = 0, sign = 1;
  for (size_t column = 0; column < n; column++)
    if (columns >> column & 1) {
      sum += sign * a[row * n + column] * minor_of(a, n, row + 1, columns & ~(1u << column));
      sign = -sign;
    }
  return sum;
}

KERNEL static double primal(const double *__restrict a, size_t n) { return minor_of(a, n, 0, (1u << n) - 1); }

/// The minor, while cotangents are added: one recursion for both.
static double minor_back(const double *__restrict a, double *__restrict a_bar, size_t n, size_t row, uint32_t columns,
                         double seed) {
  if (row == n) return 1;
  double sum = 0, sign = 1;
  for (size_t column = 0; column < n; column++)
    if (columns >> column & 1) {
      const double factor = sign * a[row * n + column];
      const double rest = minor_back(a, a_bar, n, row + 1, columns & ~(1u << column), seed * factor);
      a_bar[row * n + column] += seed * sign * rest;
      sum += factor * rest;
      sign = -sign;
    }
  return sum;
}

Workload det(bool small) {
  const size_t n = small ? 4 : 9;
  const Vec a = Random{4}.numbers(n * n);
  double operations = 0;
  for (size_t k = 1; k <= n; k++) {
    // Each of the n!/k! minors of size k costs three operations a column.
    double minors = 3;
    for (size_t f = k; f <= n; f++) minors *= double(f);
    operations += minors;
  }
  return {
      [=] { return primal(a.data(), n); },
      [=] {
        Vec bar(n * n);
        __enzyme_autodiff(primal, enzyme_dup, a.data(), bar.data(), n);
        return bar;
      },
      [=] {
        Vec bar(n * n);
        minor_back(a.data(), bar.data(), n, 0, (1u << n) - 1, 1);
        return bar;
      },
      operations,
      16.0 * double(n * n),
  };
}
