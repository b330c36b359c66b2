/* Shape: globals that point to globals, constant and changing, and a list in a global pool.
   Hard: the shadow of a pointer must be found whoever stored the pointer. */
#include "check.h"
static double a[4], b[4];
static double *const fixed[2] = {a, b};
static double *moving[2] = {a, b};
struct node { double v; struct node *next; };
static struct node pool[8];
static double by_table(double *x, int n) {
  for (int i = 0; i < n; i++) fixed[i & 1][i >> 1] = exp(x[i]);
  return a[0] * b[0] + a[1] * b[1];
}
static double by_swapped(double *x, int n) {
  for (int i = 0; i < n; i++) moving[i & 1][i >> 1] = x[i] * x[i];
  double *t = moving[0]; moving[0] = moving[1]; moving[1] = t;
  double s = 0;
  for (int i = 0; i < n; i++) s += moving[i & 1][i >> 1] * (i + 1);
  t = moving[0]; moving[0] = moving[1]; moving[1] = t;
  return s * s;
}
static double by_list(double *x, int n) {
  struct node *head = 0;
  for (int i = 0; i < n; i++) { pool[i].v = x[i]; pool[i].next = head; head = &pool[i]; }
  double s = 1;
  for (struct node *p = head; p; p = p->next) s = s * p->v + 1;
  return s;
}
int main(void) {
  VECTOR(by_table, 4, 1.0, -0.5, 0.2, 0.25);
  VECTOR(by_swapped, 4, 1.0, -0.5, 2.0, 0.25);
  VECTOR(by_list, 4, 1.0, -0.5, 2.0, 0.25);
  moving[0] = b; moving[1] = a;
  VECTOR(by_swapped, 4, 1.0, -0.5, 2.0, 0.25);
  return bad;
}
