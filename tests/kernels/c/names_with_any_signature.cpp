/* Shape: entry points whose names contain the field's, as templates of any signature.
   Hard: results are structures, floats and doubles; functions are passed as lambdas. */
#include "check.h"
template <class R, class... A> R __enzyme_autodiff_any(A...);
template <class R, class... A> R my__enzyme_fwddiff_of(A...);
struct grad { double x, y; };
extern int enzyme_primal_return, enzyme_noret;
static double f(double x, double y) { return x * x * y; }
static double k(double x, const double *c, int n) { double s = 0; for (int i = 0; i < n; i++) s += c[i] * pow(x, i); return s; }
int main() {
  grad g = __enzyme_autodiff_any<grad>((void *)f, 3.0, 2.0);
  check("x", g.x, 12); check("y", g.y, 9);
  check("t", my__enzyme_fwddiff_of<double>((void *)f, enzyme_dup, 3.0, 1.0, enzyme_const, 2.0), 12);
  double c[3] = {1, 2, 3};
  check("k", __enzyme_autodiff_any<double>((void *)k, enzyme_out, 2.0, enzyme_const, c, enzyme_const, 3), 14);
  check("float", (double)__enzyme_autodiff_any<float>((void *)+[](float x) { return x * x; }, 3.0f), 6);
  return bad;
}
