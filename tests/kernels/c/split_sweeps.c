/* Shape: forward and reverse sweep as two calls, with a tape in the caller's memory as well.
   Hard: between the calls the argument is overwritten; structures come back by value. */
#include "check.h"
void *__enzyme_augmentfwd(void *, ...);
void __enzyme_reverse(void *, ...);
int __enzyme_augmentsize(void *, ...);
extern int enzyme_tape, enzyme_allocated, enzyme_nofree;
static double f(double *x, int n) { double s = 1; for (int i = 0; i < n; i++) { s = s * x[i] + sin(x[i]); x[i] = s; } return s; }
static double g(double x, double y) { return x * x * y; }
struct pair { double a, b; };
struct pair __enzyme_reverse_pair(void *, ...);
int main(void) {
  for (int k = 0; k < 3; k++) {
    double x[3] = {0.5, 1.5, -0.7}, d[3] = {0}, y[3] = {0.5, 1.5, -0.7}, e[3] = {0};
    void *tape = __enzyme_augmentfwd((void *)f, enzyme_dup, x, d, 3);
    __enzyme_reverse((void *)f, enzyme_dup, x, d, 3, 1.0, tape);
    __enzyme_autodiff((void *)f, enzyme_dup, y, e, 3);
    for (int i = 0; i < 3; i++) { check("split", d[i], e[i]); check("x", x[i], y[i]); }
    double x2[3] = {0.5, 1.5, -0.7}, d2[3] = {0}; char room[64];
    int size = __enzyme_augmentsize((void *)f, enzyme_dup, enzyme_const);
    check("size", size > 0 && size <= 64, 1);
    __enzyme_augmentfwd((void *)f, enzyme_allocated, 64, enzyme_tape, room, enzyme_dup, x2, d2, 3);
    __enzyme_reverse((void *)f, enzyme_allocated, 64, enzyme_tape, room, enzyme_dup, x2, d2, 3, 1.0);
    for (int i = 0; i < 3; i++) check("allocated", d2[i], e[i]);
    tape = __enzyme_augmentfwd((void *)g, 3.0, 2.0);
    struct pair p = __enzyme_reverse_pair((void *)g, 3.0, 2.0, 2.0, tape);
    check("a", p.a, 24); check("b", p.b, 18);
  }
  return bad;
}
