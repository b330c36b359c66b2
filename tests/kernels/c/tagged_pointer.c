/* Shape: a pointer with a tag in its lowest bit.
   Hard: the pointer is an integer for a while. */
#include "check.h"
#include <stdint.h>
static double f(double *x, int n) {
  double *p = malloc(n * sizeof *p);
  for (int i = 0; i < n; i++) p[i] = x[i] * x[i];
  uintptr_t t = (uintptr_t)p | 1;
  double s = 0;
  if (t & 1) { double *q = (double *)(t & ~(uintptr_t)1); for (int i = 0; i < n; i++) s += q[i] * (i + 1); }
  free(p);
  return s;
}
int main(void) { VECTOR(f, 3, 0.5, -0.25, 0.75); return bad; }
