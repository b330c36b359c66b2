/* Shape: a function with a tangent that the program registers.
   Hard: the rule runs in the place of the body. */
#include "check.h"
__attribute__((noinline)) static void square(const double *src, double *dest) { *dest = *src * *src; }
static void square_tangent(const double *src, const double *d_src, double *dest, double *d_dest) { *dest = *src * *src; *d_dest = 100 * *src * *d_src; }
void *__enzyme_register_derivative_square[] = {(void *)square, (void *)square_tangent};
__attribute__((noinline)) static double cube(double x) { return x * x * x; }
static double cube_tangent(double x, double dx) { return 50 * x * x * dx; }
struct both { double y, dy; };
static double f(double x) { double y; square(&x, &y); return y * 2; }
int main(void) {
  (void)cube; (void)cube_tangent;
  for (int k = 0; k < 3; k++) check("f", __enzyme_fwddiff((void *)f, enzyme_dup, 3.0, 1.0), 600);
  return bad;
}
