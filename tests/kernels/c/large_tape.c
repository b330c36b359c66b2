/* Shape: overwritten arrays of which many megabytes have to be kept, in calls of different size, one after the other and in several
   threads at once.
   Hard: memory that one call leaves for the next may be too small, may hold what the call before kept, and goes to one taker only. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

extern int enzyme_dup;
extern int enzyme_const;
double __enzyme_autodiff(void *, ...);
#ifndef RTOL
#define RTOL 1e-9
#endif

enum { N = 100000 };

/* Squares every element, as often as asked. */
static double squares(double *x, int n, int times) {
  for (int k = 0; k < times; k++)
    for (int i = 0; i < n; i++) x[i] = x[i] * x[i];
  double s = 0;
  for (int i = 0; i < n; i++) s += x[i];
  return s;
}

static int one(int times, double from) {
  double *x = malloc(N * sizeof *x), *d = calloc(N, sizeof *d);
  int bad = 0;
  for (int i = 0; i < N; i++) x[i] = from + 1e-7 * i;
  __enzyme_autodiff((void *)squares, enzyme_dup, x, d, enzyme_const, N, enzyme_const, times);
  const double power = pow(2, times);
  for (int i = 0; i < N && !bad; i++) {
    const double want = power * pow(from + 1e-7 * i, power - 1);
    if (!(fabs(d[i] - want) <= RTOL * fmax(1.0, fabs(want)))) {
      printf("%d times, element %d: got %.15g, expected %.15g\n", times, i, d[i], want);
      bad = 1;
    }
  }
  free(x);
  free(d);
  return bad;
}

static void *several(void *which) {
  const int *times = which;
  int bad = 0;
  for (int k = 0; k < 3; k++) bad |= one(times[k], 0.9 + 0.01 * k);
  return bad ? which : NULL;
}

int main(void) {
  /* 800 kB are kept each time: first less than memory is used again for, then more. */
  int bad = one(2, 0.9) | one(7, 0.97) | one(6, 0.95) | one(8, 0.97) | one(1, 0.5);
  int times[2][3] = {{6, 7, 5}, {8, 1, 6}};
  pthread_t threads[2];
  for (int k = 0; k < 2; k++)
    if (pthread_create(&threads[k], NULL, several, times[k])) return 2;
  for (int k = 0; k < 2; k++) {
    void *failed;
    pthread_join(threads[k], &failed);
    bad |= failed != NULL;
  }
  return bad;
}
