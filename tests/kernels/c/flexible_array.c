/* Shape: a struct with an array of unknown length at its end.
   Hard: what is copied into it ties the struct to the caller's memory, whose counts are no floats. */
#include "check.h"
struct row { int n; double scale; double v[]; };
static struct row *make(const double *x, int n, double s) { struct row *r = malloc(sizeof *r + n * sizeof(double)); r->n = n; r->scale = s; memcpy(r->v, x, n * sizeof(double)); return r; }
static double dot(const struct row *a, const struct row *b) { double s = 0; for (int i = 0; i < a->n && i < b->n; i++) s += a->v[i] * b->v[i]; return s * a->scale * b->scale; }
static double f(double *x, int n) { struct row *a = make(x, n, x[0]), *b = make(x + 1, n - 1, x[1]); double s = dot(a, b) + dot(b, b); free(a); free(b); return s; }
int main(void) {
  VECTOR(f, 4, 0.53, 0.27, 0.76, 0.9);
  return bad;
}
