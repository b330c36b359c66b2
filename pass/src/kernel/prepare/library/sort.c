/* `qsort`: runs of growing length are merged from one array to another. `bsearch`: the half is taken that the key is in. */

typedef __SIZE_TYPE__ size;
void *malloc(size), *memcpy(void *, const void *, size);
void free(void *);

void qsort(void *base, size count, size bytes, int (*compare)(const void *, const void *)) {
  if (count < 2 || bytes == 0) return;
  char *other = malloc(count * bytes), *from = base, *to = other;
  for (size run = 1; run < count; run *= 2) {
    size at = 0;
    for (size first = 0; first < count; first += 2 * run) {
      size i = first, middle = first + run < count ? first + run : count;
      size k = middle, end = first + 2 * run < count ? first + 2 * run : count;
      while (at < end) {
        int left = k == end || (i < middle && compare(from + i * bytes, from + k * bytes) <= 0);
        size next = left ? i++ : k++;
        memcpy(to + at++ * bytes, from + next * bytes, bytes);
      }
    }
    char *swap = from;
    from = to;
    to = swap;
  }
  if (from != base) memcpy(base, from, count * bytes);
  free(other);
}

void *bsearch(const void *key, const void *base, size count, size bytes, int (*compare)(const void *, const void *)) {
  const char *first = base;
  while (count > 0) {
    const char *middle = first + count / 2 * bytes;
    int order = compare(key, middle);
    if (order == 0) return (void *)middle;
    if (order > 0) first = middle + bytes;
    count = order > 0 ? (count - 1) / 2 : count / 2;
  }
  return 0;
}
