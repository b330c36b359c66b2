//! Where the programs have values: a struct of random fields, places of one value and runs of them, and expressions.

use super::{ELEMENTS, RECORDS, VARIABLES, Writer};
use crate::generate::Random;

/// A struct type.
pub(super) struct Record {
    /// Its fields, in C.
    pub(super) fields: Vec<String>,
    /// Ways to `double`s, an integer and a pointer in it.
    pub(super) doubles: Vec<String>,
    pub(super) key: Option<String>,
    pub(super) pointer: Option<String>,
}

impl Record {
    pub(super) fn new(r: &mut Random) -> Self {
        let mut record = Self {
            fields: vec![],
            doubles: vec![],
            key: None,
            pointer: None,
        };
        for k in 0..2 + r.below(4) {
            let (field, doubles): (_, &[&str]) = match r.below(9) {
                0 => ("char #;", &[]),
                1 => ("short #[3];", &[]),
                2 => ("float #[2];", &[]),
                3 => ("double #;", &["#"]),
                4 => ("double #[2];", &["#[0]", "#[1]"]),
                5 => ("struct { int i; double d; char c; double e; } #;", &["#.d", "#.e"]),
                6 => (
                    "struct { short i; struct { double d[2]; char c; } in[2]; } #;",
                    &["#.in[1].d[0]", "#.in[0].d[1]"],
                ),
                7 => ("union { double d; uint64_t q; float f[2]; } #;", &["#.d"]),
                _ => ("struct { float f; int i; } #;", &[]),
            };
            let name = format!("m{k}");
            record.fields.push(field.replace('#', &name));
            record
                .doubles
                .extend(doubles.iter().map(|d| format!(".{}", d.replace('#', &name))));
        }
        if r.below(2) == 0 {
            let ty = ["int", "short", "long", "char"][r.below(4) as usize];
            record.fields.insert(0, format!("{ty} key;"));
            record.key = Some(".key".into());
        }
        if r.below(3) == 0 {
            record.fields.push("double *at;".into());
            record.pointer = Some(".at".into());
        }
        if record.doubles.is_empty() {
            record.fields.push("double last;".into());
            record.doubles.push(".last".into());
        }
        record
    }
}

impl Writer<'_> {
    /// An index below a bound.
    pub(super) fn index(&mut self, bound: u64) -> String {
        match self.counters.last().cloned() {
            Some(counter) if self.one_in(2) => format!("({counter} + {}) % {bound}", self.r.below(bound)),
            _ if self.one_in(8) => format!("(n + {}) % {bound}", self.r.below(bound)),
            _ if self.one_in(12) => format!("(long)(8 + 7 * sin(v{})) % {bound}", self.r.below(VARIABLES)),
            _ => self.r.below(bound).to_string(),
        }
    }

    /// A struct in memory.
    pub(super) fn structure(&mut self) -> String {
        let (array, i) = (self.pick(&["s", "z", "heap"]), self.index(RECORDS));
        format!("{array}[{i}]")
    }

    /// A `double` in memory.
    pub(super) fn place(&mut self) -> String {
        match self.r.below(9) {
            0 | 1 => format!("v{}", self.r.below(VARIABLES)),
            2..=4 => {
                let (array, i) = (self.pick(&["arr", "other", "block", "g$k"]), self.index(ELEMENTS));
                format!("{array}[{i}]")
            }
            5 => {
                let i = self.index(6);
                format!("x[{i}]")
            }
            6 if self.record.pointer.is_some() && self.one_in(2) => format!("*{}.at", self.structure()),
            6 => self.pick(&["*p", "**pp"]).into(),
            _ => {
                let s = self.structure();
                let k = self.r.below(self.record.doubles.len() as u64) as usize;
                s + &self.record.doubles[k]
            }
        }
    }

    /// The address of so many `double`s in a row.
    pub(super) fn run(&mut self, count: u64) -> String {
        let array = self.pick(&["arr", "other", "block", "g$k"]);
        let i = self.index(ELEMENTS - count + 1);
        format!("({array} + {i})")
    }

    pub(super) fn constant(&mut self) -> String {
        format!("{:.3}", self.r.real())
    }

    pub(super) fn expression(&mut self, depth: u32) -> String {
        if depth == 0 {
            return match self.r.below(8) {
                0 => self.constant(),
                1 => "a".into(),
                2 if self.narrow => format!("narrow[{}]", self.r.below(4)),
                3 => "m.d".into(),
                _ => self.place(),
            };
        }
        let (x, y) = (self.expression(depth - 1), self.expression(depth - 1));
        match self.r.below(6) {
            0 => format!("({x} + {y})"),
            1 => format!("({x} - {y})"),
            2 => format!("{x} * {y}"),
            3 => format!("{x} / (1 + {y} * {y})"),
            4 => format!("sqrt(1 + {x} * {x})"),
            _ => format!("tanh({x})"),
        }
    }

    /// An expression between -1 and 1.
    pub(super) fn tame(&mut self) -> String {
        let depth = 1 + self.r.below(2) as u32;
        format!("sin({})", self.expression(depth))
    }

    pub(super) fn condition(&mut self) -> String {
        match self.counters.last().cloned() {
            Some(counter) if self.one_in(2) => format!("{counter} % 2 == 0"),
            _ if self.one_in(3) => "n > 1".into(),
            _ => {
                let (x, c) = (self.expression(0), self.constant());
                format!("{x} > {c}")
            }
        }
    }
}
