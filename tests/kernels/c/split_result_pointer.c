/* Shape: split sweeps of functions whose result is a pointer: into an argument, and to memory that they allocate.
   Hard: the shadow of the result is where seeds go, though nothing in the function reads through the pointer. */
#include "check.h"
typedef struct { void *tape; double *result, *shadow; } Pointed;
Pointed __enzyme_augmentfwd(void *, ...);
void __enzyme_reverse(void *, ...);

static double *largest(double *p, int n) {
  double *found = p;
  for (double *q = p; q < p + n; q++)
    if ((*q *= *q) > *found) found = q;
  return found;
}

static double *products(const double *p, int n) {
  double *r = malloc(n * sizeof *r);
  for (int i = 0; i < n; i++) r[i] = p[i] * p[(i + 1) % n];
  return r;
}

int main(void) {
  double p[] = {0.5, -2.0, 1.5}, d[3] = {0};
  Pointed l = __enzyme_augmentfwd((void *)largest, enzyme_dup, p, d, 3);
  check("largest", l.result - p, 1), check("its shadow", l.shadow - d, 1);
  *l.shadow = 1;
  __enzyme_reverse((void *)largest, enzyme_dup, p, d, 3, l.tape);
  check("0", d[0], 0), check("1", d[1], -4), check("2", d[2], 0);

  double q[] = {0.5, -2.0, 1.5}, e[3] = {0};
  Pointed r = __enzyme_augmentfwd((void *)products, enzyme_dup, q, e, 3);
  check("product", r.result[1], -3);
  for (int i = 0; i < 3; i++) r.shadow[i] = i + 1;
  __enzyme_reverse((void *)products, enzyme_dup, q, e, 3, r.tape);
  check("0", e[0], -2 * 1 + 1.5 * 3), check("1", e[1], 0.5 * 1 + 1.5 * 2), check("2", e[2], -2 * 2 + 0.5 * 3);
  free(r.result);
  return bad;
}
