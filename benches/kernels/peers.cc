// The kernels of this bench in straightforward C++: one line "name seconds" for each, the median of some runs.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

using Vec = std::vector<double>;

struct Random {
  uint64_t state;
  double number() {
    state += 0x9e3779b97f4a7c15u;
    uint64_t bits = state;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
    bits ^= bits >> 31;
    return double(bits >> 11) / double(uint64_t(1) << 52) - 1.0;
  }
  Vec numbers(size_t count) {
    Vec all(count);
    for (auto &x : all) x = number();
    return all;
  }
};

static double sink;

static void timed(const char *name, const std::function<double()> &run) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  const auto begin = Clock::now();
  while (times.size() < 5 || (Clock::now() - begin < std::chrono::seconds(1) && times.size() < 1000)) {
    const auto start = Clock::now();
    sink += run();
    times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  std::printf("%s %.9f\n", name, times[times.size() / 2]);
}

static double log_sum_exp(const double *x, size_t n) {
  double largest = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < n; i++) largest = std::fmax(largest, x[i]);
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += std::exp(x[i] - largest);
  return std::log(sum) + largest;
}

static double gmm(const Vec &alphas, const Vec &means, const Vec &icf, const Vec &x, size_t d) {
  const size_t k = alphas.size(), per = d * (d + 1) / 2, n = x.size() / d;
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
      for (size_t j = 0; j < d; j++) product[j] = diagonals[i * d + j] * centred[j];
      const double *l = &icf[i * per + d];
      for (size_t a = 0; a < d; a++)
        for (size_t b = a + 1; b < d; b++) product[b] += *l++ * centred[a];
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
  return total - double(n) * log_sum_exp(alphas.data(), k) + prior;
}

static void project(const double *in, const double *feature, double *error) {
  const double x[3] = {in[11] - in[3], in[12] - in[4], in[13] - in[5]};
  const double square = in[0] * in[0] + in[1] * in[1] + in[2] * in[2];
  double y[3];
  if (square == 0) {
    y[0] = x[0] + in[1] * x[2] - in[2] * x[1];
    y[1] = x[1] + in[2] * x[0] - in[0] * x[2];
    y[2] = x[2] + in[0] * x[1] - in[1] * x[0];
  } else {
    const double angle = std::sqrt(square), s = std::sin(angle), c = std::cos(angle);
    const double a[3] = {in[0] / angle, in[1] / angle, in[2] / angle};
    const double along = (a[0] * x[0] + a[1] * x[1] + a[2] * x[2]) * (1 - c);
    y[0] = x[0] * c + (a[1] * x[2] - a[2] * x[1]) * s + a[0] * along;
    y[1] = x[1] * c + (a[2] * x[0] - a[0] * x[2]) * s + a[1] * along;
    y[2] = x[2] * c + (a[0] * x[1] - a[1] * x[0]) * s + a[2] * along;
  }
  const double u = y[0] / y[2], v = y[1] / y[2], r = u * u + v * v;
  const double scale = in[6] * (1 + in[9] * r + in[10] * r * r);
  error[0] = in[14] * (u * scale + in[7] - feature[0]);
  error[1] = in[14] * (v * scale + in[8] - feature[1]);
}

static double llsq(const Vec &x, size_t n) {
  double total = 0;
  for (size_t i = 0; i < n; i++) {
    const double t = 2.0 * double(i) / double(n - 1) - 1.0, wanted = t > 0 ? 1 : t < 0 ? -1 : 0;
    double sum = 0, power = 1;
    for (double c : x) {
      sum += c * power;
      power *= t;
    }
    total += (wanted - sum) * (wanted - sum);
  }
  return 0.5 * total / double(n);
}

static void slope(const Vec &x, const Vec &y, Vec &dy) {
  dy[0] = x[0];
  for (size_t i = 1; i < x.size(); i++) dy[i] = x[i] * y[i - 1];
}

static void moved(const Vec &y, double step, const Vec &dy, Vec &to) {
  for (size_t i = 0; i < y.size(); i++) to[i] = y[i] + step * dy[i];
}

