/* Shape: links within items (offsetof), a sentinel on the stack, a search tree with parents.
   Hard: the address of an item is computed back from that of a member. */
#include "check.h"
#include <stddef.h>
struct link { struct link *p, *n; }; struct item { double v; struct link l; int id; };
#define ITEM(x) ((struct item *)((char *)(x) - offsetof(struct item, l)))
static void ins(struct link *at, struct link *l) { l->n = at->n; l->p = at; at->n->p = l; at->n = l; }
static void del(struct link *l) { l->p->n = l->n; l->n->p = l->p; }
struct bst { double k; struct bst *kid[2], *up; };
static void put(struct bst **r, struct bst *e) { struct bst *up = NULL; while (*r) { up = *r; r = &up->kid[e->k > up->k]; } *r = e; e->up = up; }
static struct bst *next(struct bst *e) { if (e->kid[1]) { e = e->kid[1]; while (e->kid[0]) e = e->kid[0]; return e; } while (e->up && e->up->kid[1] == e) e = e->up; return e->up; }
static double f(double *x, int n) {
  struct link h = {&h, &h}; double s = 0;
  for (int i = 0; i < n; i++) { struct item *t = malloc(sizeof *t); t->v = x[i] * (i + 1); t->id = i; ins(i & 1 ? &h : h.p, &t->l); }
  for (struct link *l = h.n; l != &h;) { struct link *nx = l->n; if (ITEM(l)->id % 3 == 2) { del(l); s += ITEM(l)->v; free(ITEM(l)); } else if (nx != &h) ITEM(nx)->v += .5 * ITEM(l)->v * x[0]; l = nx; }
  for (struct link *l = h.p; l != &h; l = l->p) s = s * .7 + ITEM(l)->v * ITEM(l)->v;
  while (h.n != &h) { struct link *l = h.n; del(l); free(ITEM(l)); }
  struct bst nd[8], *root = NULL; memset(nd, 0, sizeof nd); for (int i = 0; i < n; i++) { nd[i].k = x[i] * x[(i + 1) % n]; put(&root, nd + i); }
  struct bst *e = root; while (e->kid[0]) e = e->kid[0]; for (int i = 1; e; e = next(e), i++) s += i * e->k; return s;
}
int main(void) { VECTOR(f, 7, 0.53, 2.27, 0.76, -.3, 1.1, .4, -.9); return bad; }
