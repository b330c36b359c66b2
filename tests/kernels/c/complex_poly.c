/* Shape: complex arithmetic and functions.
   Hard: the compiler leaves products and quotients that are not numbers to its library. */
#include "check.h"
#include <complex.h>
static double f(double *x, int n) {
  double complex z = x[0] + I * x[1], w = 1;
  for (int i = 0; i < n; i++) w = w * z + x[i];
  return creal(w) * cimag(w) + creal(w / (z + 3));
}
static double g(double *x, int n) { (void)n; double complex z = cexp(x[0] + I * x[1]); return cabs(z) + carg(z) + creal(csqrt(z)); }
int main(void) { VECTOR(f, 3, 0.5, -0.25, 0.75); VECTOR(g, 2, 0.5, 0.4); return bad; }
