/* Shape: qsort and bsearch of structs and of pointers.
   Hard: what bsearch finds leads into the array. */
#include "check.h"
struct pt { double key; int id; double val; };
static int by_key(const void *a, const void *b) { double x = ((const struct pt *)a)->key, y = ((const struct pt *)b)->key; return (x > y) - (x < y); }
static int by_abs(const void *a, const void *b) { double x = **(double *const *)a, y = **(double *const *)b; return fabs(x) < fabs(y) ? -1 : 1; }
static double f(double *x, int n) {
  struct pt p[16]; for (int i = 0; i < n; i++) p[i] = (struct pt){x[i] * x[i] - x[0], i, x[(i + 1) % n]};
  qsort(p, n, sizeof *p, by_key);
  double s = 0; for (int i = 0; i < n; i++) s = s * 0.7 + p[i].val * p[i].key + p[i].id;
  struct pt want = {.key = p[2].key}; struct pt *q = bsearch(&want, p, n, sizeof *p, by_key);
  if (q) s += q->val * (q - p) * 3;
  return s;
}
static double g(double *x, int n) { double *p[16]; for (int i = 0; i < n; i++) p[i] = x + i; qsort(p, n, sizeof *p, by_abs); double s = 0; for (int i = 0; i < n; i++) { s += *p[i] * (i + 1); *p[i] *= s; } return s + x[0] * x[1]; }
int main(void) { VECTOR(f, 7, 0.53, 0.27, 0.76, 0.91, -0.3, 1.2, 0.85); VECTOR(g, 7, 0.53, 0.27, 0.76, 0.91, -0.3, 1.2, 0.85); return bad; }