static double ode(const Vec &x, size_t steps) {
  const size_t n = x.size();
  const double h = 1.0 / double(steps);
  Vec y(n), at(n), k1(n), k2(n), k3(n), k4(n);
  for (size_t s = 0; s < steps; s++) {
    slope(x, y, k1);
    moved(y, h / 2, k1, at);
    slope(x, at, k2);
    moved(y, h / 2, k2, at);
    slope(x, at, k3);
    moved(y, h, k3, at);
    slope(x, at, k4);
    for (size_t i = 0; i < n; i++) y[i] += h / 6 * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i]);
  }
  double sum = 0;
  for (double v : y) sum += v;
  return sum;
}

static double minor_of(const double *a, size_t n, size_t row, uint32_t columns) {
  if (row == n) return 1;
  double sum = 0, sign = 1;
  for (size_t column = 0; column < n; column++)
    if (columns >> column & 1) {
      sum += sign * a[row * n + column] * minor_of(a, n, row + 1, columns & ~(1u << column));
      sign = -sign;
    }
  return sum;
}

static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

static double lstm(const Vec &main, const Vec &extra, Vec state, const Vec &sequence, size_t b) {
  const size_t layers = main.size() / (8 * b), times = sequence.size() / b - 1;
  Vec input(b), guess(b);
  double total = 0;
  for (size_t t = 0; t < times; t++) {
    for (size_t i = 0; i < b; i++) input[i] = sequence[t * b + i] * extra[i];
    for (size_t l = 0; l < layers; l++) {
      const double *w = &main[8 * l * b];
      double *hidden = &state[2 * l * b], *cell = hidden + b;
      for (size_t i = 0; i < b; i++) {
        const double forget = sigmoid(input[i] * w[i] + w[4 * b + i]);
        const double enter = sigmoid(hidden[i] * w[b + i] + w[5 * b + i]);
        const double leave = sigmoid(input[i] * w[2 * b + i] + w[6 * b + i]);
        const double change = std::tanh(hidden[i] * w[3 * b + i] + w[7 * b + i]);
        cell[i] = cell[i] * forget + enter * change;
        hidden[i] = leave * std::tanh(cell[i]);
      }
      std::memcpy(input.data(), hidden, b * sizeof(double));
    }
    double sum = 2;
    for (size_t i = 0; i < b; i++) {
      guess[i] = input[i] * extra[b + i] + extra[2 * b + i];
      sum += std::exp(guess[i]);
    }
    sum = std::log(sum);
    for (size_t i = 0; i < b; i++) total += sequence[(t + 1) * b + i] * (guess[i] - sum);
  }
  return -total / double(times * b);
}

static double kmeans(const Vec &centroids, const Vec &points, size_t d) {
  double total = 0;
  for (size_t p = 0; p < points.size(); p += d) {
    double least = std::numeric_limits<double>::infinity();
    for (size_t c = 0; c < centroids.size(); c += d) {
      double square = 0;
      for (size_t j = 0; j < d; j++) {
        const double apart = points[p + j] - centroids[c + j];
        square += apart * apart;
      }
      least = std::fmin(least, square);
    }
    total += least;
  }
  return total;
}

constexpr size_t BONES = 22;

