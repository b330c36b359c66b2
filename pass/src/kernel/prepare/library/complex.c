/* Complex numbers: what the compiler and the C library compute by calls. A product that is not a number for want of care
   with infinities stays one: only there the compiler calls these. */

#define COMPLEX(T, F, MUL, DIV)                                                                                        \
  static T _Complex pair##F(T re, T im) {                                                                              \
    T _Complex z;                                                                                                      \
    __real__ z = re;                                                                                                   \
    __imag__ z = im;                                                                                                   \
    return z;                                                                                                          \
  }                                                                                                                    \
  T _Complex MUL(T a, T b, T c, T d) { return pair##F(a * c - b * d, a * d + b * c); }                                 \
  T _Complex DIV(T a, T b, T c, T d) {                                                                                 \
    T n = c * c + d * d;                                                                                               \
    return pair##F((a * c + b * d) / n, (b * c - a * d) / n);                                                          \
  }

#define FUNCTIONS(T, F, S)                                                                                             \
  T exp##S(T), log##S(T), log1p##S(T), sin##S(T), cos##S(T), tan##S(T), sinh##S(T), cosh##S(T), tanh##S(T);            \
  T hypot##S(T, T), atan2##S(T, T), sqrt##S(T);                                                                        \
  T cabs##S(T _Complex z) { return hypot##S(__real__ z, __imag__ z); }                                                 \
  T carg##S(T _Complex z) { return atan2##S(__imag__ z, __real__ z); }                                                 \
  T _Complex cexp##S(T _Complex z) {                                                                                   \
    T r = exp##S(__real__ z);                                                                                          \
    return pair##F(r * cos##S(__imag__ z), r * sin##S(__imag__ z));                                                    \
  }                                                                                                                    \
  T _Complex clog##S(T _Complex z) { return pair##F(log##S(cabs##S(z)), carg##S(z)); }                                 \
  T _Complex csqrt##S(T _Complex z) {                                                                                  \
    T r = sqrt##S(cabs##S(z)), half = carg##S(z) / 2;                                                                  \
    return pair##F(r * cos##S(half), r * sin##S(half));                                                                \
  }                                                                                                                    \
  T _Complex cpow##S(T _Complex z, T _Complex w) {                                                                     \
    T l = log##S(cabs##S(z)), a = carg##S(z), u = __real__ w, v = __imag__ w;                                          \
    return cexp##S(pair##F(u * l - v * a, u * a + v * l));                                                             \
  }                                                                                                                    \
  T _Complex csin##S(T _Complex z) {                                                                                   \
    T x = __real__ z, y = __imag__ z;                                                                                  \
    return pair##F(sin##S(x) * cosh##S(y), cos##S(x) * sinh##S(y));                                                    \
  }                                                                                                                    \
  T _Complex ccos##S(T _Complex z) {                                                                                   \
    T x = __real__ z, y = __imag__ z;                                                                                  \
    return pair##F(cos##S(x) * cosh##S(y), -sin##S(x) * sinh##S(y));                                                   \
  }                                                                                                                    \
  T _Complex csinh##S(T _Complex z) {                                                                                  \
    T x = __real__ z, y = __imag__ z;                                                                                  \
    return pair##F(sinh##S(x) * cos##S(y), cosh##S(x) * sin##S(y));                                                    \
  }                                                                                                                    \
  T _Complex ccosh##S(T _Complex z) {                                                                                  \
    T x = __real__ z, y = __imag__ z;                                                                                  \
    return pair##F(cosh##S(x) * cos##S(y), sinh##S(x) * sin##S(y));                                                    \
  }                                                                                                                    \
  T _Complex ctanh##S(T _Complex z) {                                                                                  \
    /* Of the tangents of both parts: nothing overflows. */                                                            \
    T a = tanh##S(__real__ z), b = tan##S(__imag__ z), c = 1 / cosh##S(__real__ z), n = 1 + a * a * b * b;             \
    return pair##F(a * (1 + b * b) / n, b * c * c / n);                                                                \
  }                                                                                                                    \
  T _Complex ctan##S(T _Complex z) {                                                                                   \
    T _Complex w = ctanh##S(pair##F(-__imag__ z, __real__ z));                                                         \
    return pair##F(__imag__ w, -__real__ w);                                                                           \
  }                                                                                                                    \
  /* log(1 + z), to rounding for small z, too. */                                                                      \
  static T _Complex clog1p##S(T _Complex z) {                                                                          \
    T a = __real__ z, b = __imag__ z;                                                                                  \
    if (!(-0.5 < a && a < 1 && -1 < b && b < 1)) return clog##S(1 + z);                                                \
    return pair##F(log1p##S(2 * a + a * a + b * b) / 2, atan2##S(b, 1 + a));                                           \
  }                                                                                                                    \
  T _Complex casinh##S(T _Complex z) {                                                                                 \
    /* It is odd: on the right nothing cancels. */                                                                     \
    if (__real__ z < 0) return -casinh##S(-z);                                                                         \
    return clog1p##S(z + z * z / (csqrt##S(z * z + 1) + 1));                                                           \
  }                                                                                                                    \
  T _Complex casin##S(T _Complex z) {                                                                                  \
    T _Complex w = casinh##S(pair##F(-__imag__ z, __real__ z));                                                        \
    return pair##F(__imag__ w, -__real__ w);                                                                           \
  }                                                                                                                    \
  T _Complex cacosh##S(T _Complex z) { return clog##S(z + csqrt##S(z + 1) * csqrt##S(z - 1)); }                        \
  T _Complex cacos##S(T _Complex z) {                                                                                  \
    T _Complex w = casin##S(z);                                                                                        \
    return pair##F((T)1.57079632679489661923 - __real__ w, -__imag__ w);                                               \
  }                                                                                                                    \
  T _Complex catanh##S(T _Complex z) {                                                                                 \
    /* Both parts by themselves: nothing cancels. */                                                                   \
    T x = __real__ z, y = __imag__ z, a = x < 0 ? -x : x, r = log1p##S(4 * a / ((1 - a) * (1 - a) + y * y)) / 4;       \
    return pair##F(x < 0 ? -r : r, atan2##S(2 * y, (1 - a) * (1 + a) - y * y) / 2);                                    \
  }                                                                                                                    \
  T _Complex catan##S(T _Complex z) {                                                                                  \
    T _Complex w = catanh##S(pair##F(-__imag__ z, __real__ z));                                                        \
    return pair##F(__imag__ w, -__real__ w);                                                                           \
  }

COMPLEX(double, f64, __muldc3, __divdc3)
COMPLEX(float, f32, __mulsc3, __divsc3)
COMPLEX(long double, f80, __mulxc3, __divxc3)
FUNCTIONS(double, f64, )
FUNCTIONS(float, f32, f)
