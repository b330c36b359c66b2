//! What the processor gives at best, as the compiler uses it: multiplications and additions in registers, and bytes of
//! memory that is in no cache.

#include "bench.h"
#include <algorithm>

/// Multiplies and adds, in as many chains as hide how long one operation takes.
KERNEL static double chains(size_t rounds) {
  constexpr size_t COUNT = 16;
  double sums[COUNT];
  for (size_t i = 0; i < COUNT; i++) sums[i] = double(i);
  for (size_t r = 0; r < rounds; r++)
    for (double &sum : sums) sum = sum * 0.999 + 0.5;
  // What nobody reads would not be computed.
  static volatile double read;
  for (double sum : sums) read = sum;
  return 2.0 * COUNT * double(rounds);
}

/// Reads two arrays and writes a third.
KERNEL static double moves(Vec &to, const Vec &a, const Vec &b) {
  double *__restrict out = to.data();
  for (size_t i = 0; i < to.size(); i++) out[i] = a[i] + 0.5 * b[i];
  // Before a line of memory is written it is read.
  return 4.0 * sizeof(double) * double(to.size());
}

/// The best of some tries.
template <typename Run> static double best(const Run &run) {
  double most = 0;
  for (int k = 0; k < 5; k++) {
    double amount = 0;
    const double time = seconds([&] { amount = run(); });
    most = std::max(most, amount / time);
  }
  return most;
}

Roof roof(bool small) {
  const size_t rounds = small ? 1000 : 1000000, size = small ? 1000 : 8000000;
  Vec to(size), a(size, 1.0), b(size, 2.0);
  return {best([&] { return chains(rounds); }), best([&] { return moves(to, a, b); })};
}
