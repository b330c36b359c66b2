/* Shape: a large structure by value in and out, with a matrix, an integer and a float.
   Hard: copies of whole structures, and indices computed by division and remainder. */
#include "check.h"
struct big { double m[3][3]; int n; float f; };
static struct big mul(struct big a, struct big b) { struct big c = {{{0}}, a.n + b.n, a.f * b.f}; for (int i = 0; i < 3; i++) for (int j = 0; j < 3; j++) for (int k = 0; k < 3; k++) c.m[i][j] += a.m[i][k] * b.m[k][j]; return c; }
static struct big make(double *x, int n) { struct big a; for (int i = 0; i < 9; i++) a.m[i / 3][i % 3] = x[i % n] * (i + 1) * 0.2; a.n = n; a.f = 0.5f; return a; }
static double f(double *x, int n) { struct big a = make(x, n), p = a; for (int i = 0; i < 3; i++) p = mul(p, a); return p.m[0][0] + p.m[1][2] * p.m[2][1] + p.f + p.n; }
int main(void) { VECTOR(f, 4, 0.53, 0.27, 0.76, 0.9); return bad; }
