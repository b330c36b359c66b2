//! Random programs in C that move values more than they compute: whole and in pieces, through memory, integers and
//! unions, in structs with padding, on the stack and on the heap. What they do is defined in C, and what was a float is
//! read as the same float, perhaps with another sign. [`ways`] has the ways of one value, [`statements`] what is done
//! with many.

mod places;
mod statements;
mod ways;

use super::generate::Random;
use places::Record;

/// What every module declares.
pub(crate) const HEADER: &str = include_str!("movement.h");
/// Variables of a program.
const VARIABLES: u64 = 4;
/// Elements of its arrays, and structs in each of its arrays of structs.
const ELEMENTS: u64 = 8;
const RECORDS: u64 = 3;

/// Writes one program.
struct Writer<'a> {
    r: &'a mut Random,
    text: String,
    /// Number of the program.
    program: usize,
    /// Does it compute with `float`s, too?
    narrow: bool,
    record: Record,
    /// Statements that may still be written, and names that were given.
    budget: u32,
    names: u32,
    /// Counters of the loops around.
    counters: Vec<String>,
}

impl Writer<'_> {
    /// C code, with `$0`, `$1`, ... replaced by parts, and `$k` by the number of the program.
    fn code(&mut self, template: &str, parts: &[&str]) {
        let mut code = template.to_owned();
        for (k, part) in parts.iter().enumerate() {
            code = code.replace(&format!("${k}"), part);
        }
        self.text += &code.replace("$k", &self.program.to_string());
        self.text.push('\n');
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.r.below(n) == 0
    }

    fn pick<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[self.r.below(of.len() as u64) as usize]
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("t{}", self.names)
    }

    fn function(mut self) -> String {
        let fields = self.record.fields.join(" ");
        self.code("typedef struct { $0 } record$k;\ndouble g$k[8];", &[&fields]);
        self.helpers();
        self.code("double f$k(double *x, long n, double a) {", &[]);
        for v in 0..VARIABLES {
            let c = self.constant();
            self.code("double v$0 = $1;", &[&v.to_string(), &c]);
        }
        self.code(
            "v0 = a; double arr[8], other[8], *block = malloc(64), *p = &v1, **pp = &p;\n\
             record$k s[3], z[3], *heap = calloc(3, sizeof *heap);\n\
             _Alignas(8) byte raw[80]; uint64_t saved[4]; mixed m; float narrow[4];\n\
             memset(s, 0, sizeof s); memset(z, 0, sizeof z); memset(raw, 0, sizeof raw);\n\
             for (int i = 0; i < 8; i++) arr[i] = x[i % 6], other[i] = i < 6 ? a * x[i] : 0.5, block[i] = x[i / 2] - a, \
             g$k[i] = x[5 - i % 6] * 0.5;\n\
             for (int i = 0; i < 4; i++) saved[i] = bits$k(x[i]), narrow[i] = x[i + 1]; m.d = a;",
            &[],
        );
        for (k, path) in self.record.doubles.clone().into_iter().enumerate() {
            let k = (k % 6).to_string();
            self.code(
                "for (int i = 0; i < 3; i++) s[i]$0 = x[$1], z[i]$0 = x[i] * a;",
                &[&path, &k],
            );
        }
        if let Some(key) = self.record.key.clone() {
            self.code(
                "for (int i = 0; i < 3; i++) s[i]$0 = 7 * i % 3, z[i]$0 = 2 - i, heap[i]$0 = i;",
                &[&key],
            );
        }
        if let Some(pointer) = self.record.pointer.clone() {
            self.code(
                "for (int i = 0; i < 3; i++) s[i]$0 = &arr[i], z[i]$0 = &v2, heap[i]$0 = other + i;",
                &[&pointer],
            );
        }
        while self.budget > 0 {
            self.block(2);
        }
        let last = self.record.doubles[self.r.below(self.record.doubles.len() as u64) as usize].clone();
        self.code(
            "double sum = v0 + v1 + v2 + v3 + *p + **pp + m.d + real$k(saved[1]);",
            &[],
        );
        if self.narrow {
            self.code("sum += narrow[2];", &[]);
        }
        self.code(
            "for (int i = 0; i < 8; i++) sum += arr[i] * 0.5 + other[i] + block[i] * 1.5 + g$k[i];",
            &[],
        );
        self.code(
            "for (int i = 0; i < 3; i++) sum += s[i]$0 + z[i]$0 * 0.7 + heap[i]$0;",
            &[&last],
        );
        self.code("free(block); free(heap); return sum;\n}", &[]);
        self.text
    }

    /// Functions of the program's own that move bits and blocks; out of line, or not.
    fn helpers(&mut self) {
        for (piece, name) in [
            ("byte", "bytes"),
            ("half", "halves"),
            ("word", "words"),
            ("quad", "quads"),
        ] {
            let apart = self.pick(&["APART ", ""]);
            let up = self.pick(&[
                "for (long i = 0; i < n; i++) ((TYPE *)to)[i] = ((const TYPE *)from)[i];",
                "for (long i = n; i-- > 0;) ((TYPE *)to)[i] = ((const TYPE *)from)[i];",
                "const TYPE *p = from; TYPE *q = to; while (n-- > 0) *q++ = *p++;",
            ]);
            let body = up.replace("TYPE", piece);
            self.code(
                "static $0void $1$k(void *to, const void *from, long n) { $2 }",
                &[apart, name, &body],
            );
        }
        let (there, back) = (self.pick(&["APART ", ""]), self.pick(&["APART ", ""]));
        self.code(
            "static $0uint64_t bits$k(double d) { uint64_t b; memcpy(&b, &d, 8); return b; }",
            &[there],
        );
        self.code(
            "static $0double real$k(uint64_t b) { double d; memcpy(&d, &b, 8); return d; }",
            &[back],
        );
        let (taken, given) = (self.pick(&["APART ", ""]), self.pick(&["APART ", ""]));
        let of = self.record.doubles[0].clone();
        self.code(
            "static $0record$k given$k(record$k s, double by) { s$1 *= by; return s; }",
            &[given, &of],
        );
        self.code("static $0double taken$k(record$k s) { return s$1; }", &[taken, &of]);
    }
}

/// Does the program compute with `float`s, too?
pub(crate) fn is_narrow(seed: u64) -> bool {
    seed.is_multiple_of(4)
}

/// The program `k`: `f{k}` and its own types and functions.
pub(crate) fn program(k: usize, seed: u64) -> String {
    let mut r = Random::new(seed ^ 0x6d6f_7665);
    let record = Record::new(&mut r);
    let budget = 5 + r.below(10) as u32;
    Writer {
        r: &mut r,
        text: String::new(),
        program: k,
        narrow: is_narrow(seed),
        record,
        budget,
        names: 0,
        counters: vec![],
    }
    .function()
}

/// The global variables of a program, in C.
pub(crate) fn variables(k: usize) -> String {
    format!("double g{k}[8];")
}
