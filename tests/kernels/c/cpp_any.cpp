// Shape: std::any that holds a number, an integer and a vector in turn.
// Hard: the manager of an integer copies four bytes of a place where others have pointers and doubles.
#include "check.h"
#include <any>
#include <vector>
static double f(double *x, int n) { std::vector<std::any> v; v.push_back(x[0] * x[1]); v.push_back(3); v.push_back(std::vector<double>(x, x + n)); double s = 0; for (auto &a : v) { if (auto d = std::any_cast<double>(&a)) s += *d * *d; else if (auto i = std::any_cast<int>(&a)) s *= *i; else for (double e : std::any_cast<std::vector<double> &>(a)) s += e * x[0]; } return s; }
int main() { VECTOR(f, 4, 0.53, .47, 0.76, -.4); return bad; }
