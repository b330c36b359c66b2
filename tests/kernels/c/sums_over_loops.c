/* Shape: a value that a loop uses in every iteration, beside terms that are no finite numbers.
   Hard: its cotangent is a sum over the iterations, which may be formed in parts. What is infinite or not a number must stay in it, at
   whatever place it comes; and a seed of zero must keep it out. */
#include <math.h>
#include <stdio.h>

extern int enzyme_dup;
extern int enzyme_const;
extern int enzyme_out;
double __enzyme_autodiff(void *, ...);
#ifndef RTOL
#define RTOL 1e-9
#endif
static int bad;
static void check(const char *what, int at, double got, double want) {
  const int same = isnan(want) ? isnan(got) : isinf(want) ? got == want : fabs(got - want) <= RTOL * fmax(1.0, fabs(want));
  if (!same) {
    printf("%s, %d: got %.15g, expected %.15g\n", what, at, got, want);
    bad = 1;
  }
}

enum { N = 67 };

static double scaled(const double *restrict w, const double *restrict u, double a, int n) {
  double s = 0;
  for (int i = 0; i < n; i++) s += u[i] * (w[i] * a);
  return s;
}

int main(void) {
  double w[N], u[N];
  const double inf = INFINITY;
  for (int at = 0; at < N; at += 6) {
    for (int i = 0; i < N; i++) w[i] = i % 5 - 1.5, u[i] = 1;
    double want = 0;
    for (int i = 0; i < N; i++) want += w[i];
    check("finite", at, __enzyme_autodiff((void *)scaled, enzyme_const, w, enzyme_const, u, enzyme_out, 2.0, enzyme_const, N), want);
    w[at] = inf;
    check("infinite", at, __enzyme_autodiff((void *)scaled, enzyme_const, w, enzyme_const, u, enzyme_out, 2.0, enzyme_const, N), inf);
    w[(at + 31) % N] = -inf;
    check("both infinities", at, __enzyme_autodiff((void *)scaled, enzyme_const, w, enzyme_const, u, enzyme_out, 2.0, enzyme_const, N),
          NAN);
    w[(at + 31) % N] = NAN;
    check("not a number", at, __enzyme_autodiff((void *)scaled, enzyme_const, w, enzyme_const, u, enzyme_out, 2.0, enzyme_const, N),
          NAN);
    /* No weight, no seed. */
    u[at] = u[(at + 31) % N] = 0;
    want = 0;
    for (int i = 0; i < N; i++) want += u[i] * (isfinite(w[i]) ? w[i] : 0);
    check("left out", at, __enzyme_autodiff((void *)scaled, enzyme_const, w, enzyme_const, u, enzyme_out, 2.0, enzyme_const, N), want);
  }
  return bad;
}
