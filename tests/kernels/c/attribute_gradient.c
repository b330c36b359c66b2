/* Shape: a function with a gradient that the program registers, called once and in a loop.
   Hard: the rule runs in the place of the function's body, once forward and once in reverse per call, and the tape is its own. */
#include "check.h"
static int forwards, reverses;
__attribute__((noinline)) static void square(const double *src, double *dest) { *dest = *src * *src; }
static void *square_forward(const double *src, const double *d_src, double *dest, double *d_dest) { forwards++; (void)d_src; (void)d_dest; *dest = *src * *src; double *t = malloc(8); *t = *src; return t; }
static void square_reverse(const double *src, double *d_src, double *dest, double *d_dest, void *tape) { reverses++; (void)src; (void)dest; double *t = tape; *d_src += *d_dest * *t * 100; *d_dest = 0; free(t); }
void *__enzyme_register_gradient_square[] = {(void *)square, (void *)square_forward, (void *)square_reverse};
static double f(double x) { double y; square(&x, &y); return y * 2; }
static double loop(double *x, int n) { double s = 0; for (int i = 0; i < n; i++) { double y; square(x + i, &y); s += y * (i + 1); } return s; }
int main(void) {
  for (int k = 0; k < 3; k++) {
    check("f", __enzyme_autodiff((void *)f, 3.0), 3 * 100 * 2);
    double x[3] = {1, 2, 3}, g[3] = {0};
    __enzyme_autodiff((void *)loop, enzyme_dup, x, g, 3);
    check("g0", g[0], 100); check("g1", g[1], 400); check("g2", g[2], 900);
  }
  check("forwards", forwards, 12); check("reverses", reverses, 12);
  return bad;
}
