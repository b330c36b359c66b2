/* Shape: a queue of events, each a function and what it knows, ordered by active times.
   Hard: the environments differ in size and type, and their functions push others. */
#include "check.h"
struct sim; struct ev { double t; void (*fn)(void *env, double t, struct sim *s); void *env; };
struct sim { struct ev q[32]; int n; double sum, now; };
#define S struct sim
static void push(S *s, double t, void (*fn)(void *, double, S *), void *env) { int i = s->n++; s->q[i] = (struct ev){t, (void *)fn, env}; while (i && s->q[(i - 1) / 2].t > s->q[i].t) { struct ev e = s->q[i]; s->q[i] = s->q[(i - 1) / 2]; s->q[(i - 1) / 2] = e; i = (i - 1) / 2; } }
static struct ev pop(S *s) { struct ev r = s->q[0]; s->q[0] = s->q[--s->n]; int i = 0; for (;;) { int c = 2 * i + 1; if (c >= s->n) break; if (c + 1 < s->n && s->q[c + 1].t < s->q[c].t) c++; if (s->q[i].t <= s->q[c].t) break; struct ev e = s->q[i]; s->q[i] = s->q[c]; s->q[c] = e; i = c; } return r; }
struct decay { double rate; int left; }; struct kick { double amp; };
static void decay(void *e, double t, S *s) { struct decay *d = e; s->sum += exp(-d->rate * t); if (--d->left > 0) push(s, t + .3 * d->rate, decay, d); else free(d); }
static void kick(void *e, double t, S *s) { struct kick *k = e; s->sum *= 1 + k->amp * t * .1; free(k); }
static double f(double *x, int n) {
  S s = {.n = 0}; 
  for (int i = 0; i < n; i++) if (i & 1) { struct kick *k = malloc(sizeof *k); k->amp = x[i]; push(&s, x[i] + .1 * i, kick, k); } else { struct decay *d = malloc(sizeof *d); d->rate = x[i] + .5; d->left = 3; push(&s, .2 * i + x[i], decay, d); }
  while (s.n) { struct ev e = pop(&s); ((void (*)(void *, double, S *))e.fn)(e.env, e.t, &s); s.now = e.t; } return s.sum + s.now;
}
int main(void) { VECTOR(f, 4, 0.53, .27, 0.76, .4); return bad; }
