/* Shape: functions that are declared inactive: with a body, writing through a pointer, and without a body.
   Hard: what they give and write is constant, and what stood there before ends. */
#include "check.h"
static int calls;
__attribute__((noinline)) static double scale(double x) { calls++; return x * 100; }
__attribute__((noinline)) static void log_to(double *to, double x) { *to = x; }
double elsewhere(double x);
void *__enzyme_inactivefn[] = {(void *)scale, (void *)log_to};
void *__enzyme_inactivefn_2[] = {(void *)elsewhere};
static double f(double x) { return x * x + scale(x); }
static double g(double x) { double a[2] = {x, x}; log_to(a, x * 3); return a[0] * a[1]; }
static double h(double x) { return x * elsewhere(x); }
int main(void) {
  for (int k = 0; k < 2; k++) {
    check("reverse f", __enzyme_autodiff((void *)f, 3.0), 6);
    check("forward f", __enzyme_fwddiff((void *)f, enzyme_dup, 3.0, 1.0), 6);
    check("reverse g", __enzyme_autodiff((void *)g, 3.0), 9);
    check("forward g", __enzyme_fwddiff((void *)g, enzyme_dup, 3.0, 1.0), 9);
    check("reverse h", __enzyme_autodiff((void *)h, 3.0), 6);
    check("forward h", __enzyme_fwddiff((void *)h, enzyme_dup, 3.0, 1.0), 6);
  }
  check("it is called", calls > 0, 1);
  return bad;
}
__attribute__((noinline)) double elsewhere(double x) { return 2 * x; }
