/* Shape: second derivatives through structs that are moved over themselves, and an array that grows.
   Hard: the code that moves cotangents back is differentiated in its turn, and touches memory as what it is. */
#include "check.h"
struct e { double v; int k; double *at; };
static double f(const double *x, int n) { struct e a[24], *h = malloc(2 * sizeof *h); double y[8]; int m = 0; memcpy(y, x, n * sizeof *x); for (int i = 0; i < n; i++) { a[i] = (struct e){x[i] * x[i], i, &y[(i + 1) % n]}; if (m >= 2) h = realloc(h, (m + 2) * sizeof *h); h[m++] = a[i]; } memmove(a + 1, a, n * sizeof *a); a[0] = h[m - 1]; memmove(h, h + 1, (m - 1) * sizeof *h); double s = 0; for (int i = 0; i < n; i++) s += sin(a[i].v) * *a[i].at * h[i].v * (i + 1); for (int i = 0; i < m - 1; i++) *h[i].at *= h[i].v; for (int i = 0; i < n; i++) s += y[i] * y[i]; free(h); return s; }
static void grad(const double *x, double *g, int n) { memset(g, 0, n * sizeof *g); __enzyme_autodiff((void *)f, enzyme_dup, x, g, n); }
static double gn(double *x, int n) { double g[8], s = 0; grad(x, g, n); for (int i = 0; i < n; i++) s += g[i] * g[i] * (i + 1) * 0.01; return s; }
static double g0(double *x, int n) { return f(x, n); }
int main(void) { VECTOR(g0, 5, 0.53, 0.27, 0.76, 0.91, -0.3); VECTOR(gn, 5, 0.53, 0.27, 0.76, 0.91, -0.3); return bad; }
