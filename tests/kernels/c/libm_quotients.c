/* Shape: remainders of all kinds.
   Hard: remquo gives its quotient in memory; the slope in the divisor is a whole number. Of the quotient only three bits are told. */
#include "check.h"
static double f(double *x, int n) {
  double s = 0;
  for (int i = 0; i + 1 < n; i++) {
    int q;
    double r = remquo(4 * x[i], x[i + 1], &q);
    s += r * x[0] + (q & 7) * x[i] + fmod(7 * x[i], x[i + 1]) + remainder(x[i] * x[i], x[i + 1]);
  }
  return s;
}
int main(void) { VECTOR(f, 4, 1.53, 0.37, 0.76, 0.91); return bad; }
