//! Hand tracking: a skeleton is posed by angles, its skin follows by blended transforms, and is compared with points.

#include "bench.h"
#include <cmath>
#include <cstring>

constexpr size_t BONES = 22;

/// A rotation and a translation, as three rows of four.
using Pose = double[3][4];

/// The bone that each bone but the first hangs on: a wrist and five chains.
static size_t parent(size_t bone) { return (bone - 1) % 4 == 0 ? 0 : bone - 1; }

/// A rotation about x, then y, then z, by sines and cosines of the angles.
static void turn(const double *s, const double *c, double (*to)[3]) {
  to[0][0] = c[2] * c[1];
  to[0][1] = c[2] * s[1] * s[0] - s[2] * c[0];
  to[0][2] = c[2] * s[1] * c[0] + s[2] * s[0];
  to[1][0] = s[2] * c[1];
  to[1][1] = s[2] * s[1] * s[0] + c[2] * c[0];
  to[1][2] = s[2] * s[1] * c[0] - c[2] * s[0];
  to[2][0] = -s[1];
  to[2][1] = c[1] * s[0];
  to[2][2] = c[1] * c[0];
}

static void local(const double *angles, const double *offset, Pose &to) {
  double s[3], c[3], r[3][3];
  for (size_t k = 0; k < 3; k++) {
    s[k] = std::sin(angles[k]);
    c[k] = std::cos(angles[k]);
  }
  turn(s, c, r);
  for (size_t i = 0; i < 3; i++) {
    for (size_t j = 0; j < 3; j++) to[i][j] = r[i][j];
    to[i][3] = offset[i];
  }
}

static void pose(const double *angles, const double *offsets, Pose *poses) {
  for (size_t bone = 0; bone < BONES; bone++) {
    Pose own;
    local(&angles[3 * bone], &offsets[3 * bone], own);
    if (bone == 0) {
      std::memcpy(poses[0], own, sizeof own);
      continue;
    }
    const Pose &above = poses[parent(bone)];
    for (size_t i = 0; i < 3; i++) {
      for (size_t j = 0; j < 4; j++)
        poses[bone][i][j] = above[i][0] * own[0][j] + above[i][1] * own[1][j] + above[i][2] * own[2][j];
      poses[bone][i][3] += above[i][3];
    }
  }
}

/// Where the bones take a vertex.
static void skin(const Pose *poses, const double *weights, const double *vertex, double *to) {
  for (size_t i = 0; i < 3; i++) to[i] = 0;
  for (size_t bone = 0; bone < BONES; bone++)
    for (size_t i = 0; i < 3; i++) {
      const double *row = poses[bone][i];
      to[i] += weights[bone] * (row[0] * vertex[0] + row[1] * vertex[1] + row[2] * vertex[2] + row[3]);
    }
}

/// Half the sum of squares between skin and points; `weights` say how much of each bone moves a vertex.
KERNEL static double primal(const double *__restrict angles, const double *__restrict offsets,
                            const double *__restrict vertices, const double *__restrict weights,
                            const double *__restrict points, size_t count) {
  Pose poses[BONES];
  pose(angles, offsets, poses);
  double total = 0;
  for (size_t v = 0; v < count; v++) {
    double seen[3];
    skin(poses, &weights[v * BONES], &vertices[3 * v], seen);
    for (size_t i = 0; i < 3; i++) total += 0.5 * (seen[i] - points[3 * v + i]) * (seen[i] - points[3 * v + i]);
  }
  return total;
}

static void by_hand(const double *angles, const double *offsets, const double *vertices, const double *weights,
                    const double *points, size_t count, double *angles_bar) {
  Pose poses[BONES], bars[BONES];
  std::memset(bars, 0, sizeof bars);
  pose(angles, offsets, poses);
  for (size_t v = 0; v < count; v++) {
    double seen[3];
    const double *x = &vertices[3 * v];
    skin(poses, &weights[v * BONES], x, seen);
    for (size_t bone = 0; bone < BONES; bone++)
      for (size_t i = 0; i < 3; i++) {
        const double rest = weights[v * BONES + bone] * (seen[i] - points[3 * v + i]);
        for (size_t j = 0; j < 3; j++) bars[bone][i][j] += rest * x[j];
        bars[bone][i][3] += rest;
      }
  }
  for (size_t bone = BONES; bone-- > 0;) {
    Pose own, own_bar;
    local(&angles[3 * bone], &offsets[3 * bone], own);
    std::memcpy(own_bar, bars[bone], sizeof own_bar);
    const Pose &bar = bars[bone];
    if (bone > 0) {
      const size_t up = parent(bone);
      for (size_t i = 0; i < 3; i++) {
        for (size_t j = 0; j < 4; j++) {
          own_bar[i][j] = 0;
          for (size_t k = 0; k < 3; k++) own_bar[i][j] += poses[up][k][i] * bar[k][j];
        }
        for (size_t k = 0; k < 3; k++)
          for (size_t j = 0; j < 4; j++) bars[up][i][k] += bar[i][j] * own[k][j];
        bars[up][i][3] += bar[i][3];
      }
    }
    double s[3], c[3];
    for (size_t k = 0; k < 3; k++) {
      s[k] = std::sin(angles[3 * bone + k]);
      c[k] = std::cos(angles[3 * bone + k]);
    }
    for (size_t k = 0; k < 3; k++) {
      // Entries are linear in the sine and cosine of one angle: the slope is their value at (cos, -sin), less what does
      // not depend on them.
      double slope[3][3], rest[3][3];
      const double sine = s[k], cosine = c[k];
      s[k] = cosine, c[k] = -sine;
      turn(s, c, slope);
      s[k] = c[k] = 0;
      turn(s, c, rest);
      s[k] = sine, c[k] = cosine;
      for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 3; j++) angles_bar[3 * bone + k] += own_bar[i][j] * (slope[i][j] - rest[i][j]);
    }
  }
}

Workload ht(bool small) {
  const size_t count = small ? 10 : 544;
  Random random{9};
  const Vec angles = random.numbers(3 * BONES), offsets = random.numbers(3 * BONES);
  const Vec vertices = random.numbers(3 * count), points = random.numbers(3 * count);
  Vec weights = random.numbers(BONES * count);
  for (auto &w : weights) w = std::fabs(w) / double(BONES);
  return {
      [=] { return primal(angles.data(), offsets.data(), vertices.data(), weights.data(), points.data(), count); },
      [=] {
        Vec bar(3 * BONES);
        __enzyme_autodiff(primal, enzyme_dup, angles.data(), bar.data(), enzyme_const, offsets.data(), enzyme_const,
                          vertices.data(), enzyme_const, weights.data(), enzyme_const, points.data(), count);
        return bar;
      },
      [=] {
        Vec bar(3 * BONES);
        by_hand(angles.data(), offsets.data(), vertices.data(), weights.data(), points.data(), count, bar.data());
        return bar;
      },
      double(count * BONES * 3 * 8),
      8.0 * double(count * (BONES + 6)),
  };
}
