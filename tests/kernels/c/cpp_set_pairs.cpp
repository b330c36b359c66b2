/* Shape: std::set of pairs.
   Hard: nodes hold floats and integers, of a width that shares a word, beside pointers. */
#include "check.h"
#include <set>
#include <utility>
static double f(double *x, int n) {
  std::set<std::pair<double, int>> q; double dist[6]; for (int i = 0; i < 6; i++) dist[i] = 1e9; dist[0] = 0; q.insert({0.0, 0});
  while (!q.empty()) { auto [d, u] = *q.begin(); q.erase(q.begin()); for (int k = 1; k <= 2; k++) { int v = u + k; if (v >= 6) continue; double w = d + x[(u * k) % n] * k; if (w < dist[v]) { q.erase({dist[v], v}); dist[v] = w; q.insert({w, v}); } } }
  return dist[5] * dist[5] + dist[3];
}
int main() {
  VECTOR(f, 4, 0.53, 0.27, 0.76, 0.9);
  return bad;
}
