/* Shape: std::sort of doubles and of pairs with a comparator.
   Hard: the order depends on data; large arrays are sorted by introsort. */
#include "check.h"
#include <algorithm>
#include <vector>
static double f(double *x, int n) {
  std::vector<double> v(x, x + n); std::sort(v.begin(), v.end());
  double s = 0; for (int i = 0; i < n; i++) s = s * 0.7 + v[i] * (i + 1);
  std::vector<std::pair<double, int>> p; for (int i = 0; i < n; i++) p.push_back({x[i], i});
  std::sort(p.begin(), p.end(), [](auto &a, auto &b) { return a.first > b.first; });
  for (auto &q : p) s = s * 0.9 + q.first * q.second;
  std::nth_element(v.begin(), v.begin() + n / 2, v.end()); 
  return s * v[n / 2] + *std::max_element(x, x + n);
}
int main() { VECTOR(f, 20, 0.53, 1.27, 0.76, -0.2, -1.1, 3, 2, 7, 5, 4, 8, 1.5, 6, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5); return bad; }
