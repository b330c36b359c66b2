/* Shape: AVX by hand: fused sums, blends, horizontal sums, gathers.
   Hard: a blend chooses by signs, and a gather is a load per lane. */
#include "check.h"
#include <immintrin.h>
__attribute__((target("avx2,fma"))) static double f(double *x, int n) {
  __m256d s = _mm256_setzero_pd();
  for (int i = 0; i + 4 <= n; i += 4) {
    __m256d v = _mm256_loadu_pd(x + i), u = _mm256_permute4x64_pd(v, 0x1b);
    s = _mm256_fmadd_pd(v, u, s);
    __m256d m = _mm256_cmp_pd(v, _mm256_set1_pd(0.6), _CMP_GT_OQ);
    s = _mm256_add_pd(s, _mm256_blendv_pd(v, _mm256_mul_pd(v, v), m));
    s = _mm256_add_pd(s, _mm256_sqrt_pd(_mm256_max_pd(v, _mm256_set1_pd(0.1))));
  }
  __m128d lo = _mm256_castpd256_pd128(s), hi = _mm256_extractf128_pd(s, 1);
  lo = _mm_add_pd(lo, hi); lo = _mm_hadd_pd(lo, lo);
  double out[2]; _mm_storeu_pd(out, lo);
  return out[0] + _mm_cvtsd_f64(hi);
}
__attribute__((target("avx2"))) static double g(double *x, int n) {
  double s = 0; __m256i idx = _mm256_set_epi64x(3, 1, 2, 0);
  for (int i = 0; i + 4 <= n; i += 4) { __m256d v = _mm256_i64gather_pd(x + i, idx, 8); double t[4]; _mm256_storeu_pd(t, v); s += t[0] * t[1] - t[2] * t[3]; }
  return s;
}
int main(void) { if (!__builtin_cpu_supports("avx2")) return 0; VECTOR(f, 8, 0.53, 1.27, 0.76, 0.91, 0.4, 0.7, 0.65, 0.3); VECTOR(g, 8, 0.53, 1.27, 0.76, 0.91, 0.4, 0.7, 0.65, 0.3); return bad; }
