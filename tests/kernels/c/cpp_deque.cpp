/* Shape: std::deque, short and long.
   Hard: its map of blocks is copied in bulk, and lies in memory of the same kind as the blocks: words are pointers here and floats there. */
#include "check.h"
#include <deque>
static double f(double *x, int n) {
  std::deque<double> d;
  for (int i = 0; i < n; i++) { d.push_back(x[i]); d.push_front(x[i] * x[i]); }
  double s = 0;
  while (d.size() > 1) { double a = d.front(); d.pop_front(); double b = d.back(); d.pop_back(); s += a * b; if (d.size() == 4) d.push_back(s); }
  return s + (d.empty() ? 0 : d[0]);
}
static double g(double *x, int n) {
  std::deque<double> d;
  for (int k = 0; k < 200; k++) d.push_back(x[k % n] * (k + 1));
  for (int k = 0; k < 50; k++) d.pop_front();
  double s = 0;
  for (double v : d) s = 0.9 * s + sin(v * 0.01);
  return s;
}
int main() {
  VECTOR(f, 4, 0.53, 0.27, 0.76, 0.9);
  VECTOR(g, 4, 0.53, 0.27, 0.76, 0.9);
  return bad;
}
