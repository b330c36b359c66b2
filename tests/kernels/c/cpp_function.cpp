/* Shape: std::function that holds another one.
   Hard: calls go through tables of pointers, closures are on the heap. */
#include "check.h"
#include <functional>
static double f(double *x, int n) {
  std::function<double(double)> g = [](double y) { return y * y; };
  for (int i = 0; i < n; i++) { double a = x[i]; g = [g, a](double y) { return g(y * a) + a; }; }
  return g(x[0]);
}
int main() { VECTOR(f, 3, 0.53, 1.27, 0.76); return bad; }
