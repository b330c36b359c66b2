//! Explores the ways through a function and builds its program.
//!
//! One evaluation follows one list of choices and stops at the first open decision. The build explores depth first
//! until a budget is spent; what is left stands in the tree as [`Tree::Grow`]. The run evaluates further along the
//! choices that the running program makes ([`extend`]).

use crate::code::{Loader, Symbol};
use crate::eval::{Eval, Stop};
pub use crate::eval::Choice;
use crate::memory::{Cell, Object};
use crate::value::{Base, Ptr, Val};
use cotangent_graph::ir::{Arg, Type, Value};
use cotangent_graph::program::{Image, Leaf, Program, Refusal, Tree};

/// A request as the macros write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Key of the function.
    pub key: String,
    /// JSON description.
    pub description: String,
    /// Number of parameters.
    pub params: usize,
    /// Symbol of the shim.
    pub shim: Symbol,
}

/// Where an evaluation ended.
enum End {
    Leaf(Leaf),
    Replay,
    Undecided {
        on: Value,
        ways: Option<Vec<i64>>,
        so_far: Leaf,
    },
    Refused(Vec<Refusal>),
}

/// Most evaluations that the build spends on one function.
pub const BUILD_BUDGET: usize = 400;

/// Raises one request.
///
/// # Errors
/// If something on an explored way cannot be raised: every such place.
pub fn raise(request: &Request, loader: &dyn Loader, budget: usize) -> Result<Program, Vec<Refusal>> {
    let mut explorer = Explorer {
        request,
        loader,
        budget,
        leaves: vec![],
        refusals: vec![],
    };
    let tree = explorer.grow(&mut vec![]);
    if !explorer.refusals.is_empty() {
        return Err(explorer.refusals);
    }
    Ok(Program {
        key: request.key.clone(),
        description: request.description.clone(),
        tree,
        leaves: explorer.leaves,
    })
}

/// Evaluates one way further: replaces the `Grow` at the end of `path` by what follows there.
///
/// # Errors
/// If that way cannot be raised.
pub fn extend(
    program: &mut Program,
    request: &Request,
    loader: &dyn Loader,
    path: &[Choice],
) -> Result<(), Vec<Refusal>> {
    let mut explorer = Explorer {
        request,
        loader,
        budget: 1,
        leaves: std::mem::take(&mut program.leaves),
        refusals: vec![],
    };
    let grown = explorer.grow(&mut path.to_vec());
    program.leaves = std::mem::take(&mut explorer.leaves);
    if !explorer.refusals.is_empty() {
        return Err(explorer.refusals);
    }
    if let Some(place) = descend(&mut program.tree, path) {
        *place = grown;
    }
    Ok(())
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
        Choice::Otherwise => otherwise.as_mut(),
        Choice::Value(v) => {
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
    let why = eval.refusals.first().map_or("it returns without a request", |r| r.message.as_str());
    Err(format!("the request cannot be read: {why}"))
}

struct Explorer<'a> {
    request: &'a Request,
    loader: &'a dyn Loader,
    budget: usize,
    leaves: Vec<Leaf>,
    refusals: Vec<Refusal>,
}

impl Explorer<'_> {
    fn grow(&mut self, path: &mut Vec<Choice>) -> Tree {
        if self.budget == 0 || self.refusals.len() > 20 {
            return Tree::Grow;
        }
        self.budget -= 1;
        match evaluate(self.request, self.loader, path) {
            End::Leaf(leaf) => {
                self.leaves.push(leaf);
                Tree::Leaf(self.leaves.len() - 1)
            }
            End::Replay => Tree::Replay,
            End::Refused(refusals) => {
                for r in refusals {
                    if !self.refusals.contains(&r) {
                        self.refusals.push(r);
                    }
                }
                Tree::Replay
            }
            End::Undecided { on, ways, so_far } => {
                self.leaves.push(so_far);
                let leaf = self.leaves.len() - 1;
                let exact = ways.is_none();
                let arms = ways
                    .unwrap_or_default()
                    .into_iter()
                    .map(|w| (w, self.below(path, Choice::Value(w))))
                    .collect();
                let otherwise = if exact {
                    Tree::Grow
                } else {
                    self.below(path, Choice::Otherwise)
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

    fn below(&mut self, path: &mut Vec<Choice>, choice: Choice) -> Tree {
        path.push(choice);
        let tree = self.grow(path);
        path.pop();
        tree
    }
}

/// Evaluates the shim of a request along a list of choices.
fn evaluate(request: &Request, loader: &dyn Loader, path: &[Choice]) -> End {
    let mut eval = Eval::new(&request.key, loader, path);
    let Some(shim) = loader.function(&request.shim) else {
        return End::Refused(vec![Refusal {
            message: format!("internal error: the program has no body for `{}`", request.shim),
            at: vec![],
        }]);
    };
    let mut args = Object::new(Some(8 * request.params as u64), 8);
    for i in 0..request.params {
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
            so_far: Leaf {
                graph: eval.trace.graph,
                image: Image::default(),
            },
        },
        Err(Stop::Refused) => End::Refused(vec![Refusal {
            message: "internal error: refused without a reason".into(),
            at: vec![],
        }]),
    }
}
