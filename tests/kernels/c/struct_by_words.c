/* Shape: structs of floats and doubles behind an int, sorted by it, and copied as words of eight bytes elsewhere.
   Hard: every word of the struct can be a double or two floats, and the compiler copies what is behind the int as a block,
   which begins in the middle of such a word. */
#include "check.h"
#include <stdint.h>

typedef uint64_t __attribute__((may_alias)) word;
typedef struct { int key; double place[2]; struct { float weight; int count; } use; double value; } record;

__attribute__((noinline)) static void words(void *to, const void *from, long n) {
  const word *p = from;
  word *q = to;
  while (n-- > 0) *q++ = *p++;
}

static double sorted(double *x, int n) {
  record all[3], others[3];
  memset(all, 0, sizeof all);
  memset(others, 0, sizeof others);
  for (int i = 0; i < 3; i++) {
    all[i].key = 2 - i, all[i].value = x[i], all[i].place[1] = x[i] * x[1];
    others[i].value = x[i] * x[0], others[i].place[1] = x[i];
  }
  for (int j = 1; j < 3; j++) {
    record t = all[j];
    int k = j;
    for (; k > 0 && all[k - 1].key > t.key; k--) all[k] = all[k - 1];
    all[k] = t;
  }
  if (n > 5) words(&all[n % 3], &others[(n + 1) % 3], sizeof(record) / 8);
  return all[0].value + 2 * all[1].value + 3 * all[2].value * all[1].value + others[0].value +
         all[1].place[1] * all[2].place[1];
}

int main(void) {
  VECTOR(sorted, 3, 1.3, 0.7, -0.4);
  return bad;
}
