//! Derivative rules of single ops: float instructions, intrinsics, functions of the mathematical library.
//!
//! `table.txt` is the table: one line of mathematics per op. [`parse`] reads it into [`expr`]essions, [`emit`] makes
//! instructions of these for any float type and vector of it, [`lanes`] writes out what moves lanes. A rule knows
//! nothing of memory, modes or widths: [`Applied::jvp`] and [`Applied::vjp`] are the same formulas.
//!
//! Guarantees: a seed that is exactly zero contributes exactly zero, whatever the partial derivative is; every other
//! seed is multiplied as IEEE says, so NaN stays NaN. Licences of fast math are the primal instruction's own.

mod body;
mod emit;
mod expr;
mod lanes;
mod outputs;
mod parse;
mod table;
#[cfg(test)]
mod tests;

use crate::kernel::attributes;
use crate::llvm::{Builder, Opcode, Type, Value};
pub use body::{add_bodies, known_body};
use emit::Emitter;
pub use expr::Reads;
pub(crate) use outputs::lower_outputs;
pub use table::Class;
use table::{Rule, table};

/// An op of a program, with its rule.
#[derive(Clone, Copy, Debug)]
pub struct Applied<'m> {
    op: Value<'m>,
    rule: &'static Rule,
}

/// The rule of an instruction or call; `None` if the table does not know it.
pub fn rule_of(op: Value<'_>) -> Option<Applied<'_>> {
    let rule = if op.is_call() {
        call_rule(op)
    } else {
        table().instruction(opcode_name(op.opcode())?)
    };
    rule.map(|rule| Applied { op, rule })
}

fn opcode_name(op: Opcode) -> Option<&'static str> {
    Some(match op {
        Opcode::LLVMFAdd => "fadd",
        Opcode::LLVMFSub => "fsub",
        Opcode::LLVMFMul => "fmul",
        Opcode::LLVMFDiv => "fdiv",
        Opcode::LLVMFRem => "frem",
        Opcode::LLVMFNeg => "fneg",
        Opcode::LLVMFCmp => "fcmp",
        Opcode::LLVMFPTrunc => "fptrunc",
        Opcode::LLVMFPExt => "fpext",
        Opcode::LLVMFPToSI => "fptosi",
        Opcode::LLVMFPToUI => "fptoui",
        Opcode::LLVMSIToFP => "sitofp",
        Opcode::LLVMUIToFP => "uitofp",
        Opcode::LLVMExtractElement => "extractelement",
        Opcode::LLVMInsertElement => "insertelement",
        Opcode::LLVMShuffleVector => "shufflevector",
        _ => return None,
    })
}

