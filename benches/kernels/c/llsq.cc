//! Least squares: a polynomial fitted to a sign function.

#include "bench.h"

/// Where the polynomial is compared.
static double place(size_t i, size_t n) { return 2.0 * double(i) / double(n - 1) - 1.0; }

/// With what.
static double wanted(double t) { return t > 0 ? 1.0 : t < 0 ? -1.0 : 0.0; }

KERNEL static double primal(const double *__restrict x, size_t m, size_t n) {
  double total = 0;
  for (size_t i = 0; i < n; i++) {
    const double t = place(i, n);
    double sum = 0, power = 1;
    for (size_t j = 0; j < m; j++) {
      sum += x[j] * power;
      power *= t;
    }
    const double apart = wanted(t) - sum;
    total += apart * apart;
  }
  return 0.5 * total / double(n);
}

static void by_hand(const double *__restrict x, double *__restrict x_bar, size_t m, size_t n) {
  for (size_t i = 0; i < n; i++) {
    const double t = place(i, n);
    double sum = 0, power = 1;
    for (size_t j = 0; j < m; j++) {
      sum += x[j] * power;
      power *= t;
    }
    double rest = (sum - wanted(t)) / double(n);
    for (size_t j = 0; j < m; j++) {
      x_bar[j] += rest;
      rest *= t;
    }
  }
}

Workload llsq(bool small) {
  const size_t n = small ? 64 : 16392, m = small ? 8 : 128;
  const Vec x = Random{2}.numbers(m);
  return {
      [=] { return primal(x.data(), m, n); },
      [=] {
        Vec bar(m);
        __enzyme_autodiff(primal, enzyme_dup, x.data(), bar.data(), m, n);
        return bar;
      },
      [=] {
        Vec bar(m);
        by_hand(x.data(), bar.data(), m, n);
        return bar;
      },
      3.0 * double(n * m),
      16.0 * double(m),
  };
}
