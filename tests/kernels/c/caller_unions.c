/* Shape: tagged values and nodes of the caller's: copied between arguments, swapped, relinked.
   Hard: the shadow holds pointers and seeds, and may be used again. */
#include "check.h"
struct val { int tag; union { double d; struct val *ref; long i; } u; };
static double sum(const struct val *v, int n) { double s = 0; for (int i = 0; i < n; i++) s += v[i].tag == 0 ? v[i].u.d * v[i].u.d : v[i].tag == 1 ? 3 * v[i].u.ref->u.d : v[i].u.i; return s; }
static void twist(struct val *v, struct val *o, int n) { for (int i = 0; i < n; i++) o[n - 1 - i] = v[i]; struct val t = o[0]; o[0] = o[1]; o[1] = t; if (o[2].tag == 0) o[2].u.d *= 2; }
struct node { double v; struct node *next; int n; };
static double relink(struct node *h) { struct node *r = NULL; while (h) { struct node *t = h->next; h->next = r; r = h; h = t; } double s = 1; for (; r; r = r->next) s = s * r->v + r->n; return s; }
int main(void) {
  for (int k = 0; k < 2; k++) {
    struct val v[4] = {{0, {.d = 2}}, {1, {.ref = &v[0]}}, {2, {.i = 7}}, {0, {.d = 5}}}, d[4] = {{0}}; d[1].u.ref = &d[0];
    __enzyme_autodiff((void *)sum, enzyme_dup, v, d, 4); check("d0", d[0].u.d, 4 + 3); check("d3", d[3].u.d, 10);
    struct val o[4], od[4] = {{0, {.d = 1}}, {0, {.d = 2}}, {0, {.d = 0}}, {0, {.d = 8}}}; memset(o, 0, sizeof o); memset(d, 0, sizeof d); d[1].u.ref = &d[0];
    struct val w[4] = {{0, {.d = 2}}, {0, {.d = 3}}, {2, {.i = 7}}, {0, {.d = 5}}}, wd[4] = {{0}};
    __enzyme_autodiff((void *)twist, enzyme_dup, w, wd, enzyme_dup, o, od, 4);
    /* o = w3,w2,w1,w0 -> swap 0,1: o0 = w2 (int), o1 = w3, o2 = 2 w1, o3 = w0 */
    check("wd0", wd[0].u.d, 8); check("wd3", wd[3].u.d, 2); check("wd1", wd[1].u.d, 0); check("o2", o[2].u.d, 6);
    struct node a[3] = {{2, &a[1], 1}, {3, &a[2], 1}, {5, NULL, 1}}, da[3] = {{0, &da[1], 0}, {0, &da[2], 0}, {0, NULL, 0}};
    __enzyme_autodiff((void *)relink, enzyme_dup, a, da);
    /* order 5,3,2: ((1*5+1)*3+1)*2+1 */ check("a2", da[2].v, 6); check("a1", da[1].v, 12); check("a0", da[0].v, 19);
  }
  return bad;
}
