/* Shape: windows of structs with doubles, floats and pointers that move over themselves, up and down.
   Hard: in reverse the order is the other one, for every field. */
#include "check.h"
/* Windows of structs with doubles, floats and pointers, moved up and down over themselves by a number of run time. */
struct e { double v; int k; float w; const double *at; };
static double f(double *x, int n) {
  struct e a[24]; memset(a, 0, sizeof a);
  for (int i = 0; i < n; i++) a[i] = (struct e){x[i] * x[i], i, 1.5f, &x[(i + 1) % n]};
  double s = 0;
  memmove(a + 2, a, n * sizeof *a); for (int i = 0; i < 2; i++) a[i] = (struct e){x[0] * (i + 1), 7, 2, x};
  for (int i = 0; i < n + 2; i++) s += a[i].v * *a[i].at * (i + 1) * a[i].w + a[i].k;
  memmove(a, a + 1, (n + 1) * sizeof *a);
  for (int i = 0; i < n + 2; i++) s += a[i].v * *a[i].at * a[i].v * (i + 2);
  memmove(a + 1, a, (n - 1) * sizeof *a); memmove(a + 3, a + 4, 2 * sizeof *a);
  for (int i = 0; i < n; i++) s += a[i].v * *a[i].at * (3 * i + 2);
  return s;
}
int main(void) { VECTOR(f, 18, 0.53, 0.27, 0.76, 0.91, 0.12, 1.3, 0.53, 0.27, 0.76, 0.91, 0.12, 1.3, 0.4, 0.2, 0.7, 0.9, 0.3, 0.6); VECTOR(f, 4, 0.53, 0.27, 0.76, 0.91); return bad; }
