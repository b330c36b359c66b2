/* Shape: records of a key, a pointer and doubles, sorted and copied through a local one, beside pointers that move in halves.
   Hard: LLVM cuts the local record behind its key, so that its words begin where no pointer and no double does. */
#include "check.h"
#include <stdint.h>
typedef uint32_t __attribute__((may_alias)) word;
typedef struct { int key; struct { float f; int i; } m; float n[2]; double *at; double last; } wide;
typedef struct { int key; double *at; double last[2]; } tall;
static __attribute__((noinline)) void words(void *to, const void *from, long n) {
  const word *p = from;
  for (word *q = to; n-- > 0;) *q++ = *p++;
}
static uint64_t bits(double d) { uint64_t b; memcpy(&b, &d, 8); return b; }
static __attribute__((noinline)) double real(uint64_t b) { double d; memcpy(&d, &b, 8); return d; }

#define SORTED(record, member)                                                                  \
  static double record##s(double *x, int n) {                                                   \
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
      record t = z[j];                                                                          \
      int k = j;                                                                                \
      for (; k > 0 && z[k - 1].key > t.key; k--) z[k] = z[k - 1];                               \
      z[k] = t;                                                                                 \
    }                                                                                           \
    saved[0] = bits(*z[1].at * 0.7);                                                            \
    double sum = 0;                                                                             \
    for (int i = 0; i < n; i++) sum += z[i].member * (0.7 + i / 3.0) + real(saved[i]) + *z[i].at; \
    return sum;                                                                                 \
  }
SORTED(wide, last)
SORTED(tall, last[1])

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
  VECTOR(wides, 4, 0.71, -0.43, 1.27, 0.16);
  VECTOR(talls, 4, 0.71, -0.43, 1.27, 0.16);
  BITS(wides, 0.71, -0.43, 1.27, 0.16);
  BITS(talls, 0.71, -0.43, 1.27, 0.16);
  return bad;
}
