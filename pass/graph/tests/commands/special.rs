//! The command `specialize`: an open graph, closed on a host that comment lines describe. Argument `i` lies at
//! `0x1000 * (i + 1)`.
//!
//! ```text
//! ; word 0x1000: 0x100
//! ; float 0x2000: 0.5
//! ; tensor 0x200: f32[2,3]
//! ```

use cotangent_graph::differentiate::NoOracle;
use cotangent_graph::ir::{Graph, TensorType, Type};
use cotangent_graph::program::{Image, Leaf, Program, Tree};
use cotangent_graph::specialize::{Host, Outcome, TensorFacts, specialize};
use cotangent_graph::verify::{Stage, verify};
use std::collections::HashMap;

pub(super) fn run(graph: Graph, text: &str) -> Result<String, String> {
    let host = Memory::read(text)?;
    let program = Program {
        key: graph.name.clone(),
        description: String::new(),
        tree: Tree::Leaf(0),
        unlowered: vec![],
        leaves: vec![Leaf {
            graph,
            image: Image::default(),
        }],
        shim: String::new(),
    };
    match specialize(&program, &host, &NoOracle) {
        Ok(Outcome::Closed(s)) => {
            verify(&s.graph, Stage::Closed).map_err(|e| e.to_string())?;
            s.prologue
                .run(&host)
                .ok_or("the prologue does not hold for its own call")?;
            let steps = s.prologue.to_string();
            let steps: String = steps.lines().map(|l| format!("; {l}\n")).collect();
            Ok(format!("{steps}{}", s.graph))
        }
        Ok(other) => Ok(format!("{other:?}")),
        Err(refusal) => Ok(refusal.to_string()),
    }
}

/// Words and tensors by address.
#[derive(Default)]
struct Memory {
    words: HashMap<u64, u64>,
    tensors: HashMap<u64, TensorFacts>,
}

impl Memory {
    fn read(text: &str) -> Result<Self, String> {
        let mut memory = Self::default();
        for line in text.lines() {
            let Some((head, value)) = line.strip_prefix("; ").and_then(|l| l.split_once(": ")) else {
                continue;
            };
            let number = |t: &str| {
                let digits = t.strip_prefix("0x").ok_or(format!("`{t}` is not 0x…"))?;
                u64::from_str_radix(digits, 16).map_err(|e| e.to_string())
            };
            match head.split_once(' ') {
                Some(("word", at)) => drop(memory.words.insert(number(at)?, number(value)?)),
                Some(("float", at)) => {
                    let x: f64 = value.parse().map_err(|e| format!("{e}"))?;
                    memory.words.insert(number(at)?, x.to_bits());
                }
                Some(("tensor", at)) => {
                    let handle = number(at)?;
                    memory
                        .tensors
                        .insert(handle, TensorFacts::contiguous(tensor(value)?, handle));
                }
                _ => {}
            }
        }
        Ok(memory)
    }
}

/// A tensor type, by way of a graph with one input.
fn tensor(text: &str) -> Result<TensorType, String> {
    let graph: Graph = format!("graph @g(%0: {text} \"x\") {{\n  return %0\n}}\n")
        .parse()
        .map_err(|e| format!("{e}"))?;
    match graph.ty(graph.outputs[0]) {
        Type::Tensor(Some(ty)) => Ok(ty.clone()),
        _ => Err(format!("`{text}` is not a tensor type")),
    }
}

impl Host for Memory {
    fn global(&self, _: &str) -> Option<u64> {
        None
    }
    fn argument(&self, index: usize) -> u64 {
        0x1000 * (index as u64 + 1)
    }
    fn load(&self, address: u64, bytes: u8) -> u64 {
        let word = *self
            .words
            .get(&address)
            .unwrap_or_else(|| panic!("nothing lies at {address:#x}"));
        word & (u64::MAX >> (64 - 8 * u32::from(bytes)))
    }
    fn tensor(&self, handle: u64) -> Result<Option<TensorFacts>, String> {
        Ok(self.tensors.get(&handle).cloned())
    }
    fn matches(&self, handle: u64, ty: &TensorType, device: i32) -> bool {
        self.tensors
            .get(&handle)
            .is_some_and(|f| f.ty == *ty && f.device == device)
    }
    fn defined(&self, handle: u64) -> bool {
        self.tensors.contains_key(&handle)
    }
    fn requires_grad(&self, handle: u64) -> bool {
        self.tensors[&handle].requires_grad
    }
    fn has_strides(&self, handle: u64, strides: &[i64]) -> bool {
        self.tensors[&handle].strides == strides
    }
    fn identity(&self, handle: u64) -> u64 {
        self.tensors[&handle].identity
    }
    fn storage(&self, handle: u64) -> u64 {
        self.tensors[&handle].storage
    }
}
