// Compares the derivatives of every function with each other and with differences; counts blocks of the heap.
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef double (*primal)(double *, long, double);
typedef double (*reverse)(double *, double *, long, double);
typedef double (*forward)(double *, double *, long, double, double);
typedef struct { double d[2]; } pair;
typedef pair (*reverses)(double *, double *, double *, long, double);
// Narrow: it rounds to `float` on the way, each sweep its own values.
typedef struct { primal f; reverse grad; forward tan; reverses both; const char *name; int narrow; } program;
extern const program programs[];
extern const int program_count;

enum { N = 6 };
static const double at[N] = {0.71, -0.43, 1.27, 0.16, -1.12, 0.58}, a0 = 0.37;
static const double v[N] = {0.9, -0.4, 0.3, 1.1, -0.7, 0.5}, va = 0.8;

static long blocks;
void *__real_malloc(size_t), *__real_calloc(size_t, size_t), *__real_realloc(void *, size_t);
void __real_free(void *);
void *__wrap_malloc(size_t n) { blocks++; void *p = __real_malloc(n); if (p) memset(p, 0x5a, n); return p; }
void *__wrap_calloc(size_t n, size_t size) { blocks++; return __real_calloc(n, size); }
void *__wrap_realloc(void *p, size_t n) { if (!p) blocks++; return __real_realloc(p, n); }
void __wrap_free(void *p) { if (p) blocks--; __real_free(p); }

static double value(primal f, long n, double t) {
  double x[N];
  for (int i = 0; i < N; i++) x[i] = at[i] + t * v[i];
  return f(x, n, a0 + t * va);
}
// Fourth order.
static double slope(primal f, long n, double h) {
  return (8 * (value(f, n, h) - value(f, n, -h)) - (value(f, n, 2 * h) - value(f, n, -2 * h))) / (12 * h);
}
static int differ(double p, double q, double tolerance) {
  return !(fabs(p - q) <= tolerance * fmax(1, fmax(fabs(p), fabs(q))));
}

// Two directions at once against each of them alone: without seeds in the shadow of the array, and with some.
static int directions_differ(const program *p, long n) {
  double x[N], y[N], all[2][N], one[2][N], a[2];
  for (int k = 0; k < 2; k++) {
    for (int i = 0; i < N; i++) x[i] = at[i], all[k][i] = one[k][i] = k * v[i];
    a[k] = p->grad(x, one[k], n, a0);
  }
  memcpy(y, at, sizeof y);
  pair b = p->both(y, all[0], all[1], n, a0);
  int differs = memcmp(x, y, sizeof x);
  const double tolerance = p->narrow ? 1e-6 : 1e-11;
  for (int k = 0; k < 2; k++) {
    differs |= differ(a[k], b.d[k], tolerance);
    for (int i = 0; i < N; i++) differs |= differ(one[k][i], all[k][i], tolerance);
  }
  return differs;
}

// What only the run can tell is refused by it: the derivative says so and stops the program, here only this call. Any
// other abort (a heap that is damaged) says nothing here, and ends the run.
static sigjmp_buf next;
static int said;
int __wrap_dprintf(int file, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vprintf(format, arguments);
  va_end(arguments);
  return said = 1;
}
static void stop(int signal) {
  if (!said) return;
  said = 0;
  siglongjmp(next, signal);
}

int main(void) {
  setvbuf(stdout, 0, _IONBF, 0);
  struct sigaction action = {.sa_handler = stop, .sa_flags = SA_NODEFER};
  sigaction(SIGABRT, &action, 0);
  static int wrong, rough, stopped;
  for (int k = 0; k < program_count; k++)
    for (long n = 0; n <= 3; n += 3) {
      const program *p = &programs[k];
      double x[N], d[N] = {0}, fine = slope(p->f, n, 1e-4), coarse = slope(p->f, n, 2e-4);
      static long before;
      before = blocks;
      if (sigsetjmp(next, 1)) {
        printf("%s(n = %ld) stopped\n", p->name, n);
        stopped++;
        blocks = before;
        continue;
      }
      // One large chunk stays with the program: the first call may leave it.
      memcpy(x, at, sizeof x);
      p->grad(x, d, n, a0);
      before = blocks;
      memset(d, 0, sizeof d);
      memcpy(x, at, sizeof x);
      double got = p->grad(x, d, n, a0) * va;
      for (int i = 0; i < N; i++) got += d[i] * v[i];
      memcpy(x, at, sizeof x);
      memcpy(d, v, sizeof d);
      double tangent = p->tan(x, d, n, a0, va);
      if (p->both && directions_differ(p, n)) {
        wrong++;
        printf("%s(n = %ld): two directions at once differ from one\n", p->name, n);
      }
      // Where a branch decides otherwise nearby, differences tell nothing.
      int smooth = !differ(fine, coarse, 1e-6);
      rough += !smooth;
      if (differ(got, tangent, p->narrow ? 1e-6 : 1e-9) || (smooth && differ(got, fine, p->narrow ? 1e-3 : 1e-5)) || blocks != before) {
        wrong++;
        printf("%s(n = %ld): reverse %.12g, forward %.12g, differences %.12g (%s), blocks %+ld\n", p->name, n, got,
               tangent, fine, smooth ? "smooth" : "rough", blocks - before);
      }
    }
  printf("rough %d of %d\n", rough, 2 * program_count);
  printf("stopped %d\n", stopped);
  return wrong != 0 || rough > program_count / 2;
}
