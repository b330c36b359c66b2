/* Shape: unions that take doubles apart and put them together, and bit fields beside floats.
   Hard: bits are copied, compared and flipped. */
#include "check.h"
union u { double d; long long i; struct { unsigned lo, hi; } h; float f[2]; };
struct bits { unsigned a : 3, b : 5; double v; signed c : 7; float w; };
static double swap_halves_back(double x) { union u a, b; a.d = x; b.h.lo = a.h.lo; b.h.hi = a.h.hi; return b.d * x; }
static double is_negative(double x) { union u a; a.d = x; return a.i < 0 ? -x * x : x * x * x; }
static double flip(double x) { union u a; a.d = x; a.i ^= (long long)1 << 63; return a.d * x; }
static double fields(double x) { struct bits s = {5, 9, x, -3, (float)x}; struct bits t = s; t.b += 1; return t.a * t.v * t.v + t.b + t.c * t.v; }
int main(void) { SCALAR(swap_halves_back, 0.7); SCALAR(is_negative, 0.7); SCALAR(is_negative, -0.7); SCALAR(flip, 1.2); SCALAR(fields, 0.8); return bad; }
