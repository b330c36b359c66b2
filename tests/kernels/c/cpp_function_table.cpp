/* Shape: a map from names to functions.
   Hard: closures and strings share memory of one node. */
#include "check.h"
#include <functional>
#include <array>
#include <map>
#include <string>
static double f(double *x, int n) {
  double bias = x[3]; std::map<std::string, std::function<double(double)>> t; t["sq"] = [](double v) { return v * v; }; t["off"] = [bias](double v) { return v + bias * bias; }; t["all"] = [&](double v) { double s = v; for (int i = 0; i < n; i++) s *= x[i] + 1; return s; }; t["sin"] = static_cast<double (*)(double)>(sin);
  double s = x[0]; for (const char *k : {"sq", "off", "all", "sin", "off"}) s = t.at(k)(s); return s;
}
int main() {
  VECTOR(f, 4, 0.53, 0.27, 0.76, 0.9);
  return bad;
}
