/* Shape: vectors that grow, are inserted into, swapped, copied and nested.
   Hard: every growth moves the elements to new memory. */
#include "check.h"
#include <vector>
#include <algorithm>
#include <numeric>
static double f(double *x, int n) {
  std::vector<double> v;
  for (int i = 0; i < n; i++) { v.push_back(x[i] * x[i]); if (v.size() > 2) v.push_back(v[v.size() - 1] * v[v.size() - 3]); }
  v.insert(v.begin() + 1, x[0]); v.erase(v.begin() + 2); v.resize(v.size() + 2, x[n - 1]);
  std::vector<double> w(v.rbegin(), v.rend()); v.swap(w); w = v; w.emplace_back(3.0);
  return std::accumulate(v.begin(), v.end(), 0.5, [](double a, double b) { return a * 0.9 + b; }) + w.back() * w.front();
}
static double nested(double *x, int n) {
  std::vector<std::vector<double>> m(n, std::vector<double>(n));
  for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) m[i][j] = x[i] * x[j] + (i == j);
  m.push_back(std::move(m[0])); m.erase(m.begin());
  double s = 0; for (auto &r : m) for (double c : r) s += c * c; return s;
}
int main() { VECTOR(f, 4, 0.53, 0.27, 0.76, 0.9); VECTOR(nested, 3, 0.53, 0.27, 0.76); return bad; }
