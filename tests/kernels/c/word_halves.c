/* Shape: the two halves of a double, taken out of an integer and put together again, beside uses of the whole.
   Hard: the cotangent of the integer comes back in halves, which are no floats and must not be added as such. */
#include "check.h"
#include <stdint.h>

static uint64_t bits(double x) {
  uint64_t b;
  memcpy(&b, &x, 8);
  return b;
}

static double real(uint64_t b) {
  double x;
  memcpy(&x, &b, 8);
  return x;
}

static double apart(double x) {
  uint64_t b = bits(sin(x));
  volatile uint32_t low = b, high = b >> 32;
  return real((uint64_t)high << 32 | low) * x;
}

static double beside(double x) {
  uint64_t b = bits(sin(x));
  volatile uint32_t low = b, high = b >> 32;
  return real((uint64_t)high << 32 | low) * real(b);
}

int main(void) {
  SCALAR(apart, 1.3);
  SCALAR(beside, 1.3);
  return bad;
}
