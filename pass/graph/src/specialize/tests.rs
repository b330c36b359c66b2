//! Specialization of hand-written programs on a host made of a memory map.

use super::*;
use crate::differentiate::ShapeOracle;
use crate::ir::{Arg, Graph, Kind, TensorType, Type, Value};
use crate::ops::{Op, ShapeError};
use crate::program::{Base, Datum, How, Image, Leaf, Program, Tree, Write};
use std::collections::HashMap;

mod random;

/// Memory by address, tensors by handle.
#[derive(Default)]
struct Memory {
    words: HashMap<u64, u64>,
    tensors: HashMap<u64, Option<TensorFacts>>,
}

/// Address of the place that argument `i` points at.
fn place(i: usize) -> u64 {
    0x1000 * (i as u64 + 1)
}

impl Memory {
    fn word(mut self, address: u64, word: u64) -> Self {
        self.words.insert(address, word);
        self
    }

    fn float(self, address: u64, x: f64) -> Self {
        self.word(address, x.to_bits())
    }

    fn tensor(mut self, handle: u64, shape: &[i64]) -> Self {
        let ty = TensorType::new(Kind::F32, shape);
        self.tensors.insert(handle, Some(TensorFacts::contiguous(ty, handle)));
        self
    }

    fn facts(&self, handle: u64) -> &TensorFacts {
        self.tensors[&handle].as_ref().expect("a defined tensor")
    }
}

impl Host for Memory {
    fn global(&self, _: &str) -> Option<u64> {
        None
    }
    fn argument(&self, index: usize) -> u64 {
        place(index)
    }
    fn load(&self, address: u64, bytes: u8) -> u64 {
        let word = *self
            .words
            .get(&address)
            .unwrap_or_else(|| panic!("nothing lies at {address:#x}"));
        word & (u64::MAX >> (64 - 8 * u32::from(bytes)))
    }
    fn tensor(&self, handle: u64) -> Result<Option<TensorFacts>, String> {
        Ok(self.tensors[&handle].clone())
    }
    fn matches(&self, handle: u64, ty: &TensorType, device: i32) -> bool {
        self.tensors[&handle]
            .as_ref()
            .is_some_and(|f| f.ty == *ty && f.device == device)
    }
    fn defined(&self, handle: u64) -> bool {
        self.tensors[&handle].is_some()
    }
    fn requires_grad(&self, handle: u64) -> bool {
        self.facts(handle).requires_grad
    }
    fn has_strides(&self, handle: u64, strides: &[i64]) -> bool {
        self.facts(handle).strides == strides
    }
    fn identity(&self, handle: u64) -> u64 {
        self.facts(handle).identity
    }
    fn storage(&self, handle: u64) -> u64 {
        self.facts(handle).storage
    }
}

/// Shapes of the few ops that the tests use.
struct Shapes;