static double ht(const Vec &angles, const Vec &offsets, const Vec &vertices, const Vec &weights, const Vec &points) {
  double poses[BONES][3][4];
  for (size_t bone = 0; bone < BONES; bone++) {
    double s[3], c[3];
    for (size_t k = 0; k < 3; k++) {
      s[k] = std::sin(angles[3 * bone + k]);
      c[k] = std::cos(angles[3 * bone + k]);
    }
    const double *o = &offsets[3 * bone];
    const double own[3][4] = {
        {c[2] * c[1], c[2] * s[1] * s[0] - s[2] * c[0], c[2] * s[1] * c[0] + s[2] * s[0], o[0]},
        {s[2] * c[1], s[2] * s[1] * s[0] + c[2] * c[0], s[2] * s[1] * c[0] - c[2] * s[0], o[1]},
        {-s[1], c[1] * s[0], c[1] * c[0], o[2]}};
    if (bone == 0) {
      std::memcpy(poses[0], own, sizeof own);
      continue;
    }
    const auto &above = poses[(bone - 1) % 4 == 0 ? 0 : bone - 1];
    for (size_t i = 0; i < 3; i++) {
      for (size_t j = 0; j < 4; j++)
        poses[bone][i][j] = above[i][0] * own[0][j] + above[i][1] * own[1][j] + above[i][2] * own[2][j];
      poses[bone][i][3] += above[i][3];
    }
  }
  double total = 0;
  for (size_t v = 0; v < vertices.size() / 3; v++) {
    double skin[3] = {0, 0, 0};
    const double *x = &vertices[3 * v];
    for (size_t bone = 0; bone < BONES; bone++)
      for (size_t i = 0; i < 3; i++) {
        const double *row = poses[bone][i];
        skin[i] += weights[v * BONES + bone] * (row[0] * x[0] + row[1] * x[1] + row[2] * x[2] + row[3]);
      }
    for (size_t i = 0; i < 3; i++) {
      const double apart = skin[i] - points[3 * v + i];
      total += 0.5 * apart * apart;
    }
  }
  return total;
}

int main() {
  {
    const size_t n = 1000, k = 100, d = 64;
    Random random{6};
    const Vec alphas = random.numbers(k), means = random.numbers(k * d), x = random.numbers(n * d);
    Vec icf = random.numbers(k * d * (d + 1) / 2);
    for (auto &v : icf) v *= 0.2;
    timed("gmm", [&] { return gmm(alphas, means, icf, x, d); });
  }
  {
    const size_t count = 31843;
    Random random{7};
    Vec inputs = random.numbers(count * 15), errors(2 * count);
    for (size_t i = 0; i < count; i++) {
      double *in = &inputs[15 * i];
      in[13] += 5;
      in[6] += 2;
      in[9] *= 0.1;
      in[10] *= 0.01;
    }
    const Vec features = random.numbers(2 * count);
    timed("ba", [&] {
      for (size_t i = 0; i < count; i++) project(&inputs[15 * i], &features[2 * i], &errors[2 * i]);
      return errors[0];
    });
  }
  {
    const Vec x = Random{1}.numbers(1000000);
    timed("lse", [&] { return log_sum_exp(x.data(), x.size()); });
  }
  {
    const Vec x = Random{2}.numbers(128);
    timed("llsq", [&] { return llsq(x, 16392); });
  }
  {
    const Vec x = Random{3}.numbers(100000);
    timed("ode", [&] { return ode(x, 100); });
  }
  {
    const Vec a = Random{4}.numbers(81);
    timed("det", [&] { return minor_of(a.data(), 9, 0, (1u << 9) - 1); });
  }
  {
    const size_t layers = 2, times = 4096, b = 14;
    Random random{8};
    const Vec main = random.numbers(8 * layers * b), extra = random.numbers(3 * b);
    const Vec state = random.numbers(2 * layers * b), sequence = random.numbers((times + 1) * b);
    timed("lstm", [&] { return lstm(main, extra, state, sequence, b); });
  }
  {
    const size_t n = 10000, k = 64, d = 16;
    Random random{5};
    const Vec centroids = random.numbers(k * d), points = random.numbers(n * d);
    timed("kmeans", [&] { return kmeans(centroids, points, d); });
  }
  {
    const size_t count = 544;
    Random random{9};
    const Vec angles = random.numbers(3 * BONES), offsets = random.numbers(3 * BONES);
    const Vec vertices = random.numbers(3 * count), points = random.numbers(3 * count);
    Vec weights = random.numbers(BONES * count);
    for (auto &w : weights) w = std::fabs(w) / double(BONES);
    timed("ht", [&] { return ht(angles, offsets, vertices, weights, points); });
  }
  return sink == 0.123 ? 1 : 0;
}
