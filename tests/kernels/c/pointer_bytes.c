/* Shape: a pointer to a local value moved byte by byte, in a struct or alone, and followed at its new place.
   Hard: no instruction moves the pointer as one; what it leads to is known at run time only, and must count beforehand. */
#include "check.h"
#include <stdint.h>

typedef struct { char tag; double *at; } handle;

__attribute__((noinline)) static void bytes(void *to, const void *from, int n) {
  for (int i = 0; i < n; i++) ((unsigned char *)to)[i] = ((const unsigned char *)from)[i];
}

static double alone(double x) {
  double value = x * x, *from = &value, *to;
  bytes(&to, &from, sizeof to);
  return *to * x;
}

static double written(double x) {
  double value = x, *from = &value, *to;
  bytes(&to, &from, sizeof to);
  *to = x * x * x;
  return value;
}

static double ended(double x) {
  double value = x * x, *from = &value, *to;
  bytes(&to, &from, sizeof to);
  *to = 2;
  return value * x;
}

static double in_structs(double x) {
  double values[2] = {x * x, sin(x)};
  handle a[2] = {{0, &values[1]}, {1, &values[0]}}, b[2];
  bytes(b, a, sizeof a);
  return *b[0].at + 2 * *b[1].at;
}

int main(void) {
  SCALAR(alone, 1.3);
  SCALAR(written, 1.3);
  SCALAR(ended, 1.3);
  SCALAR(in_structs, 1.3);
  return bad;
}
