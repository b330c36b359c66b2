/* Shape: a function that is declared to be like one of the C library.
   Hard: its body, a series with a loop, must not be differentiated. */
#include "check.h"
__attribute__((noinline)) static double my_sine(double x) { double t = x, s = 0; for (int i = 1; i < 20; i += 2) { s += t; t = -t * x * x / ((i + 1) * (i + 2)); } return s; }
void *__enzyme_function_like[] = {(void *)my_sine, (void *)"sin"};
static double f(double x) { return my_sine(x * x) + x; }
int main(void) {
  SCALAR(f, 0.7);
  return bad;
}
