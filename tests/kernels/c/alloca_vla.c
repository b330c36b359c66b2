/* Shape: arrays of variable length, one of them in a loop, and alloca.
   Hard: sizes differ from iteration to iteration. */
#include "check.h"
static double f(double *x, int n) {
  double v[n][n];
  for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) v[i][j] = x[i] * x[j] + (i == j);
  double s = 0;
  for (int r = 1; r <= n; r++) {
    double w[r];
    for (int i = 0; i < r; i++) w[i] = v[i][r - 1] * x[r - 1];
    for (int i = 0; i < r; i++) s += w[i] * w[r - 1 - i];
  }
  double *a = __builtin_alloca(n * sizeof *a);
  for (int i = 0; i < n; i++) a[i] = s * x[i];
  return a[0] + a[n - 1] * a[n - 1];
}
int main(void) { VECTOR(f, 4, 0.3, 0.5, -0.7, 1.2); return bad; }
