//! The arguments that entries of the op table are tested on.
//!
//! An entry's samples are separated by ` | `, the arguments of a sample by blanks. How an argument is read depends on
//! what its parameter takes:
//!
//! * tensors: extents `2x3`, or `.` for a 0-dim tensor, then flags: `+` positive, `%` between -1 and 1, `?` truth
//!   values, `%5` integers below five, `i` not asked for; lists of tensors stand in braces;
//! * numbers: `2`, `1.5`, or `$` for a float input of the graph, with the flags `+` and `%`, or `~` for single
//!   precision;
//! * everything else as in the text form: `true`, `[1,2]`, `f64`, `cpu`, `"none"`; `-` is an absent argument.

use cotangent_graph::interp::{Tensor, Value};
use cotangent_graph::ir::{Arg, Graph, Kind, Type};
use cotangent_graph::ops::{Op, OwnOp, ParamKind};

/// A graph of one op, with the values of its inputs.
pub(crate) struct Sample {
    /// The graph; its outputs are the results of the op that are floats.
    pub(crate) graph: Graph,
    /// Values of the graph's inputs.
    pub(crate) inputs: Vec<Value>,
    /// Which inputs to differentiate for.
    pub(crate) active: Vec<bool>,
    /// The sample as the table has it.
    pub(crate) text: &'static str,
}

/// A small generator: the tests are the same at every run.
pub(crate) struct Random(u64);

impl Random {
    /// A generator.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Between 0 and 1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Away from zero, where many functions have a kink or a pole.
    pub(crate) fn real(&mut self) -> f64 {
        let size = 0.3 + 1.4 * self.unit();
        if self.next() & 1 == 0 { size } else { -size }
    }

    /// A real tensor.
    pub(crate) fn tensor(&mut self, shape: &[i64]) -> Tensor {
        let n = shape.iter().product();
        Tensor::from_f64(Kind::F64, shape, (0..n).map(|_: i64| self.real()).collect())
    }
}

/// The samples of an entry.
pub(crate) fn samples(own: &'static OwnOp) -> Vec<Sample> {
    let op = Op::named(own.name);
    own.samples
        .split(" | ")
        .map(str::trim)
        .filter(|s| !s.is_empty())
        .enumerate()
        .map(|(k, text)| Reader::new(op, k as u64 + 1).read(text))
        .collect()
}

struct Reader {
    op: Op,
    random: Random,
    graph: Graph,
    inputs: Vec<Value>,
    active: Vec<bool>,
}

impl Reader {
    fn new(op: Op, seed: u64) -> Self {
        Self {
            op,
            random: Random::new(seed),
            graph: Graph::new(op.name),
            inputs: vec![],
            active: vec![],
        }
    }

    fn read(mut self, text: &'static str) -> Sample {
        let words = split(text);
        assert!(
            words.len() <= self.op.params.len(),
            "`{text}` has too many arguments for {}",
            self.op
        );
        let mut args: Vec<Arg> = words
            .iter()
            .enumerate()
            .map(|(i, word)| self.arg(self.op.params[i].kind, word))
            .collect();
        if self.op.is_libtorch() {
            assert_eq!(args.len(), self.op.params.len(), "arguments of {} in `{text}`", self.op);
        }
        let results = if self.op.is_libtorch() {
            let types = cotangent_graph::differentiate::infer(
                &self.graph,
                &cotangent_graph::differentiate::NoOracle,
                self.op,
                &args,
            )
            .unwrap_or_else(|e| panic!("{} {text}: {e}", self.op));
            types.into_iter().map(|t| Type::Tensor(Some(t))).collect()
        } else {
            vec![self.scalar_type(&mut args)]
        };
        let results = self.graph.push(self.op, args, results, None);
        self.graph.outputs = results
            .into_iter()
            .filter(|r| match self.graph.ty(*r) {
                Type::Tensor(Some(t)) => t.kind.is_float(),
                ty => matches!(ty, Type::Float(_)),
            })
            .collect();
        Sample {
            graph: self.graph,
            inputs: self.inputs,
            active: self.active,
            text,
        }
    }

    /// Type of the result of an op on scalars.
    fn scalar_type(&self, args: &mut [Arg]) -> Type {
        match &args[0] {
            Arg::Str(s) if s == "fptrunc" => Type::Float(32),
            _ => Type::Float(64),
        }
    }

