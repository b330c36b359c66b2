/* Shape: functions that call each other, and one whose argument is a call of itself.
   Hard: frames of unknown depth; the depth depends on data. */
#include "check.h"
static double odd(double *x, int n);
static double even(double *x, int n) { return n == 0 ? 1 : x[n - 1] * odd(x, n - 1) + 1; }
static double odd(double *x, int n) { return n == 0 ? 0.5 : sin(x[n - 1]) + even(x, n - 1) * x[0]; }
static double ack(double *x, int m, int n) {
  if (m == 0) { x[n % 3] *= 1.1; return n + x[n % 3]; }
  if (n == 0) return ack(x, m - 1, 1) + x[0];
  return ack(x, m - 1, (int)ack(x, m, n - 1) % 3) * x[m % 3];
}
static double g(double *x, int n) { (void)n; return ack(x, 2, 2); }
int main(void) { VECTOR(even, 5, 0.3, 0.5, -0.7, 1.2, 0.8); VECTOR(g, 3, 0.31, 0.52, 0.74); return bad; }
