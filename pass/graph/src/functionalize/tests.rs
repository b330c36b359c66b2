//! Random programs with views and writes, against a machine with real storages.

use super::{Effects, functionalize};
use crate::differentiate::NoOracle;
use crate::interp::{self, Tensor};
use crate::ir::{Arg, Graph, Kind, Type, Value};
use crate::ops::{Op, Results};
use crate::specialize::{ClosedImage, InputInfo, Prologue, Specialized, TensorFacts, contiguous_strides};
use crate::verify::{Stage, verify};
use proptest::prelude::*;

/// A tensor of the machine: where each element lies, in order.
#[derive(Clone, Debug, PartialEq)]
struct Place {
    storage: usize,
    shape: Vec<i64>,
    at: Vec<usize>,
}

/// The machine, and the graph that says the same.
struct Machine {
    storages: Vec<Vec<f64>>,
    values: Vec<(Value, Place)>,
    graph: Graph,
    random: u64,
}

fn count(shape: &[i64]) -> usize {
    shape.iter().product::<i64>() as usize
}

impl Machine {
    fn new(seed: u64) -> Self {
        let mut machine = Self {
            storages: vec![],
            values: vec![],
            graph: Graph::new("random"),
            random: seed | 1,
        };
        for (name, shape) in [("a", [2, 3, 4].as_slice()), ("b", &[4]), ("c", &[3, 4])] {
            let v = machine.graph.input(name, Type::tensor(Kind::F64, shape));
            let start = machine.storages.len() as f64;
            let place = machine.fresh(shape, (0..count(shape)).map(|i| start * 100.0 + i as f64).collect());
            machine.values.push((v, place));
        }
        machine
    }

    fn pick(&mut self, n: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as usize % n.max(1)
    }

    fn fresh(&mut self, shape: &[i64], elements: Vec<f64>) -> Place {
        self.storages.push(elements);
        Place {
            storage: self.storages.len() - 1,
            shape: shape.to_vec(),
            at: (0..count(shape)).collect(),
        }
    }

    fn read(&self, p: &Place) -> Vec<f64> {
        p.at.iter().map(|i| self.storages[p.storage][*i]).collect()
    }

    fn write(&mut self, p: &Place, elements: &[f64]) {
        for (i, x) in p.at.iter().zip(elements) {
            self.storages[p.storage][*i] = *x;
        }
    }

    fn push(&mut self, op: &str, args: Vec<Arg>, place: Place) {
        let ty = Type::tensor(Kind::F64, place.shape.clone());
        let v = self.graph.push(Op::named(op), args, vec![ty], None)[0];
        self.values.push((v, place));
    }

    /// Elements of a view: `index` maps an index of the view to one of the viewed tensor.
    fn view(p: &Place, shape: Vec<i64>, index: impl Fn(&[i64]) -> Vec<i64>) -> Place {
        let strides = contiguous_strides(&p.shape);
        let at = (0..count(&shape)).map(|flat| {
            let mut rest = flat as i64;
            let mut at = vec![0; shape.len()];
            for (d, n) in shape.iter().enumerate().rev() {
                at[d] = rest % n;
                rest /= n;
            }
            let flat: i64 = index(&at).iter().zip(&strides).map(|(i, s)| i * s).sum();
            p.at[flat as usize]
        });
        Place {
            storage: p.storage,
            at: at.collect(),
            shape: shape.clone(),
        }
    }

