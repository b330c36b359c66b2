//! Statements of programs that move data: stores, moves of runs and structs, what containers do, and control flow.

use super::Writer;

impl Writer<'_> {
    pub(super) fn block(&mut self, depth: u32) {
        for _ in 0..1 + self.r.below(3) {
            if self.budget > 0 {
                self.budget -= 1;
                self.statement(depth);
            }
        }
    }

    fn statement(&mut self, depth: u32) {
        match self.r.below(if depth == 0 { 20 } else { 25 }) {
            0..=3 => {
                let (to, value) = (self.place(), self.tame());
                self.code("$0 = $1;", &[&to, &value]);
            }
            4 | 5 => {
                let count = 1 + self.r.below(6);
                let (to, from) = (self.run(count), self.run(count));
                self.transfer(&to, &from, &(8 * count).to_string());
            }
            6 | 7 => {
                let (to, from) = (self.structure(), self.structure());
                match self.r.below(4) {
                    0 => self.code("$0 = $1;", &[&to, &from]),
                    _ => self.transfer(&format!("(&{to})"), &format!("(&{from})"), "sizeof(record$k)"),
                }
            }
            8 => {
                let value = self.tame();
                let (to, from) = (self.structure(), self.structure());
                self.code("$0 = given$k($1, $2); v1 += taken$k($0) * 0.25;", &[&to, &from, &value]);
            }
            9..=11 => self.through_integers(),
            12 => self.through_union(),
            13 => self.swap(),
            14 => self.rotate(),
            15 => self.grow(),
            16 => self.sort(),
            17 => self.nodes(),
            18 => self.ring(),
            19 => self.pointers(),
            20 | 21 => {
                let c = self.condition();
                self.code("if ($0) {", &[&c]);
                self.block(depth - 1);
                self.code("} else {", &[]);
                self.block(depth - 1);
                self.code("}", &[]);
            }
            _ => {
                let (i, end) = (format!("i{}", self.counters.len()), self.pick(&["n", "2", "3"]));
                self.code("for (long $0 = 0; $0 < $1; $0++) {", &[&i, end]);
                self.counters.push(i);
                self.block(depth - 1);
                self.counters.pop();
                self.code("}", &[]);
            }
        }
    }

    /// Two values or structs change places.
    fn swap(&mut self) {
        let (a, b) = match self.r.below(2) {
            0 => (self.structure(), self.structure()),
            _ => (self.place(), self.place()),
        };
        let piece = self.pick(&["byte", "half", "word", "quad"]);
        let way = match self.r.below(4) {
            0 => "{ __typeof__($0) t = $0; $0 = $1; $1 = t; }",
            1 => {
                "{ $2 *one = ($2 *)&$0, *two = ($2 *)&$1; for (unsigned j = 0; j < sizeof($0) / sizeof *one; j++) { \
                  const $2 t = one[j]; one[j] = two[j]; two[j] = t; } }"
            }
            2 => {
                "{ byte t[sizeof($0)]; memcpy(t, &$0, sizeof t); memmove(&$0, &$1, sizeof t); memcpy(&$1, t, sizeof t); }"
            }
            _ => {
                "{ __typeof__($0) *one = &$0, *two = &$1, t[2]; memcpy(t, one, sizeof *one); t[1] = *two; *one = t[1]; \
                  quads$k(two, t, sizeof *two / 8); }"
            }
        };
        self.code(way, &[&a, &b, piece]);
    }

    /// The values of an array move on.
    fn rotate(&mut self) {
        let (array, i) = (self.pick(&["arr", "other", "block", "g$k"]), 1 + self.r.below(7));
        let way = match self.r.below(4) {
            0 => "{ double t = $0[0]; memmove($0, $0 + 1, 56); $0[7] = t; }",
            1 => {
                "{ byte t[8 * $1]; memcpy(t, $0, sizeof t); memmove($0, $0 + $1, 64 - sizeof t); \
                  memcpy($0 + 8 - $1, t, sizeof t); }"
            }
            2 => {
                "{ double t[8]; for (int j = 0; j < 8; j++) quads$k(&t[(j + $1) % 8], &$0[j], 1); bytes$k($0, t, 64); }"
            }
            _ => {
                "for (int j = 0, k = 7; j < k; j++, k--) { quad t = *(quad *)&$0[j]; *(quad *)&$0[j] = *(quad *)&$0[k]; \
                  *(quad *)&$0[k] = t; }"
            }
        };
        self.code(way, &[array, &i.to_string()]);
    }

    /// Blocks of the heap grow, are copied, or cleared and written in part.
    fn grow(&mut self) {
        let (x, i) = (self.tame(), self.index(8));
        let way = match self.r.below(5) {
            0 => "block = realloc(block, 128); memcpy(block + 8, block, 64); block[$1] = block[8 + $1] * $0;",
            1 => "{ double *t = calloc(8, 8); memcpy(t + 2, block, 48); t[0] = $0; free(block); block = t; }",
            2 => "{ byte *t = malloc(64); bytes$k(t, block, 64); free(block); block = (double *)t; }",
            3 => "memset(block, 0, 32); block[$1] += $0;",
            _ => {
                "heap = realloc(heap, 6 * sizeof *heap); memcpy(heap + 3, heap, 3 * sizeof *heap); heap[0] = heap[5]; heap[2] = s[1];"
            }
        };
        self.code(way, &[&x, &i]);
    }

    /// Structs or values in another order.
    fn sort(&mut self) {
        let Some(key) = self.record.key.clone() else {
            let array = self.pick(&["arr", "other", "block"]);
            let text = "for (int j = 1; j < 8; j++) for (int k = j; k > 0 && $0[k - 1] > $0[k]; k--) { const quad t = *(quad *)&$0[k]; \
                        *(quad *)&$0[k] = *(quad *)&$0[k - 1]; *(quad *)&$0[k - 1] = t; }";
            return self.code(text, &[array]);
        };
        let array = self.pick(&["s", "z", "heap"]);
        let way = match self.r.below(3) {
            0 => {
                "for (int j = 1; j < 3; j++) { record$k t = $0[j]; int k = j; for (; k > 0 && $0[k - 1]$1 > t$1; k--) \
                  $0[k] = $0[k - 1]; $0[k] = t; }"
            }
            1 => {
                "for (int j = 0; j < 2; j++) if ($0[j]$1 > $0[j + 1]$1) { byte t[sizeof *$0]; bytes$k(t, &$0[j], sizeof t); \
                  bytes$k(&$0[j], &$0[j + 1], sizeof t); bytes$k(&$0[j + 1], t, sizeof t); }"
            }
            _ => {
                "{ record$k t[3]; for (int j = 0; j < 3; j++) { int k = 0; for (int l = 0; l < 3; l++) k += $0[l]$1 < $0[j]$1 || \
                  ($0[l]$1 == $0[j]$1 && l < j); t[k] = $0[j]; } words$k($0, t, sizeof t / 4); }"
            }
        };
        self.code(way, &[array, &key]);
    }

    /// Nodes of several kinds, in a list.
    fn nodes(&mut self) {
        let (x, y, at) = (self.expression(0), self.expression(0), self.place());
        let (write, read) = match self.narrow {
            true => ("l->is.f[0] = $1; l->is.f[1] = $0;", "l->is.f[0] * l->is.f[1]"),
            false => (
                "const double d = $1; for (int i = 0; i < 8; i++) l->is.b[i] = ((const byte *)&d)[i];",
                "l->is.d * 0.5",
            ),
        };
        let copy = self.pick(&[
            "*c = *l;",
            "memcpy(c, l, sizeof *c);",
            "bytes$k(c, l, sizeof *c);",
            "words$k(c, l, sizeof *c / 4);",
        ]);
        self.code(
            "{ node *head = 0; for (int j = 0; j < 4; j++) { node *l = malloc(sizeof *l); l->kind = j % 3; l->next = head; head = l; \
             if (j % 3 == 0) l->is.d = $0; else if (j % 3 == 1) { $5 } else l->is.to = &arr[j]; }\n\
             node *copies = 0; for (node *l = head; l; l = l->next) { node *c = malloc(sizeof *c); $3 c->next = copies; copies = c; }\n\
             double total = 0; for (node *l = copies; l; l = l->next) total += l->kind == 0 ? l->is.d : l->kind == 1 ? $4 : \
             *l->is.to;\n\
             for (node *l = head, *t; l; l = t) { t = l->next; free(l); } for (node *l = copies, *t; l; l = t) { t = l->next; \
             free(l); } $2 = sin(total); }",
            &[&x, &y, &at, copy, read, &write.replace("$0", &x).replace("$1", &y)],
        );
    }

    /// A queue in a ring of bytes.
    fn ring(&mut self) {
        let (x, at) = (self.expression(0), self.place());
        let way = match self.r.below(3) {
            0 => {
                "{ byte q[24]; int in = 5, out = 5; double d = $0, e = 0; for (int t = 0; t < 3; t++) { for (int j = 0; j < 8; j++) \
                  q[in++ % 24] = ((byte *)&d)[j]; for (int j = 0; j < 8; j++) ((byte *)&e)[j] = q[out++ % 24]; d = e * 0.5; } $1 = d; }"
            }
            1 => {
                "{ uint64_t q[4]; unsigned in = 0, out = 0; for (int t = 0; t < 6; t++) { q[in++ & 3] = bits$k($0 * (t + 1)); \
                  if (t > 1) $1 = real$k(q[out++ & 3]) * 0.25; } }"
            }
            _ => {
                "{ record$k q[2]; unsigned in = 0; for (int t = 0; t < 3; t++) { q[in++ & 1] = s[t]; if (t) z[t] = q[in & 1]; } }"
            }
        };
        self.code(way, &[&x, &at]);
    }

    /// Pointers lead elsewhere, and move in pieces themselves.
    fn pointers(&mut self) {
        let (v, i) = (self.r.below(4).to_string(), self.index(8));
        let way = match (self.r.below(6), self.record.pointer.is_some()) {
            (0, _) => "p = &v$0;",
            (1, _) => "p = arr + $1;",
            (2, _) => "{ double *t = &other[$1]; bytes$k(&p, &t, 8); }",
            (3, _) => "{ double *t[2] = {&v$0, &arr[$1]}, *u[2]; words$k(u, t, 4); p = u[n > 0]; }",
            (4, true) => "s[1].at = &other[$1]; words$k(&z[0].at, &s[1].at, 2);",
            (5, true) => "pp = &z[1].at; *pp = &v$0;",
            _ => "{ uintptr_t t = (uintptr_t)&v$0; memcpy(&p, &t, 8); }",
        };
        self.code(way, &[&v, &i]);
    }
}
