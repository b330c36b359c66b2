/* Shape: vector intrinsics that work on one lane, on alternate lanes, on signs.
   Hard: lanes that pass through, and integers that floats decide. */
#include "check.h"
#include <immintrin.h>
#define SSE __attribute__((target("sse4.1,avx,fma")))
SSE static double pairs(double *x, int n) {
  __m128d s = _mm_set_pd(0.4, 0.3);
  for (int i = 0; i + 1 < n; i += 2) {
    __m128d v = _mm_loadu_pd(x + i);
    s = _mm_addsub_pd(_mm_mul_pd(s, v), v);
    s = _mm_max_sd(s, _mm_mul_pd(v, v));
    s = _mm_add_pd(s, _mm_dp_pd(v, s, 0x31));
    s = _mm_add_pd(s, _mm_round_pd(v, _MM_FROUND_FLOOR));
    s = _mm_add_pd(s, _mm_round_sd(v, s, _MM_FROUND_CEIL));
    s = _mm_blendv_pd(s, _mm_mul_pd(v, s), _mm_cmplt_sd(v, s));
    if (_mm_movemask_pd(_mm_sub_pd(v, _mm_set1_pd(0.5))) == 1) s = _mm_mul_pd(s, v);
    if (_mm_comilt_sd(v, s)) s = _mm_add_pd(s, v);
    s = _mm_permutevar_pd(s, _mm_set_epi64x(i % 4 == 0 ? 0 : 2, i % 4 == 0 ? 2 : 0));
  }
  double out[2];
  _mm_storeu_pd(out, s);
  return out[0] * out[1] + _mm_cvtsd_si32(s) + _mm_cvttsd_si32(s);
}
SSE static double wide(double *x, int n) {
  __m256d s = _mm256_set1_pd(0.5);
  for (int i = 0; i + 4 <= n; i += 4) {
    __m256d v = _mm256_loadu_pd(x + i);
    s = _mm256_fmaddsub_pd(s, v, _mm256_mul_pd(v, v));
    s = _mm256_addsub_pd(s, v);
    if (_mm256_movemask_pd(_mm256_sub_pd(v, _mm256_set1_pd(0.6))) & 5) s = _mm256_add_pd(s, _mm256_mul_pd(v, s));
    s = _mm256_permutevar_pd(s, _mm256_set_epi64x(0, 2, i, 2));
    s = _mm256_add_pd(s, _mm256_floor_pd(v));
  }
  double out[4];
  _mm256_storeu_pd(out, s);
  return out[0] * out[1] + out[2] * out[3];
}
/* In floats, so the right values come from the same in doubles. */
SSE static double floats(double *x, int n) {
  __m128 s = _mm_set1_ps(0.5f);
  for (int i = 0; i + 4 <= n; i += 4) {
    __m128 lo = _mm_cvtpd_ps(_mm_loadu_pd(x + i)), hi = _mm_cvtpd_ps(_mm_loadu_pd(x + i + 2));
    __m128 v = _mm_movelh_ps(lo, hi);
    s = _mm_add_ps(s, _mm_dp_ps(v, s, 0xe5));
    s = _mm_mul_ps(_mm_insert_ps(s, v, 0x9c), v);
    s = _mm_cvtsd_ss(s, _mm_mul_sd(_mm_loadu_pd(x + i), _mm_loadu_pd(x + i + 1)));
    s = _mm_min_ss(s, v);
  }
  return _mm_cvtss_f32(_mm_dp_ps(s, s, 0xf1));
}
static double peer(double *x, int n) {
  double s[4] = {0.5, 0.5, 0.5, 0.5};
  for (int i = 0; i + 4 <= n; i += 4) {
    double *v = x + i, sum = v[1] * s[1] + (v[2] * s[2] + v[3] * s[3]);
    s[0] += sum, s[2] += sum;
    s[1] = v[2] * v[1], s[2] = 0, s[3] = 0;
    s[0] = v[0] * v[1];
    if (v[0] <= s[0]) s[0] = v[0];
  }
  return s[0] * s[0] + s[1] * s[1] + s[2] * s[2] + s[3] * s[3];
}
/* The machine's approximations: their derivatives are those of what they give. */
SSE static double inverses(double *x, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++) {
    __m128 v = _mm_set1_ps((float)x[i]);
    sum += _mm_cvtss_f32(_mm_rcp_ps(v)) + 2 * _mm_cvtss_f32(_mm_rsqrt_ss(v));
  }
  return sum;
}
/* Each way of comparing decides on its own of what is not a number; the derivative is that of what was chosen. */
#define CHOSEN(by)                                                                             \
  SSE static double chosen##by(double x, double y) {                                           \
    __m128d a = _mm_set_sd(x), b = _mm_set_sd(y);                                              \
    return _mm_cvtsd_f64(_mm_blendv_pd(_mm_set_sd(2 * x), _mm_set_sd(3 * x), _mm_cmp_sd(a, b, by))); \
  }
#define EACH(DO)                                                                               \
  DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13) DO(14) DO(15) DO(20) DO(29)
EACH(CHOSEN)
#define CHECKED(by)                                                                            \
  for (int k = 0; k < 4; k++) {                                                                \
    const double y[4] = {0.2, 0.7, 1.5, NAN};                                                  \
    const double got = __enzyme_fwddiff((void *)chosen##by, enzyme_dup, 0.7, 1.0, enzyme_const, y[k]); \
    agree("chosen by " #by, got, chosen##by(0.7, y[k]) / 0.7, 1e-12);                          \
  }
int main(void) {
  if (!__builtin_cpu_supports("avx") || !__builtin_cpu_supports("fma")) return 0;
  EACH(CHECKED)
  VECTOR(pairs, 6, 0.53, 0.27, 0.36, 0.9, 0.2, 0.4);
  VECTOR(wide, 8, 0.53, 1.27, 0.76, 0.91, 0.4, 0.7, 0.65, 0.3);
  double x[8] = {0.53, 1.27, 0.76, 0.91, 0.4, 0.7, 0.65, 0.3}, own[8] = {0}, its[8] = {0}, inv[8] = {0};
  __enzyme_autodiff((void *)floats, enzyme_dup, x, own, enzyme_const, 8);
  __enzyme_autodiff((void *)peer, enzyme_dup, x, its, enzyme_const, 8);
  __enzyme_autodiff((void *)inverses, enzyme_dup, x, inv, enzyme_const, 8);
  for (int i = 0; i < 8; i++) {
    agree("floats", own[i], its[i], 1e-5);
    agree("inverses", inv[i], -1 / (x[i] * x[i]) - pow(x[i], -1.5), 2e-3);
  }
  return bad;
}
