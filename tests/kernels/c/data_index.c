/* Shape: indices computed from data (binning with linear weights).
   Hard: the index is constant, the weight is not. */
#include "check.h"
static double f(double *x, int n) {
  double bins[6] = {0};
  for (int i = 0; i < n; i++) {
    double t = fmin(fmax(x[i] * 4, 0.01), 4.99);
    int k = (int)t; double w = t - k;
    bins[k] += (1 - w) * x[i]; bins[k + 1] += w;
  }
  double s = 0;
  for (int i = 0; i < 6; i++) s += bins[i] * bins[i] * (i + 1);
  return s;
}
int main(void) { VECTOR(f, 5, 0.53, 0.27, 0.75 + 0.01, 0.9, 1.1); return bad; }
