/* Shape: tangents of complex numbers, and the inverses of sines, cosines and tangents.
   Hard: the library computes them by calls whose code is not at hand. */
#include "check.h"
#include <complex.h>
static double all(double *x, int n) {
  double complex z = x[0] + I * x[1], w = x[2] - I * x[3];
  double complex s = ctan(z) * 1 + ctanh(w) * 2 + casin(z) * 3 + cacos(w) * 4 + catan(z) * 5 + casinh(w) * 6 + cacosh(z) * 7 + catanh(w) * 8;
  return creal(s) + 0.5 * cimag(s) + n * 0.1;
}
static double single(double x) {
  float complex z = (float)x + 0.4f * I, s = ctanhf(z) * casinf(z);
  return crealf(s) - cimagf(s);
}
int main(void) {
  VECTOR(all, 4, 0.53, 0.27, 0.76, 0.41);
  VECTOR(all, 4, -1.7, 0.27, -0.76, 0.41);
  VECTOR(all, 4, 2e-3, -1e-3, -3e-3, 1e-3);
  VECTOR(all, 4, -1e4, 40, 30, -1e3);
  const double h = 1e-3, d = (single(0.7 + h) - single(0.7 - h)) / (2 * h);
  agree("reverse of single", __enzyme_autodiff((void *)single, 0.7), d, 1e-3);
  agree("forward of single", __enzyme_fwddiff((void *)single, enzyme_dup, 0.7, 1.0), d, 1e-3);
  return bad;
}
