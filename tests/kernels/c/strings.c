/* Shape: text beside floats.
   Hard: library functions on text are harmless where they meet no float. */
#include "check.h"
static double f(double *x, int n) {
  char name[32]; strcpy(name, "abcba"); size_t l = strlen(name); double s = 0;
  for (size_t i = 0; i < l; i++) s += x[(name[i] - 'a') % n] * (strcmp(name + i, "ba") == 0 ? 2 : 1) * x[i % n];
  char *p = strchr(name, 'c');
  return p ? s * (p - name) : s;
}
int main(void) { VECTOR(f, 4, 0.53, 0.27, 0.76, 0.9); return bad; }
