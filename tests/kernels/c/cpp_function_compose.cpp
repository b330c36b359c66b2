// Shape: std::function that is composed, bound, kept in a map and recursive with a memory; pointers to members.
// Hard: the key of a node is stored where, by type, other calls of a pointer have floats.
#include "check.h"
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>
struct Layer { double w, b; double operator()(double v) const { return std::tanh(w * v + b); } double lin(double v) const { return w * v + b; } };
using F = std::function<double(double)>;
static F compose(F a, F b) { return [a = std::move(a), b = std::move(b)](double v) { return b(a(v)); }; }
static F pw(F g, int n) { F r = [](double v) { return v; }; while (n--) r = compose(r, g); return r; }
static double f(double *x, int n) {
  Layer l{x[0], x[1]}; F g = compose(l, [&](double v) { return v * x[2]; }); std::map<std::string, F> reg; reg["l"] = std::bind(&Layer::lin, l, std::placeholders::_1); reg["g"] = g; reg["p"] = pw(std::ref(l), 3); reg["z"] = [k = std::make_shared<double>(x[1])](double v) { *k += v; return *k * v; };
  double s = x[0]; for (auto &kv : reg) s = kv.second(s) + s; s += reg["z"](x[0]); auto fix = [](auto self, auto v, int d) -> double { return d ? self(self, std::sin(v) + v, d - 1) : v; }; s += fix(fix, x[2], 3);
  std::map<int, double> memo; std::function<double(int)> fib = [&](int k) -> double { if (k < 2) return x[k]; if (auto it = memo.find(k); it != memo.end()) return it->second; return memo[k] = fib(k - 1) * x[2] + fib(k - 2); }; s += fib(9); double (Layer::*mp)(double) const = &Layer::lin; double Layer::*dp = x[0] > 0 ? &Layer::w : &Layer::b; s += (l.*mp)(x[1]) + l.*dp * 3; std::vector<std::function<void(double &)>> ops; for (int i = 0; i < n; i++) ops.emplace_back([i, &x](double &t) { t = t * .5 + x[i] * i; }); for (auto &o : ops) o(s); return s;
}
int main() { VECTOR(f, 3, 0.53, .47, 0.76); return bad; }
