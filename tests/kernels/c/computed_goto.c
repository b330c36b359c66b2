/* Shape: labels as values: an interpreter that jumps through a table.
   Hard: the labels in the table are those of the primal; its sweeps have blocks of their own. */
#include "check.h"
/* A byte-code interpreter with labels as values. */
static double run(const unsigned char *code, const double *x) {
  static const void *const table[] = {&&push, &&add, &&mul, &&sine, &&swap, &&end};
  double st[16]; int sp = 0, pc = 0;
#define NEXT goto *table[code[pc++]]
  NEXT;
push: st[sp++] = x[code[pc++]]; NEXT;
add: sp--; st[sp - 1] += st[sp]; NEXT;
mul: sp--; st[sp - 1] *= st[sp]; NEXT;
sine: st[sp - 1] = sin(st[sp - 1]); NEXT;
swap: { double t = st[sp - 1]; st[sp - 1] = st[sp - 2]; st[sp - 2] = t; } NEXT;
end: return st[0] - 2 * st[sp - 1] * st[sp - 1];
}
static const unsigned char prog[] = {0, 0, 0, 1, 2, 3, 0, 2, 4, 1, 0, 3, 2, 0, 0, 4, 5};
static double f(double *x, int n) { (void)n; return run(prog, x); }
int main(void) { VECTOR(f, 4, 0.5, 1.2, -0.7, 0.9); return bad; }
