/* Shape: jumps into a loop at three places, of which one leads to either of the others.
   Hard: the loop has no header, and what makes one of it must keep the values of all ways apart. */
#include "check.h"

/* Which of the places becomes the header depends on the order in which they are first seen. */
#define ENTERED(name, a, to_a, b, to_b, to_c)                                                   \
  static double name(double *x, int n) {                                                        \
    double v = x[0];                                                                            \
    int i = 0, where = x[0] > 1 ? 0 : x[1] > 0 ? 1 : 2;                                         \
    if (where == a) {                                                                           \
      v *= x[1 + a % 2];                                                                        \
      goto to_a;                                                                                \
    }                                                                                           \
    if (where == b) {                                                                           \
      v += x[2];                                                                                \
      goto to_b;                                                                                \
    }                                                                                           \
    v = exp(-v);                                                                                \
    goto to_c;                                                                                  \
  first:                                                                                        \
    v = sin(v) + x[i % n];                                                                      \
    if (i & 1) goto second;                                                                     \
    goto third;                                                                                 \
  second:                                                                                       \
    v += v * x[1];                                                                              \
    goto last;                                                                                  \
  third:                                                                                        \
    v = 0.5 * v * v - x[2];                                                                     \
  last:                                                                                         \
    if (i++ < 5) goto first;                                                                    \
    return v;                                                                                   \
  }
ENTERED(abc, 0, first, 1, second, third)
ENTERED(acb, 0, first, 2, third, second)
ENTERED(bac, 1, second, 0, first, third)
ENTERED(bca, 1, second, 2, third, first)
ENTERED(cab, 2, third, 0, first, second)
ENTERED(cba, 2, third, 1, second, first)

#define EVERYWHERE(name)                                                                        \
  VECTOR(name, 3, 1.53, -0.27, 1.1);                                                            \
  VECTOR(name, 3, 0.53, 0.27, 1.1);                                                             \
  VECTOR(name, 3, 0.53, -0.27, 1.1);

int main(void) {
  EVERYWHERE(abc)
  EVERYWHERE(acb)
  EVERYWHERE(bac)
  EVERYWHERE(bca)
  EVERYWHERE(cab)
  EVERYWHERE(cba)
  return bad;
}
