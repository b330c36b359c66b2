//! The rules by name: which op has which, and in which class it stands.

use super::expr::{Expr, Exprs, Id, Reads};
use crate::llvm::{Type, TypeKind};
use std::collections::HashMap;
use std::sync::OnceLock;

/// What kind of function an op is of its float operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Its own derivative; its transpose is exact.
    Linear,
    /// Linear in each operand.
    Bilinear,
    /// Lane by lane, with a formula for each partial derivative.
    Elementwise,
    /// Of derivative zero.
    Zero,
    /// Moves or combines lanes: written out, in `lanes.rs`.
    Custom,
    /// Known to have no rule.
    Unsupported,
}

impl Class {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "linear" => Self::Linear,
            "bilinear" => Self::Bilinear,
            "elementwise" => Self::Elementwise,
            "zero" => Self::Zero,
            "custom" => Self::Custom,
            "unsupported" => Self::Unsupported,
            _ => return None,
        })
    }
}

/// What an op is called in a program.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Name {
    /// An instruction.
    Instruction(String),
    /// An intrinsic, without the suffix of its types.
    Intrinsic(String),
    /// A function of the C library: for `double`; `f` and `l` forms follow.
    Library(String),
    /// A function of exactly this name.
    Exact(String),
}

impl Name {
    pub(super) fn read(word: &str) -> Self {
        if let Some(name) = word.strip_prefix('%') {
            Self::Instruction(name.into())
        } else if let Some(name) = word.strip_suffix('=') {
            Self::Exact(name.into())
        } else if word.starts_with("llvm.") {
            Self::Intrinsic(word.into())
        } else {
            Self::Library(word.into())
        }
    }
}

/// The derivative of one op.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) name: String,
    pub(super) class: Class,
    /// The operands that the formulas know, by their names in the table.
    pub(super) operands: Vec<String>,
    /// Per operand and part of the result: its contribution, `None` for zero.
    pub(super) partials: Vec<Vec<Option<Id>>>,
    pub(super) names: Vec<Name>,
}

impl Rule {
    /// What the contribution of operand `i` looks at.
    pub(super) fn reads(&self, i: usize) -> Reads {
        let exprs = &table().exprs;
        let parts = self.partials.get(i).into_iter().flatten().flatten();
        parts.map(|p| exprs.reads(*p)).fold(Reads::default(), Reads::and)
    }

    /// The condition that says which operand the op gives, if that is all that the contributions look at.
    pub(super) fn choice(&self) -> Option<Id> {
        let exprs = &table().exprs;
        let condition = |id: Id| match exprs.node(id) {
            Expr::Select(c, a, b) if [a, b].iter().all(|x| exprs.reads(**x) == Reads::default()) => Some(*c),
            _ => None,
        };
        let mut all = self.partials.iter().flatten().flatten().map(|p| condition(*p));
        let first = all.next()??;
        (!exprs.reads(first).result && all.all(|c| c == Some(first))).then_some(first)
    }

    /// Has the op a derivative in operand `i`?
    pub(super) fn active(&self, i: usize) -> bool {
        self.class == Class::Custom || self.partials.get(i).is_some_and(|p| p.iter().any(Option::is_some))
    }
}

/// The float type that a library function's name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// `float`.
    F,
    /// `double`.
    D,
    /// `long double`.
    L,
}

impl Form {
    /// Is it the type?
    pub(super) fn fits(self, ty: Type<'_>) -> bool {
        match self {
            Self::F => ty.kind() == TypeKind::LLVMFloatTypeKind,
            Self::D => ty.kind() == TypeKind::LLVMDoubleTypeKind,
            Self::L => matches!(ty.kind(), TypeKind::LLVMX86_FP80TypeKind | TypeKind::LLVMFP128TypeKind),
        }
    }
}

/// The form in which `name` is the library function `base`.
pub(super) fn form_of(name: &str, base: &str) -> Option<Form> {
    match name.strip_prefix(base)? {
        "" => Some(Form::D),
        "f" => Some(Form::F),
        "l" => Some(Form::L),
        _ => None,
    }
}

/// All rules.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) rules: Vec<Rule>,
    pub(super) exprs: Exprs,
    by_name: HashMap<Name, usize>,
}

impl Table {
    /// # Errors
    /// If a line does not read, or two rules claim one name.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        let (rules, exprs) = super::parse::table(text)?;
        let mut by_name = HashMap::new();
        for (i, rule) in rules.iter().enumerate() {
            for name in &rule.names {
                if by_name.insert(name.clone(), i).is_some() {
                    return Err(format!("two rules for {name:?}"));
                }
            }
        }
        Ok(Self { rules, exprs, by_name })
    }

    fn get(&self, name: Name) -> Option<&Rule> {
        self.by_name.get(&name).map(|i| &self.rules[*i])
    }

    /// The rule of an instruction, by LLVM's name of its opcode.
    pub(super) fn instruction(&self, opcode: &str) -> Option<&Rule> {
        self.get(Name::Instruction(opcode.into()))
    }

    /// The rule of an intrinsic, by its full name.
    pub(super) fn intrinsic(&self, name: &str) -> Option<&Rule> {
        // `llvm.x86.avx.min.ps.256` is a whole name; `llvm.fma.v4f32` has its types behind.
        let mut base = name;
        loop {
            if let Some(rule) = self.get(Name::Intrinsic(base.into())) {
                return Some(rule);
            }
            base = base.rsplit_once('.')?.0;
        }
    }

    /// The rule of a library function, and the form its name has. The caller checks the types against the form.
    pub(super) fn library(&self, name: &str) -> Option<(&Rule, Option<Form>)> {
        let name = name
            .strip_prefix("__")
            .and_then(|n| n.strip_suffix("_finite"))
            .unwrap_or(name);
        if let Some(rule) = self.get(Name::Exact(name.into())) {
            return Some((rule, None));
        }
        if let Some(rule) = self.get(Name::Library(name.into())) {
            return Some((rule, Some(Form::D)));
        }
        let (base, form) = match name.strip_suffix('f') {
            Some(base) => (base, Form::F),
            None => (name.strip_suffix('l')?, Form::L),
        };
        Some((self.get(Name::Library(base.into()))?, Some(form)))
    }
}

/// The table, read once.
pub(super) fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| Table::new(include_str!("table.txt")).expect("the table reads: a test reads it"))
}
