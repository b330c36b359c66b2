/* Shape: volatile variables, errno and output to text.
   Hard: what is only looked at or printed is constant. */
#include "check.h"
#include <errno.h>
static double f(double x) {
  volatile double v = x * x;
  errno = 0;
  double y = sqrt(v) * v;
  if (errno) return -1;
  char text[64];
  snprintf(text, sizeof text, "%f", y);
  if (text[0] == 'z') printf("%s\n", text);
  v += y;
  return v * text[0] / 48.0;
}
int main(void) { SCALAR(f, 0.4); return bad; }
