/* Shape: records of a key, a pointer and doubles that move up and down in their array, beside pointers that move in halves.
   Hard: ranges overlap, begin behind a key, and nothing says where in them the pointers are. */
#include "check.h"
#include <stdint.h>
typedef uint32_t __attribute__((may_alias)) word;
typedef struct { int key; struct { float f; int i; } m; float n[2]; double *at; double last; } wide;
typedef struct { int key; double *at; double last[2]; } tall;
static __attribute__((noinline)) void words(void *to, const void *from, long n) {
  const word *p = from;
  for (word *q = to; n-- > 0;) *q++ = *p++;
}
/* Behind a key. */
static __attribute__((noinline)) long skip(double x, int j) { return x > 0 ? 4 * (j % 3 != 1) + 4 * (j == 3) : 0; }
static uint64_t bits(double d) { uint64_t b; memcpy(&b, &d, 8); return b; }
static __attribute__((noinline)) double real(uint64_t b) { double d; memcpy(&d, &b, 8); return d; }

#define MOVED(record, member)                                                                  \
  static double record##s_moved(double *x, int n) {                                                   \
    double here[4], there = 0.5 * x[0];                                                         \
    record s[4], z[4];                                                                          \
    uint64_t saved[4];                                                                          \
    memset(s, 0, sizeof s);                                                                     \
    memset(z, 0, sizeof z);                                                                     \
    for (int i = 0; i < n; i++) here[i] = x[i], saved[i] = bits(x[i] * x[n - 1 - i]);           \
    for (int i = 0; i < n; i++) s[i].at = &here[i], z[i].at = &there;                           \
    for (int i = 0; i < n; i++) z[i].key = 7 * i % 3, z[i].member = x[i] * x[(i + 1) % n];      \
    words(&z[0].at, &s[1].at, 2);                                                               \
    for (int j = 1; j < n; j++) {                                                               \
      const long rest = (n - 1) * (long)sizeof(record) - skip(x[0], j);                         \
      char *const from = (char *)&z[0] + skip(x[0], j), *const to = (char *)&z[1] + skip(x[0], j); \
      if (j % 2) memmove(to, from, rest);                                                       \
      else memmove(from, to, rest);                                                             \
    }                                                                                           \
    saved[0] = bits(*z[1].at * 0.7);                                                            \
    double sum = 0;                                                                             \
    for (int i = 0; i < n; i++) sum += z[i].member * (0.7 + i / 3.0) + real(saved[i]) + *z[i].at; \
    return sum;                                                                                 \
  }
MOVED(wide, last)
MOVED(tall, last[1])

/* Differences do not see the low bits. */
#define BITS(f, ...)                                                                            \
  do {                                                                                          \
    double x[] = {__VA_ARGS__}, g[4] = {0}, t[4] = {0};                                         \
    __enzyme_autodiff((void *)f, enzyme_dup, x, g, 4);                                          \
    for (int i = 0; i < 4; i++) {                                                               \
      t[i] = 1;                                                                                 \
      agree("bits of " #f, g[i], __enzyme_fwddiff((void *)f, enzyme_dup, x, t, 4), 1e-15);      \
      t[i] = 0;                                                                                 \
    }                                                                                           \
  } while (0)

int main(void) {
  VECTOR(wides_moved, 4, 0.71, -0.43, 1.27, 0.16);
  VECTOR(talls_moved, 4, 0.71, -0.43, 1.27, 0.16);
  BITS(wides_moved, 0.71, -0.43, 1.27, 0.16);
  BITS(talls_moved, 0.71, -0.43, 1.27, 0.16);
  return bad;
}
