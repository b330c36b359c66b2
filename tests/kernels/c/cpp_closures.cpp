/* Shape: closures by value, by reference, moved, composed, bound, and in a map.
   Hard: small functions lie in words that hold integers, floats and pointers at different times. */
#include "check.h"
#include <functional>
#include <vector>
#include <memory>
#include <map>
static std::function<double(double)> compose(std::vector<std::function<double(double)>> fs) { return [fs = std::move(fs)](double v) { for (auto &f : fs) v = f(v); return v; }; }
static auto adder(double k) { return [k](double v) mutable { k += 0.5; return v + k; }; }
template <class F> static double integrate(F f, double a, double b, int n) { double h = (b - a) / n, s = 0; for (int i = 0; i < n; i++) s += f(a + (i + 0.5) * h); return s * h; }
static double f(double *x, int n) { (void)n; auto big = std::make_unique<double[]>(3); for (int i = 0; i < 3; i++) big[i] = x[i] * 2; auto own = [b = std::move(big), &x](double v) { return b[1] * v + x[2]; }; double s = own(x[0]); auto add = adder(x[1]); s += add(1) * add(2); std::vector<std::function<double(double)>> fs; fs.push_back(adder(x[0])); fs.push_back([a = x[0], b = x[1], c = x[2], d = s](double v) { return a * v + b * c + d; }); fs.push_back(static_cast<double (*)(double)>(std::sin)); auto all = compose(fs); s += all(x[2]); s += integrate([&](double t) { return std::exp(-x[0] * t) * all(t); }, 0, x[1], 8); std::map<int, std::function<double(double, double)>> ops{{0, std::plus<double>()}, {1, std::multiplies<double>()}, {2, [](double a, double b) { return std::pow(a, b); }}}; for (auto &[k, op] : ops) s += op(x[0], x[1] + k); auto bound = std::bind([](double a, double b, double c) { return a * b - c; }, std::placeholders::_2, x[0], std::placeholders::_1); return s + bound(x[1], x[2]) + std::invoke([](double a) { return a * a; }, x[0]); }
int main() { VECTOR(f, 3, 0.53, 0.27, 0.76); return bad; }
