/* Shape: global variables as scratch memory, by index, by pointer and by a global cursor.
   Hard: they need shadows that begin every call as zeros. */
#include "check.h"
static double scratch[64];
double shared_total;
static double by_index(double *x, int n) {
  for (int i = 0; i < n; i++) scratch[i] = x[i] * x[i];
  double s = 0;
  for (int i = 0; i < n; i++) s += scratch[i] * scratch[(i + 1) % n];
  return s;
}
static void accumulate(double *to, double by) { *to += by; }
static double through_pointer(double *x, int n) {
  shared_total = 0;
  for (int i = 0; i < n; i++) accumulate(&shared_total, sin(x[i]));
  return shared_total * shared_total;
}
static double *cursor = scratch;
static double by_cursor(double *x, int n) {
  cursor = scratch + 3;
  for (int i = 0; i < n; i++) *cursor++ = x[i] * (i + 1);
  double s = 0;
  while (cursor != scratch + 3) { cursor--; s += *cursor * *cursor; }
  return s;
}
int main(void) {
  VECTOR(by_index, 4, 1.0, -0.5, 2.0, 0.25);
  VECTOR(through_pointer, 3, 0.3, 1.1, -0.4);
  VECTOR(by_cursor, 3, 0.3, 1.1, -0.4);
  return bad;
}
