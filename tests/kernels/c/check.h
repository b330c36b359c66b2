/* What the cases here share: gradients by reverse and by forward mode, twice each, against central differences. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
extern int enzyme_dup, enzyme_const, enzyme_out, enzyme_dupnoneed;

static int bad;

static void agree(const char *what, double got, double want, double tolerance) {
  if (!(fabs(got - want) <= tolerance * fmax(1.0, fabs(want)))) {
    printf("%s: got %.15g, expected %.15g\n", what, got, want);
    bad = 1;
  }
}

static void check(const char *what, double got, double want) { agree(what, got, want, 1e-9); }

#define STEP 1e-5
#define DIFFERENCES 1e-6

/* double f(double) */
#define SCALAR(f, at)                                                                          \
  do {                                                                                         \
    const double x_ = (at), d_ = (f(x_ + STEP) - f(x_ - STEP)) / (2 * STEP);                   \
    for (int k_ = 0; k_ < 2; k_++) {                                                           \
      agree("reverse of " #f, __enzyme_autodiff((void *)f, x_), d_, DIFFERENCES);              \
      agree("forward of " #f, __enzyme_fwddiff((void *)f, enzyme_dup, x_, 1.0), d_, DIFFERENCES); \
    }                                                                                          \
  } while (0)

/* double f(double *, int); the array may be written. */
#define VECTOR(f, n, ...)                                                                      \
  do {                                                                                         \
    const double x_[n] = {__VA_ARGS__};                                                        \
    double p_[n], g_[n];                                                                       \
    for (int k_ = 0; k_ < 2; k_++) {                                                           \
      memcpy(p_, x_, sizeof p_);                                                               \
      memset(g_, 0, sizeof g_);                                                                \
      __enzyme_autodiff((void *)f, enzyme_dup, p_, g_, n);                                     \
      for (int i_ = 0; i_ < n; i_++) {                                                         \
        double q_[n], t_[n];                                                                   \
        memcpy(q_, x_, sizeof q_);                                                             \
        q_[i_] = x_[i_] + STEP;                                                                \
        const double up_ = f(q_, n);                                                           \
        memcpy(q_, x_, sizeof q_);                                                             \
        q_[i_] = x_[i_] - STEP;                                                                \
        const double d_ = (up_ - f(q_, n)) / (2 * STEP);                                       \
        agree("reverse of " #f, g_[i_], d_, DIFFERENCES);                                      \
        memcpy(q_, x_, sizeof q_);                                                             \
        memset(t_, 0, sizeof t_);                                                              \
        t_[i_] = 1;                                                                            \
        agree("forward of " #f, __enzyme_fwddiff((void *)f, enzyme_dup, q_, t_, n), d_, DIFFERENCES); \
      }                                                                                        \
    }                                                                                          \
  } while (0)
