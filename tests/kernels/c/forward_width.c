/* Shape: forward mode in several directions at once: scalars, memory with a shadow per direction or shadows at a distance,
   calls, recursion, function pointers, memory that is allocated, and a result of several tangents.
   Hard: the primal runs once, also where it changes its arguments; each direction has shadow memory of its own. */
#include "check.h"

extern int enzyme_width, enzyme_dupv, enzyme_primal_return;
typedef struct { double d[3]; } Three;
typedef struct { double value, d[2]; } ValueAndTwo;
Three __enzyme_fwddiff_three(void *, ...);
ValueAndTwo __enzyme_fwddiff_value(void *, ...);
void __enzyme_fwddiff_none(void *, ...);

static double f(double x, double y) {
  double r = x * sin(y);
  for (int i = 0; i < 3; i++) r = r * x + y;
  return r;
}

static double horner(const double *c, int n, double x) { return n == 0 ? 0.0 : c[0] + x * horner(c + 1, n - 1, x); }

static double square(double v) { return v * v; }
static double tangent(double v) { return tan(v); }
static double (*const table[])(double) = {square, tangent};

/* The primal adds to its arguments, so it must run once. */
static int runs;
static void step(double *s, double k) {
  runs++;
  double *old = malloc(2 * sizeof *old);
  memcpy(old, s, 2 * sizeof *old);
  s[0] += k * old[1];
  s[1] += table[runs % 2](old[0]) * k;
  free(old);
}

int main(void) {
  const double x = 0.7, y = 0.4, h = 1e-6;
  const double fx = (f(x + h, y) - f(x - h, y)) / (2 * h), fy = (f(x, y + h) - f(x, y - h)) / (2 * h);
  Three t = __enzyme_fwddiff_three((void *)f, enzyme_width, 3, enzyme_dup, x, 1.0, 0.0, 2.0, enzyme_dup, y, 0.0, 1.0, -1.0);
  agree("fx", t.d[0], fx, 1e-7), agree("fy", t.d[1], fy, 1e-7), agree("both", t.d[2], 2 * fx - fy, 1e-7);

  double c[] = {1.0, -2.0, 0.5}, v[2][3] = {{1.0, 0.0, 0.0}, {0.0, 3.0, 2.0}};
  ValueAndTwo p = __enzyme_fwddiff_value((void *)horner, enzyme_primal_return, enzyme_width, 2, enzyme_dup, c, v[0], v[1],
                                         enzyme_const, 3, enzyme_dup, x, 0.0, 1.0);
  agree("p", p.value, 1 - 2 * x + 0.5 * x * x, 1e-15);
  agree("p0", p.d[0], 1.0, 1e-15), agree("p1", p.d[1], 3 * x + 2 * x * x - 2 + x, 1e-14);

  double s[] = {0.3, 0.8}, ds[2][2] = {{1.0, 0.0}, {0.0, 1.0}};
  runs = 0;
  __enzyme_fwddiff_none((void *)step, enzyme_width, 2, enzyme_dupv, sizeof ds[0], s, ds, enzyme_dup, 0.5, 0.0, 2.0);
  agree("runs", runs, 1, 0), agree("s0", s[0], 0.3 + 0.5 * 0.8, 1e-15), agree("s1", s[1], 0.8 + 0.5 * tan(0.3), 1e-15);
  agree("s0 0", ds[0][0], 1.0, 1e-15), agree("s1 0", ds[0][1], 0.5 / (cos(0.3) * cos(0.3)), 1e-14);
  agree("s0 1", ds[1][0], 0.5 + 2 * 0.8, 1e-15), agree("s1 1", ds[1][1], 1 + 2 * tan(0.3), 1e-14);
  return bad;
}
