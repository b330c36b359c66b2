/* Shape: variant, optional and tuple: shapes that hold doubles or a vector, swapped and visited.
   Hard: a word from the caller's array may be a pointer where it is copied to; the caller's shadow holds seeds. */
#include "check.h"
#include <optional>
#include <tuple>
#include <variant>
#include <vector>
struct Circle { double r; }; struct Rect { double w, h; }; struct Poly { std::vector<double> v; };
using Shape = std::variant<Circle, Rect, Poly, int>;
template <class... F> struct over : F... { using F::operator()...; }; template <class... F> over(F...) -> over<F...>;
static double area(const Shape &s) { return std::visit(over{[](const Circle &c) { return 3 * c.r * c.r; }, [](const Rect &r) { return r.w * r.h; }, [](const Poly &p) { double t = 0; for (double v : p.v) t += v * v; return t; }, [](int k) { return k * 1.0; }}, s); }
static std::optional<double> root(double v) { if (v < 0) return std::nullopt; return std::sqrt(v); }
static std::tuple<double, double, int> split(double v) { return {v * v, v + 1, (int)(v * 10)}; }
static double f(double *x, int n) {
  std::vector<Shape> s; s.push_back(Circle{x[0]}); s.emplace_back(Rect{x[1], x[2]}); s.push_back(Poly{{x[0], x[1], x[3]}}); s.push_back(4); s[3] = s[1]; std::swap(s[0], s[2]); s[1] = 2; double t = 0; int k = 1; for (auto &e : s) t += area(e) * k++; if (auto *p = std::get_if<Poly>(&s[0])) { p->v.push_back(t); t += area(s[0]) * 0.01; }
  for (int i = 0; i < n; i++) { t += root(x[i]).value_or(x[0] * 2); auto [a, b, c] = split(x[i]); t += a * b + c; if (auto r = root(x[i] - 0.5)) t *= *r; } return t; }
int main() { VECTOR(f, 4, 0.53, 0.27, 0.76, 0.91); return bad; }
