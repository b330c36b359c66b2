//! Bundle adjustment: the Jacobian of all reprojection errors. Each observation has its own copy of what it depends on
//! (camera 11, point 3, weight 1), so two gradients for each, one a coordinate, are all rows.

#include "bench.h"
#include <cmath>

/// Numbers that an observation depends on.
constexpr size_t INPUTS = 15;

static double dot(const double *a, const double *b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

static void cross(const double *a, const double *b, double *to) {
  to[0] = a[1] * b[2] - a[2] * b[1];
  to[1] = a[2] * b[0] - a[0] * b[2];
  to[2] = a[0] * b[1] - a[1] * b[0];
}

/// Turns a point about an axis, whose length is the angle.
static void turn(const double *axis, const double *x, double *to) {
  const double square = dot(axis, axis);
  double side[3];
  if (square == 0) {
    cross(axis, x, side);
    for (size_t i = 0; i < 3; i++) to[i] = x[i] + side[i];
    return;
  }
  const double angle = std::sqrt(square), s = std::sin(angle), c = std::cos(angle);
  const double a[3] = {axis[0] / angle, axis[1] / angle, axis[2] / angle};
  cross(a, x, side);
  const double along = dot(a, x) * (1 - c);
  for (size_t i = 0; i < 3; i++) to[i] = x[i] * c + side[i] * s + a[i] * along;
}

static void project(const double *__restrict in, const double *__restrict feature, double *__restrict error) {
  const double x[3] = {in[11] - in[3], in[12] - in[4], in[13] - in[5]};
  double y[3];
  turn(in, x, y);
  const double u = y[0] / y[2], v = y[1] / y[2], r = u * u + v * v;
  const double scale = in[6] * (1 + in[9] * r + in[10] * r * r);
  error[0] = in[14] * (u * scale + in[7] - feature[0]);
  error[1] = in[14] * (v * scale + in[8] - feature[1]);
}

KERNEL static void primal(const double *__restrict inputs, const double *__restrict features,
                          double *__restrict errors, size_t count) {
  for (size_t i = 0; i < count; i++) project(&inputs[INPUTS * i], &features[2 * i], &errors[2 * i]);
}

KERNEL static void jacobian(const double *inputs, const double *features, double *errors, double *rows, size_t count) {
  for (size_t i = 0; i < count; i++)
    for (size_t row = 0; row < 2; row++) {
      double seed[2] = {row == 0 ? 1.0 : 0.0, row == 1 ? 1.0 : 0.0};
      __enzyme_autodiff(project, enzyme_dup, &inputs[INPUTS * i], &rows[INPUTS * (2 * i + row)], enzyme_const,
                        &features[2 * i], enzyme_dup, &errors[2 * i], seed);
    }
}

/// The reverse of `project`.
static void project_back(const double *in, const double *feature, const double *seed, double *bar) {
  const double x[3] = {in[11] - in[3], in[12] - in[4], in[13] - in[5]};
  double seen[3];
  turn(in, x, seen);
  const double p[2] = {seen[0] / seen[2], seen[1] / seen[2]}, r = p[0] * p[0] + p[1] * p[1];
  const double distortion = 1 + in[9] * r + in[10] * r * r;
  double p_bar[2], distortion_bar = 0;
  for (size_t i = 0; i < 2; i++) {
    bar[14] += seed[i] * (p[i] * distortion * in[6] + in[7 + i] - feature[i]);
    const double g = seed[i] * in[14];
    bar[7 + i] += g;
    bar[6] += g * p[i] * distortion;
    p_bar[i] = g * distortion * in[6];
    distortion_bar += g * p[i] * in[6];
  }
  bar[9] += distortion_bar * r;
  bar[10] += distortion_bar * r * r;
  const double r_bar = distortion_bar * (in[9] + 2 * in[10] * r);
  for (size_t i = 0; i < 2; i++) p_bar[i] += 2 * p[i] * r_bar;
  const double g[3] = {p_bar[0] / seen[2], p_bar[1] / seen[2], -(p_bar[0] * p[0] + p_bar[1] * p[1]) / seen[2]};
  const double angle = std::sqrt(dot(in, in)), s = std::sin(angle), c = std::cos(angle);
  const double a[3] = {in[0] / angle, in[1] / angle, in[2] / angle}, ax = dot(a, x), ag = dot(a, g);
  double xg[3], ga[3], side[3], a_bar[3];
  cross(x, g, xg);
  cross(g, a, ga);
  cross(a, x, side);
  const double c_bar = dot(x, g) - ax * ag, s_bar = dot(side, g);
  for (size_t i = 0; i < 3; i++) a_bar[i] = s * xg[i] + (1 - c) * (ax * g[i] + ag * x[i]);
  const double angle_bar = c * s_bar - s * c_bar - dot(a_bar, a) / angle;
  for (size_t i = 0; i < 3; i++) {
    const double x_bar = c * g[i] + s * ga[i] + a[i] * (1 - c) * ag;
    bar[11 + i] += x_bar;
    bar[3 + i] -= x_bar;
    bar[i] += a_bar[i] / angle + a[i] * angle_bar;
  }
}

Workload ba(bool small) {
  const size_t count = small ? 5 : 31843;
  Random random{7};
  Vec inputs = random.numbers(count * INPUTS);
  for (size_t i = 0; i < count; i++) {
    double *in = &inputs[INPUTS * i];
    in[13] += 5;
    in[6] += 2;
    in[9] *= 0.1;
    in[10] *= 0.01;
  }
  const Vec features = random.numbers(2 * count);
  const auto errors = std::make_shared<Vec>(2 * count);
  return {
      [=] {
        primal(inputs.data(), features.data(), errors->data(), count);
        return (*errors)[0];
      },
      [=] {
        Vec rows(2 * INPUTS * count);
        jacobian(inputs.data(), features.data(), errors->data(), rows.data(), count);
        return rows;
      },
      [=] {
        Vec rows(2 * INPUTS * count);
        const double seeds[2][2] = {{1, 0}, {0, 1}};
        for (size_t i = 0; i < count; i++)
          for (size_t row = 0; row < 2; row++)
            project_back(&inputs[INPUTS * i], &features[2 * i], seeds[row], &rows[INPUTS * (2 * i + row)]);
        return rows;
      },
      100.0 * double(count),
      8.0 * double(4 * INPUTS * count),
  };
}
