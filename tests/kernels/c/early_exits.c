/* Shape: nested loops with return, break and continue that data decides.
   Hard: the reverse must leave by the way that was taken. */
#include "check.h"
static double find(double *x, int n, double limit) {
  double s = 0;
  for (int i = 0; i < n; i++) for (int j = i; j < n; j++) {
    s += x[i] * x[j];
    if (s > limit) return s * x[j] - x[i];
    if (x[j] < -0.6) break;
    if (j == 3) continue;
    s *= 1.01;
  }
  return -s;
}
static double f(double *x, int n) { return find(x, n, 0.4) + find(x, n, 100) * find(x, n, 1.5); }
int main(void) { VECTOR(f, 5, 0.5, -0.25, 0.75, -0.7, 0.9); return bad; }
