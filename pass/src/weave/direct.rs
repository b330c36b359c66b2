//! The user's function behind a shim.
//!
//! A shim takes addresses of arguments; what it hands on are loads, of which nobody knows any more what the user's
//! function says of its parameters: that nothing writes to a slice that it borrows, that slices do not overlap, which of
//! them has a shadow. So the function stays apart from its shim (it is not inlined), and where all its parameters are
//! numbers and slices of such, a gradient is asked of the function itself:
//!
//! ```text
//! gradient(args, S[args], out, S[out], arena):
//!     x.. = what the shim loads from args;  S[x].. = the same from S[args], where x is a pointer into a differentiated argument
//!     {y, x̄..} = direct(x, S[x].., ȳ = S[out], arena)
//!     S[args].. += x̄;  out = y;  S[out] = 0
//! ```

use super::entries::{Kernel, RUNTIME};
use crate::kernel::{Activity, DiffRequest, Mode};
use crate::llvm::{Builder, Function, Mod, Opcode, Type, Value};

/// In the mangled names of what stands between a shim and a function item: the calls of `core::ops`.
const CALLS: &str = "4core3ops8function";
/// Bytes of an address.
const WORD: u64 = 8;

/// A parameter of which the type says all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plain {
    /// Is it differentiated?
    active: bool,
}

/// The parameters, if each is a number, or a reference to numbers, slices, arrays or vectors of numbers, and what is
/// written is differentiated.
pub(crate) fn plain(description: &str) -> Option<Vec<Plain>> {
    let json: serde_json::Value = serde_json::from_str(description).ok()?;
    let params = json["params"].as_array()?;
    params
        .iter()
        .map(|p| plain_type(p["ty"].as_str()?, p["wrt"] == true))
        .collect()
}

fn plain_type(ty: &str, wrt: bool) -> Option<Plain> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut words = ty.split(|c| !is_part(c)).filter(|w| !w.is_empty());
    let is_float = |w: &str| matches!(w, "f32" | "f64");
    let is_integer = |w: &str| {
        let bits = w.strip_prefix(['u', 'i']).unwrap_or_default();
        matches!(bits, "8" | "16" | "32" | "64" | "size") || w == "bool"
    };
    let is_number = |w: &str| is_float(w) || is_integer(w);
    let floats = words.clone().any(is_float);
    let active = wrt && floats;
    if is_number(ty.trim()) {
        return Some(Plain { active });
    }
    let referred = ty.trim().strip_prefix('&')?;
    // After the reference, lifetimes may stand, and `mut`.
    let writes = words.clone().any(|w| w == "mut");
    let lifetimes = referred
        .split('\'')
        .skip(1)
        .filter_map(|l| l.trim().split(|c| !is_part(c)).next());
    let lifetimes: Vec<&str> = lifetimes.collect();
    let known = |w: &str| {
        is_number(w) || matches!(w, "mut" | "Vec") || lifetimes.contains(&w) || w.chars().all(|c| c.is_ascii_digit())
    };
    let one = !referred.contains('&') && !referred.contains(['(', '*']);
    (words.all(known) && one && (!writes || active)).then_some(Plain { active })
}

/// Finds the user's function that a shim calls, through what the runtime and `core` put between, in code that nothing was
/// inlined in yet.
pub(super) fn behind<'m>(shim: Function<'m>) -> Option<Function<'m>> {
    let (mut work, mut seen, mut found) = (vec![shim], vec![], None);
    while let Some(f) = work.pop() {
        if seen.contains(&f) {
            continue;
        }
        seen.push(f);
        for call in f.instructions().filter(|i| i.is_call()) {
            let callee = call.callee()?;
            let name = callee.name();
            if name.starts_with("llvm.") {
                continue;
            }
            if name.contains(RUNTIME) || name.contains(CALLS) {
                work.push(callee);
            } else if *found.get_or_insert(callee) != callee {
                return None;
            }
        }
    }
    found.filter(|f| !f.is_declaration())
}

