/* Shape: tuples, optional values, variants and small vectors.
   Hard: structures of structures by value, alternatives in one place. */
#include "check.h"
#include <array>
#include <cmath>
#include <tuple>
#include <optional>
#include <variant>
template <class T, size_t N> struct vec : std::array<T, N> { vec operator+(const vec &o) const { vec r; for (size_t i = 0; i < N; i++) r[i] = (*this)[i] + o[i]; return r; } T dot(const vec &o) const { T s{}; for (size_t i = 0; i < N; i++) s += (*this)[i] * o[i]; return s; } };
static double f(double *x, int n) {
  vec<double, 4> a{}, b{}; for (int i = 0; i < 4; i++) { a[i] = x[i % n]; b[i] = std::sin(a[i]); }
  auto [p, q] = std::make_tuple(a.dot(b), (a + b).dot(a));
  std::optional<double> o; if (p > 0) o = q * p;
  std::variant<int, double, vec<double, 4>> v = 3; v = p * q; double s = std::get<double>(v); v = a + b; s += std::get<2>(v)[1];
  return s + o.value_or(x[0]);
}
int main() { VECTOR(f, 3, 0.53, 0.27, 0.76); return bad; }
