/* Shape: a value moved in pieces: byte by byte, two bytes at a time, and in words of four bytes that were put together of
   pieces and that nobody uses as numbers.
   Hard: no instruction touches the value as a double on its way, and of the words nothing tells but their pieces. */
#include "check.h"
#include <stdint.h>

typedef uint8_t __attribute__((may_alias)) byte;
typedef uint16_t __attribute__((may_alias)) half;
typedef uint32_t __attribute__((may_alias)) word;

#define MOVES(name, piece)                                                            \
  __attribute__((noinline)) static void name(const void *from, void *to, int n) {    \
    for (int i = 0; i < n; i++) ((piece *)to)[i] = ((const piece *)from)[i];          \
  }
MOVES(bytes, byte)
MOVES(halves, half)
MOVES(words, word)

static double by_bytes(double x) {
  double a = x * x, b;
  bytes(&a, &b, 8);
  return b * x;
}

static double by_halves(double x) {
  double a = x * x, b;
  word m[2];
  halves(&a, m, 4);
  halves(m, &b, 4);
  return b * x;
}

static double by_words_of_halves(double x) {
  double a = x * x, b;
  word m[2], k[2];
  halves(&a, m, 4);
  words(m, k, 2);
  halves(k, &b, 4);
  return b * x;
}

int main(void) {
  SCALAR(by_bytes, 1.3);
  SCALAR(by_halves, 1.3);
  SCALAR(by_words_of_halves, 1.3);
  return bad;
}