/// What a shim hands to a parameter.
enum Given<'m> {
    /// The same at every call.
    Constant(Value<'m>),
    /// What stands at an offset in an argument.
    Part { argument: u64, offset: u64, ty: Type<'m> },
}

/// A shim that does nothing but call its function and store what it returns.
pub(super) struct Direct<'m> {
    function: Function<'m>,
    given: Vec<(Given<'m>, Activity)>,
}

impl<'m> Direct<'m> {
    /// Reads a shim, if its kernel's parameters are plain and its function stands apart.
    pub(super) fn of(shim: Function<'m>, kernel: &Kernel) -> Option<Self> {
        let plain = kernel.plain.as_ref()?;
        let [args, out] = shim.params()[..] else { return None };
        let (mut call, mut stored, mut blocks) = (None, false, shim.blocks());
        let (block, None) = (blocks.next()?, blocks.next()) else {
            return None;
        };
        for i in block.instructions() {
            match i.opcode() {
                Opcode::LLVMLoad | Opcode::LLVMGetElementPtr | Opcode::LLVMRet => {}
                Opcode::LLVMCall if call.is_none() => call = Some(i),
                Opcode::LLVMStore if Some(i.operand(0)) == call && i.operand(1) == out && !stored => stored = true,
                _ => return None,
            }
        }
        let call = call.filter(|c| stored && c.ty().is_float())?;
        let function = call.callee().filter(|f| !f.is_declaration())?;
        let given = call.arguments().into_iter().map(|x| given(x, args, plain));
        let given = given.collect::<Option<Vec<_>>>()?;
        Some(Self { function, given })
    }

    /// What is asked of the engine, as `entry`.
    pub(super) fn request(&self, entry: String) -> DiffRequest<'m> {
        DiffRequest {
            function: self.function,
            mode: Mode::Combined,
            arguments: self.given.iter().map(|(_, activity)| *activity).collect(),
            result_active: true,
            primal_result: true,
            seed_argument: true,
            arena_argument: true,
            width: 1,
            entry,
        }
    }

    /// Gives `gradient`, which is declared, the body that calls `entry`, and declares that.
    pub(super) fn write(&self, module: Mod<'m>, gradient: Function<'m>, entry: &str) {
        let [args, args_shadow, out, out_shadow, arena] = gradient.params()[..] else {
            return;
        };
        let context = module.context();
        let (ptr, words, result) = (context.ptr(), context.int(64), self.function.result());
        let b = Builder::new(context);
        b.at_end(gradient.append_block("entry"));
        let at = |list: Value<'m>, argument: u64, offset: u64| {
            let place = b.load(ptr, b.offset(list, words.int(WORD * argument)));
            b.offset(place, words.int(offset))
        };
        let (mut passed, mut outs) = (vec![], vec![]);
        for (given, activity) in &self.given {
            match *given {
                Given::Constant(x) => passed.push(x),
                Given::Part { argument, offset, ty } => {
                    passed.push(b.load(ty, at(args, argument, offset)));
                    match activity {
                        Activity::Dup => passed.push(b.load(ptr, at(args_shadow, argument, offset))),
                        Activity::Out => outs.push((ty, at(args_shadow, argument, offset))),
                        _ => {}
                    }
                }
            }
        }
        passed.extend([b.load(result, out_shadow), arena]);
        let mut parts = vec![result];
        parts.extend(outs.iter().map(|(ty, _)| *ty));
        let all = if outs.is_empty() {
            result
        } else {
            context.structure(&parts)
        };
        let types: Vec<_> = passed.iter().map(|x| x.ty()).collect();
        let direct = module.add_function(entry, context.function(all, &types));
        let got = b.call(direct, &passed);
        let part = |k: u32| if outs.is_empty() { got } else { b.extract(got, k) };
        b.store(part(0), out);
        b.store(result.zero(), out_shadow);
        for (k, (ty, place)) in outs.iter().enumerate() {
            b.store(b.fadd(b.load(*ty, *place), part(k as u32 + 1)), *place);
        }
        b.ret(None);
    }
}

/// What the shim hands on.
fn given<'m>(x: Value<'m>, args: Value<'m>, plain: &[Plain]) -> Option<(Given<'m>, Activity)> {
    if x.is_constant() {
        return Some((Given::Constant(x), Activity::Const)).filter(|_| !x.is_global());
    }
    let from = |x: Value<'m>| x.is(Opcode::LLVMLoad).then(|| constant_offset(x.operand(0)))?;
    let (place, offset) = from(x)?;
    let (list, argument) = from(place)?;
    let argument = Some(argument / WORD).filter(|_| list == args && argument % WORD == 0)?;
    let Plain { active } = *plain.get(usize::try_from(argument).ok()?)?;
    let ty = x.ty();
    let activity = match active {
        true if ty.is_pointer() => Activity::Dup,
        true if ty.is_float() => Activity::Out,
        _ => Activity::Const,
    };
    Some((Given::Part { argument, offset, ty }, activity))
}

/// A pointer as one with a constant distance from another.
fn constant_offset<'m>(pointer: Value<'m>) -> Option<(Value<'m>, u64)> {
    if !pointer.is(Opcode::LLVMGetElementPtr) {
        return Some((pointer, 0));
    }
    let by = pointer.operand(1);
    let bytes = pointer.operand_count() == 2 && pointer.gep_type().is_int() && pointer.gep_type().int_width() == 8;
    (bytes && by.is_const_int() && by.zext_value() < 1 << 32).then(|| (pointer.operand(0), by.zext_value()))
}

#[cfg(test)]
mod tests {
    use super::plain_type;

    #[test]
    fn numbers_and_slices_of_numbers_are_plain() {
        let active = |ty: &str| plain_type(ty, true).map(|p| p.active);
        for ty in [
            "f64",
            "& [f32]",
            "& 'a [f64]",
            "&mut [f64]",
            "& Vec < f64 >",
            "& [[f64 ; 3]]",
            "& 'data mut [f64]",
        ] {
            assert_eq!(active(ty), Some(true), "{ty}");
        }
        for ty in ["usize", "bool", "& [usize]"] {
            assert_eq!(active(ty), Some(false), "{ty}");
        }
        for ty in [
            "Vec < f64 >",
            "[f64 ; 2]",
            "& Net",
            "& dyn Fn (f64) -> f64",
            "& & f64",
            "& (f64 , f64)",
            "T",
            "& str",
            "&mut [usize]",
        ] {
            assert_eq!(active(ty), None, "{ty}");
        }
    }

    #[test]
    fn what_is_written_and_not_differentiated_is_not_plain() {
        assert!(plain_type("&mut [f64]", false).is_none());
        assert_eq!(plain_type("& [f64]", false).map(|p| p.active), Some(false));
    }
}
