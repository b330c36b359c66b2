/* Shape: vector intrinsics of the machine.
   Hard: maximum, square root and unpacking of pairs. */
#include "check.h"
#include <immintrin.h>
static double f(double *x, int n) {
  __m128d s = _mm_setzero_pd();
  for (int i = 0; i + 1 < n; i += 2) { __m128d v = _mm_loadu_pd(x + i); s = _mm_add_pd(_mm_mul_pd(v, v), _mm_max_pd(s, v)); s = _mm_sqrt_pd(_mm_add_pd(s, _mm_set1_pd(1))); }
  s = _mm_add_pd(s, _mm_unpackhi_pd(s, s));
  return _mm_cvtsd_f64(s);
}
int main(void) { VECTOR(f, 6, 0.53, 0.27, 0.76, 0.9, -0.2, 0.4); return bad; }
