//! Log of a sum of exponentials.

#include "bench.h"
#include <algorithm>
#include <cmath>
#include <limits>

KERNEL static double primal(const double *__restrict x, size_t n) {
  double largest = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < n; i++) largest = std::max(largest, x[i]);
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += std::exp(x[i] - largest);
  return std::log(sum) + largest;
}

static void by_hand(const double *__restrict x, double *__restrict x_bar, size_t n) {
  double largest = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < n; i++) largest = std::max(largest, x[i]);
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += x_bar[i] = std::exp(x[i] - largest);
  const double scale = 1 / sum;
  for (size_t i = 0; i < n; i++) x_bar[i] *= scale;
}

Workload lse(bool small) {
  const size_t n = small ? 100 : 1000000;
  const Vec x = Random{1}.numbers(n);
  return {
      [=] { return primal(x.data(), n); },
      [=] {
        Vec bar(n);
        __enzyme_autodiff(primal, enzyme_dup, x.data(), bar.data(), n);
        return bar;
      },
      [=] {
        Vec bar(n);
        by_hand(x.data(), bar.data(), n);
        return bar;
      },
      20.0 * double(n),
      16.0 * double(n),
  };
}
