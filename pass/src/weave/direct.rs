//! The user's function behind a shim.
//!
//! A shim takes addresses of arguments; what it hands on are loads, of which nobody knows any more what the user's
//! function says of its parameters: that nothing writes to a slice that it borrows, that slices do not overlap, which of
//! them has a shadow. So the function stays apart from its shim (it is not inlined), and where the types of its parameters
//! tell what each has a shadow of ([`plain`]), a gradient is asked of the function itself:
//!
//! ```text
//! gradient(args, S[args], out, S[out], arena):
//!     x.. = what the shim loads from args;  S[x].. = the same from S[args], where x is a pointer into a differentiated argument
//!     {y, x̄..} = direct(x, S[x].., ȳ = S[out], arena)
//!     S[args].. += x̄;  out = y;  S[out] = 0
//! ```

use super::entries::{Kernel, RUNTIME};
use super::pointed;
use crate::kernel::{Activity, DiffRequest, Mode};
use crate::llvm::{Builder, Function, Mod, Opcode, Type, Value};

/// In the mangled names of what stands between a shim and a function item: the calls of `core::ops`.
const CALLS: &str = "4core3ops8function";
/// Types of which memory holds no address.
const NUMBERS: [&str; 13] = [
    "f32", "f64", "u8", "u16", "u32", "u64", "usize", "i8", "i16", "i32", "i64", "isize", "bool",
];
/// Bytes of an address.
const WORD: u64 = 8;

/// A parameter of which the type, as users wrote it, says enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plain {
    /// A value; is it differentiated?
    Value { active: bool },
    /// A reference; does what it leads to have a shadow?
    Reference { active: bool },
}

/// The parameters, if each is a value, a reference to what is differentiated, or one to numbers that nobody writes to.
pub(crate) fn plain(description: &str) -> Option<Vec<Plain>> {
    let json: serde_json::Value = serde_json::from_str(description).ok()?;
    let params = json["params"].as_array()?;
    params
        .iter()
        .map(|p| plain_type(p["ty"].as_str()?, p["wrt"] == true))
        .collect()
}

