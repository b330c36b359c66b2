/* Shape: a hash table from strings to doubles.
   Hard: the hash is a number that is kept where pointers are. */
#include "check.h"
#include <unordered_map>
#include <string>
static double f(double *x, int n) {
  std::unordered_map<std::string, double> m;
  const char *names[] = {"alpha", "beta", "a much longer name than fits inside", "gamma"};
  for (int i = 0; i < n; i++) m[names[i % 4]] += x[i] * x[i];
  return m["alpha"] * m["beta"] + m[std::string("a much longer name than fits ") + "inside"] * 3 + m.size();
}
int main() {
  VECTOR(f, 4, 0.53, 0.27, 0.76, 0.9);
  return bad;
}
