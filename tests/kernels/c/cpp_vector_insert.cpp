/* Shape: insertion, erasure and shrinking of vectors of vectors.
   Hard: libstdc++ catches what the elements throw, frees, and throws again or goes on. */
#include "check.h"
#include <vector>
#include <algorithm>
static double f(double *x, int n) {
  std::vector<std::vector<double>> m; for (int i = 0; i < n; i++) { m.emplace_back(); for (int j = 0; j <= i; j++) m.back().push_back(x[i] * x[j]); }
  std::swap(m[0], m[2]); m.insert(m.begin() + 1, std::vector<double>{x[0], x[1], x[0] * 2}); m.erase(m.begin() + 3); m[0].resize(5, x[3]); auto c = m; c[1].assign(2, x[2]); std::reverse(m[0].begin(), m[0].end()); std::rotate(m[1].begin(), m[1].begin() + 1, m[1].end());
  m.shrink_to_fit(); double s = 0; for (auto &r : m) for (size_t k = 0; k < r.size(); k++) s += r[k] * (k + 1); for (auto &r : c) for (double v : r) s += v * v; std::vector<bool> odd(n); for (int i = 0; i < n; i++) odd[i] = i % 2; for (int i = 0; i < n; i++) if (odd[i]) s *= 1 + x[i];
  return s;
}
int main() {
  VECTOR(f, 4, 0.53, 0.27, 0.76, 0.9);
  return bad;
}
