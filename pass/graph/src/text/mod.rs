//! The text form of graphs and programs.
//!
//! One instruction per line, in SSA form. Printing a graph and parsing the text gives the same graph again, so a dump
//! of any stage can be edited and fed back:
//!
//! ```text
//! graph @loss(%0: f32[128,784] "x", %1: tensor "y") {
//!   %2: f32[784,128] = t(%0) @ src/main.rs:4:14
//!   return %2
//! }
//! ```
//!
//! Arguments: `%3` a value, `none`, `12`, `1.5`, `true`, `f32` a kind, `cpu` or `device:0`, `"text"`,
//! `[1, %4]` integers, `floats[1.0]`, `{%1, none}` a list of tensors. A line that starts with `;` is a comment.

mod parse;
mod print;
mod program;
mod stages;

pub use parse::ParseError;

use crate::ir::{Arg, Graph, Type};
use std::fmt;
use std::str::FromStr;

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print::graph(f, self)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print::ty(f, self)
    }
}

impl fmt::Display for Arg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print::arg(f, self)
    }
}

impl FromStr for Graph {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        parse::graph(text)
    }
}

#[cfg(test)]
mod tests {
    use crate::ir::{Arg, Graph, Kind, Loc, Type};
    use crate::ops::Op;

    fn round_trips(graph: &Graph) {
        let text = graph.to_string();
        let again: Graph = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert_eq!(&again, graph, "{text}");
        assert_eq!(again.to_string(), text);
    }

    #[test]
    fn every_form_of_argument_and_type_round_trips() {
        let mut g = Graph::new("crate::path::f<alloc::vec::Vec<\"x\">>");
        let x = g.input("x", Type::tensor(Kind::F32, [2, 0]));
        let s = g.input("a name with \"quotes\" and\nlines", Type::Float(64));
        let hole = g.fresh(Type::Ptr);
        let every = [
            Arg::None,
            x.into(),
            Arg::List(vec![Some(x), None]),
            Arg::List(vec![]),
            Arg::Int(i64::MIN),
            Arg::Float(1.0),
            Arg::Float(-0.0),
            Arg::Float(0.1),
            Arg::Float(1e300),
            Arg::Float(f64::NEG_INFINITY),
            Arg::Float(f64::MIN_POSITIVE / 4.0),
            Arg::Bool(true),
            Arg::Ints(vec![Arg::Int(-1), s.into()]),
            Arg::Ints(vec![]),
            Arg::Floats(vec![Arg::Float(2.5), s.into()]),
            Arg::Floats(vec![]),
            Arg::Kind(Kind::BF16),
            Arg::Device(-1),
            Arg::Device(0),
            Arg::Str("tab\t\"q\" \\ ; @ %1".into()),
        ];
        let types = [
            Type::Tensor(None),
            Type::tensor(Kind::I64, []),
            Type::List,
            Type::Tape,
            Type::Int(1),
            Type::Int(64),
            Type::Float(32),
            Type::Ptr,
        ];
        let loc = |file: &str| {
            Some(Loc {
                file: file.into(),
                line: 4,
                column: 0,
            })
        };
        for (i, a) in every.into_iter().enumerate() {
            let at = if i % 2 == 0 { None } else { loc("C:\\a dir\\m.rs") };
            g.push(
                Op::named("scalar.fneg"),
                vec![a],
                vec![types[i % types.len()].clone()],
                at,
            );
        }
        g.push(Op::named("list.get"), vec![], vec![Type::List], loc("odd\nname"));
        g.outputs = vec![x, x, s];
        round_trips(&g);
        assert_eq!(g.to_string().matches("unused").count(), 1, "{hole} has no definition");
    }

    #[test]
    fn nan_keeps_its_payload() {
        let mut g = Graph::new("f");
        for bits in [f64::NAN.to_bits(), 0xfff8_0000_0000_0001] {
            let nan = Arg::Float(f64::from_bits(bits));
            g.push(Op::named("scalar.fneg"), vec![nan], vec![Type::Float(64)], None);
        }
        let text = g.to_string();
        let again: Graph = text.parse().unwrap();
        for (a, b) in g.insts.iter().zip(&again.insts) {
            let (Arg::Float(a), Arg::Float(b)) = (&a.args[0], &b.args[0]) else {
                panic!("{text}")
            };
            assert_eq!(a.to_bits(), b.to_bits());
        }
    }

    #[test]
    fn errors_name_the_line_and_the_thing() {
        let cases = [
            (
                "graph @f() {\n  %0: tensor = frobnicate()\n  return\n}",
                "line 2: unknown op `frobnicate`",
            ),
            ("graph @f() {\n  return %3\n}", "line 2: %3 is not defined"),
            ("graph @f(%0: f33[2] \"x\") {\n}", "line 1: expected a type"),
            ("graph @f() {\n", "line 2: expected"),
        ];
        for (text, want) in cases {
            let e = text.parse::<Graph>().unwrap_err().to_string();
            assert!(e.starts_with(want), "{e}");
        }
    }
}
