//! The ways that values go: blocks moved in pieces, and one `double` through integers and unions.

use super::Writer;

impl Writer<'_> {
    /// Moves bytes between blocks that are apart, or meet in whole values.
    pub(super) fn transfer(&mut self, to: &str, from: &str, bytes: &str) {
        match self.r.below(16) {
            0..=2 => self.code("memmove($0, $1, $2);", &[to, from, bytes]),
            3 => self.code("bytes$k($0, $1, $2);", &[to, from, bytes]),
            4 => self.code("halves$k($0, $1, $2 / 2);", &[to, from, bytes]),
            5 | 6 => self.code("words$k($0, $1, $2 / 4);", &[to, from, bytes]),
            7..=10 => self.code("quads$k($0, $1, $2 / 8);", &[to, from, bytes]),
            11 | 12 => {
                let piece = self.pick(&["byte", "half", "word", "quad", "quad", "quad"]);
                self.code(
                    "for (long i = 0; i < (long)($2 / sizeof($3)); i++) (($3 *)$0)[i] = ((const $3 *)$1)[i];",
                    &[to, from, bytes, piece],
                );
            }
            13 => {
                let piece = self.pick(&["byte", "half", "word", "quad", "quad", "quad"]);
                self.code(
                    "for (long i = 0; i < (long)($2 / sizeof($3)); i++) { $3 t; memcpy(&t, (const byte *)$1 + \
                     i * sizeof t, sizeof t); memcpy((byte *)$0 + i * sizeof t, &t, sizeof t); }",
                    &[to, from, bytes, piece],
                );
            }
            14 => self.code(
                "for (unsigned i = 0; i < $2 / 4; i += 2) { const word *q = (const word *)$1 + i, t = q[0], u = q[1]; \
                 ((word *)$0)[i] = t; ((word *)$0)[i + 1] = u; }",
                &[to, from, bytes],
            ),
            _ => self.buffered(to, from, bytes),
        }
    }

    /// Moves bytes over a buffer, in which they do not lie as they should, perhaps.
    fn buffered(&mut self, to: &str, from: &str, bytes: &str) {
        let name = self.name();
        let skew = ["0", "0", "8", "4", "1", "2", "5"][self.r.below(7) as usize];
        self.code("{ byte $0[$1 + 16]; ", &[&name, bytes]);
        let there = format!("({name} + {skew})");
        let way = |r: u64| match r {
            0 => "memcpy($0, $1, $2);",
            1 => "bytes$k($0, $1, $2);",
            _ => "for (long i = 0; i < (long)$2; i++) ((byte *)$0)[i] = ((const byte *)$1)[i];",
        };
        let (first, second) = (way(self.r.below(3)), way(self.r.below(3)));
        self.code(first, &[&there, from, bytes]);
        self.code(second, &[to, &there, bytes]);
        self.code("}", &[]);
    }

    /// One value goes through an integer, or more than one, and comes back.
    pub(super) fn through_integers(&mut self) {
        let (to, from) = (self.place(), self.expression(0));
        let (i, o) = (self.index(4), self.r.below(9).to_string());
        let parts: &[&str] = &[&to, &from, &i, &o];
        // Where a byte goes that is shifted nothing tells: that is refused, so it is rare.
        let pick = match self.r.below(19) {
            shifted @ 2..=4 if self.one_in(8) => shifted,
            2..=4 => 5,
            pick => pick,
        };
        let way = match pick {
            0 => "{ uint64_t b = bits$k($1); uint32_t h = b >> 32, l = b; $0 = real$k((uint64_t)h << 32 | l); }",
            1 => {
                "{ saved[$2] = __builtin_bswap64(bits$k($1)); saved[$2] = __builtin_bswap64(saved[$2]); $0 = real$k(saved[$2]); }"
            }
            2 => {
                "{ uint64_t b = bits$k($1); for (int j = 0; j < 8; j++) raw[$3 + j] = b >> (56 - 8 * j); b = 0; \
                  for (int j = 0; j < 8; j++) b = b << 8 | raw[$3 + j]; $0 = real$k(b); }"
            }
            3 => {
                "{ uint64_t b = bits$k($1); for (int j = 0; j < 8; j++) raw[$3 + j] = b >> 8 * j; b = 0; \
                  for (int j = 0; j < 8; j++) b |= (uint64_t)raw[$3 + j] << 8 * j; $0 = real$k(b); }"
            }
            4 => {
                "{ uint64_t b = bits$k($1); raw[0] = b; raw[1] = b >> 8; raw[2] = b >> 16; raw[3] = b >> 24; raw[4] = b >> 32; \
                  raw[5] = b >> 40; raw[6] = b >> 48; raw[7] = b >> 56; b = raw[0] | raw[1] << 8 | raw[2] << 16 | \
                  (uint64_t)raw[3] << 24 | (uint64_t)raw[4] << 32 | (uint64_t)raw[5] << 40 | (uint64_t)raw[6] << 48 | \
                  (uint64_t)raw[7] << 56; $0 = real$k(b); }"
            }
            5 => {
                "{ double d = $1; word w[2]; memcpy(w, &d, 8); const word t = w[0]; w[0] = w[1]; w[1] = t; \
                  const word u[2] = {w[1], w[0]}; memcpy(&d, u, 8); $0 = d; }"
            }
            6 => "{ uint64_t b = bits$k($1); b = (b & 0xffff0000ffffull) | (b & ~0xffff0000ffffull); $0 = real$k(b); }",
            7 => {
                "{ uint64_t b = bits$k($1); b = b << 16 | b >> 48; saved[$2] = b; b = saved[$2]; b = b >> 16 | b << 48; \
                  saved[$2] = b; $0 = real$k(b); }"
            }
            8 => "$0 = real$k(bits$k($1) ^ 1ull << 63);",
            9 => "$0 = real$k(bits$k($1) & ~(1ull << 63));",
            10 => "{ double d = $1; mixed u; u.d = d; u.b[7] ^= 0x80; $0 = u.d; }",
            11 => "{ mixed u; u.d = $1; u.w[1] &= 0x7fffffff; $0 = u.d; }",
            12 => "$0 = $1 * (double)((long)(bits$k($1) >> 52 & 7) - 3) * 0.4;",
            13 => "{ const double d = $1; $0 = ((int64_t)bits$k(d) < 0 ? -d : d) * 0.5; }",
            14 => "{ uint64_t b = bits$k($1), c = bits$k(m.d); $0 = real$k(n % 2 ? b : c); }",
            15 => "{ twin t = bits$k($1); t = t << 64 | bits$k(a); $0 = real$k(t >> 64) + real$k(t) * 0.5; }",
            16 => {
                "{ saved[$2] = bits$k($1); uint64_t b; __atomic_load(&saved[$2], &b, __ATOMIC_RELAXED); $0 = real$k(b); }"
            }
            17 => "{ pair t = {$1, a}; word w[4]; memcpy(w, &t, 16); memcpy(&t, w, 16); $0 = t[0] + t[1] * t[0]; }",
            _ => {
                "{ const uint64_t sign = 1ull << 63, b = bits$k($1), c = bits$k(m.d); $0 = real$k((b & ~sign) | (c & sign)); }"
            }
        };
        self.code(way, parts);
    }

    /// One value, or two narrow ones, in a union or beside it.
    pub(super) fn through_union(&mut self) {
        let (to, from) = (self.place(), self.expression(0));
        let (i, k) = (self.r.below(4).to_string(), self.r.below(4).to_string());
        let way = match self.r.below(if self.narrow { 9 } else { 5 }) {
            0 => "m.d = $1; $0 = m.d;",
            1 => "m.q = bits$k($1); $0 = m.d;",
            2 => "{ mixed u; u.d = $1; for (int j = 0; j < 8; j++) m.b[j] = u.b[j]; $0 = m.d; }",
            3 => "{ mixed u; u.d = $1; m.w[1] = u.w[1]; m.w[0] = u.w[0]; $0 = m.d; }",
            4 => "{ mixed u; u.d = $1; for (int j = 4; j-- > 0;) m.h[j] = u.h[j]; $0 = real$k(m.q); }",
            5 => {
                "{ mixed u; u.f[0] = $1; u.f[1] = narrow[$2]; uint64_t q = u.q; u.q = q << 32 | q >> 32; \
                  narrow[$3] = u.f[0]; $0 = u.f[1]; }"
            }
            6 => "{ mixed u; u.f[0] = narrow[$2]; u.f[1] = $1; m = u; $0 = m.f[0] + m.f[1]; m.d = $0; }",
            7 => {
                "{ float f = narrow[$2]; uint32_t b; memcpy(&b, &f, 4); b ^= 0x80000000; memcpy(&f, &b, 4); narrow[$3] = f; }"
            }
            _ => {
                "{ uint32_t w[2]; memcpy(w, &narrow[1], 8); quad q = (quad)w[1] << 32 | w[0]; memcpy(&narrow[2], &q, 8); }"
            }
        };
        self.code(way, &[&to, &from, &i, &k]);
    }
}