    fn step(&mut self) {
        let k = self.pick(self.values.len());
        let (v, p) = self.values[k].clone();
        let rank = p.shape.len();
        let d = self.pick(rank);
        match self.pick(14) {
            // Of a tensor out of order, LibTorch keeps the layout, which this machine does not model.
            0 if p.at.windows(2).all(|w| w[1] == w[0] + 1) => {
                let elements = self.read(&p).iter().map(|x| x * 0.5).collect();
                let place = self.fresh(&p.shape, elements);
                self.push("mul_scalar", vec![v.into(), Arg::Float(0.5)], place);
            }
            1 if rank > 0 => {
                let i = self.pick(p.shape[d] as usize) as i64;
                let mut shape = p.shape.clone();
                shape.remove(d);
                let place = Self::view(&p, shape, |at| {
                    let mut at = at.to_vec();
                    at.insert(d, i);
                    at
                });
                self.push("select", vec![v.into(), Arg::Int(d as i64), Arg::Int(i)], place);
            }
            2 if rank > 0 => {
                let start = self.pick(p.shape[d] as usize) as i64;
                let mut shape = p.shape.clone();
                shape[d] -= start;
                let length = shape[d];
                let place = Self::view(&p, shape, |at| {
                    let mut at = at.to_vec();
                    at[d] += start;
                    at
                });
                let args = [d as i64, start, length].map(Arg::Int);
                self.push("narrow", [vec![v.into()], args.to_vec()].concat(), place);
            }
            3 if rank > 0 => {
                let mut shape = p.shape.clone();
                shape[d] = (shape[d] + 1) / 2;
                let place = Self::view(&p, shape, |at| {
                    let mut at = at.to_vec();
                    at[d] *= 2;
                    at
                });
                let args = vec![v.into(), Arg::Int(d as i64), Arg::None, Arg::None, Arg::Int(2)];
                self.push("slice", args, place);
            }
            4 if rank > 1 => {
                let e = self.pick(rank);
                let mut shape = p.shape.clone();
                shape.swap(d, e);
                let place = Self::view(&p, shape, |at| {
                    let mut at = at.to_vec();
                    at.swap(d, e);
                    at
                });
                let args = [d as i64, e as i64].map(Arg::Int);
                self.push("transpose", [vec![v.into()], args.to_vec()].concat(), place);
            }
            5 => {
                let mut shape = p.shape.clone();
                shape.insert(d, 1);
                let place = Place { shape, ..p };
                self.push("unsqueeze", vec![v.into(), Arg::Int(d as i64)], place);
            }
            6 => self.flatten(v, &p),
            7 => self.push("detach", vec![v.into()], p),
            8 if rank > 0 && p.shape[d] > 0 => self.unbind(v, &p, d),
            9 => {
                let elements: Vec<f64> = self.read(&p).iter().map(|x| x + 1.0).collect();
                self.write(&p, &elements);
                self.push("add_scalar_", vec![v.into(), Arg::Float(1.0)], p);
            }
            10 => {
                self.write(&p, &vec![7.0; p.at.len()]);
                self.push("fill_", vec![v.into(), Arg::Float(7.0)], p);
            }
            11 | 12 => self.add_or_copy(v, p),
            _ => {
                let back = rank as i64 - 1;
                let dims: Vec<i64> = (0..rank as i64).map(|i| back - i).collect();
                let shape = dims.iter().map(|i| p.shape[*i as usize]).collect();
                let place = Self::view(&p, shape, |at| at.iter().rev().copied().collect());
                self.push("permute", vec![v.into(), Arg::ints(&dims)], place);
            }
        }
    }

    /// `reshape` to one dimension: a view exactly where the elements lie at even distances.
    fn flatten(&mut self, v: Value, p: &Place) {
        let even =
            p.at.windows(3)
                .all(|w| w[1] as i64 - w[0] as i64 == w[2] as i64 - w[1] as i64);
        let shape = vec![p.at.len() as i64];
        let place = match even {
            true => Place { shape, ..p.clone() },
            false => {
                let elements = self.read(p);
                self.fresh(&shape, elements)
            }
        };
        let args = vec![v.into(), Arg::ints(&place.shape)];
        self.push("reshape", args, place);
    }

    fn unbind(&mut self, v: Value, p: &Place, d: usize) {
        let mut shape = p.shape.clone();
        let n = shape.remove(d);
        let op = Op::named("unbind");
        assert_eq!(op.results, Results::List);
        let types = vec![Type::tensor(Kind::F64, shape.clone()); n as usize];
        let pieces = self.graph.push(op, vec![v.into(), Arg::Int(d as i64)], types, None);
        for (i, piece) in pieces.into_iter().enumerate() {
            let place = Self::view(p, shape.clone(), |at| {
                let mut at = at.to_vec();
                at.insert(d, i as i64);
                at
            });
            self.values.push((piece, place));
        }
    }