fn call_rule(call: Value<'_>) -> Option<&'static Rule> {
    let callee = call.callee()?;
    let name = callee.name();
    if name.starts_with("llvm.") {
        return table().intrinsic(&name);
    }
    // A function that the program defines is differentiated, whatever it is called.
    let like = callee.string_attribute(attributes::LIKE);
    if !callee.is_declaration() && like.is_none() {
        return None;
    }
    let (rule, form) = table().library(like.as_deref().unwrap_or(&name))?;
    let arguments = call.arguments();
    let floats = || {
        arguments
            .iter()
            .map(|a| a.ty())
            .chain([call.ty()])
            .filter(|t| !t.is_int() && !t.is_pointer())
    };
    let fits = |t: Type<'_>| form.map_or(t.is_float(), |form| form.fits(t));
    // `nexttoward` has a second operand of another type.
    let known = arguments.len() == rule.operands.len() && floats().filter(|t| fits(*t)).count() > 0;
    (known && (rule.name == "nextafter" || floats().all(fits))).then_some(rule)
}

impl<'m> Applied<'m> {
    /// The class that the op stands in. [`Class::Unsupported`] is to be refused.
    pub fn class(self) -> Class {
        self.rule.class
    }

    /// Name of the rule.
    pub fn name(self) -> &'static str {
        &self.rule.name
    }

    /// The operands that the rule speaks of.
    pub fn operands(self) -> Vec<Value<'m>> {
        (0..self.rule.operands.len() as u32)
            .map(|i| self.op.operand(i))
            .collect()
    }

    /// Has the op a derivative in operand `i`?
    pub fn active(self, i: usize) -> bool {
        let class = self.rule.class;
        let float = || {
            let ty = self.op.operand(i as u32).ty();
            ty.scalar().is_float() || ty.is_vector()
        };
        class != Class::Zero && class != Class::Unsupported && self.rule.active(i) && float()
    }

    /// What the contribution of operand `i` looks at. Constants among the operands cost nothing.
    pub fn reads(self, i: usize) -> Reads {
        match self.rule.class {
            Class::Custom => lanes::reads(&self.rule.name),
            _ => self.rule.reads(i),
        }
    }

    fn emitter<'e>(self, b: &'e Builder<'m>, operands: &'e [Value<'m>], result: Option<Value<'m>>) -> Emitter<'e, 'm> {
        let float = |v: &&Value<'m>| v.ty().scalar().is_float();
        let ty = operands.iter().find(float).map_or(self.op.ty(), |v| v.ty());
        Emitter::new(b, ty, operands, result, self.op.fast_math())
    }

    /// Which operand the op gives, as a condition, if that is all that cotangents depend on; of a single float only.
    pub fn choice(self, b: &Builder<'m>) -> Option<Value<'m>> {
        let condition = self.rule.choice().filter(|_| self.op.ty().is_float())?;
        Some(self.emitter(b, &self.operands(), None).condition(condition))
    }

    /// The tangent of the result; `None` is zero. `operands` and `result` are values of the op where the builder
    /// stands; `tangents` has one entry per operand, `None` for zero.
    pub fn jvp(
        self,
        b: &Builder<'m>,
        operands: &[Value<'m>],
        result: Value<'m>,
        tangents: &[Option<Value<'m>>],
    ) -> Option<Value<'m>> {
        let tangents: Vec<_> = (0..operands.len())
            .map(|i| tangents[i].filter(|t| self.active(i) && !t.is_null()))
            .collect();
        if tangents.iter().all(Option::is_none) {
            return None;
        }
        let mut e = self.emitter(b, operands, Some(result));
        if self.rule.class == Class::Custom {
            return Some(lanes::jvp(&e, &self.rule.name, self.op, &tangents));
        }
        let parts = self.rule.partials.iter().map(Vec::len).max().unwrap_or(1);
        let mut sums: Vec<Option<Value<'m>>> = vec![None; parts];
        for (partials, tangent) in self.rule.partials.iter().zip(&tangents) {
            let Some(tangent) = tangent else { continue };
            for (sum, partial) in sums.iter_mut().zip(partials) {
                let Some(partial) = partial else { continue };
                let x = e.contribution(*partial, *tangent);
                *sum = Some(sum.map_or(x, |s| e.flag(b.fadd(s, x))));
            }
        }
        if !result.ty().is_struct() {
            return sums[0];
        }
        let parts = sums.into_iter().enumerate().filter_map(|(i, s)| Some((i as u32, s?)));
        Some(parts.fold(result.ty().zero(), |whole, (i, s)| b.insert_value(whole, s, i)))
    }

    /// The cotangents of the operands; `None` is zero or not `wanted`. `operands` and `result` hold at least what
    /// [`Applied::reads`] says; others may be anything of the operand's type. Nothing is looked at of an op that gives one
    /// of them where it is `known` which ([`Applied::choice`]).
    pub fn vjp(
        self,
        b: &Builder<'m>,
        (operands, result): (&[Value<'m>], Option<Value<'m>>),
        known: Option<Value<'m>>,
        cotangent: Value<'m>,
        wanted: &dyn Fn(usize) -> bool,
    ) -> Vec<Option<Value<'m>>> {
        let wanted = |i: usize| wanted(i) && self.active(i);
        if !(0..operands.len()).any(wanted) {
            return vec![None; operands.len()];
        }
        let mut e = self.emitter(b, operands, result);
        if let (Some(condition), Some(known)) = (self.rule.choice(), known) {
            e.know(condition, known);
        }
        if self.rule.class == Class::Custom {
            let all = lanes::vjp(&e, &self.rule.name, self.op, cotangent);
            return all
                .into_iter()
                .enumerate()
                .map(|(i, c)| c.filter(|_| wanted(i)))
                .collect();
        }
        let parts = self.rule.partials.iter().map(Vec::len).max().unwrap_or(1);
        let of = |part: usize| match cotangent.ty().is_struct() {
            true => b.extract(cotangent, part as u32),
            false => cotangent,
        };
        let seeds: Vec<_> = (0..parts).map(of).collect();
        let mut sums = vec![None; operands.len()];
        for (part, seed) in seeds.into_iter().enumerate().filter(|(_, seed)| !seed.is_null()) {
            for (i, partials) in self.rule.partials.iter().enumerate() {
                if let Some(partial) = partials.get(part).copied().flatten().filter(|_| wanted(i)) {
                    let x = e.contribution(partial, seed);
                    sums[i] = Some(sums[i].map_or(x, |s| e.flag(b.fadd(s, x))));
                }
            }
        }
        sums
    }
}
