/* Functions of the C library that look for a place in memory and give it: it lies in the object they are given. */

typedef __SIZE_TYPE__ size;

void *memchr(const void *start, int wanted, size bytes) {
  const unsigned char *at = start;
  for (; bytes > 0; at++, bytes--)
    if (*at == (unsigned char)wanted) return (void *)at;
  return 0;
}

char *strchr(const char *at, int wanted) {
  for (; *at != (char)wanted; at++)
    if (*at == 0) return 0;
  return (char *)at;
}

char *strrchr(const char *at, int wanted) {
  const char *last = 0;
  do {
    if (*at == (char)wanted) last = at;
  } while (*at++ != 0);
  return (char *)last;
}
