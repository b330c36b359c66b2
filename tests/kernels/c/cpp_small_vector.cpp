/* Shape: a vector with room of its own for its first elements.
   Hard: a pointer of the object leads into the object, is kept in memory, and nobody reads it there. */
#include "check.h"
template <class T> class SmallVec { T in[3]; T *p = in; int n = 0, cap = 3; public: SmallVec() = default; SmallVec(const SmallVec &) = delete; ~SmallVec() { if (p != in) delete[] p; } void push(const T &v) { if (n == cap) { T *q = new T[cap * 2]; for (int i = 0; i < n; i++) q[i] = p[i]; if (p != in) delete[] p; p = q; cap *= 2; } p[n++] = v; } T &operator[](int i) { return p[i]; } int size() const { return n; } T *begin() { return p; } T *end() { return p + n; } };
static double f(double *x, int n) { double s = 0.3;  SmallVec<double> v; for (int i = 0; i < n; i++) v.push(x[i] * s); v[0] *= v[4]; for (double e : v) s += e;  return s; }
int main() { VECTOR(f, 6, 0.53, 0.27, 0.76, 0.91, 0.12, 1.3); return bad; }
