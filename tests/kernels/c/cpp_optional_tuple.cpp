// Shape: optional, variant, tuple and structured bindings, nested in each other and in containers.
// Hard: storage without a type of its own, with a tag behind it.
#include "check.h"
#include <any>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>
struct Lin { double a, b; }; struct Pw { double k; int n; }; struct Comp; using Fn = std::variant<Lin, Pw, std::vector<Lin>>;
template <class... T> struct over : T... { using T::operator()...; }; template <class... T> over(T...) -> over<T...>;
static double ap(const Fn &f, double v) { return std::visit(over{[&](const Lin &l) { return l.a * v + l.b; }, [&](const Pw &p) { return p.k * std::pow(v, p.n); }, [&](const std::vector<Lin> &l) { double s = v; for (auto &[a, b] : l) s = a * s + b; return s; }}, f); }
static std::optional<double> root(double v) { if (v < 0) return std::nullopt; return std::sqrt(v); }
static std::tuple<double, int, double> stat(const double *x, int n) { double m = 0, v = 0; for (int i = 0; i < n; i++) m += x[i] / n; for (int i = 0; i < n; i++) v += (x[i] - m) * (x[i] - m); return {m, n, v}; }
static std::pair<bool, double> safe(double a, double b) { return b == 0 ? std::pair{false, 0.0} : std::make_pair(true, a / b); }
static double f(double *x, int n) {
  std::vector<Fn> fs{Lin{x[0], x[1]}, Pw{x[2], 3}, std::vector<Lin>{{x[0], 1}, {.5, x[1]}}}; fs.push_back(fs[0]); fs[1] = Lin{x[1], 2}; fs.emplace_back(Pw{x[0], 2}); double s = x[0]; for (auto &g : fs) s = ap(g, s);
  for (int i = 0; i < n; i++) { auto r = root(x[i]); s += r.value_or(x[0] * 2); if (auto q = root(x[i] - .3); q) s *= *q; }
  auto [m, k, v] = stat(x, n); s += m * k + v; auto [ok, d] = safe(x[0], x[1]); if (ok) s += d; if (auto [ok2, d2] = safe(x[0], 0); !ok2) s += d2 + x[2];
  std::map<std::string, std::optional<double>> mp; mp["a"] = x[0] * x[1]; mp["long name that is on the heap"] = {}; mp["z"].emplace(x[2]); for (auto &[key, o] : mp) s += o ? *o * key.size() : x[1]; std::optional<std::vector<double>> ov; ov.emplace(3, x[0]); (*ov)[1] = x[1]; ov->push_back(x[2]); s += std::get<0>(std::tie(x[0], x[1])) * (*ov)[3]; if (std::holds_alternative<Lin>(fs[0])) s += std::get_if<Lin>(&fs[0])->a; return s;
}
int main() { VECTOR(f, 4, 0.53, .47, 0.76, -.4); return bad; }
