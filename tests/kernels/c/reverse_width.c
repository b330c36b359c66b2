/* Shape: gradients in several directions at once: outputs of one and of several arguments, memory with a shadow per
   direction or shadows at a distance, calls, recursion, function pointers, memory that is allocated, a rule of numbers, and
   split sweeps with arrays of seeds, of doubles and of floats, and of a result that is a pointer.
   Hard: the primal runs once, also where it changes its arguments; each direction has shadow memory of its own. */
#include "check.h"

extern int enzyme_width, enzyme_dupv, enzyme_primal_return, enzyme_nofree;
typedef struct { double d[2]; } Two;
typedef struct { double d[3]; } Three;
typedef struct { double x[3], y[3]; } ThreeOfTwo;
typedef struct { void *tape; double *result, *shadows[2]; } Pointed;
typedef struct { float d[3]; } ThreeFloats;
typedef struct { float d[2]; } TwoFloats;
Two __enzyme_autodiff_two(void *, ...);
ThreeOfTwo __enzyme_autodiff_three(void *, ...);
void __enzyme_autodiff_none(void *, ...);
void *__enzyme_augmentfwd(void *, ...);
Pointed __enzyme_augmentfwd_pointed(void *, ...);
void __enzyme_reverse(void *, ...);
Two __enzyme_reverse_two(void *, ...);
ThreeOfTwo __enzyme_reverse_three(void *, ...);
ThreeFloats __enzyme_reverse_floats(void *, ...);
TwoFloats __enzyme_reverse_two_floats(void *, ...);

static double f(double x, double y) {
  double r = y;
  for (int i = 1; i < 4; i++) r = sin(r * x) + i * y;
  return r;
}

static float g(float x, int n) { return n == 0 ? 1.0f : x * sinf(x) * g(x, n - 1); }

static double powers(const double *c, int n, double x) { return n ? c[n - 1] + x * powers(c, n - 1, x) : 0.0; }

static double square(double v) { return v * v; }
static double tangent(double v) { return tan(v); }
static double (*const table[])(double) = {square, tangent};

/* The primal adds to its arguments, so it must run once. */
static int runs;
static void step(double *s, double k) {
  double (*const own)(double) = table[++runs % 2], *old = malloc(2 * sizeof *old);
  old[0] = s[0], old[1] = s[1];
  s[1] += own(old[0]) * k;
  s[0] += k * old[1];
  free(old);
}

static double *largest(double *p, int n) {
  int at = 0;
  for (int i = 0; i < n; i++) {
    p[i] *= p[i];
    if (p[i] > p[at]) at = i;
  }
  return p + at;
}

/* The rule runs once forward, and once in reverse for each direction. */
static int forwards, reverses;
__attribute__((noinline)) static double cube(double v) { return v * v * v; }
typedef struct { double tape, result; } Kept;
static Kept cube_forward(double v) { forwards++; return (Kept){v, v * v * v}; }
static double cube_reverse(double v, double seed, double tape) { reverses++; return 100 * seed * v * tape; }
void *__enzyme_register_gradient_cube[] = {(void *)cube, (void *)cube_forward, (void *)cube_reverse};
static double cubes(double *p, int n) { double s = 0; for (int i = 0; i < n; i++) s += (i + 1) * cube(p[i]); return s; }

