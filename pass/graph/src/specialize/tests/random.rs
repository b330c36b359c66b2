//! Random scalar programs: where a prologue holds, specializing anew gives the same graph.

use super::*;
use proptest::prelude::*;

/// The instructions of a random program, as numbers that choose among what is there.
fn random_program(choices: &[(u8, u8, u8)]) -> Program {
    let mut g = Open::new();
    let x = g.tensor_arg(0);
    let p = g.arg(1);
    let mut ints: Vec<Value> = (0..3).map(|i| g.load(p, 8 * i, Type::Int(64))).collect();
    let mut floats: Vec<Value> = (3..5).map(|i| g.load(p, 8 * i, Type::Float(64))).collect();
    let mut flags = vec![];
    for &(what, a, b) in choices {
        let int = |i: u8| Arg::Value(ints[usize::from(i) % ints.len()]);
        let float = |i: u8| Arg::Value(floats[usize::from(i) % floats.len()]);
        let text = |t: &str| Arg::Str(t.into());
        match what % 12 {
            0 => ints.push(g.op("scalar.add", [int(a), int(b)], Type::Int(64))),
            1 => ints.push(g.op("scalar.add", [int(a), Arg::Int(i64::from(b))], Type::Int(64))),
            2 => ints.push(g.op("scalar.sub", [int(a), int(b)], Type::Int(64))),
            3 => ints.push(g.op("scalar.and", [int(a), Arg::Int(i64::from(b))], Type::Int(64))),
            4 => flags.push(g.op("scalar.icmp", [text("slt"), int(a), int(b)], Type::Int(1))),
            5 => flags.push(g.op("scalar.icmp", [text("eq"), int(a), int(b)], Type::Int(1))),
            6 => flags.push(g.op("scalar.fcmp", [text("olt"), float(a), float(b)], Type::Int(1))),
            7 => floats.push(g.op("scalar.fmul", [float(a), float(b)], Type::Float(64))),
            8 => floats.push(g.op("scalar.cast", [text("sitofp"), int(a)], Type::Float(64))),
            9 => floats.push(g.op("scalar.fadd", [float(a), Arg::Float(0.5)], Type::Float(64))),
            10 => {
                if let Some(flag) = flags.last() {
                    ints.push(g.op("scalar.select", [(*flag).into(), int(a), int(b)], Type::Int(64)));
                }
            }
            _ => floats.push(g.op("scalar.call", [text("fmax"), float(a), float(b)], Type::Float(64))),
        }
    }
    let last = |list: &[Value]| *list.last().expect("never empty");
    let y = g.tensor("mul_scalar", [x.into(), last(&floats).into()]);
    let y = g.tensor("add_scalar", [y.into(), last(&ints).into()]);
    let on = flags.last().copied();
    let leaf = g.leaf(&[y]);
    let Some(on) = on else {
        return single(leaf);
    };
    let tree = Tree::Branch {
        leaf: 0,
        on,
        exact: false,
        arms: vec![(1, Tree::Leaf(1))],
        otherwise: Box::new(Tree::Leaf(0)),
    };
    program(tree, vec![leaf.clone(), leaf])
}

fn host(words: &[i8; 5]) -> Memory {
    let mut memory = one_tensor(&[2]);
    for (i, w) in words.iter().enumerate() {
        let at = place(1) + 8 * i as u64;
        memory = match i {
            0..3 => memory.word(at, i64::from(*w) as u64),
            _ => memory.float(at, f64::from(*w)),
        };
    }
    memory
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn where_a_prologue_holds_specializing_anew_gives_the_same_graph(
        choices in prop::collection::vec(any::<(u8, u8, u8)>(), 0..20),
        words in prop::collection::vec([-2i8..3, -2i8..3, -2i8..3, -2i8..3, -2i8..3], 8),
    ) {
        let program = random_program(&choices);
        let first = close(&program, &host(&words[0]));
        prop_assert!(first.prologue.run(&host(&words[0])).is_some(), "it holds for its own call");
        for other in &words[1..] {
            let other = host(other);
            let Some(inputs) = first.prologue.run(&other) else {
                continue;
            };
            let again = close(&program, &other);
            prop_assert_eq!(&again.graph, &first.graph);
            prop_assert_eq!(again.leaf, first.leaf);
            let fresh = again.prologue.run(&other).expect("it holds for its own call");
            for (a, b) in first.inputs.iter().zip(&again.inputs) {
                prop_assert_eq!(inputs.word(a.slot), fresh.word(b.slot));
            }
        }
    }
}