    /// `add_` or `copy_` of a tensor of the same shape.
    fn add_or_copy(&mut self, v: Value, p: Place) {
        let same: Vec<_> = self
            .values
            .iter()
            .filter(|(_, q)| q.shape == p.shape)
            .cloned()
            .collect();
        let (w, q) = same[self.pick(same.len())].clone();
        let (x, y) = (self.read(&p), self.read(&q));
        let copies = self.pick(2) == 0;
        let new: Vec<f64> = x.iter().zip(&y).map(|(x, y)| if copies { *y } else { x + y }).collect();
        self.write(&p, &new);
        self.push(if copies { "copy_" } else { "add_" }, vec![v.into(), w.into()], p);
    }
}

/// Runs a random program both ways.
fn check(seed: u64, steps: usize) {
    let mut machine = Machine::new(seed);
    let inputs: Vec<(Value, Place)> = machine.values.clone();
    let start: Vec<Vec<f64>> = inputs.iter().map(|(_, p)| machine.read(p)).collect();
    for _ in 0..steps {
        machine.step();
    }
    let outputs: Vec<Place> = (0..4)
        .map(|_| {
            let k = machine.pick(machine.values.len());
            machine.graph.outputs.push(machine.values[k].0);
            machine.values[k].1.clone()
        })
        .collect();
    let before = machine.graph.to_string();
    let (graph, effects) = rewritten(&machine, &inputs);
    let text = || format!("{before}\n{graph}\n{effects}");

    let given: Vec<interp::Value> = inputs
        .iter()
        .zip(start)
        .map(|((_, p), elements)| Tensor::from_f64(Kind::F64, &p.shape, elements).into())
        .collect();
    let got = interp::run(&graph, &given).unwrap_or_else(|e| panic!("{e}\n{}", text()));
    let elements = |k: usize| match &got[k] {
        interp::Value::Tensor(t) => t.to_f64(),
        other => panic!("{other:?}"),
    };
    for (k, place) in outputs.iter().enumerate() {
        assert_eq!(elements(k), machine.read(place), "output {k} of\n{}", text());
    }
    for (i, (_, place)) in inputs.iter().enumerate() {
        let last = effects.writes.iter().find(|w| w.input == i);
        let value = last.map(|w| elements(w.output));
        let first = match &given[i] {
            interp::Value::Tensor(t) => t.to_f64(),
            other => panic!("{other:?}"),
        };
        assert_eq!(value.unwrap_or(first), machine.read(place), "input {i} of\n{}", text());
    }
    for (k, place) in outputs.iter().enumerate() {
        let written = effects
            .writes
            .iter()
            .any(|w| inputs[w.input].1.storage == place.storage);
        let alias = effects.aliases.iter().find(|a| a.output == k);
        assert_eq!(
            alias.map(|a| inputs[a.input].1.storage),
            written.then_some(place.storage),
            "{}",
            text()
        );
    }
}

fn rewritten(machine: &Machine, inputs: &[(Value, Place)]) -> (Graph, Effects) {
    let info = |(slot, (value, place)): (usize, &(Value, Place))| InputInfo {
        value: *value,
        slot: slot as u32,
        place: None,
        facts: Some(TensorFacts::contiguous(
            crate::ir::TensorType::new(Kind::F64, place.shape.clone()),
            slot as u64,
        )),
        internal: false,
    };
    let mut specialized = Specialized {
        leaf: 0,
        graph: machine.graph.clone(),
        inputs: inputs.iter().enumerate().map(info).collect(),
        prologue: Prologue::default(),
        image: ClosedImage::default(),
        constants: vec![],
        cut: None,
    };
    let effects = functionalize(&mut specialized, &[], &NoOracle).unwrap_or_else(|e| panic!("{e}\n{}", machine.graph));
    verify(&specialized.graph, Stage::Functional).unwrap_or_else(|e| panic!("{e}\n{}", specialized.graph));
    (specialized.graph, effects)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn random_programs_give_the_values_that_real_storages_give(seed in any::<u64>(), steps in 1usize..25) {
        check(seed, steps);
    }
}
