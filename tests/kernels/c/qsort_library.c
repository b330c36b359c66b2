/* Shape: qsort of the C library with a comparator, on local and on global memory.
   Hard: the library's code is not at hand. */
#include "check.h"
static int less(const void *a, const void *b) { double x = *(const double *)a, y = *(const double *)b; return (x > y) - (x < y); }
static double f(double *x, int n) { double c[8]; memcpy(c, x, n * sizeof *c); qsort(c, n, sizeof *c, less); double s = 0; for (int i = 0; i < n; i++) s = s * 0.5 + c[i] * (i + 1); return s; }
static double g[8];
static double in_global(double *x, int n) { memcpy(g, x, n * sizeof *g); qsort(g, n, sizeof *g, less); double s = 0; for (int i = 0; i < n; i++) s = s * 0.5 + g[i] * (i + 1); return s; }
int main(void) { VECTOR(f, 5, 0.3, -0.5, 0.7, 1.2, 0.8); VECTOR(in_global, 5, 0.3, -0.5, 0.7, 1.2, 0.8); return bad; }
