//! Explores the ways through a function and builds its program.
//!
//! One evaluation follows one list of choices and stops at the first open decision. The build explores depth first,
//! a few rounds of each loop and within a budget; what is left stands in the tree as [`Tree::Grow`]. The run evaluates
//! further along the choices that its arguments make ([`extend`]).

use crate::code::{Loader, Symbol};
use crate::eval::{Eval, Stop};
use crate::memory::{Cell, Object};
use crate::value::{Base, Ptr, Val};
use cotangent_graph::ir::{Arg, Type, Value};
use cotangent_graph::program::{Image, Leaf, Program, Refusal, Tree};

pub use crate::eval::Choice;

/// A request as the macros write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Key of the function.
    pub key: String,
    /// JSON description.
    pub description: String,
    /// Symbol of the shim.
    pub shim: Symbol,
    /// Which derivative of a kernel is asked for, as one bit; nothing in a request for a program.
    pub mode: Option<u32>,
}

/// Where an evaluation ended.
enum End {
    Leaf(Leaf),
    Replay,
    Undecided {
        on: Value,
        ways: Option<Vec<i64>>,
        so_far: Leaf,
        /// How often the deciding instruction has asked on this way.
        asked: u32,
    },
    Refused(Vec<Refusal>),
}

/// Most evaluations that the build spends on one function.
const BUDGET: usize = 120;
/// Rounds of a loop that the build follows.
const ROUNDS: u32 = 3;

/// Raises one request as far as the build goes.
///
/// Ways that cannot be raised stand in the tree as [`Tree::Refused`].
pub fn raise(request: &Request, loader: &dyn Loader) -> Program {
    let mut program = Program {
        key: request.key.clone(),
        description: request.description.clone(),
        shim: request.shim.to_string(),
        tree: Tree::Grow,
        leaves: vec![],
        unlowered: vec![],
    };
    let mut explorer = Explorer {
        loader,
        budget: BUDGET,
        rounds: ROUNDS,
        leaves: vec![],
    };
    let tree = explorer.grow(&program, &mut vec![]);
    program.leaves = explorer.leaves;
    program.tree = tree;
    drop_prefixes(&mut program);
    program
}

/// Evaluates one way further: replaces the [`Tree::Grow`] at the end of `path` by what follows there.
pub fn extend(program: &mut Program, loader: &dyn Loader, path: &[Choice]) {
    let mut explorer = Explorer {
        loader,
        budget: 1,
        rounds: u32::MAX,
        leaves: std::mem::take(&mut program.leaves),
    };
    let grown = explorer.grow(program, &mut path.to_vec());
    program.leaves = explorer.leaves;
    let finished = matches!(grown, Tree::Leaf(_));
    if let Some(place) = descend(&mut program.tree, path) {
        *place = grown;
    }
    if finished {
        drop_prefixes(program);
    }
}

/// Everything on any explored way that cannot be raised.
pub fn refusals(tree: &Tree) -> Vec<Refusal> {
    let mut found: Vec<Refusal> = vec![];
    let mut pending = vec![tree];
    while let Some(tree) = pending.pop() {
        match tree {
            Tree::Refused(why) => {
                for r in why {
                    // One place is one refusal, whichever of its ways was taken.
                    let same = |f: &Refusal| f.message == r.message && f.at.first() == r.at.first();
                    if !found.iter().any(same) {
                        found.push(r.clone());
                    }
                }
            }
            Tree::Branch { arms, otherwise, .. } => {
                pending.push(otherwise);
                pending.extend(arms.iter().rev().map(|(_, t)| t));
            }
            Tree::Leaf(_) | Tree::Replay | Tree::Grow => {}
        }
    }
    found
}

/// Does any way still have to grow?
pub fn grows(tree: &Tree) -> bool {
    match tree {
        Tree::Grow => true,
        Tree::Branch {
            arms, otherwise, exact, ..
        } => *exact || grows(otherwise) || arms.iter().any(|(_, t)| grows(t)),
        Tree::Leaf(_) | Tree::Replay | Tree::Refused(_) => false,
    }
}

/// The subtree at the end of a path; makes the arm of a value that had none yet.
fn descend<'t>(tree: &'t mut Tree, path: &[Choice]) -> Option<&'t mut Tree> {
    let Some((first, rest)) = path.split_first() else {
        return Some(tree);
    };
    let Tree::Branch {
        arms, otherwise, exact, ..
    } = tree
    else {
        return None;
    };
    let next = match first {
        None => otherwise.as_mut(),
        Some(v) => {
            if !arms.iter().any(|(x, _)| x == v) {
                if !*exact {
                    return None;
                }
                arms.push((*v, Tree::Grow));
            }
            &mut arms.iter_mut().find(|(x, _)| x == v)?.1
        }
    };
    descend(next, rest)
}

