/* Shape: a table in a global variable, whose places are computed as integers.
   Hard: the addresses are constants that come from integers, and no pointer leads to them. */
#include "check.h"
#include <stdint.h>
static double table[6];
static double moved(double *x, int n) {
  for (int i = 0; i < n; i++) table[i] = x[i] * x[i];
  memmove((void *)((uintptr_t)table + 8), (void *)(uintptr_t)table, 24);
  double *third = (double *)((uintptr_t)table + 2 * sizeof(double));
  *third *= *(double *)((uintptr_t)&table[5] - 24);
  double s = 0;
  for (int i = 0; i < n; i++) s += (i + 1) * sin(table[i]);
  return s;
}
static double through(double x) {
  *(double *)((uintptr_t)table + 32) = x;
  *(double *)((uintptr_t)table + 40) = exp(*(double *)((uintptr_t)table + 32));
  return table[4] * table[5];
}
int main(void) {
  VECTOR(moved, 4, 0.53, -0.27, 1.1, 0.41);
  SCALAR(through, 0.7);
  return bad;
}
