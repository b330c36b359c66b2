/* Shape: float, double and long double beside each other, in structs that are copied.
   Hard: a copy moves each float in its own width, and a long double has bytes that are none. */
#include "check.h"
static double f(double *x, int n) {
  long double acc = 0; double c = 0;
  for (int i = 0; i < n; i++) { acc += (long double)x[i] * x[i]; c += (double)acc * x[0]; }
  long double parts[3] = {acc, c, acc * c}; long double *p = parts + 1; *p *= 2.0L;
  return (double)(parts[0] + sqrtl(parts[1] + 3) + sinl(parts[2]) + powl(acc, 1.5L) + fabsl(parts[1]));
}
static float gf(const float *a, float b) { float s = 0; for (int i = 0; i < 4; i++) s += sinf(a[i]) * b + (float)((double)a[i] * 0.5); return s; }
struct mix { float f; double d; long double l; };
static double h(double *x, int n) { struct mix m[3]; (void)n; for (int i = 0; i < 3; i++) m[i] = (struct mix){2.0f, x[i], x[i] * x[i]}; m[1] = m[0]; m[1].d += 1; long double s = 0; for (int i = 0; i < 3; i++) s += m[i].d * m[i].l * m[i].f; return s; }
float __enzyme_autodiff_f(void *, ...);
struct fd { float a; };
int main(void) {
  VECTOR(f, 4, 0.53, 0.27, 0.76, 0.91); VECTOR(h, 4, 0.53, 0.27, 0.76, 0.91);
  float a[4] = {0.1f, 0.2f, 0.3f, 0.4f}, d[4] = {0};
  float db = __enzyme_autodiff_f((void *)gf, enzyme_dup, a, d, enzyme_out, 2.0f);
  double want = 0; for (int i = 0; i < 4; i++) { want += sin(a[i]); agree("a", d[i], 2 * cos(a[i]) + 0.5, 1e-5); }
  agree("b", db, want, 1e-5);
  return bad;
}
