// Shape: exceptions with text that pass objects whose destructors write.
// Hard: what is destroyed on the way has derivatives, what is thrown has none.
#include "check.h"
#include <stdexcept>
#include <vector>
#include <string>
#include <memory>
struct Log { double &s; double k; ~Log() { s += k * k; } };
struct NotPD : std::runtime_error { int at; NotPD(int at) : std::runtime_error("not positive at " + std::to_string(at)), at(at) {} };
static double sq(double v, int i) { if (v <= 0) throw NotPD(i); return std::sqrt(v); }
static double inner(const double *x, int n, double &side) { Log l{side, x[0]}; double s = 0; for (int i = 0; i < n; i++) { auto p = std::make_unique<double>(x[i] * 2); s += sq(*p, i) * x[0]; } return s; }
static double f(double *x, int n) { double side = 0, s = 0; for (int k = n; k > 0; k--) { try { s += inner(x, k, side); } catch (const NotPD &e) { s += x[e.at] * x[e.at] * std::string(e.what()).size(); } catch (std::exception &e) { s -= 1; } } try { std::vector<double> v(x, x + n); s += v.at(1); s += v.at(n); } catch (std::out_of_range &) { s *= x[0]; } try { try { sq(-1, 2); } catch (...) { side *= 2; throw; } } catch (NotPD &e) { s += side * e.at; } return s; }
int main() { VECTOR(f, 5, 0.53, .47, 0.76, -.4, .2); return bad; }
