/* Shape: an array and its length in one structure, as a stack and as a ring.
   Hard: an index that is not known must not make the length part of the array. */
#include "check.h"
struct stack { double data[16]; int top; float scale; };
static void push(struct stack *s, double v) { s->data[s->top++] = v; }
static double pop(struct stack *s) { return s->data[--s->top]; }
static double f(double *x, int n) {
  struct stack s; s.top = 0; s.scale = 2;
  for (int i = 0; i < n; i++) { push(&s, x[i]); if (i & 1) push(&s, pop(&s) * pop(&s) + x[0]); }
  double r = 0; while (s.top > 0) r = r * 0.5 + pop(&s);
  return r * s.scale;
}
struct ring { int head, count; double buf[8]; long total; };
static void put(struct ring *r, double v) { r->buf[(r->head + r->count) & 7] = v; if (r->count < 8) r->count++; else r->head = (r->head + 1) % 8; r->total++; }
static double g(double *x, int n) { struct ring r = {0}; for (int i = 0; i < 3 * n; i++) put(&r, x[i % n] * i); double s = r.total; for (int i = 0; i < r.count; i++) s += r.buf[(r.head + i) % 8] * (i + 1); return s; }
int main(void) { VECTOR(f, 5, 0.5, 1.5, -0.7, 0.3, 2); VECTOR(g, 5, 0.5, 1.5, -0.7, 0.3, 2); return bad; }
