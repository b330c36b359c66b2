/* Shape: exceptions that are thrown and caught within what is differentiated.
   Hard: what was done before the throw counts, in every function and iteration that the exception leaves. */
#include "check.h"
#include <stdexcept>
#include <vector>

static double root(double v) {
  if (v < 0.3) throw std::domain_error("small");
  return sqrt(v);
}
/* In a loop, with a vector beside. */
static double f(double *x, int n) {
  double s = 0;
  std::vector<double> keep;
  for (int i = 0; i < n; i++) {
    try {
      keep.push_back(x[i] * x[i]);
      s += root(x[i]) * keep.back();
    } catch (const std::domain_error &) {
      s += x[i] * x[0] * 3;
    }
  }
  return s + keep.at(1);
}
/* Stores before the throw, in a counted loop that the exception leaves early, two calls deep. */
static void fill(double *y, const double *x, int n, int stop) {
  for (int i = 0; i < n; i++) {
    y[i] = sin(x[i]) * (i ? y[i - 1] : 1.5);
    if (i == stop) throw i;
  }
}
__attribute__((noinline)) static void around(double *y, const double *x, int n, int stop) {
  y[0] = x[1] * x[2];
  fill(y, x, n, stop);
  y[0] *= 7;
}
static double g(double *x, int n) {
  double s = 0;
  for (int stop = 0; stop < 6; stop++) {
    double y[4] = {};
    try {
      around(y, x, n, stop);
      s += y[3];
    } catch (int at) {
      s += y[at] * y[0] + at * y[1];
    }
  }
  return s;
}
/* Recursion, clean-up on the way, a rethrow, and a call by pointer. */
struct scale {
  double *at;
  ~scale() { *at *= 2; }
};
static double down(double *x, int k, double v) {
  scale s{&x[k % 4]};
  if (k == 0) throw std::runtime_error("end");
  return down(x, k - 1, v * x[k % 4]) + 1;
}
static double h(double *x, int) {
  static double (*volatile call)(double *, int, double) = down;
  double s = 0;
  for (int k = 1; k < 4; k++) {
    try {
      try {
        s += call(x, k, 1.0);
      } catch (const std::runtime_error &) {
        s += x[k] * x[0];
        throw;
      }
    } catch (const std::exception &e) {
      s *= x[1] + (double)strlen(e.what());
    }
  }
  return s;
}
int main() {
  VECTOR(f, 4, 0.53, 0.27, 0.76, 0.9);
  VECTOR(g, 4, 0.53, 0.27, 0.76, 0.9);
  VECTOR(h, 4, 0.53, 0.27, 0.76, 0.9);
  return bad;
}
