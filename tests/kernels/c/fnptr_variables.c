/* Shape: variables that hold pointers to functions, of the library and of the program.
   Hard: the functions are reached only through a variable that the program may change. */
#include "check.h"
static double (*volatile fs[2])(double) = {sin, exp};
static double f(double *x, int n) { return fs[n](x[0]) * x[1]; }
static void scale(double *p, int k) { p[k] *= 3; }
static void (*act)(double *, int) = scale;
static double g(double *x, int n) { double a[2] = {x[0], x[1]}; act(a, n - 1); scale(a, 0); return a[0] * a[1]; }
int main(void) { double x[2] = {0.5, 2}, d[2] = {0}; __enzyme_autodiff((void *)f, enzyme_dup, x, d, 1); check("exp", d[0], 2 * exp(0.5)); check("exp", d[1], exp(0.5)); VECTOR(g, 2, 0.5, 0.75); return bad; }
