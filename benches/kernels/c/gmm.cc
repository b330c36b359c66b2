//! The likelihood of a mixture of Gaussians, with Wishart's prior. Inverse covariances are given by the logarithms of a
//! diagonal and a lower triangle.

#include "bench.h"
#include <algorithm>
#include <cmath>
#include <limits>

static double log_sum_exp(const double *x, size_t n) {
  double largest = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < n; i++) largest = std::max(largest, x[i]);
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += std::exp(x[i] - largest);
  return std::log(sum) + largest;
}

/// The triangular matrix times a vector.
static void times(const double *__restrict diagonal, const double *__restrict triangle, const double *__restrict x,
                  double *__restrict to, size_t d) {
  for (size_t i = 0; i < d; i++) to[i] = diagonal[i] * x[i];
  for (size_t i = 0; i < d; i++) {
    for (size_t j = i + 1; j < d; j++) to[j] += triangle[j - i - 1] * x[i];
    triangle += d - i - 1;
  }
}

KERNEL static double primal(const double *__restrict alphas, const double *__restrict means,
                            const double *__restrict icf, const double *__restrict x, size_t d, size_t k, size_t n) {
  const size_t per = d * (d + 1) / 2;
  Vec diagonals(k * d), sums(k), centred(d), product(d), terms(k);
  for (size_t i = 0; i < k; i++)
    for (size_t j = 0; j < d; j++) {
      diagonals[i * d + j] = std::exp(icf[i * per + j]);
      sums[i] += icf[i * per + j];
    }
  double total = 0;
  for (size_t p = 0; p < n; p++) {
    for (size_t i = 0; i < k; i++) {
      for (size_t j = 0; j < d; j++) centred[j] = x[p * d + j] - means[i * d + j];
      times(&diagonals[i * d], &icf[i * per + d], centred.data(), product.data(), d);
      double square = 0;
      for (size_t j = 0; j < d; j++) square += product[j] * product[j];
      terms[i] = alphas[i] + sums[i] - 0.5 * square;
    }
    total += log_sum_exp(terms.data(), k);
  }
  double prior = 0;
  for (size_t i = 0; i < k; i++) {
    double squares = 0;
    for (size_t j = 0; j < d; j++) squares += diagonals[i * d + j] * diagonals[i * d + j];
    for (size_t j = d; j < per; j++) squares += icf[i * per + j] * icf[i * per + j];
    prior += 0.5 * squares - sums[i];
  }
  return total - double(n) * log_sum_exp(alphas, k) + prior;
}

/// Weights whose sum is one.
static Vec softmax(const double *x, size_t n) {
  const double sum = log_sum_exp(x, n);
  Vec weights(n);
  for (size_t i = 0; i < n; i++) weights[i] = std::exp(x[i] - sum);
  return weights;
}

/// What the likelihood is differentiated at.
struct Mixture {
  size_t d, k, n, per;
  Vec alphas, means, icf, x;
};

/// The cotangents of one point and one Gaussian of that weight.
static void point_back(const Mixture &m, const double *__restrict diagonal, const double *__restrict triangle,
                       const double *__restrict centred, const double *__restrict product, double weight,
                       double *__restrict icf_bar, double *__restrict means_bar, double *__restrict back,
                       double *__restrict centred_bar) {
  for (size_t j = 0; j < m.d; j++) {
    back[j] = -weight * product[j];
    icf_bar[j] += weight + back[j] * centred[j] * diagonal[j];
    centred_bar[j] = diagonal[j] * back[j];
  }
  size_t at = 0;
  for (size_t a = 0; a < m.d; a++) {
    double sum = 0;
    for (size_t b = a + 1; b < m.d; b++, at++) {
      sum += triangle[at] * back[b];
      icf_bar[m.d + at] += back[b] * centred[a];
    }
    centred_bar[a] += sum;
  }
  for (size_t j = 0; j < m.d; j++) means_bar[j] -= centred_bar[j];
}

static Vec by_hand(const Mixture &m) {
  const size_t d = m.d, k = m.k, n = m.n, per = m.per;
  Vec bars(k * (1 + d + per)), diagonals(k * d), sums(k), centred(k * d), products(k * d), terms(k), back(d), rest(d);
  double *alphas_bar = bars.data(), *means_bar = alphas_bar + k, *icf_bar = means_bar + k * d;
  for (size_t i = 0; i < k; i++)
    for (size_t j = 0; j < d; j++) {
      diagonals[i * d + j] = std::exp(m.icf[i * per + j]);
      sums[i] += m.icf[i * per + j];
    }
  for (size_t p = 0; p < n; p++) {
    for (size_t i = 0; i < k; i++) {
      double *c = &centred[i * d], *product = &products[i * d], square = 0;
      for (size_t j = 0; j < d; j++) c[j] = m.x[p * d + j] - m.means[i * d + j];
      times(&diagonals[i * d], &m.icf[i * per + d], c, product, d);
      for (size_t j = 0; j < d; j++) square += product[j] * product[j];
      terms[i] = m.alphas[i] + sums[i] - 0.5 * square;
    }
    const Vec weights = softmax(terms.data(), k);
    for (size_t i = 0; i < k; i++) {
      alphas_bar[i] += weights[i];
      point_back(m, &diagonals[i * d], &m.icf[i * per + d], &centred[i * d], &products[i * d], weights[i],
                 icf_bar + i * per, means_bar + i * d, back.data(), rest.data());
    }
  }
  const Vec weights = softmax(m.alphas.data(), k);
  for (size_t i = 0; i < k; i++) {
    alphas_bar[i] -= double(n) * weights[i];
    for (size_t j = 0; j < d; j++) icf_bar[i * per + j] += diagonals[i * d + j] * diagonals[i * d + j] - 1;
    for (size_t j = i * per + d; j < (i + 1) * per; j++) icf_bar[j] += m.icf[j];
  }
  return bars;
}

Workload gmm(bool small) {
  const size_t n = small ? 5 : 1000, k = small ? 3 : 100, d = small ? 4 : 64, per = d * (d + 1) / 2;
  Random random{6};
  Mixture m{d, k, n, per, random.numbers(k), random.numbers(k * d), {}, random.numbers(n * d)};
  m.icf = random.numbers(k * per);
  for (auto &v : m.icf) v *= 0.2;
  return {
      [=] { return primal(m.alphas.data(), m.means.data(), m.icf.data(), m.x.data(), d, k, n); },
      [=] {
        Vec bars(k * (1 + d + per));
        __enzyme_autodiff(primal, enzyme_dup, m.alphas.data(), bars.data(), enzyme_dup, m.means.data(), &bars[k],
                          enzyme_dup, m.icf.data(), &bars[k * (1 + d)], enzyme_const, m.x.data(), d, k, n);
        return bars;
      },
      [=] { return by_hand(m); },
      double(n * k) * double(d * d + 5 * d + 20),
      16.0 * double(k * (1 + d + per)),
  };
}
