/* Shape: a matrix as an array of pointers to rows, which are swapped.
   Hard: pointers move in memory while floats stay. */
#include "check.h"
static double **alloc(int n) { double **m = malloc(n * sizeof *m); for (int i = 0; i < n; i++) m[i] = calloc(n, sizeof **m); return m; }
static double f(double *x, int n) {
  double **a = alloc(n), **l = alloc(n);
  for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) a[i][j] = exp(-fabs(i - j + 0.1) * x[0] * x[0]) + (i == j) * (2 + x[i]);
  for (int i = 0; i < n; i++) for (int j = 0; j <= i; j++) { double s = (a[i][j] + a[j][i]) / 2; for (int k = 0; k < j; k++) s -= l[i][k] * l[j][k]; l[i][j] = i == j ? sqrt(s) : s / l[j][j]; }
  double *t = a[0]; a[0] = l[n - 1]; l[n - 1] = t;
  double d = 0; for (int i = 0; i < n; i++) d += log(i == n - 1 ? a[0][i] : l[i][i]);
  for (int i = 0; i < n; i++) { free(a[i]); free(l[i]); } free(a); free(l);
  return d;
}
int main(void) { VECTOR(f, 4, 0.53, 0.27, 0.76, 0.9); return bad; }
