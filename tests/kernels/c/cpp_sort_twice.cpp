/* Shape: second derivatives of functions that sort copies: merge sort with a buffer, selection of the middle.
   Hard: the first derivative keeps distances of pointers in memory that also holds numbers. */
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>
extern int enzyme_dup;
template <typename R, typename... A> R __enzyme_autodiff(A...);
template <typename R, typename... A> R __enzyme_fwddiff(A...);
static double merged(const double *x, int n) {
  std::vector<double> v(x, x + n);
  std::stable_sort(v.begin(), v.end());
  double s = 0;
  for (int i = 0; i < n; i++) s += v[i] * v[i] * v[i] * (i + 1);
  return s;
}
static double middle(const double *x, int n) {
  std::vector<double> v(x, x + n);
  std::nth_element(v.begin(), v.begin() + n / 2, v.end());
  return v[n / 2] * v[n / 2] * v[n / 2];
}
static void merged_gradient(const double *x, double *g, int n) { __enzyme_autodiff<void>((void *)merged, enzyme_dup, x, g, n); }
static void middle_gradient(const double *x, double *g, int n) { __enzyme_autodiff<void>((void *)middle, enzyme_dup, x, g, n); }
static int bad;
template <int N> static void against(const double *x, void (*gradient)(const double *, double *, int), const double *h) {
  for (int i = 0; i < N; i++) {
    double up[N], down[N], a[N] = {0}, b[N] = {0};
    std::copy(x, x + N, up), std::copy(x, x + N, down);
    for (int k = 0; k < N; k++) up[k] += 1e-5 * (k + 1), down[k] -= 1e-5 * (k + 1);
    gradient(up, a, N), gradient(down, b, N);
    const double want = (a[i] - b[i]) / 2e-5;
    if (!(std::fabs(h[i] - want) <= 1e-6 * std::fmax(1.0, std::fabs(want)))) bad |= printf("of %d: got %.15g, expected %.15g\n", i, h[i], want);
  }
}
int main() {
  /* More than the sort's buffer of insertion, so that it merges. */
  const int n = 24;
  double x[n], t[n], g[n] = {0}, h[n] = {0}, k[n] = {0}, l[n] = {0};
  for (int i = 0; i < n; i++) x[i] = 0.1 + i * 7 % n * 0.05, t[i] = i + 1;
  __enzyme_fwddiff<void>((void *)merged_gradient, enzyme_dup, x, t, enzyme_dup, g, h, n);
  against<n>(x, merged_gradient, h);
  __enzyme_fwddiff<void>((void *)middle_gradient, enzyme_dup, x, t, enzyme_dup, k, l, n);
  against<n>(x, middle_gradient, l);
  return bad != 0;
}
