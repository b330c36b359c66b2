/* Shape: derivatives in two directions of a function that asks for a gradient in two directions itself.
   Hard: what the inner gradient gives and works in (arrays of outputs, frames, shadows of a global variable) is
   differentiated as code like any other. */
#include "check.h"
extern int enzyme_width;
typedef struct { double d[2]; } Two;
Two __enzyme_fwddiff_two(void *, ...);
Two __enzyme_autodiff_two(void *, ...);
static double buffer[4];
static double f(const double *x, double a) {
  double s = a;
  buffer[0] = x[0] * x[1];
  for (int i = 0; i < 3; i++) s = s * a + buffer[0] * sin(x[i % 2]);
  return s;
}

/* A sum of parts of the gradient: by a gradient in two directions, and by two. */
static double g(const double *x, double a) {
  double d[2][2] = {{0, a}, {0, 0}};
  Two t = __enzyme_autodiff_two((void *)f, enzyme_width, 2, enzyme_dup, x, d[0], d[1], a);
  return t.d[0] * d[0][0] + t.d[1] * d[1][1] * d[0][1];
}

static double g1(const double *x, double a) {
  double d[2][2] = {{0, a}, {0, 0}};
  double t0 = __enzyme_autodiff((void *)f, enzyme_dup, x, d[0], a);
  double t1 = __enzyme_autodiff((void *)f, enzyme_dup, x, d[1], a);
  return t0 * d[0][0] + t1 * d[1][1] * d[0][1];
}

int main(void) {
  const double x[] = {0.6, -0.4}, v[2][2] = {{1, 0}, {0.5, -1}};
  check("g", g(x, 0.7), g1(x, 0.7));
  double p0 = __enzyme_fwddiff((void *)g1, enzyme_dup, x, v[0], enzyme_dup, 0.7, 1.0);
  double p1 = __enzyme_fwddiff((void *)g1, enzyme_dup, x, v[1], enzyme_dup, 0.7, 0.0);
  Two t = __enzyme_fwddiff_two((void *)g, enzyme_width, 2, enzyme_dup, x, v[0], v[1], enzyme_dup, 0.7, 1.0, 0.0);
  check("forward over", t.d[0], p0), check("forward over", t.d[1], p1);
  double e[3][2] = {{0}, {0}, {2, 1}};
  double q = __enzyme_autodiff((void *)g1, enzyme_dup, x, e[0], 0.7);
  Two r = __enzyme_autodiff_two((void *)g, enzyme_width, 2, enzyme_dup, x, e[1], e[2], 0.7);
  check("over 0", r.d[0], q), check("over 1", r.d[1], q);
  for (int i = 0; i < 2; i++) check("e", e[1][i], e[0][i]), check("e", e[2][i], e[0][i] + 2 - i);
  return bad;
}
