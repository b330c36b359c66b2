/* Shape: structs of the caller's with counts and payloads that the function only moves: copied, swapped, sorted by a key.
   Hard: nothing in the function tells whether such a field is an integer or a float; the payload has a cotangent. */
#include "check.h"
struct io { int n; double a; long k; int m; };
static double fields(const struct io *p, struct io *q) { q->n = p->n; q->k = p->k; q->m = p->m; q->a = p->a * p->a; return q->a * q->n; }
static void whole(const struct io *p, struct io *q, int n) { for (int i = 0; i < n; i++) { q[i] = p[n - 1 - i]; q[i].a *= 2; } }
struct item { double key, pay; };
static void order(struct item *a, int n) { for (int i = 0; i + 1 < n; i++) for (int j = i + 1; j < n; j++) if (a[j].key < a[i].key) { struct item t = a[i]; a[i] = a[j]; a[j] = t; } }
struct tagged { int id; float w; int rank; };
static void rotate(struct tagged *a, int n) { struct tagged t = a[0]; for (int i = 1; i < n; i++) a[i - 1] = a[i]; a[n - 1] = t; }
static void swap8(void *a, void *b) { char t[8]; memcpy(t, a, 8); memcpy(a, b, 8); memcpy(b, t, 8); }
static void swapped(double *a) { swap8(a, a + 1); }
int main(void) {
  for (int k = 0; k < 2; k++) {
    struct io p = {3, 2, 4, 5}, dp = {0}, q = {0}, dq = {0}, v[2] = {{1, 2, 3, 4}, {5, 6, 7, 8}}, dv[2] = {{0}}, w[2], dw[2] = {{0, 1, 0, 0}, {0, 10, 0, 0}};
    __enzyme_autodiff((void *)fields, enzyme_dup, &p, &dp, enzyme_dup, &q, &dq); check("dp.a", dp.a, 12); check("q.k", q.k, 4);
    __enzyme_autodiff((void *)whole, enzyme_dup, v, dv, enzyme_dup, w, dw, 2); check("dv0", dv[0].a, 20); check("dv1", dv[1].a, 2); check("w.m", w[0].m, 8);
    struct item a[3] = {{3, 10}, {1, 20}, {2, 30}}, da[3] = {{0, 1}, {5, 2}, {0, 3}}, b[3] = {{3, 10}, {1, 20}, {2, 30}}, db[3] = {{0, 1}, {0, 2}, {0, 3}};
    __enzyme_autodiff((void *)order, enzyme_dup, a, da, 3); check("pay", a[0].pay, 20);
    check("da0", da[0].pay, 3); check("da1", da[1].pay, 1); check("da2", da[2].pay, 2); check("da2.key", da[2].key, 5);
    __enzyme_fwddiff((void *)order, enzyme_dup, b, db, 3); check("db0", db[0].pay, 2); check("db1", db[1].pay, 3); check("db2", db[2].pay, 1);
    struct tagged t[3] = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}}, dt[3] = {{0, 1, 0}, {0, 2, 0}, {0, 3, 0}};
    __enzyme_autodiff((void *)rotate, enzyme_dup, t, dt, 3); check("dt0", dt[0].w, 3); check("dt1", dt[1].w, 1); check("dt2", dt[2].w, 2); check("t", t[2].rank, 3);
    double x[2] = {1, 2}, dx[2] = {5, 7}; __enzyme_autodiff((void *)swapped, enzyme_dup, x, dx); check("dx0", dx[0], 7); check("dx1", dx[1], 5);
  }
  return bad;
}
