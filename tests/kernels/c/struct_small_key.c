/* Shape: structs with a small field before their floats, sorted by it, swapped and copied through a value.
   Hard: the compiler keeps the small field in a register and copies what is behind it as a block, which begins where no
   float does. */
#include "check.h"

typedef struct { char key; double value; } tagged;
typedef struct { short key; float weight; double values[2]; char last; } record;

static double sorted(double *x, int n) {
  tagged all[4];
  for (int i = 0; i < n; i++) all[i].key = (char)(n - i), all[i].value = x[i] * x[i];
  for (int i = 1; i < n; i++) {
    tagged t = all[i];
    int k = i;
    for (; k > 0 && all[k - 1].key > t.key; k--) all[k] = all[k - 1];
    all[k] = t;
  }
  double sum = 0;
  for (int i = 0; i < n; i++) sum += (i + 1) * all[i].value;
  return sum;
}

static double swapped(double *x, int n) {
  record all[4];
  for (int i = 0; i < n; i++)
    all[i] = (record){(short)i, (float)i, {x[i], sin(x[i])}, (char)(i % 2)};
  for (int i = 0; i + 1 < n; i++)
    if (all[i].key < all[i + 1].key && all[i].last != 2) {
      record t = all[i];
      all[i] = all[i + 1];
      all[i + 1] = t;
    }
  double sum = 0;
  for (int i = 0; i < n; i++) sum += all[i].values[0] * all[i].values[1] * (all[i].key + 2 * i + all[i].last);
  return sum;
}

static double copied(double *x, int n) {
  tagged a = {1, x[0] * x[1]}, b = a;
  b.key = 2;
  return a.value * b.value * (b.key + a.key) + x[n - 1];
}

int main(void) {
  VECTOR(sorted, 4, 1.3, 0.7, -0.4, 0.2);
  VECTOR(swapped, 4, 1.3, 0.7, -0.4, 0.2);
  VECTOR(copied, 3, 1.3, 0.7, -0.4);
  return bad;
}
