//! Formulas into instructions, for any float type and vector of it.

use super::expr::{Binary, Compare, Expr, Id};
use super::table::table;
use crate::llvm::{Builder, IntPredicate, Mod, RealPredicate, Type, TypeKind, Value};
use std::collections::HashMap;

const NO_NANS: u32 = 1 << 1;
const NO_INFS: u32 = 1 << 2;

/// One differentiated op, and what was emitted for it so far: parts that partials share are emitted once.
pub(super) struct Emitter<'e, 'm> {
    pub(super) builder: &'e Builder<'m>,
    pub(super) module: Mod<'m>,
    /// The op's float type: of its float operands and of the seeds.
    pub(super) ty: Type<'m>,
    pub(super) operands: &'e [Value<'m>],
    pub(super) result: Option<Value<'m>>,
    /// Fast-math flags of the op.
    pub(super) flags: u32,
    /// Values without the seed, and those of the present seed.
    fixed: HashMap<Id, Value<'m>>,
    seeded: HashMap<Id, Value<'m>>,
    seed: Option<Value<'m>>,
}

/// Is it a finite constant?
fn is_finite(v: Value<'_>) -> bool {
    v.is_const_real() && v.real_value().is_finite()
}

impl<'e, 'm> Emitter<'e, 'm> {
    pub(super) fn new(
        builder: &'e Builder<'m>,
        ty: Type<'m>,
        operands: &'e [Value<'m>],
        result: Option<Value<'m>>,
        flags: u32,
    ) -> Self {
        let module = builder.block().parent().module();
        let (fixed, seeded) = (HashMap::new(), HashMap::new());
        Self {
            builder,
            module,
            ty,
            operands,
            result,
            flags,
            fixed,
            seeded,
            seed: None,
        }
    }

    /// A condition, which looks at operands alone.
    pub(super) fn condition(&mut self, formula: Id) -> Value<'m> {
        self.emit(formula, self.ty)
    }

    /// Says what a formula without the seed has given before.
    pub(super) fn know(&mut self, formula: Id, value: Value<'m>) {
        self.fixed.insert(formula, value);
    }

    /// What the seed contributes by the formula: exactly zero if the seed is exactly zero.
    pub(super) fn contribution(&mut self, formula: Id, seed: Value<'m>) -> Value<'m> {
        if self.seed.replace(seed) != Some(seed) {
            self.seeded.clear();
        }
        let value = self.float(formula);
        let operands = self.operands;
        if table().exprs.keeps_zero(formula, &|i| is_finite(operands[i])) {
            return value;
        }
        self.unless_zero(seed, value)
    }

    /// `value`, or zero where the seed is exactly zero.
    pub(super) fn unless_zero(&self, seed: Value<'m>, value: Value<'m>) -> Value<'m> {
        if self.flags & (NO_NANS | NO_INFS) == NO_NANS | NO_INFS {
            return value;
        }
        let zero = seed.ty().zero();
        let counts = self.builder.fcmp(RealPredicate::LLVMRealUNE, seed, zero);
        self.builder.select(counts, value, zero)
    }

    /// The primal's licences, but for those under which an infinite derivative would be undefined.
    pub(super) fn flag(&self, value: Value<'m>) -> Value<'m> {
        value.set_fast_math(self.flags & !(NO_NANS | NO_INFS));
        value
    }

    fn float(&mut self, id: Id) -> Value<'m> {
        self.emit(id, self.ty)
    }

    /// The type of an integer formula, `None` for floats.
    fn integer(&self, id: Id) -> Option<Type<'m>> {
        let of = |ty: Type<'m>| ty.scalar().is_int().then_some(ty);
        match table().exprs.node(id) {
            Expr::Operand(i) => of(self.operands[*i].ty()),
            Expr::Result(Some(part)) => of(self.result?.ty().field(*part)),
            Expr::Binary(_, a, b) => self.integer(*a).or_else(|| self.integer(*b)),
            Expr::Neg(a) => self.integer(*a),
            _ => None,
        }
    }

    /// The value of a formula; `ty` is the type of literals in it.
    fn emit(&mut self, id: Id, ty: Type<'m>) -> Value<'m> {
        if let Some(v) = self.fixed.get(&id).or_else(|| self.seeded.get(&id)) {
            return *v;
        }
        let exprs = &table().exprs;
        let ty = self.integer(id).unwrap_or(ty);
        let value = match exprs.node(id) {
            // Literals have no type of their own: they are not kept.
            Expr::Number(text) => return number(ty, text),
            Expr::Operand(i) => self.operands[*i],
            Expr::Result(part) => {
                let result = self.result.expect("the caller gives the result to rules that read it");
                part.map_or(result, |i| self.builder.extract(result, i))
            }
            Expr::Seed => self.seed.expect("set by `contribution`"),
            Expr::Neg(a) => {
                let a = self.emit(*a, ty);
                self.flag(self.builder.fneg(a))
            }
            Expr::Binary(op, a, b) => self.binary(*op, *a, *b, ty),
            Expr::Compare(op, a, b) => self.compare(*op, *a, *b),
            Expr::And(a, b) => {
                let (a, b) = (self.emit(*a, ty), self.emit(*b, ty));
                self.builder.and(a, b)
            }
            Expr::Or(a, b) => {
                let (a, b) = (self.emit(*a, ty), self.emit(*b, ty));
                self.builder.or(a, b)
            }
            Expr::Select(c, a, b) => {
                let c = self.emit(*c, ty);
                let (a, b) = (self.emit(*a, ty), self.emit(*b, ty));
                self.builder.select(c, a, b)
            }
            Expr::Float(n) => {
                let n = self.emit(*n, ty);
                self.to_float(n)
            }
            Expr::Call(name, args) => self.call(name, args),
        };
        let memo = if exprs.has_seed(id) {
            &mut self.seeded
        } else {
            &mut self.fixed
        };
        memo.insert(id, value);
        value
    }

    fn binary(&mut self, op: Binary, a: Id, b: Id, ty: Type<'m>) -> Value<'m> {
        let (a, b) = (self.emit(a, ty), self.emit(b, ty));
        let builder = self.builder;
        if ty.scalar().is_int() {
            return match op {
                Binary::Add => builder.add(a, b),
                Binary::Sub => builder.sub(a, b),
                Binary::Mul => builder.mul(a, b),
                Binary::Div => unreachable!("the table divides no integers: its test emits every formula"),
            };
        }
        self.flag(match op {
            Binary::Add => builder.fadd(a, b),
            Binary::Sub => builder.fsub(a, b),
            Binary::Mul => builder.fmul(a, b),
            Binary::Div => builder.fdiv(a, b),
        })
    }

    fn compare(&mut self, op: Compare, a: Id, b: Id) -> Value<'m> {
        let integer = self.integer(a).or_else(|| self.integer(b));
        let ty = integer.unwrap_or(self.ty);
        let (a, b) = (self.emit(a, ty), self.emit(b, ty));
        if integer.is_some() {
            let predicate = match op {
                Compare::Eq => IntPredicate::LLVMIntEQ,
                Compare::Ne => IntPredicate::LLVMIntNE,
                Compare::Lt => IntPredicate::LLVMIntSLT,
                Compare::Le => IntPredicate::LLVMIntSLE,
                Compare::Gt => IntPredicate::LLVMIntSGT,
                Compare::Ge => IntPredicate::LLVMIntSGE,
            };
            return self.builder.icmp(predicate, a, b);
        }
        let predicate = match op {
            Compare::Eq => RealPredicate::LLVMRealOEQ,
            Compare::Ne => RealPredicate::LLVMRealUNE,
            Compare::Lt => RealPredicate::LLVMRealOLT,
            Compare::Le => RealPredicate::LLVMRealOLE,
            Compare::Gt => RealPredicate::LLVMRealOGT,
            Compare::Ge => RealPredicate::LLVMRealOGE,
        };
        self.builder.fcmp(predicate, a, b)
    }

    /// An integer in the op's type: one for all lanes if it is one.
    fn to_float(&self, n: Value<'m>) -> Value<'m> {
        if self.ty.is_vector() == n.ty().is_vector() {
            return self.builder.sitofp(n, self.ty);
        }
        let x = self.builder.sitofp(n, self.ty.scalar());
        splat(self.builder, self.ty, x)
    }

    /// A function of the mathematical library: the intrinsic where LLVM has one, else the C function of the type.
    fn call(&mut self, name: &str, args: &[Id]) -> Value<'m> {
        // Bessel functions take their order first.
        let ordered = matches!(name, "jn" | "yn");
        let (order, ty) = (self.ty.context().int(32), self.ty);
        let args: Vec<_> = (args.iter().enumerate())
            .map(|(i, a)| self.emit(*a, if ordered && i == 0 { order } else { ty }))
            .collect();
        let mut types = vec![ty];
        types.extend(args.iter().skip(1).map(|a| a.ty()).filter(|t| t.scalar().is_int()));
        if let Some(f) = self.module.intrinsic(&format!("llvm.{name}"), &types) {
            return self.flag(self.builder.call(f, &args));
        }
        let name = match ty.kind() {
            TypeKind::LLVMDoubleTypeKind => name.to_owned(),
            TypeKind::LLVMFloatTypeKind => format!("{name}f"),
            _ => format!("{name}l"),
        };
        let signature = ty
            .context()
            .function(ty, &args.iter().map(|a| a.ty()).collect::<Vec<_>>());
        let f = self.module.function(&name).unwrap_or_else(|| {
            let f = self.module.add_function(&name, signature);
            // Functions of numbers alone: unused calls may go.
            ["nounwind", "willreturn", "memory"]
                .into_iter()
                .for_each(|a| f.add_attribute(a));
            f
        });
        self.flag(self.builder.call_value(signature, f.value(), &args))
    }
}

/// A literal of the type.
fn number<'m>(ty: Type<'m>, text: &str) -> Value<'m> {
    if ty.scalar().is_int() {
        return ty.int(text.parse::<i64>().expect("the table compares integers with integers") as u64);
    }
    ty.real_text(text)
}

/// A vector with every element `x`; `x` itself if the type is none.
pub(super) fn splat<'m>(b: &Builder<'m>, ty: Type<'m>, x: Value<'m>) -> Value<'m> {
    if !ty.is_vector() {
        return x;
    }
    let i32 = ty.context().int(32);
    let one = b.insert_element(ty.poison(), x, i32.int(0));
    b.shuffle(one, ty.poison(), i32.vector(ty.length() as u32).zero())
}
