/* Shape: a hash table with chains.
   Hard: a pointer to a pointer walks the chain, buckets begin as null. */
#include "check.h"
struct entry { int key; double sum; struct entry *next; };
static double f(double *x, int n) {
  struct entry *table[4] = {0};
  for (int i = 0; i < n; i++) {
    int key = (i * 2654435761u) >> 29;
    struct entry **at = &table[key & 3];
    while (*at && (*at)->key != key) at = &(*at)->next;
    if (!*at) { *at = calloc(1, sizeof **at); (*at)->key = key; }
    (*at)->sum += x[i] * (key + 1);
  }
  double s = 0;
  for (int i = 0; i < 4; i++)
    for (struct entry *e = table[i]; e;) { s += e->sum * e->sum; struct entry *d = e; e = e->next; free(d); }
  return s;
}
int main(void) { VECTOR(f, 9, 0.3, 0.5, -0.7, 1.2, 0.8, -0.2, 1, 2, 3); return bad; }
