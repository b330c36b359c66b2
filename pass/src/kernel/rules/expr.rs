//! Formulas: expressions over operands, result and seed, hash-consed so that a part written twice is computed once.

use std::collections::HashMap;

/// A formula, by its place in [`Exprs`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct Id(u32);

/// Arithmetic on floats, or on integers where the operands are integers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Binary {
    Add,
    Sub,
    Mul,
    Div,
}

/// Comparisons: ordered ones, except that `!=` holds for NaN.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Compare {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// A node of a formula.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Expr {
    /// A literal, in decimal: exact in every float type, as far as the type goes.
    Number(String),
    /// An operand of the differentiated op.
    Operand(usize),
    /// Its result, or a part of it.
    Result(Option<u32>),
    /// The tangent or cotangent that the formula maps.
    Seed,
    Neg(Id),
    Binary(Binary, Id, Id),
    Compare(Compare, Id, Id),
    And(Id, Id),
    Or(Id, Id),
    Select(Id, Id, Id),
    /// An integer as a float of the op's type.
    Float(Id),
    /// A function of the mathematical library.
    Call(String, Vec<Id>),
}

/// What a formula looks at.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Reads {
    /// One bit per operand.
    pub operands: u64,
    /// The result, or part of it.
    pub result: bool,
}

impl Reads {
    /// What either looks at.
    pub fn and(self, other: Self) -> Self {
        Self {
            operands: self.operands | other.operands,
            result: self.result || other.result,
        }
    }
    /// Does the formula look at operand `i`?
    pub fn operand(self, i: usize) -> bool {
        self.operands >> i & 1 == 1
    }
}

/// All formulas of the table.
#[derive(Default, Debug)]
pub(super) struct Exprs {
    nodes: Vec<Expr>,
    ids: HashMap<Expr, Id>,
}

impl Exprs {
    /// The formula of that node.
    pub(super) fn add(&mut self, node: Expr) -> Id {
        if let Some(id) = self.ids.get(&node) {
            return *id;
        }
        let id = Id(u32::try_from(self.nodes.len()).expect("the table is small"));
        self.nodes.push(node.clone());
        self.ids.insert(node, id);
        id
    }

    pub(super) fn number(&mut self, text: &str) -> Id {
        self.add(Expr::Number(text.into()))
    }

    pub(super) fn node(&self, id: Id) -> &Expr {
        &self.nodes[id.0 as usize]
    }

    /// Is it that number?
    pub(super) fn is(&self, id: Id, number: &str) -> bool {
        matches!(self.node(id), Expr::Number(n) if n == number)
    }

    pub(super) fn children(&self, id: Id) -> Vec<Id> {
        match self.node(id) {
            Expr::Number(_) | Expr::Operand(_) | Expr::Result(_) | Expr::Seed => vec![],
            Expr::Neg(a) | Expr::Float(a) => vec![*a],
            Expr::Binary(_, a, b) | Expr::Compare(_, a, b) | Expr::And(a, b) | Expr::Or(a, b) => vec![*a, *b],
            Expr::Select(a, b, c) => vec![*a, *b, *c],
            Expr::Call(_, args) => args.clone(),
        }
    }

    /// Does the formula mention the seed?
    pub(super) fn has_seed(&self, id: Id) -> bool {
        matches!(self.node(id), Expr::Seed) || self.children(id).into_iter().any(|c| self.has_seed(c))
    }

    /// What the formula looks at.
    pub(super) fn reads(&self, id: Id) -> Reads {
        match self.node(id) {
            Expr::Operand(i) => Reads {
                operands: 1 << i,
                result: false,
            },
            Expr::Result(_) => Reads {
                operands: 0,
                result: true,
            },
            _ => self
                .children(id)
                .into_iter()
                .map(|c| self.reads(c))
                .fold(Reads::default(), Reads::and),
        }
    }

    /// Is the formula zero whenever the seed is, NaN and infinities elsewhere notwithstanding? `finite` tells which
    /// operands are known to be finite numbers.
    pub(super) fn keeps_zero(&self, id: Id, finite: &dyn Fn(usize) -> bool) -> bool {
        let sub = |e: Id| self.keeps_zero(e, finite);
        let number = |e: Id| match self.node(e) {
            Expr::Number(n) => n.parse::<f64>().is_ok_and(|n| n != 0.0),
            Expr::Operand(i) => finite(*i),
            _ => false,
        };
        match self.node(id) {
            Expr::Seed => true,
            Expr::Number(_) => self.is(id, "0"),
            Expr::Neg(a) => sub(*a),
            Expr::Binary(Binary::Add | Binary::Sub, a, b) => sub(*a) && sub(*b),
            Expr::Binary(Binary::Mul, a, b) => sub(*a) && number(*b) || number(*a) && sub(*b),
            Expr::Binary(Binary::Div, a, b) => sub(*a) && matches!(self.node(*b), Expr::Number(_)) && number(*b),
            Expr::Select(_, a, b) => sub(*a) && sub(*b),
            // Scaling by a power of two.
            Expr::Call(name, args) => matches!(name.as_str(), "ldexp" | "scalbln") && sub(args[0]),
            Expr::Operand(_) | Expr::Result(_) | Expr::Compare(..) | Expr::And(..) | Expr::Or(..) | Expr::Float(_) => {
                false
            }
        }
    }

    /// The formula with operands replaced: how a `def` is used.
    pub(super) fn substitute(&mut self, id: Id, args: &[Id]) -> Id {
        let node = self.node(id).clone();
        let mut sub = |e: Id| self.substitute(e, args);
        let node = match node {
            Expr::Operand(i) => return args[i],
            Expr::Number(_) | Expr::Result(_) | Expr::Seed => return id,
            Expr::Neg(a) => Expr::Neg(sub(a)),
            Expr::Float(a) => Expr::Float(sub(a)),
            Expr::Binary(op, a, b) => Expr::Binary(op, sub(a), sub(b)),
            Expr::Compare(op, a, b) => Expr::Compare(op, sub(a), sub(b)),
            Expr::And(a, b) => Expr::And(sub(a), sub(b)),
            Expr::Or(a, b) => Expr::Or(sub(a), sub(b)),
            Expr::Select(a, b, c) => Expr::Select(sub(a), sub(b), sub(c)),
            Expr::Call(name, args) => Expr::Call(name, args.into_iter().map(sub).collect()),
        };
        self.add(node)
    }
}
