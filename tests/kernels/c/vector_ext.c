/* Shape: vector types of the compiler.
   Hard: lanes are shuffled, extracted and inserted. */
#include "check.h"
typedef double v4 __attribute__((vector_size(32)));
typedef float f8 __attribute__((vector_size(32)));
static double f(double *x, int n) {
  v4 a = {x[0], x[1], x[2], x[3]}, s = {0, 0, 0, 0};
  for (int i = 0; i < n; i++) { s += a * a * (double)(i + 1); a = __builtin_shufflevector(a, s, 1, 2, 7, 0) * 0.1; a[i & 3] += x[i]; }
  v4 m = s; if (s[0] > a[1]) m = a + s;
  return m[0] + m[1] * m[2] - m[3];
}
int main(void) { VECTOR(f, 4, 0.53, 0.27, 0.76, 0.9); return bad; }
