//! A chain of differential equations, by Runge and Kutta's method: `y0' = x0`, `yi' = xi y(i-1)`.

#include "bench.h"

static void slope(const double *__restrict x, const double *__restrict y, double *__restrict dy, size_t n) {
  dy[0] = x[0];
  for (size_t i = 1; i < n; i++) dy[i] = x[i] * y[i - 1];
}

static void moved(const double *__restrict y, double step, const double *__restrict dy, double *__restrict to, size_t n) {
  for (size_t i = 0; i < n; i++) to[i] = y[i] + step * dy[i];
}

KERNEL static double primal(const double *__restrict x, size_t n, size_t steps) {
  const double h = 1.0 / double(steps);
  Vec y(n), at(n), k1(n), k2(n), k3(n), k4(n);
  for (size_t s = 0; s < steps; s++) {
    slope(x, y.data(), k1.data(), n);
    moved(y.data(), h / 2, k1.data(), at.data(), n);
    slope(x, at.data(), k2.data(), n);
    moved(y.data(), h / 2, k2.data(), at.data(), n);
    slope(x, at.data(), k3.data(), n);
    moved(y.data(), h, k3.data(), at.data(), n);
    slope(x, at.data(), k4.data(), n);
    for (size_t i = 0; i < n; i++) y[i] += h / 6 * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i]);
  }
  double sum = 0;
  for (double v : y) sum += v;
  return sum;
}

/// The reverse of `slope`: adds to the cotangents of `x` and `y`.
static void slope_back(const double *__restrict x, const double *__restrict y, const double *__restrict dy,
                       double *__restrict x_bar, double *__restrict y_bar, size_t n) {
  x_bar[0] += dy[0];
  for (size_t i = 1; i < n; i++) {
    x_bar[i] += dy[i] * y[i - 1];
    y_bar[i - 1] += dy[i] * x[i];
  }
}

/// Keeps `y` of each step, and computes the rest again.
static void by_hand(const double *__restrict x, double *__restrict x_bar, size_t n, size_t steps) {
  const double h = 1.0 / double(steps), part[3] = {h / 2, h / 2, h}, weight[3] = {1, 2, 2};
  Vec states((steps + 1) * n), k[4], at[3];
  for (auto &v : k) v.resize(n);
  for (auto &v : at) v.resize(n);
  const auto stages = [&](const double *y) {
    slope(x, y, k[0].data(), n);
    for (size_t s = 0; s < 3; s++) {
      moved(y, part[s], k[s].data(), at[s].data(), n);
      slope(x, at[s].data(), k[s + 1].data(), n);
    }
  };
  for (size_t s = 0; s < steps; s++) {
    const double *y = &states[s * n];
    double *after = &states[(s + 1) * n];
    stages(y);
    for (size_t i = 0; i < n; i++) after[i] = y[i] + h / 6 * (k[0][i] + 2 * k[1][i] + 2 * k[2][i] + k[3][i]);
  }
  Vec y_bar(n, 1.0), last, k_bar(n), at_bar(n);
  for (size_t s = steps; s-- > 0;) {
    const double *y = &states[s * n];
    stages(y);
    last = y_bar;
    for (size_t i = 0; i < n; i++) k_bar[i] = h / 6 * last[i];
    for (size_t stage = 3; stage-- > 0;) {
      at_bar.assign(n, 0.0);
      slope_back(x, at[stage].data(), k_bar.data(), x_bar, at_bar.data(), n);
      for (size_t i = 0; i < n; i++) {
        y_bar[i] += at_bar[i];
        k_bar[i] = h / 6 * weight[stage] * last[i] + part[stage] * at_bar[i];
      }
    }
    slope_back(x, y, k_bar.data(), x_bar, y_bar.data(), n);
  }
}

Workload ode(bool small) {
  const size_t n = small ? 20 : 100000, steps = small ? 4 : 100;
  const Vec x = Random{3}.numbers(n);
  return {
      [=] { return primal(x.data(), n, steps); },
      [=] {
        Vec bar(n);
        __enzyme_autodiff(primal, enzyme_dup, x.data(), bar.data(), n, steps);
        return bar;
      },
      [=] {
        Vec bar(n);
        by_hand(x.data(), bar.data(), n, steps);
        return bar;
      },
      17.0 * double(n * steps),
      16.0 * double(n * steps),
  };
}
