/* Shape: tagged unions of floats, counts and pointers, copied whole.
   Hard: a count that is stored may be half of a float or of a pointer to those who copy it. */
#include "check.h"
struct shape { enum { CIRCLE, RECT, POLY } kind; union { struct { double r; } circle; struct { float w, h; } rect; struct { int n; double *at; } poly; struct shape *inner; } u; };
static double area(const struct shape *s) {
  switch (s->kind) {
  case CIRCLE: return 3 * s->u.circle.r * s->u.circle.r;
  case RECT: return (double)s->u.rect.w * s->u.rect.h;
  case POLY: { double t = 0; for (int i = 0; i + 1 < s->u.poly.n; i++) t += s->u.poly.at[i] * s->u.poly.at[i + 1]; return t; }
  }
  return area(s->u.inner) * 2;
}
static double f(double *x, int n) {
  struct shape s[4];
  s[0].kind = CIRCLE; s[0].u.circle.r = x[0];
  s[1].kind = POLY; s[1].u.poly.n = n; s[1].u.poly.at = x;
  s[2].kind = 7; s[2].u.inner = &s[0];
  s[3] = s[1];
  struct shape t = s[0]; s[0] = s[2]; s[2] = t; s[0].u.inner = &s[2];
  double sum = 0; for (int i = 0; i < 4; i++) sum += area(&s[i]) * (i + 1);
  return sum;
}
union cell { double d; long i; struct { unsigned lo, hi; } w; };
static double h(double *x, int n) {
  union cell c[6]; double s = 0;
  for (int i = 0; i < n; i++) { c[i].d = x[i]; if (c[i].w.hi >> 31) c[i].i = 7; }
  for (int i = 0; i < n; i++) s += c[i].i == 7 ? 2 : c[i].d * c[i].d * (i + 1);
  return s;
}
int main(void) {
  VECTOR(f, 4, 0.53, 0.27, 0.76, 0.91); VECTOR(h, 4, 0.53, -0.27, 0.76, -0.91);
  return bad;
}