    fn arg(&mut self, kind: ParamKind, word: &str) -> Arg {
        if word == "-" {
            return Arg::None;
        }
        match kind {
            ParamKind::Tensor | ParamKind::OptTensor => Arg::Value(self.tensor(word)),
            ParamKind::Tensors | ParamKind::OptTensors => {
                let inner = word.trim_matches(['{', '}']);
                Arg::List(inner.split(' ').map(|w| Some(self.tensor(w))).collect())
            }
            ParamKind::Any if word == "." || word.contains('x') && !word.contains('\'') => {
                Arg::Value(self.tensor(word))
            }
            _ if word.starts_with('$') => Arg::Value(self.float(word)),
            ParamKind::Int | ParamKind::OptInt => Arg::Int(word.parse().expect("an integer")),
            ParamKind::Ints | ParamKind::OptInts => Arg::ints(&integers(word)),
            ParamKind::Float | ParamKind::OptFloat => Arg::Float(word.parse().expect("a float")),
            ParamKind::Kind | ParamKind::OptKind => Arg::Kind(Kind::from_name(word).expect("a kind")),
            ParamKind::Device => Arg::Device(-1),
            ParamKind::Bool => Arg::Bool(word == "true"),
            ParamKind::Str => Arg::Str(word.trim_matches('"').to_string()),
            ParamKind::Any if word == "true" || word == "false" => Arg::Bool(word == "true"),
            ParamKind::Any if word.starts_with('\'') => Arg::Str(word.trim_matches('\'').to_string()),
            ParamKind::Scalar | ParamKind::Any if !word.contains(['.', 'e']) => {
                Arg::Int(word.parse().expect("an integer"))
            }
            ParamKind::Scalar | ParamKind::Any => Arg::Float(word.parse().expect("a float")),
            ParamKind::Floats | ParamKind::OptFloats => panic!("no sample has a list of floats"),
        }
    }

    fn float(&mut self, word: &str) -> cotangent_graph::ir::Value {
        let x = match &word[1..] {
            "+" => self.random.real().abs(),
            "%" => self.random.real() / 2.0,
            _ => self.random.real(),
        };
        let (width, x) = if word.ends_with('~') {
            (32, f64::from(x as f32))
        } else {
            (64, x)
        };
        self.input(Type::Float(width), Value::Float(x), true)
    }

    fn tensor(&mut self, word: &str) -> cotangent_graph::ir::Value {
        let (active, word) = match word.strip_suffix('i') {
            Some(rest) => (false, rest),
            None => (true, word),
        };
        let end = word.find(['+', '%', '?']).unwrap_or(word.len());
        let (extents, flags) = word.split_at(end);
        let shape: Vec<i64> = match extents {
            "." => vec![],
            _ => extents.split('x').map(|n| n.parse().expect("an extent")).collect(),
        };
        let n: i64 = shape.iter().product();
        let (tensor, active) = match flags {
            "?" => (
                Tensor::from_bool(&shape, (0..n).map(|_| self.random.next() & 1 == 0)),
                false,
            ),
            "" => (self.random.tensor(&shape), active),
            "+" => {
                let values = (0..n).map(|_| self.random.real().abs()).collect();
                (Tensor::from_f64(Kind::F64, &shape, values), active)
            }
            "%" => {
                let values = (0..n).map(|_| self.random.real() / 2.0).collect();
                (Tensor::from_f64(Kind::F64, &shape, values), active)
            }
            bound => {
                let bound: u64 = bound[1..].parse().expect("a bound");
                let values = (0..n)
                    .map(|_| (self.random.next() >> 33) as i64 % bound as i64)
                    .collect();
                (Tensor::from_i64(Kind::I64, &shape, values), false)
            }
        };
        let ty = Type::Tensor(Some(tensor.ty()));
        self.input(ty, tensor.into(), active)
    }

    fn input(&mut self, ty: Type, value: Value, active: bool) -> cotangent_graph::ir::Value {
        self.inputs.push(value);
        self.active.push(active);
        self.graph.input(format!("x{}", self.inputs.len()), ty)
    }
}

fn integers(word: &str) -> Vec<i64> {
    word.trim_matches(['[', ']'])
        .split(',')
        .filter(|w| !w.is_empty())
        .map(|w| w.parse().expect("an integer"))
        .collect()
}

/// The words of a sample: blanks inside braces do not separate.
fn split(text: &str) -> Vec<&str> {
    let mut words = vec![];
    let (mut start, mut depth) = (0, 0);
    for (i, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ' ' if depth == 0 => {
                words.push(&text[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    words.push(&text[start..]);
    words.retain(|w| !w.is_empty());
    words
}
