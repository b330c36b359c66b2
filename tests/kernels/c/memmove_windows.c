/* Shape: overlapping moves of arrays of doubles and of structures.
   Hard: reverse moves must go against the order. */
#include "check.h"
struct pair { float a; int k; double b; };
static double f(double *x, int n) {
  double r[16];
  for (int i = 0; i < 16; i++) r[i] = x[i % n] * i;
  memmove(r + 2, r, 12 * sizeof *r);
  memmove(r, r + 3, 9 * sizeof *r);
  memcpy(r + 12, r, 4 * sizeof *r);
  double s = 0;
  for (int i = 0; i < 16; i++) s += r[i] * r[15 - i];
  struct pair p[4] = {{0}}, q[4];
  for (int i = 0; i < 4; i++) { p[i].a = (float)(i + 1); p[i].k = i; p[i].b = x[i % n] * 2; }
  memcpy(q, p, sizeof p);
  memmove(q + 1, q, 2 * sizeof *q);
  for (int i = 0; i < 4; i++) s += q[i].a * q[i].b * (q[i].k + 1);
  return s;
}
int main(void) { VECTOR(f, 3, 0.5, -0.25, 0.75); return bad; }