/// Lets each branch refer to a finished leaf below it where there is one, and drops the unfinished graphs that no
/// branch needs any more.
fn drop_prefixes(program: &mut Program) {
    fn redirect(tree: &mut Tree) -> Option<usize> {
        match tree {
            Tree::Leaf(i) => Some(*i),
            Tree::Branch {
                leaf, arms, otherwise, ..
            } => {
                let mut below = None;
                for (_, arm) in arms.iter_mut() {
                    below = redirect(arm).or(below);
                }
                below = redirect(otherwise).or(below);
                if let Some(below) = below {
                    *leaf = below;
                }
                Some(*leaf)
            }
            Tree::Replay | Tree::Grow | Tree::Refused(_) => None,
        }
    }
    fn used(tree: &mut Tree, mark: &mut dyn FnMut(&mut usize)) {
        match tree {
            Tree::Leaf(i) => mark(i),
            Tree::Branch {
                leaf, arms, otherwise, ..
            } => {
                mark(leaf);
                arms.iter_mut().for_each(|(_, t)| used(t, mark));
                used(otherwise, mark);
            }
            Tree::Replay | Tree::Grow | Tree::Refused(_) => {}
        }
    }
    redirect(&mut program.tree);
    let mut numbers: Vec<Option<usize>> = vec![None; program.leaves.len()];
    let mut count = 0;
    used(&mut program.tree, &mut |i| {
        *i = *numbers[*i].get_or_insert_with(|| {
            count += 1;
            count - 1
        });
    });
    let old = std::mem::take(&mut program.leaves);
    let mut kept: Vec<(usize, Leaf)> = old
        .into_iter()
        .zip(numbers)
        .filter_map(|(l, n)| Some((n?, l)))
        .collect();
    kept.sort_by_key(|(n, _)| *n);
    program.leaves = kept.into_iter().map(|(_, l)| l).collect();
}

/// Reads a request: evaluates the zero-argument function that makes it, up to its call of the marker.
///
/// # Errors
/// If the function does more than pass constants to the marker.
pub fn find_request(thunk: &Symbol, loader: &dyn Loader) -> Result<Request, String> {
    let body = loader.function(thunk).ok_or("it has no body")?;
    let mut eval = Eval::new(thunk, loader, &[]);
    eval.seeks_request = true;
    let stop = eval.call(&body, vec![]);
    if let (Err(Stop::Replay), Some(request)) = (stop, eval.request.take()) {
        return Ok(request);
    }
    let why = eval
        .refusals
        .first()
        .map_or("it returns without a request", |r| r.message.as_str());
    Err(format!("the request cannot be read: {why}"))
}

struct Explorer<'a> {
    loader: &'a dyn Loader,
    budget: usize,
    rounds: u32,
    leaves: Vec<Leaf>,
}

impl Explorer<'_> {
    fn grow(&mut self, program: &Program, path: &mut Vec<Choice>) -> Tree {
        if self.budget == 0 {
            return Tree::Grow;
        }
        self.budget -= 1;
        match evaluate(program, self.loader, path) {
            End::Leaf(leaf) => {
                self.leaves.push(leaf);
                Tree::Leaf(self.leaves.len() - 1)
            }
            End::Replay => Tree::Replay,
            End::Refused(refusals) => Tree::Refused(refusals),
            End::Undecided { asked, .. } if asked > self.rounds => Tree::Grow,
            End::Undecided { on, ways, so_far, .. } => {
                self.leaves.push(so_far);
                let leaf = self.leaves.len() - 1;
                let exact = ways.is_none();
                let arms = ways
                    .unwrap_or_default()
                    .into_iter()
                    .map(|w| (w, self.below(program, path, Some(w))))
                    .collect();
                let otherwise = if exact {
                    Tree::Grow
                } else {
                    self.below(program, path, None)
                };
                Tree::Branch {
                    leaf,
                    on,
                    exact,
                    arms,
                    otherwise: Box::new(otherwise),
                }
            }
        }
    }

    fn below(&mut self, program: &Program, path: &mut Vec<Choice>, choice: Choice) -> Tree {
        path.push(choice);
        let tree = self.grow(program, path);
        path.pop();
        tree
    }
}

/// Number of arguments of a function, from its description.
fn arguments(description: &str) -> usize {
    let json: serde_json::Value = serde_json::from_str(description).unwrap_or_default();
    json["params"].as_array().map_or(0, Vec::len)
}

/// Evaluates the shim of a program along a list of choices.
fn evaluate(program: &Program, loader: &dyn Loader, path: &[Choice]) -> End {
    let mut eval = Eval::new(&program.key, loader, path);
    let Some(shim) = loader.function(&program.shim.as_str().into()) else {
        return End::Refused(vec![Refusal {
            message: format!("internal error, please report it: no body for `{}`", program.shim),
            at: vec![],
        }]);
    };
    let count = arguments(&program.description);
    let mut args = Object::new(Some(8 * count as u64), 8);
    for i in 0..count {
        let arg = eval.trace.scalar("host.arg", vec![Arg::Int(i as i64)], Type::Ptr, None);
        let cell = Cell::Val(Val::Ptr(Ptr::to(Base::Host(arg))));
        args.write_cell(8 * i as u64, 8, cell)
            .expect("a fresh object has no cells");
    }
    let mut out = Object::new(None, 16);
    out.heap = true;
    eval.objects.extend([args, out]);
    let pointers = vec![Val::Ptr(Ptr::to(Base::Object(0))), Val::Ptr(Ptr::to(Base::Object(1)))];
    let result = match eval.call(&shim, pointers) {
        Ok(_) => eval.image(1),
        Err(stop) => Err(stop),
    };
    if !eval.refusals.is_empty() {
        return End::Refused(eval.refusals);
    }
    match result {
        Ok((image, outputs)) => {
            let mut graph = eval.trace.graph;
            graph.outputs = outputs;
            End::Leaf(Leaf { graph, image })
        }
        Err(Stop::Replay) => End::Replay,
        Err(Stop::Undecided { on, ways }) => End::Undecided {
            on,
            ways,
            asked: eval.asked.get(&eval.site).copied().unwrap_or(0),
            so_far: Leaf {
                graph: eval.trace.graph,
                image: Image::default(),
            },
        },
        Err(Stop::Refused) => End::Refused(vec![Refusal {
            message: "internal error, please report it: refused without a reason".into(),
            at: vec![],
        }]),
    }
}