impl ShapeOracle for Shapes {
    fn infer(&self, op: Op, args: &[Arg], types: &dyn Fn(Value) -> Type) -> Result<Vec<TensorType>, ShapeError> {
        let ty = |i: usize| match &args[i] {
            Arg::Value(v) => match types(*v) {
                Type::Tensor(Some(t)) => t,
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        };
        match op.name {
            "mul" | "add" if ty(0).shape == ty(1).shape => Ok(vec![ty(0)]),
            "relu" | "mul_scalar" | "add_scalar" | "special_zeta" => Ok(vec![ty(0)]),
            "unbind" => Ok((0..ty(0).shape[0])
                .map(|_| TensorType::new(ty(0).kind, &ty(0).shape[1..]))
                .collect()),
            "reshape" => Ok(vec![TensorType::new(
                ty(0).kind,
                crate::ops::constant_ints(&args[1]).expect("a shape"),
            )]),
            _ => Err(ShapeError(format!("`{op}`"))),
        }
    }
}

/// An open graph under construction.
struct Open(Graph);

impl Open {
    fn new() -> Self {
        Self(Graph::new("f"))
    }
    fn op(&mut self, name: &str, args: impl Into<Vec<Arg>>, ty: Type) -> Value {
        let mut args = args.into();
        let op = Op::named(name);
        args.resize(op.params.len(), Arg::None);
        self.0.push(op, args, vec![ty], None)[0]
    }
    fn arg(&mut self, i: i64) -> Value {
        self.op("host.arg", [Arg::Int(i)], Type::Ptr)
    }
    fn load(&mut self, p: Value, offset: i64, ty: Type) -> Value {
        self.op("host.load", [p.into(), Arg::Int(offset)], ty)
    }
    /// The tensor whose `&Tensor` argument `i` is.
    fn tensor_arg(&mut self, i: i64) -> Value {
        let p = self.arg(i);
        let reference = self.load(p, 0, Type::Ptr);
        self.tensor_at(reference)
    }
    fn tensor_at(&mut self, p: Value) -> Value {
        let handle = self.load(p, 0, Type::Ptr);
        self.op("host.tensor", [handle.into()], Type::Tensor(None))
    }
    fn tensor(&mut self, name: &str, args: impl Into<Vec<Arg>>) -> Value {
        self.op(name, args, Type::Tensor(None))
    }
    /// A leaf that returns these tensors one after the other.
    fn leaf(mut self, outputs: &[Value]) -> Leaf {
        self.0.outputs = outputs.to_vec();
        let writes = (0..outputs.len()).map(|k| Write {
            base: Base::Out,
            offset: 8 * k as i64,
            datum: Datum::Tensor(k),
            how: How::Store,
        });
        Leaf {
            image: Image {
                writes: writes.collect(),
                ..Image::default()
            },
            graph: self.0,
        }
    }
}

fn program(tree: Tree, leaves: Vec<Leaf>) -> Program {
    Program {
        key: "f".into(),
        description: String::new(),
        shim: String::new(),
        tree,
        leaves,
        unlowered: vec![],
    }
}

fn single(leaf: Leaf) -> Program {
    program(Tree::Leaf(0), vec![leaf])
}

fn close(program: &Program, host: &Memory) -> Specialized {
    match specialize(program, host, &Shapes) {
        Ok(Outcome::Closed(s)) => *s,
        other => panic!("{other:?}"),
    }
}

/// A host where argument 0 is a `&Tensor` of that shape.
fn one_tensor(shape: &[i64]) -> Memory {
    Memory::default()
        .word(place(0), 0x100)
        .word(0x100, 0x200)
        .tensor(0x200, shape)
}

#[test]
fn sizes_become_constants_and_another_shape_is_turned_away() {
    let mut g = Open::new();
    let x = g.tensor_arg(0);
    let n = g.op("size", [x.into(), Arg::Int(-1)], Type::Int(64));
    let m = g.op("scalar.mul", [n.into(), Arg::Int(2)], Type::Int(64));
    let y = g.tensor("reshape", [x.into(), Arg::Ints(vec![m.into(), Arg::Int(-1)])]);
    let p = single(g.leaf(&[y]));

    let s = close(&p, &one_tensor(&[4, 3]));
    assert_eq!(s.graph.insts.len(), 1, "{}", s.graph);
    assert_eq!(s.graph.insts[0].args[1], Arg::ints(&[6, -1]));
    assert_eq!(s.inputs[0].place.map(|p| p.argument), Some(0));
    let inputs = s.prologue.run(&one_tensor(&[4, 3])).expect("the same shape");
    assert_eq!(inputs.word(s.inputs[0].slot), 0x200, "the handle");
    assert_eq!(inputs.word(s.inputs[0].place.expect("read").pointer.slot), 0x100);
    assert_eq!(s.prologue.run(&one_tensor(&[3, 4])), None);
}

#[test]
fn a_float_of_the_host_is_an_input_and_any_value_of_it_will_do() {
    let mut g = Open::new();
    let x = g.tensor_arg(0);
    let p = g.arg(1);
    let k = g.load(p, 0, Type::Float(64));
    let twice = g.op("scalar.fmul", [k.into(), Arg::Float(2.0)], Type::Float(64));
    let y = g.tensor("mul_scalar", [x.into(), twice.into()]);
    let p = single(g.leaf(&[y]));

    let s = close(&p, &one_tensor(&[2]).float(place(1), 0.5));
    assert_eq!(s.graph.inputs.len(), 2);
    assert_eq!(*s.graph.ty(s.graph.inputs[1].value), Type::Float(64));
    let names: Vec<_> = s.graph.insts.iter().map(|i| i.op.name).collect();
    assert_eq!(names, ["scalar.fmul", "mul_scalar"]);
    let inputs = s
        .prologue
        .run(&one_tensor(&[2]).float(place(1), 7.0))
        .expect("floats are free");
    assert_eq!(f64::from_bits(inputs.word(s.inputs[1].slot)), 7.0);
}

/// `if k > 0.0 { x } else { relu(x) }`, with `k` in argument 1.
fn branch_on_float() -> Program {
    let prefix = || {
        let mut g = Open::new();
        let x = g.tensor_arg(0);
        let p = g.arg(1);
        let k = g.load(p, 0, Type::Float(64));
        let twice = g.op("scalar.fmul", [k.into(), Arg::Float(2.0)], Type::Float(64));
        let args = [Arg::Str("ogt".into()), twice.into(), Arg::Float(0.0)];
        let on = g.op("scalar.fcmp", args, Type::Int(1));
        (g, x, on)
    };
    let (g, x, on) = prefix();
    let plain = g.leaf(&[x]);
    let (mut g, x, _) = prefix();
    let y = g.tensor("relu", [x.into()]);
    let tree = Tree::Branch {
        leaf: 0,
        on,
        exact: false,
        arms: vec![(0, Tree::Leaf(1))],
        otherwise: Box::new(Tree::Leaf(0)),
    };
    program(tree, vec![plain, g.leaf(&[y])])
}

#[test]
fn a_decision_on_a_float_is_guarded_by_its_outcome_not_by_the_float() {
    let host = |k: f64| one_tensor(&[2]).float(place(1), k);
    let s = close(&branch_on_float(), &host(0.5));
    assert_eq!(s.leaf, 0);
    assert!(s.prologue.run(&host(3.0)).is_some());
    assert_eq!(s.prologue.run(&host(-3.0)), None);
    let s = close(&branch_on_float(), &host(-1.0));
    assert_eq!(s.leaf, 1);
    assert_eq!(s.graph.insts.len(), 1, "{}", s.graph);
}

#[test]
fn the_payload_of_an_option_is_read_only_after_its_discriminant_was_checked() {
    // `Option<&Tensor>`: null is `None`.
    let prefix = || {
        let mut g = Open::new();
        let x = g.tensor_arg(0);
        let p = g.arg(1);
        let reference = g.load(p, 0, Type::Ptr);
        let is_null = [Arg::Str("eq".into()), reference.into(), Arg::Int(0)];
        let on = g.op("scalar.icmp", is_null, Type::Int(1));
        (g, x, reference, on)
    };
    let (g, x, _, on) = prefix();
    let none = g.leaf(&[x]);
    let (mut g, x, reference, _) = prefix();
    let b = g.tensor_at(reference);
    let y = g.tensor("add", [x.into(), b.into()]);
    let tree = Tree::Branch {
        leaf: 1,
        on,
        exact: false,
        arms: vec![(1, Tree::Leaf(0))],
        otherwise: Box::new(Tree::Leaf(1)),
    };
    let p = program(tree, vec![none, g.leaf(&[y])]);

    let some = || {
        one_tensor(&[2])
            .word(place(1), 0x300)
            .word(0x300, 0x400)
            .tensor(0x400, &[2])
    };
    let none = || one_tensor(&[2]).word(place(1), 0);
    let s = close(&p, &some());
    assert_eq!((s.leaf, s.inputs.len()), (1, 2));
    assert!(s.prologue.run(&some()).is_some());
    assert_eq!(
        s.prologue.run(&none()),
        None,
        "reading at null would panic in the test's host"
    );
    let moved = some().word(place(1), 0x308).word(0x308, 0x400);
    assert!(s.prologue.run(&moved).is_some(), "no address is part of the key");
    let s = close(&p, &none());
    assert_eq!(s.leaf, 0);
    assert_eq!(s.prologue.run(&some()), None);
}

#[test]
fn elements_of_a_vector_are_inputs_and_its_length_is_checked() {
    // A slice: pointer at 0, length at 8; the loop over it was unrolled by decisions on the length.
    let mut g = Open::new();
    let p = g.arg(0);
    let data = g.load(p, 0, Type::Ptr);
    let len = g.load(p, 8, Type::Int(64));
    let end = g.op("scalar.mul", [len.into(), Arg::Int(8)], Type::Int(64));
    let end = g.op("scalar.add", [data.into(), end.into()], Type::Ptr);
    let next = g.op("scalar.add", [data.into(), Arg::Int(8)], Type::Ptr);
    let last = g.op("scalar.add", [next.into(), Arg::Int(8)], Type::Ptr);
    let on = g.op(
        "scalar.icmp",
        [Arg::Str("eq".into()), last.into(), end.into()],
        Type::Int(1),
    );
    let (a, b) = (g.tensor_at(data), g.tensor_at(next));
    let y = g.tensor("mul", [a.into(), b.into()]);
    let tree = Tree::Branch {
        leaf: 0,
        on,
        exact: false,
        arms: vec![(1, Tree::Leaf(0))],
        otherwise: Box::new(Tree::Replay),
    };
    let p = program(tree, vec![g.leaf(&[y])]);
    let host = |len: u64| {
        Memory::default()
            .word(place(0), 0x800)
            .word(place(0) + 8, len)
            .word(0x800, 0x10)
            .word(0x808, 0x20)
            .tensor(0x10, &[3])
            .tensor(0x20, &[3])
    };
    let s = close(&p, &host(2));
    assert_eq!(s.graph.inputs.len(), 2);
    let offsets: Vec<_> = s.inputs.iter().map(|i| i.place.expect("read").pointer.offset).collect();
    assert_eq!(offsets, [0, 8]);
    assert!(s.prologue.run(&host(2)).is_some());
    assert_eq!(s.prologue.run(&host(3)), None);
    assert_eq!(specialize(&p, &host(5), &Shapes), Ok(Outcome::Replay));
}

#[test]
fn one_tensor_in_two_positions_is_two_inputs() {
    let mut g = Open::new();
    let (a, b) = (g.tensor_arg(0), g.tensor_arg(1));
    let again = g.tensor_arg(0);
    let y = g.tensor("mul", [a.into(), b.into()]);
    let y = g.tensor("mul", [y.into(), again.into()]);
    let s = close(&single(g.leaf(&[y])), &one_tensor(&[2]).word(place(1), 0x100));
    assert_eq!(s.inputs.len(), 2, "one per position, however often it is read");
    let identity = |k: usize| s.inputs[k].facts.as_ref().map(|f| f.identity);
    assert_eq!(identity(0), identity(1));
}

#[test]
fn what_does_not_fit_is_left_to_the_original_function() {
    let mut g = Open::new();
    let (a, b) = (g.tensor_arg(0), g.tensor_arg(1));
    let y = g.tensor("mul", [a.into(), b.into()]);
    let p = single(g.leaf(&[y]));
    let second = |host: Memory| host.word(place(1), 0x300).word(0x300, 0x400);
    let other_shape = second(one_tensor(&[2])).tensor(0x400, &[5]);
    assert_eq!(specialize(&p, &other_shape, &Shapes), Ok(Outcome::Replay));
    let mut undefined = second(one_tensor(&[2]));
    undefined.tensors.insert(0x400, None);
    assert_eq!(specialize(&p, &undefined, &Shapes), Ok(Outcome::Replay));
}

#[test]
fn where_the_tree_ends_the_outcome_is_the_path_to_grow() {
    let mut g = Open::new();
    let p = g.arg(0);
    let n = g.load(p, 0, Type::Int(64));
    let tree = |arms| Tree::Branch {
        leaf: 0,
        on: n,
        exact: true,
        arms,
        otherwise: Box::new(Tree::Grow),
    };
    let leaf = g.leaf(&[]);
    let host = Memory::default().word(place(0), 7);
    let young = program(tree(vec![]), vec![leaf.clone()]);
    assert_eq!(specialize(&young, &host, &Shapes), Ok(Outcome::Grow(vec![Some(7)])));
    let grown = program(tree(vec![(7, Tree::Leaf(0))]), vec![leaf]);
    let s = close(&grown, &host);
    assert_eq!(s.prologue.run(&Memory::default().word(place(0), 8)), None);
}

#[test]
fn lists_are_taken_apart() {
    let mut g = Open::new();
    let x = g.tensor_arg(0);
    let list = g.op("unbind", [x.into(), Arg::Int(0)], Type::List);
    let n = g.op("list.len", [list.into()], Type::Int(64));
    let i = g.op("scalar.sub", [n.into(), Arg::Int(1)], Type::Int(64));
    let last = g.tensor("list.get", [list.into(), i.into()]);
    let s = close(&single(g.leaf(&[last])), &one_tensor(&[3, 2]));
    assert_eq!(s.graph.insts[0].results.len(), 3);
    assert_eq!(s.graph.outputs, [s.graph.insts[0].results[2]]);
}

#[test]
fn a_number_read_from_a_tensor_is_a_constant_for_what_follows_and_a_decision_on_it_ends_the_region() {
    let mut g = Open::new();
    let x = g.tensor_arg(0);
    let k = g.op("item", [x.into()], Type::Float(64));
    let k = g.op("scalar.fadd", [k.into(), Arg::Float(1.0)], Type::Float(64));
    let y = g.tensor("mul_scalar", [x.into(), k.into()]);
    let s = close(&single(g.leaf(&[y])), &one_tensor(&[]));
    let names: Vec<_> = s.graph.insts.iter().map(|i| i.op.name).collect();
    assert_eq!(names, ["detach", "item", "scalar.fadd", "mul_scalar"]);

    let mut g = Open::new();
    let x = g.tensor_arg(0);
    let k = g.op("item", [x.into()], Type::Float(64));
    let on = g.op(
        "scalar.fcmp",
        [Arg::Str("olt".into()), k.into(), Arg::Float(0.0)],
        Type::Int(1),
    );
    let tree = Tree::Branch {
        leaf: 0,
        on,
        exact: false,
        arms: vec![(1, Tree::Replay)],
        otherwise: Box::new(Tree::Leaf(0)),
    };
    let program = program(tree, vec![g.leaf(&[x])]);
    let host = one_tensor(&[]);
    let region = close(&program, &host);
    let cut = region.cut.expect("a decision on what is read ends the region");
    assert_eq!(cut.action, Action::Numbers);
    assert_eq!(region.graph.outputs.len(), 1, "only the number is read later");
    let mut table = region.prologue.run(&host).unwrap();
    for (number, decided) in [(1.5f64, false), (-0.5, true), (0.25, false)] {
        table.0[cut.outputs[0] as usize] = number.to_bits();
        let next = resume(&program, &cut.rest, &table, &host, &Shapes);
        match next.unwrap() {
            Outcome::Replay => assert!(decided),
            Outcome::Closed(last) => {
                assert!(!decided && last.cut.is_none());
                assert!(last.prologue.run_on(&table, &host).is_some());
                table.0[cut.outputs[0] as usize] = (-1.0f64).to_bits();
                assert!(last.prologue.run_on(&table, &host).is_none(), "another decision");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn the_image_traces_words_to_slots_and_floats_to_outputs() {
    let mut g = Open::new();
    let x = g.tensor_arg(0);
    let p = g.arg(1);
    let k = g.load(p, 0, Type::Float(64));
    let half = g.op("scalar.fmul", [k.into(), Arg::Float(0.5)], Type::Float(64));
    let count = g.load(p, 8, Type::Int(64));
    let next = g.op("scalar.add", [count.into(), Arg::Int(1)], Type::Int(64));
    let mut leaf = g.leaf(&[x]);
    let scalar = |value: Value, base: Base, offset: i64| Write {
        base,
        offset,
        datum: Datum::Scalar {
            value: value.into(),
            bytes: 8,
        },
        how: How::Store,
    };
    leaf.image.writes.push(scalar(half, Base::Host(p), 0));
    leaf.image.writes.push(scalar(next, Base::Out, 8));
    let program = single(leaf);
    let host = |count: u64| one_tensor(&[2]).float(place(1), 0.5).word(place(1) + 8, count);
    let s = close(&program, &host(3));
    assert_eq!(s.graph.outputs.len(), 2);
    assert_eq!(s.image.writes[1].datum, ClosedDatum::Float { output: 1, bytes: 8 });
    let ClosedDatum::Word { from, bytes: 8 } = s.image.writes[2].datum else {
        panic!("{:?}", s.image.writes[2]);
    };
    let inputs = s
        .prologue
        .run(&host(9))
        .expect("an integer that decides nothing is free");
    assert_eq!(inputs.word(from.slot).wrapping_add_signed(from.offset), 10);
}

#[test]
fn handles_to_one_tensor_are_one_value_and_in_place_results_keep_its_type() {
    let mut g = Open::new();
    let x = g.tensor_arg(0);
    let h = g.tensor("relu", [x.into()]);
    let second = g.tensor("shallow_clone", [h.into()]);
    let r = g.tensor("mul_", [second.into(), x.into()]);
    let y = g.tensor("add", [h.into(), r.into()]);
    let s = close(&single(g.leaf(&[y])), &one_tensor(&[2]));
    let names: Vec<_> = s.graph.insts.iter().map(|i| i.op.name).collect();
    assert_eq!(names, ["relu", "mul_", "add"]);
    assert_eq!(s.graph.insts[1].args[0], Arg::Value(s.graph.insts[0].results[0]));
}

#[test]
fn the_build_lists_what_no_call_could_differentiate() {
    let mut g = Open::new();
    let (a, b) = (g.tensor_arg(0), g.tensor_arg(1));
    let found = g.tensor("nonzero", [b.into()]);
    let r = g.tensor("relu", [a.into()]);
    let t = g.tensor("t_", [r.into()]);
    let p = single(g.leaf(&[found, t]));
    let messages: Vec<String> = check(&p, &[0]).into_iter().map(|r| r.message).collect();
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert!(
        messages[0].contains("`nonzero`") && messages[1].contains("`t_`"),
        "{messages:?}"
    );
}

#[test]
fn floats_made_of_the_bits_of_others_are_refused_and_the_same_bits_are_not_looked_at() {
    let made = |change: bool| {
        let mut g = Open::new();
        let p = g.arg(0);
        let x = g.load(p, 0, Type::Float(64));
        let bits = g.op("scalar.cast", [Arg::Str("bitcast".into()), x.into()], Type::Int(64));
        let bits = match change {
            true => g.op("scalar.add", [bits.into(), Arg::Int(1 << 52)], Type::Int(64)),
            false => bits,
        };
        let is_less = g.op(
            "scalar.icmp",
            [Arg::Str("slt".into()), bits.into(), Arg::Int(0)],
            Type::Int(1),
        );
        let chosen = g.op(
            "scalar.select",
            [is_less.into(), x.into(), Arg::Float(2.0)],
            Type::Float(64),
        );
        let y = match change {
            true => g.op(
                "scalar.cast",
                [Arg::Str("bitcast".into()), bits.into()],
                Type::Float(64),
            ),
            false => chosen,
        };
        let messages = check(&single(g.leaf(&[y])), &[0]).into_iter().map(|r| r.message);
        messages.collect::<Vec<_>>()
    };
    assert_eq!(made(false), [""; 0]);
    assert!(made(true)[0].contains("bits of a float"), "{:?}", made(true));
}
