/* Shape: floats written to bytes and read back with shifts: big and little endian, in loops and written out; halves and
   words of a float in integers; the float is used beside them, too.
   Hard: where a byte goes is known at run time only; the cotangent of an integer comes back in pieces, which are no floats. */
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

__attribute__((noinline)) static void put(unsigned char *to, double x) {
  uint64_t b = bits(x);
  for (int i = 0; i < 8; i++) to[i] = b >> (56 - 8 * i);
}

__attribute__((noinline)) static double get(const unsigned char *from) {
  uint64_t b = 0;
  for (int i = 0; i < 8; i++) b = b << 8 | from[i];
  return real(b);
}

static double big_endian(double x) {
  unsigned char buffer[32];
  put(buffer + 3, x * x);
  put(buffer + 11, sin(x));
  return get(buffer + 3) * get(buffer + 11);
}

static double little_endian(double x) {
  unsigned char buffer[8];
  uint64_t b = bits(x * x), c = 0;
  for (int i = 0; i < 8; i++) buffer[i] = b >> 8 * i;
  for (int i = 7; i >= 0; i--) c |= (uint64_t)buffer[i] << 8 * i;
  return real(c) * x;
}

static double used_beside(double x) {
  uint64_t b = bits(x * x);
  volatile uint16_t parts[4] = {b, b >> 16, b >> 32, b >> 48};
  uint64_t c = (uint64_t)parts[3] << 48 | (uint64_t)parts[2] << 32 | (uint64_t)parts[1] << 16 | parts[0];
  return real(c) + real(b) * x;
}

static double in_words(double x) {
  uint64_t b = bits(sin(x));
  volatile uint32_t low = b, high = b >> 32;
  return real((uint64_t)high << 32 | low) * real(b);
}

int main(void) {
  SCALAR(big_endian, 1.3);
  SCALAR(little_endian, 1.3);
  SCALAR(used_beside, 1.3);
  SCALAR(in_words, 1.3);
  return bad;
}
