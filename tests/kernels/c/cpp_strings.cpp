/* Shape: strings beside doubles, in vectors and maps: concatenated, searched, cut, compared.
   Hard: short strings lie where others keep a pointer, and are written byte by byte; the library has their code. */
#include "check.h"
#include <string>
#include <map>
#include <vector>
struct Named { std::string name; double v; };
static double f(double *x, int n) {
  std::vector<Named> v; std::string s = "p"; for (int i = 0; i < n; i++) { s += std::to_string(i); v.push_back({s, x[i] * x[i]}); }
  double t = 0; for (auto &e : v) { t += e.v * e.name.size(); if (e.name.find("2") != std::string::npos) t *= e.v; }
  std::map<std::string, double> m; for (auto &e : v) m["key_" + e.name.substr(0, 2)] += e.v; for (auto &[k, w] : m) t += w * w * k.length();
  return t;
}
int main() { VECTOR(f, 4, 0.53, 0.27, 0.76, 0.91); return bad; }