int main(void) {
  const double x = 0.7, y = 0.4, h = 1e-6;
  const double fx = (f(x + h, y) - f(x - h, y)) / (2 * h), fy = (f(x, y + h) - f(x, y - h)) / (2 * h);
  ThreeOfTwo t = __enzyme_autodiff_three((void *)f, enzyme_width, 3, x, y);
  for (int k = 0; k < 3; k++) agree("fx", t.x[k], fx, 1e-7), agree("fy", t.y[k], fy, 1e-7);

  double c[] = {1.0, -2.0, 0.5}, v[2][3] = {{0}};
  Two p = __enzyme_autodiff_two((void *)powers, enzyme_width, 2, enzyme_dup, c, v[0], v[1], enzyme_const, 3, x);
  for (int k = 0; k < 2; k++) {
    agree("px", p.d[k], -2 + 2 * x, 1e-15);
    agree("p0", v[k][0], x * x, 1e-15), agree("p1", v[k][1], x, 1e-15), agree("p2", v[k][2], 1.0, 1e-15);
  }

  double s[] = {0.3, 0.8}, ds[2][2] = {{1.0, 0.0}, {0.0, 1.0}};
  runs = 0;
  Two k = __enzyme_autodiff_two((void *)step, enzyme_width, 2, enzyme_dupv, sizeof ds[0], s, ds, 0.5);
  agree("runs", runs, 1, 0), agree("s0", s[0], 0.3 + 0.5 * 0.8, 1e-15), agree("s1", s[1], 0.8 + 0.5 * tan(0.3), 1e-15);
  agree("k of s0", k.d[0], 0.8, 1e-15), agree("k of s1", k.d[1], tan(0.3), 1e-15);
  agree("s0 of s0", ds[0][0], 1.0, 1e-15), agree("s1 of s0", ds[0][1], 0.5, 1e-15);
  agree("s0 of s1", ds[1][0], 0.5 / (cos(0.3) * cos(0.3)), 1e-14), agree("s1 of s1", ds[1][1], 1.0, 1e-15);

  Three seeds = {{1.0, -2.0, 0.5}};
  void *tape = __enzyme_augmentfwd((void *)f, enzyme_width, 3, x, y);
  for (int again = 0; again < 2; again++) {
    t = again ? __enzyme_reverse_three((void *)f, enzyme_width, 3, x, y, seeds, tape)
              : __enzyme_reverse_three((void *)f, enzyme_width, 3, enzyme_nofree, x, y, seeds, tape);
    for (int k = 0; k < 3; k++) agree("x", t.x[k], fx * seeds.d[k], 1e-7), agree("y", t.y[k], fy * seeds.d[k], 1e-7);
  }

  const float gx = (float)((g(x + 1e-2, 2) - g(x - 1e-2, 2)) / 2e-2);
  ThreeFloats three = {{1.0f, 2.0f, -1.0f}};
  tape = __enzyme_augmentfwd((void *)g, enzyme_width, 3, 0.7f, 2);
  ThreeFloats a = __enzyme_reverse_floats((void *)g, enzyme_width, 3, 0.7f, 2, three, tape);
  for (int k = 0; k < 3; k++) agree("g", a.d[k], gx * three.d[k], 1e-3);
  TwoFloats two = {{1.0f, 2.0f}};
  tape = __enzyme_augmentfwd((void *)g, enzyme_width, 2, 0.7f, 2);
  TwoFloats b = __enzyme_reverse_two_floats((void *)g, enzyme_width, 2, 0.7f, 2, two, tape);
  for (int k = 0; k < 2; k++) agree("g", b.d[k], gx * two.d[k], 1e-3);
  tape = __enzyme_augmentfwd((void *)g, enzyme_width, 2, 0.7f, 2);
  b = __enzyme_reverse_two_floats((void *)g, enzyme_width, 2, 0.7f, 2, 1.0f, 2.0f, tape);
  for (int k = 0; k < 2; k++) agree("g", b.d[k], gx * two.d[k], 1e-3);

  double q[] = {0.5, -2.0, 1.5}, dq[2][3] = {{0}};
  Pointed l = __enzyme_augmentfwd_pointed((void *)largest, enzyme_width, 2, enzyme_dup, q, dq[0], dq[1], 3);
  agree("largest", l.result - q, 1, 0), agree("its shadow", l.shadows[0] - dq[0], 1, 0);
  agree("and the other", l.shadows[1] - dq[1], 1, 0);
  *l.shadows[0] = 1.0, *l.shadows[1] = 3.0, dq[1][0] = 1.0;
  __enzyme_reverse((void *)largest, enzyme_width, 2, enzyme_dup, q, dq[0], dq[1], 3, l.tape);
  agree("0 of 0", dq[0][0], 0, 0), agree("1 of 0", dq[0][1], -4.0, 1e-15), agree("2 of 0", dq[0][2], 0, 0);
  agree("0 of 1", dq[1][0], 1.0, 1e-15), agree("1 of 1", dq[1][1], -12.0, 1e-15), agree("2 of 1", dq[1][2], 0, 0);

  double r[] = {1.0, 2.0}, dr[3][2] = {{0}, {1.0, 0.0}, {0.0, -1.0}};
  __enzyme_autodiff_none((void *)cubes, enzyme_width, 3, enzyme_dup, r, dr[0], dr[1], dr[2], 2);
  for (int k = 0; k < 3; k++) {
    agree("cube", dr[k][0], 100.0 + (k == 1), 1e-15), agree("cube", dr[k][1], 800.0 - (k == 2), 1e-15);
  }
  agree("forwards", forwards, 2, 0), agree("reverses", reverses, 6, 0);
  return bad;
}
