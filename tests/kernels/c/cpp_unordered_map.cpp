/* Shape: std::unordered_map.
   Hard: libstdc++ keeps the way the table grows beside pointers to nodes, in one object with them. */
#include "check.h"
#include <unordered_map>
static double f(double *x, int n) {
  std::unordered_map<int, double> m;
  for (int i = 0; i < 3 * n; i++) m[(i * 7) % 5] += x[i % n] * (i + 1);
  double s = 0;
  for (int k = 0; k < 5; k++) { auto it = m.find(k); if (it != m.end()) s += it->second * it->second * (k + 1); }
  m.erase(2);
  for (auto &p : m) s += p.second;
  return s;
}
int main() {
  VECTOR(f, 4, 0.53, 0.27, 0.76, 0.9);
  return bad;
}
