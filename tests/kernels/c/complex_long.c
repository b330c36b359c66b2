/* Shape: complex numbers of long doubles.
   Hard: products and quotients that may be not a number are calls, whose results are pairs of ten bytes each. */
#include "check.h"
#include <complex.h>
static double f(double x) {
  long double complex z = x + 0.3L * I, w = 0.7L - x * x * I, p = 1;
  for (int k = 0; k < 3; k++) p = p * z / (w + 2.0L * z);
  return (double)(creall(p) * cimagl(p) + creall(p * w));
}
int main(void) { SCALAR(f, 0.6); SCALAR(f, -1.3); return bad; }
