/* Shape: expression nodes with a union and a flexible array of children.
   Hard: a constant, an index and an operator with a count share their bytes. */
#include "check.h"
enum kind { LEAF, VAR, NARY };
struct ex { enum kind k; union { double c; int v; struct { char op; int n; } h; } u; struct ex *kid[]; };
static struct ex *leaf(double c) { struct ex *e = malloc(sizeof *e); e->k = LEAF; e->u.c = c; return e; }
static struct ex *var(int v) { struct ex *e = malloc(sizeof *e); e->k = VAR; e->u.v = v; return e; }
static struct ex *nary(char op, int n, struct ex **k) { struct ex *e = malloc(sizeof *e + n * sizeof *k); e->k = NARY; e->u.h.op = op; e->u.h.n = n; for (int i = 0; i < n; i++) e->kid[i] = k[i]; return e; }
static double eval(const struct ex *e, const double *x) {
  switch (e->k) { case LEAF: return e->u.c; case VAR: return x[e->u.v];
  case NARY: { double s = e->u.h.op == '+' ? 0 : 1; for (int i = 0; i < e->u.h.n; i++) { double v = eval(e->kid[i], x); s = e->u.h.op == '+' ? s + v : s * v; } return s; } }
  return 0;
}
static void drop(struct ex *e) { if (e->k == NARY) for (int i = 0; i < e->u.h.n; i++) drop(e->kid[i]); free(e); }
static double f(double *x, int n) {
  struct ex *s[3] = {var(0), leaf(x[1] * 2), var(2)}; struct ex *a = nary('+', 3, s); struct ex *t[3] = {a, var(1), leaf(x[0])}; struct ex *b = nary('*', 3, t);
  double r = eval(b, x); drop(b); return r * r;
}
int main(void) { VECTOR(f, 3, 0.53, 2.27, 0.76); return bad; }
