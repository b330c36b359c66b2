/* Shape: arrays of structs without padding, copied and moved as wholes: by assignment, by memcpy of a known and of an unknown
   size, by memmove onto themselves; bit fields and small floats among them.
   Hard: doubles lie at any byte, and no two of a block at multiples of four bytes from each other. */
#include "check.h"
#pragma pack(push, 1)
struct tagged { unsigned char tag; double v; };
struct counted { int k; double v; };
struct fields { unsigned char tag; double v; unsigned short k : 5, m : 11; float w; };
#pragma pack(pop)
static double moved(double *x, int n) {
  struct tagged r[4];
  for (int i = 0; i < 4; i++) { r[i].tag = i; r[i].v = x[i % n]; }
  memmove(r + 1, r, 2 * sizeof *r);
  double s = 0;
  for (int i = 0; i < 4; i++) s += r[i].v * r[i].v * (i + 1) + r[i].tag * r[i].v;
  return s;
}
static double assigned(double *x, int n) {
  struct fields r[4], t;
  for (int i = 0; i < 4; i++) { r[i].tag = i; r[i].v = x[i % n]; r[i].k = i * 3; r[i].m = 100 * i; r[i].w = (float)i / 2; }
  t = r[0]; r[0] = r[3]; r[3] = t; memmove(r + 1, r, 2 * sizeof *r);
  double s = 0;
  for (int i = 0; i < 4; i++) s += r[i].v * r[i].v * (r[i].k + r[i].m * .01) * r[i].w + r[i].tag * r[i].v;
  return s;
}
static double copied(double *x, int n) {
  struct tagged *r = malloc(n * sizeof *r), *q = calloc(n, sizeof *q);
  for (int i = 0; i < n; i++) { r[i].tag = i; r[i].v = x[i]; }
  memcpy(q, r, n * sizeof *r);
  double s = 0;
  for (int i = 0; i < n; i++) s += r[i].v * r[i].v * (i + 1) + q[i].tag * q[i].v * q[i].v;
  free(r); free(q);
  return s;
}
static double halves(double *x, int n) {
  struct counted *r = malloc(n * sizeof *r), *q = calloc(n, sizeof *q), t[2];
  for (int i = 0; i < n; i++) { r[i].k = i; r[i].v = x[i]; }
  memcpy(q, r, n * sizeof *r); memcpy(t, r + 1, sizeof t); memmove(r, r + 1, 2 * sizeof *r);
  double s = t[0].v * t[1].v;
  for (int i = 0; i < n; i++) s += r[i].v * r[i].v * (i + 1) + q[i].k * q[i].v * q[i].v;
  free(r); free(q);
  return s;
}
int main(void) {
  VECTOR(moved, 3, 0.53, 2.27, 0.76);
  VECTOR(assigned, 3, 0.53, 2.27, 0.76);
  VECTOR(copied, 4, 0.53, 2.27, 0.76, 1.4);
  VECTOR(halves, 4, 0.53, 2.27, 0.76, 1.4);
  return bad;
}
