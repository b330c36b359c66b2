/* Shape: a switch with cases that fall through, and Duff's device.
   Hard: a loop that is entered at four places. */
#include "check.h"
static double f(double *x, int n) {
  double s = 1;
  for (int i = 0; i < n; i++) {
    switch ((i * 7) % 5) {
      case 0: s *= x[i];
      case 1: s += x[i] * x[i]; break;
      case 3: s = s / (1 + x[i] * x[i]); 
      default: s += 0.1 * x[i]; continue;
    }
    s = cos(s);
  }
  return s;
}
/* Duff's device */
static double duff(double *x, int n) {
  double s = 0; int i = 0, k = (n + 3) / 4;
  switch (n % 4) {
    case 0: do { s += x[i] * x[i]; i++;
    case 3: s += x[i] * 2; i++;
    case 2: s *= x[i]; i++;
    case 1: s += sin(x[i]); i++;
    } while (--k > 0);
  }
  return s;
}
int main(void) { VECTOR(f, 6, 0.3, 0.5, -0.7, 1.2, 0.9, -0.1); VECTOR(duff, 7, 0.3, 0.5, -0.7, 1.2, 0.9, -0.1, 0.4); VECTOR(duff, 6, 0.3, 0.5, -0.7, 1.2, 0.9, -0.1); return bad; }
