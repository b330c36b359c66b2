/* Shape: a static pointer to memory on the heap.
   Hard: the shadow of the memory lives as long as the call. */
#include "check.h"
/* A buffer that the first call allocates, and later calls write again. */
static double f(double x) {
  static double *buffer;
  buffer = realloc(buffer, 4 * sizeof *buffer);
  for (int i = 0; i < 4; i++) buffer[i] = x * (i + 1);
  double s = 0;
  for (int i = 0; i < 4; i++) s += buffer[i] * buffer[i];
  free(buffer); buffer = 0;
  return s;
}
int main(void) { SCALAR(f, 1.3); return bad; }
