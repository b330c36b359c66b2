/* Shape: static local objects: a table that is filled once, and a workspace.
   Hard: the workspace holds its length beside its floats. */
#include "check.h"
#include <cmath>
#include <vector>
static double table(int i) { static std::vector<double> t = [] { std::vector<double> v; for (int i = 0; i < 10; i++) v.push_back(std::sqrt(i + 1.0)); return v; }(); return t[i]; }
static double f(double x) { double s = 0; for (int i = 0; i < 10; i++) s += table(i) * std::pow(x, i); return s; }
struct workspace { double a[8]; int used = 0; double *take(int n) { double *p = a + used; used += n; return p; } };
static workspace &ws() { static workspace w; return w; }
static double g(double x) { ws().used = 0; double *p = ws().take(3), *q = ws().take(2); for (int i = 0; i < 3; i++) p[i] = x * i + 1; q[0] = p[0] * p[1]; q[1] = p[2] * q[0]; return q[0] + q[1] * q[1]; }
int main() { table(0); SCALAR(f, 0.4); SCALAR(g, 0.6); return bad; }
