/* Shape: several base classes, virtual bases and pointers to member functions.
   Hard: the address of an object depends on the type that it is looked at by. */
#include "check.h"
struct a { double u; virtual double run(double) = 0; virtual ~a() = default; };
struct b { double w; virtual double go(double x) { return w * x; } virtual ~b() = default; };
struct c : a, b { double run(double x) override { return u * go(x); } double go(double x) override { return w + x * u; } };
struct base { double q; }; struct l : virtual base { double li; }; struct r : virtual base { double ri; }; struct dia : l, r { double all() { return q * li + ri * q; } };
static double f(double *x, int n) { c o; o.u = x[0]; o.w = x[1]; a *p = &o; b *q = &o; double s = p->run(x[2]) * q->go(x[n - 1]); a *h = new c(o); s += h->run(s); delete h; double (b::*m)(double) = &b::go; s += (q->*m)(x[0]); dia d; d.q = x[0]; d.li = x[1]; d.ri = x[2]; l *lp = &d; lp->q *= 2; return s + d.all(); }
int main() { VECTOR(f, 3, 0.53, 0.27, 0.76); return bad; }
