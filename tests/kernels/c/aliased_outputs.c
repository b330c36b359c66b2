/* Shape: arguments that are the same array, or overlap in what they mean.
   Hard: reads and writes of one array in one statement. */
#include "check.h"
static void axpy(double *y, const double *x, const double *z, int n) { for (int i = 0; i < n; i++) y[i] = y[i] * x[i] + z[n - 1 - i]; }
static double f(double *x, int n) { double t[8]; memcpy(t, x, n * sizeof *t); axpy(t, t, t, n); axpy(t, x, t, n); axpy(x, x, t, n); return x[0] * t[1] + x[n - 1]; }
int main(void) { VECTOR(f, 5, 0.5, -0.25, 0.75, 0.3, 0.9); return bad; }
