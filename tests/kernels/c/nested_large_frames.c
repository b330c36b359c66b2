/* Shape: functions that call functions, each in very many places, of which few run.
   Hard: frames within frames would have the size of the product, and would not fit on the stack. */
#include "check.h"
#define TEN(c) c c c c c c c c c c
#define LEVEL(name, below)                                            \
  __attribute__((noinline)) static double name(double *x, double a) { \
    int k = 0;                                                        \
    TEN(TEN(if (k++, x[k % 4] * k > 85) a = below(x, a);))       \
    return a * x[1];                                                  \
  }
__attribute__((noinline)) static double leaf(double *x, double a) { return sin(a) + x[0]; }
LEVEL(first, leaf)
LEVEL(second, first)
LEVEL(third, second)
LEVEL(fourth, third)
static double f(double *x, int n) { return fourth(x, x[n - 1]); }
int main(void) { VECTOR(f, 4, 0.53, 0.27, 0.66, 0.9); return bad; }
