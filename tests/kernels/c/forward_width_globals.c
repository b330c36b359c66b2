/* Shape: forward mode in several directions at once, where the function works in global variables, of which addresses are
   kept in others.
   Hard: each direction has shadows of its own of these, also where it finds them by their address. */
#include "check.h"
extern int enzyme_width;
typedef struct { double d[2]; } Two;
Two __enzyme_fwddiff_two(void *, ...);
static double scratch[4], *where = scratch + 1;
static double f(const double *x) {
  scratch[0] = x[0] * x[1], scratch[1] = sin(x[0]);
  double s = where[0] * scratch[0];
  where = scratch;
  for (int i = 0; i < 2; i++) s += where[i] * scratch[i];
  where = scratch + 1;
  return s;
}
int main(void) {
  const double x[] = {0.3, 0.9}, d[2][2] = {{1, 0}, {0, 1}}, s = sin(0.3), c = cos(0.3);
  for (int again = 0; again < 2; again++) {
    Two t = __enzyme_fwddiff_two((void *)f, enzyme_width, 2, enzyme_dup, x, d[0], d[1]);
    check("0", t.d[0], 0.9 * s + c * 0.27 + 2 * 0.27 * 0.9 + 2 * s * c);
    check("1", t.d[1], 0.3 * s + 2 * 0.27 * 0.3);
  }
  return bad;
}
