// What the programs that move data share.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define APART __attribute__((noinline))
#define ALIAS __attribute__((may_alias))
typedef unsigned char byte;
typedef uint16_t ALIAS half;
typedef uint32_t ALIAS word;
typedef uint64_t ALIAS quad;
typedef unsigned __int128 twin;
typedef double ALIAS pair __attribute__((vector_size(16)));
typedef union { double d; uint64_t q; uint32_t w[2]; uint16_t h[4]; byte b[8]; float f[2]; } mixed;
typedef struct node { struct node *next; int kind; union { double d; float f[2]; double *to; byte b[8]; } is; } node;
