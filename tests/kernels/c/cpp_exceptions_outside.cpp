/* Shape: an exception that leaves the differentiated function.
   Hard: the next call must find everything released. */
#include "check.h"
#include <stdexcept>
#include <vector>
static double f(double *x, int n) { std::vector<double> v(x, x + n); if (x[0] > 10) throw std::runtime_error("large"); return v.at(1) * v.at(0); }
int main() {
  VECTOR(f, 2, 0.5, 0.7);
  for (int k = 0; k < 3; k++) { double x[2] = {11, 1}, g[2] = {0, 0}; bool thrown = false; try { __enzyme_autodiff((void *)f, enzyme_dup, x, g, 2); } catch (std::exception &e) { thrown = true; } check("thrown", thrown, 1); }
  VECTOR(f, 2, 0.5, 0.7); return bad; }
