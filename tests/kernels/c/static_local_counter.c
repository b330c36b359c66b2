/* Shape: static local variables and thread-local arrays.
   Hard: what a call writes must not be seen by the next. */
#include "check.h"
static double f(double x) {
  static int calls;
  static double last;
  calls++;
  last = x * x;
  double y = last * 3 + 0 * calls;
  return y;
}
static _Thread_local double mine[3];
static double g(double x) {
  for (int i = 0; i < 3; i++) mine[i] = pow(x, i + 1);
  return mine[0] + mine[1] * mine[2];
}
int main(void) { SCALAR(f, 1.3); SCALAR(g, 1.1); return bad; }
