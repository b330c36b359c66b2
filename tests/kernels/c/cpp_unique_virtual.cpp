/* Shape: unique and shared pointers to classes with virtual functions.
   Hard: counters of references beside floats, destructors through tables. */
#include "check.h"
#include <memory>
#include <vector>
struct shape { virtual double area(double k) const = 0; virtual ~shape() {} };
struct square : shape { double a; square(double a) : a(a) {} double area(double k) const override { return a * a * k; } };
struct round_ : shape { double r; int n; round_(double r) : r(r), n(3) {} double area(double k) const override { return 3.14 * r * r + k * n; } };
struct both : square { std::unique_ptr<shape> other; both(double a, std::unique_ptr<shape> o) : square(a), other(std::move(o)) {} double area(double k) const override { return square::area(k) * other->area(k + a); } };
static double f(double *x, int n) {
  std::vector<std::unique_ptr<shape>> all;
  for (int i = 0; i < n; i++) { if (i % 3 == 0) all.push_back(std::make_unique<square>(x[i])); else if (i % 3 == 1) all.emplace_back(new round_(x[i])); else all.push_back(std::make_unique<both>(x[i], std::move(all[i - 1]))), all[i - 1] = std::make_unique<square>(x[0]); }
  double s = 0; for (auto &p : all) s += p->area(x[n - 1]); return s;
}
static double g(double *x, int n) { auto p = std::make_shared<square>(x[0]); auto q = p; q->a *= x[n - 1]; return p->area(2) + q.use_count(); }
int main() { VECTOR(f, 5, 0.53, 1.27, 0.76, -0.2, -1.1); VECTOR(g, 2, 0.5, 0.7); return bad; }
