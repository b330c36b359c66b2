//! Sum of squared distances to the nearest of some centroids.

#include "bench.h"
#include <algorithm>
#include <limits>

static double square(const double *__restrict a, const double *__restrict b, size_t d) {
  double sum = 0;
  for (size_t j = 0; j < d; j++) sum += (a[j] - b[j]) * (a[j] - b[j]);
  return sum;
}

KERNEL static double primal(const double *__restrict centroids, size_t k, const double *__restrict points, size_t n,
                            size_t d) {
  double total = 0;
  for (size_t p = 0; p < n; p++) {
    double least = std::numeric_limits<double>::infinity();
    for (size_t c = 0; c < k; c++) least = std::min(least, square(points + p * d, centroids + c * d, d));
    total += least;
  }
  return total;
}

static void by_hand(const double *__restrict centroids, double *__restrict bar, size_t k,
                    const double *__restrict points, size_t n, size_t d) {
  for (size_t p = 0; p < n; p++) {
    size_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (size_t c = 0; c < k; c++) {
      const double apart = square(points + p * d, centroids + c * d, d);
      if (apart < least) best = c, least = apart;
    }
    for (size_t j = 0; j < d; j++) bar[best * d + j] += 2 * (centroids[best * d + j] - points[p * d + j]);
  }
}

Workload kmeans(bool small) {
  const size_t n = small ? 30 : 10000, k = small ? 4 : 64, d = small ? 3 : 16;
  Random random{5};
  const Vec centroids = random.numbers(k * d), points = random.numbers(n * d);
  return {
      [=] { return primal(centroids.data(), k, points.data(), n, d); },
      [=] {
        Vec bar(k * d);
        __enzyme_autodiff(primal, enzyme_dup, centroids.data(), bar.data(), k, enzyme_const, points.data(), n, d);
        return bar;
      },
      [=] {
        Vec bar(k * d);
        by_hand(centroids.data(), bar.data(), k, points.data(), n, d);
        return bar;
      },
      3.0 * double(n * k * d),
      8.0 * double(n * d + 3 * k * d),
  };
}