fn plain_type(ty: &str, wrt: bool) -> Option<Plain> {
    let Some(referred) = ty.trim().strip_prefix('&') else {
        return Some(Plain::Value { active: wrt });
    };
    if wrt {
        // The runtime gives it a shadow, and what it holds, as far as that is differentiated.
        return (!pointed::names_functions(ty)).then_some(Plain::Reference { active: true });
    }
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut words = referred.split(|c| !is_part(c)).filter(|w| !w.is_empty());
    let lifetimes = referred
        .split('\'')
        .skip(1)
        .filter_map(|l| l.trim().split(|c| !is_part(c)).next());
    let lifetimes: Vec<&str> = lifetimes.collect();
    let known = |w: &str| {
        let is_number = NUMBERS.contains(&w) || w.chars().all(|c| c.is_ascii_digit());
        is_number || w == "Vec" || lifetimes.contains(&w)
    };
    let one = !referred.contains(['&', '(', '*']);
    (words.all(known) && one).then_some(Plain::Reference { active: false })
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
    /// What stands at an offset in an argument, as a type; a truth value is a byte there.
    Part {
        argument: u64,
        offset: u64,
        stored: Type<'m>,
        passed: Type<'m>,
    },
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
                Opcode::LLVMLoad | Opcode::LLVMGetElementPtr | Opcode::LLVMTrunc | Opcode::LLVMRet => {}
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
                Given::Part {
                    argument,
                    offset,
                    stored,
                    passed: ty,
                } => {
                    let x = b.load(stored, at(args, argument, offset));
                    passed.push(if stored == ty {
                        x
                    } else {
                        b.cast(Opcode::LLVMTrunc, x, ty)
                    });
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
    let read = if x.is(Opcode::LLVMTrunc) { x.operand(0) } else { x };
    let (place, offset) = from(read)?;
    let (list, argument) = from(place)?;
    let argument = Some(argument / WORD).filter(|_| list == args && argument % WORD == 0)?;
    let ty = x.ty();
    let activity = match *plain.get(usize::try_from(argument).ok()?)? {
        Plain::Value { active: false } if !ty.is_pointer() => Activity::Const,
        Plain::Value { active: true } if ty.is_float() => Activity::Out,
        // An integer may hold the bits of floats, and an address leads to more.
        Plain::Value { .. } => return None,
        Plain::Reference { active } if ty.is_pointer() && offset == 0 => match active {
            true => Activity::Dup,
            false => Activity::Const,
        },
        // How many elements there are; what else is beside an address tells of a type that only run time knows.
        Plain::Reference { .. } if ty.is_int() => Activity::Const,
        Plain::Reference { .. } => return None,
    };
    let given = Given::Part {
        argument,
        offset,
        stored: read.ty(),
        passed: ty,
    };
    Some((given, activity))
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
    use super::{Direct, Plain, plain_type};
    use crate::kernel::Activity;
    use crate::llvm::OwnedModule;
    use crate::weave::Kernel;

    /// What is asked of a function, by the parameters that it has in LLVM, of what a shim finds at offsets in its arguments.
    fn asked(plain: &[Plain], parts: &[(&str, usize, usize)]) -> Option<Vec<Activity>> {
        let (mut loads, mut types, mut passed) = (String::new(), vec![], vec![]);
        for (k, (ty, argument, offset)) in parts.iter().enumerate() {
            let (stored, truncated) = if *ty == "i1" { ("i8", true) } else { (*ty, false) };
            loads += &format!("%l{k} = getelementptr i8, ptr %args, i64 {}\n", 8 * argument);
            loads += &format!("%a{k} = load ptr, ptr %l{k}\n%p{k} = getelementptr i8, ptr %a{k}, i64 {offset}\n");
            loads += &format!("%x{k} = load {stored}, ptr %p{k}\n");
            let x = if truncated { format!("%t{k}") } else { format!("%x{k}") };
            if truncated {
                loads += &format!("%t{k} = trunc i8 %x{k} to i1\n");
            }
            types.push(format!("{ty} %{k}"));
            passed.push(format!("{ty} {x}"));
        }
        let text = format!(
            "define double @user({}) {{\nret double 0.0\n}}\ndefine void @shim(ptr %args, ptr %out) {{\n{loads}\
             %y = call double @user({})\nstore double %y, ptr %out\nret void\n}}\n",
            types.join(", "),
            passed.join(", ")
        );
        let module = OwnedModule::read(text.as_bytes()).expect("a module");
        let kernel = Kernel {
            key: "user".into(),
            shim: "shim".into(),
            modes: 2,
            thunks: vec![],
            pointed: vec![],
            plain: Some(plain.to_vec()),
            float: None,
        };
        let shim = module.get().function("shim").expect("it has one");
        Some(Direct::of(shim, &kernel)?.request("entry".into()).arguments)
    }

    #[test]
    fn a_gradient_is_asked_of_the_function_behind_its_shim() {
        let value = |active| Plain::Value { active };
        let reference = |active| Plain::Reference { active };
        let plain = [reference(true), reference(false), value(true), value(false)];
        let parts = [
            ("ptr", 0, 0),
            ("ptr", 1, 0),
            ("i64", 1, 8),
            ("double", 2, 0),
            ("i1", 3, 0),
        ];
        let (dup, constant) = (Activity::Dup, Activity::Const);
        assert_eq!(
            asked(&plain, &parts),
            Some(vec![dup, constant, constant, Activity::Out, constant])
        );
    }

    #[test]
    fn what_types_do_not_tell_is_left_to_the_shim() {
        let (value, reference) = (|active| Plain::Value { active }, Plain::Reference { active: true });
        // Two floats in an integer, an address by value, and what tells of a type at run time.
        assert_eq!(asked(&[value(true)], &[("i64", 0, 0)]), None);
        assert_eq!(asked(&[value(false)], &[("ptr", 0, 0)]), None);
        assert_eq!(asked(&[reference], &[("ptr", 0, 0), ("ptr", 0, 8)]), None);
    }

    #[test]
    fn values_and_references_to_what_is_differentiated_are_plain() {
        for ty in ["f64", "usize", "Real", "bool", "[f64 ; 2]"] {
            for active in [true, false] {
                assert_eq!(plain_type(ty, active), Some(Plain::Value { active }), "{ty}");
            }
        }
        for ty in [
            "& [f32]",
            "& 'a mut [f64]",
            "& Net",
            "& [(f64 , Real)]",
            "& mut Vec < Body >",
        ] {
            assert_eq!(plain_type(ty, true), Some(Plain::Reference { active: true }), "{ty}");
        }
        for ty in ["& dyn Fn (f64) -> f64", "& [fn (f64) -> f64]"] {
            assert_eq!(plain_type(ty, true), None, "{ty}");
        }
    }

    #[test]
    fn of_what_is_not_differentiated_only_numbers_that_nobody_writes_to_are_plain() {
        for ty in ["& [f64]", "& 'a Vec < usize >", "& [[f64 ; 3]]"] {
            assert_eq!(plain_type(ty, false), Some(Plain::Reference { active: false }), "{ty}");
        }
        for ty in ["& mut [f64]", "& Net", "& & f64", "& (f64 , f64)", "& [T]", "& str"] {
            assert_eq!(plain_type(ty, false), None, "{ty}");
        }
    }
}
