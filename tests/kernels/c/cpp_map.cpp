/* Shape: std::map and std::set with integer keys.
   Hard: rebalancing is the library's; nodes and the header of the tree are one region of memory. */
#include "check.h"
#include <map>
#include <set>
static double f(double *x, int n) {
  std::map<int, double> m;
  for (int i = 0; i < n; i++) m[(i * 5) % 3] += x[i] * x[i];
  double s = 0;
  for (auto &[k, v] : m) s += (k + 1) * v * v;
  return s;
}
static double h(double *x, int n) {
  std::set<int> seen;
  double s = 0;
  for (int i = 0; i < 3 * n; i++)
    if (seen.insert((i * i) % 7).second) s += x[i % n] * x[i % n] * (i + 1);
  return s * seen.size();
}
int main() {
  VECTOR(f, 4, 0.53, 0.27, 0.76, 0.9);
  VECTOR(h, 4, 0.53, 0.27, 0.76, 0.9);
  return bad;
}
