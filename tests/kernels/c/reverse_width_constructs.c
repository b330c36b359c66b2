/* Shape: gradients in two to four directions at once of functions of all sorts: memory that is overwritten, loops of unknown
   length, allocations that grow, copies of structures with pointers, unions, global variables, tables of functions,
   recursion, floats beside doubles.
   Hard: each direction is what a call for it alone gives, seeds in its shadows included. */
#include "check.h"
#include <stdint.h>

extern int enzyme_width;
void __enzyme_autodiff_none(void *, ...);

static double overwritten(double *x, int n) {
  for (int k = 0; k < 3; k++)
    for (int i = 1; i < n; i++) x[i] = sin(x[i] * x[i - 1]);
  return x[n - 1] * x[0];
}

static double until(double *x, int n) {
  double s = x[0];
  int i = 0;
  while (s * s > 0.05 && i < 50) {
    double t = x[i++ % n];
    if (t > 0.4) {
      if (i % 3 == 0) continue;
      s *= t;
    } else {
      s = cos(s) * t;
    }
  }
  return s;
}

static double grown(double *x, int n) {
  double *list = 0, s = 0;
  int size = 0;
  for (int i = 0; i < 4 * n; i++) {
    if (i == size) list = realloc(list, (size = 2 * size + 1) * sizeof *list);
    list[i] = x[i % n] * (i > 0 ? list[i - 1] : 1.0);
  }
  for (int i = 0; i < 4 * n; i++) s += list[i] * list[(3 * i) % (4 * n)];
  free(list);
  return s;
}

typedef struct Node { double value; struct Node *next; double (*apply)(double, double); } Node;
static double plus(double a, double b) { return a * a + b; }
static double times(double a, double b) { return a * sin(b); }
static double chained(double *x, int n) {
  Node *first = 0, copy;
  for (int i = 0; i < n; i++) {
    Node *node = malloc(sizeof *node);
    *node = (Node){x[i] * x[i], first, i % 2 ? plus : times};
    first = node;
  }
  double s = 1;
  for (Node *p = first; p; p = copy.next) copy = *p, s = copy.apply(copy.value, s);
  while (first) {
    Node *next = first->next;
    first->value = 0;
    free(first);
    first = next;
  }
  return s;
}

typedef struct { double d[3]; float f[2]; } Mixed;
static double by_value(Mixed m, double *x) {
  m.d[1] *= x[0];
  return m.d[0] * m.d[1] + m.f[0] * m.f[1] + m.d[2];
}
static double mixed(double *x, int n) {
  Mixed m[2] = {{{x[0], x[1], x[2]}, {(float)x[0], (float)x[1]}}, {{0}}};
  memcpy(&m[1], &m[0], sizeof m[0]);
  m[0].d[2] *= x[n - 1];
  memmove(&m[0].d[0], &m[0].d[1], 2 * sizeof(double));
  return by_value(m[0], x) * by_value(m[1], x + 1);
}

typedef union { double d; double *p; uint64_t bits; } Any;
static double either(double *x, int n) {
  Any a[4], b[4];
  for (int i = 0; i < 4; i++)
    if (i % 2) a[i].p = x + i % n;
    else a[i].d = x[i % n] * x[0];
  memcpy(b, a, (n > 2 ? 4 : 2) * sizeof *a);
  double s = 0;
  for (int i = 0; i < 4; i++) s += i % 2 ? *b[i].p * x[1] : b[i].d * b[i].d;
  return s;
}

static double scratch[8], *current = scratch;
static double global(double *x, int n) {
  for (int i = 0; i < n; i++) scratch[i] = x[i] * x[(i + 1) % n];
  current = scratch + 1;
  double s = 0;
  for (int i = 0; i + 1 < n; i++) s += current[i] * scratch[i];
  current = scratch;
  return s * *current;
}

static double even(double *x, int n, double s);
static double odd(double *x, int n, double s) { return n <= 0 ? s : even(x, n - 1, s * x[n - 1]); }
static double even(double *x, int n, double s) {
  double t[2] = {s, x[0]};
  x[0] = t[0] * 0.5 + t[1];
  return n <= 0 ? t[0] : odd(x, n - 1, sin(t[n % 2]) + x[n - 1]);
}
static double turns(double *x, int n) { return even(x, 2 * n > 5 ? 5 : n, 1.0) * x[0]; }

static double negated(double *x, int n) {
  double s = 0;
  for (int i = 0; i < n; i++) {
    uint64_t bits;
    memcpy(&bits, &x[i], sizeof bits);
    bits ^= UINT64_C(1) << 63;
    memcpy(&x[i], &bits, sizeof bits);
    s += x[i] * fabs(x[i]);
  }
  return s;
}

static double floats(double *x, int n) {
  float s = 1.0f;
  for (int i = 0; i < n; i++) {
    switch (i % 3) {
    case 0: s *= (float)x[i]; break;
    case 1: s += sinf(s) * (float)x[i]; break;
    default: s = s * s - (float)x[i];
    }
  }
  return s * x[0];
}

#define WIDE(f, ...)                                                                          \
  do {                                                                                        \
    const double x_[] = {__VA_ARGS__};                                                        \
    enum { n = sizeof x_ / sizeof *x_ };                                                      \
    double one_[4][n], all_[4][n], p_[n], q_[n];                                              \
    for (int w_ = 2; w_ <= 4; w_++) {                                                         \
      for (int d_ = 0; d_ < 4; d_++)                                                          \
        for (int i_ = 0; i_ < n; i_++) one_[d_][i_] = all_[d_][i_] = d_ ? (i_ + 1.0) / d_ - 1.5 : 0; \
      for (int d_ = 0; d_ < w_; d_++) {                                                       \
        memcpy(p_, x_, sizeof p_);                                                            \
        __enzyme_autodiff((void *)f, enzyme_dup, p_, one_[d_], n);                            \
      }                                                                                       \
      memcpy(q_, x_, sizeof q_);                                                              \
      if (w_ == 2) __enzyme_autodiff_none((void *)f, enzyme_width, 2, enzyme_dup, q_, all_[0], all_[1], n); \
      if (w_ == 3) __enzyme_autodiff_none((void *)f, enzyme_width, 3, enzyme_dup, q_, all_[0], all_[1], all_[2], n); \
      if (w_ == 4)                                                                            \
        __enzyme_autodiff_none((void *)f, enzyme_width, 4, enzyme_dup, q_, all_[0], all_[1], all_[2], all_[3], n); \
      for (int i_ = 0; i_ < n; i_++) {                                                        \
        agree("primal of " #f, q_[i_], p_[i_], 0);                                            \
        for (int d_ = 0; d_ < 4; d_++) agree(#f, all_[d_][i_], one_[d_][i_], 1e-13);          \
      }                                                                                       \
    }                                                                                         \
  } while (0)

int main(void) {
  WIDE(overwritten, 0.7, 0.3, -0.8, 1.1);
  WIDE(until, 0.7, 0.3, 0.9);
  WIDE(grown, 0.7, -0.9, 1.1);
  WIDE(chained, 0.7, 0.3, -0.8, 1.1);
  WIDE(mixed, 0.7, 0.3, -0.8, 1.1);
  WIDE(either, 0.7, 0.3, -0.8);
  WIDE(global, 0.7, 0.3, -0.8, 1.1, 0.4);
  WIDE(turns, 0.7, 0.3, -0.8, 1.1, 0.9);
  WIDE(negated, 0.7, 0.3, -0.8, 1.1);
  WIDE(floats, 0.7, 0.3, -0.8, 1.1, 0.5);
  return bad;
}
