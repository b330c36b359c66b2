/* Shape: std::list, a priority queue and strings.
   Hard: the length of a list lies where its nodes have their value. */
#include "check.h"
#include <list>
#include <queue>
#include <string>
static double f(double *x, int n) {
  std::list<double> l(x, x + n);
  l.push_back(x[0]); l.push_front(x[1] * x[2]); l.reverse();
  std::list<double> o; o.push_back(2 * x[n - 1]); l.splice(l.begin(), o);
  l.remove_if([](double v) { return v > 100; }); l.pop_back();
  double s = 1;
  for (double v : l) s = s * 0.8 + v * v;
  return s;
}
static double g(double *x, int n) {
  std::priority_queue<double> q;
  for (int i = 0; i < n; i++) q.push(x[i]);
  double s = 0;
  while (!q.empty()) { s = s * 0.5 + q.top(); q.pop(); }
  return s;
}
static double t(double *x, int n) {
  std::string s = "sum";
  for (int i = 0; i < n; i++) s += "ab"[i & 1];
  double r = 0;
  for (size_t i = 0; i < s.size(); i++) r += x[i % n] * (s[i] - 'a');
  return r * (s == "sumaba" ? 2 : 1);
}
int main() {
  VECTOR(f, 5, 0.53, 0.27, 0.76, 0.1, 0.2);
  VECTOR(g, 4, 0.53, 0.27, 0.76, 0.1);
  VECTOR(t, 3, 0.53, 0.27, 0.76);
  return bad;
}
