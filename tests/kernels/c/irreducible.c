/* Shape: loops that goto enters in two places.
   Hard: no loop has a head. */
#include "check.h"
static double f(double x) {
  double y = x; int i = 0;
  if (x > 1) goto middle;
top:
  y = y * x + 1; i++;
middle:
  y = sin(y) + 0.5 * y; i++;
  if (i < 7) goto top;
  if (i < 9 && y > 0) goto middle;
  return y;
}
int main(void) { SCALAR(f, 0.7); SCALAR(f, 1.4); return bad; }
