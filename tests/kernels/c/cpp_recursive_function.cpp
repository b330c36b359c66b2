/* Shape: std::function that calls itself.
   Hard: its small buffer is a word that is copied as an integer. */
#include "check.h"
#include <functional>
static double f(double *x, int n) {
  std::function<double(int, double)> g = [&](int k, double a) -> double { return k == 0 ? a : x[k % n] * g(k - 1, a * a) + g(k - 1, a + 0.1) * 0.5; };
  return g(4, x[0]);
}
int main() {
  VECTOR(f, 4, 0.53, 0.27, 0.76, 0.9);
  return bad;
}
