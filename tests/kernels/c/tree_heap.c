/* Shape: a binary search tree on the heap, built and walked by recursion.
   Hard: the shape depends on data; nodes hold pointers and floats. */
#include "check.h"
struct tree { struct tree *l, *r; double key, w; };
static struct tree *put(struct tree *t, double key, double w) {
  if (!t) { t = malloc(sizeof *t); t->l = t->r = 0; t->key = key; t->w = w; return t; }
  if (key < t->key) t->l = put(t->l, key, w); else t->r = put(t->r, key, w);
  return t;
}
static double walk(struct tree *t, int d) { return t ? walk(t->l, d + 1) * 0.5 + t->w * t->key * (d + 1) + walk(t->r, d + 1) : 0.25; }
static void drop(struct tree *t) { if (t) { drop(t->l); drop(t->r); free(t); } }
static double f(double *x, int n) {
  struct tree *t = 0;
  for (int i = 0; i < n; i++) t = put(t, x[i], x[(i + 1) % n] * x[i]);
  double s = walk(t, 0);
  drop(t);
  return s;
}
int main(void) { VECTOR(f, 6, 0.3, 0.5, -0.7, 1.2, 0.8, -0.2); return bad; }
