//! A call of an entry point becomes a call of the derivative, which the module declares until the engine writes it.

use super::signature::{Asked, Passed, Seeds};
use super::split;
use crate::kernel::request::of_all;
use crate::kernel::{Activity, DiffRequest, Mode, Refusal};
use crate::llvm::{Builder, Mod, Opcode, Type, Value};

/// The requests of a module: equal calls share a derivative.
#[derive(Default)]
pub(super) struct Requests<'m> {
    pub(super) all: Vec<DiffRequest<'m>>,
    /// What is to be told of each reverse sweep if its tape is that of another forward sweep.
    reverses: Vec<(DiffRequest<'m>, Refusal)>,
}

impl<'m> Requests<'m> {
    /// The request for what a call asks.
    pub(super) fn of(&mut self, asked: &Asked<'m>) -> &DiffRequest<'m> {
        let same = |r: &DiffRequest<'m>| {
            r.function == asked.function
                && r.mode == asked.mode
                && r.arguments == asked.activity
                && r.result_active == asked.result_active
                && r.primal_result == asked.primal_result
                && r.width == asked.width
        };
        let k = self.all.iter().position(same).unwrap_or_else(|| {
            let word = match asked.mode {
                Mode::Combined => "gradient",
                Mode::Forward => "tangent",
                Mode::Augmented => "forward",
                Mode::Reverse => "reverse",
            };
            self.all.push(DiffRequest {
                function: asked.function,
                mode: asked.mode,
                arguments: asked.activity.clone(),
                result_active: asked.result_active,
                primal_result: asked.primal_result,
                seed_argument: false,
                arena_argument: false,
                width: asked.width,
                entry: format!("cotangent.{word}.{}.{}", self.all.len(), asked.function.name()),
            });
            self.all.len() - 1
        });
        &self.all[k]
    }

    /// Reverse sweeps of functions whose forward sweeps are all asked for in another way: these leave other tapes.
    pub(super) fn alone(&self) -> impl Iterator<Item = &Refusal> {
        let alone = |r: &DiffRequest<'m>| {
            let forward = |f: &&DiffRequest<'m>| f.mode == Mode::Augmented && f.function == r.function;
            let mut all = self.all.iter().filter(forward).peekable();
            all.peek().is_some() && !all.any(|f| split::belong_together(f, r))
        };
        self.reverses.iter().filter(move |(r, _)| alone(r)).map(|(_, why)| why)
    }
}

/// What the derivative gives, by the contract of [`crate::kernel::request`].
pub(super) fn result_types<'m>(asked: &Asked<'m>) -> Vec<Type<'m>> {
    let f = asked.function;
    let result = f.result();
    let outs = f
        .params()
        .into_iter()
        .zip(&asked.activity)
        .filter(|(_, a)| **a == Activity::Out);
    let outs = outs.map(|(p, _)| of_all(p.ty(), asked.width));
    let primal = asked.primal_result.then_some(result);
    match asked.mode {
        Mode::Combined => primal.into_iter().chain(outs).collect(),
        Mode::Forward => primal
            .into_iter()
            .chain(vec![result; if asked.result_active { asked.width as usize } else { 0 }])
            .collect(),
        Mode::Reverse => outs.collect(),
        Mode::Augmented => split::augmented(asked),
    }
}

/// A structure of several types, the type itself of one, `void` of none.
fn bundle<'m>(module: Mod<'m>, types: &[Type<'m>]) -> Type<'m> {
    match types {
        [] => module.context().void(),
        [one] => *one,
        more => module.context().structure(more),
    }
}

/// Replaces a call.
///
/// # Errors
/// If the call's caller wants a result that the derivative does not give.
pub(super) fn replace<'m>(call: Value<'m>, asked: &Asked<'m>, requests: &mut Requests<'m>) -> Result<(), String> {
    let module = call.block().parent().module();
    let types = result_types(asked);
    let result = match asked.mode {
        Mode::Augmented => module.context().structure(&types),
        _ => bundle(module, &types),
    };
    let delivery = Delivery::plan(call, asked, split::given(module, asked, result))?;
    let b = Builder::new(module.context());
    b.before(call);
    b.set_location(call.location());
    let mut arguments: Vec<_> = match asked.mode {
        Mode::Reverse => seeds(&b, call, asked),
        _ => asked.passed.iter().map(|p| pass(&b, call, asked, *p)).collect(),
    };
    let arena = split::before(&b, module, asked, &mut arguments);
    let types: Vec<_> = arguments.iter().map(|a| a.ty()).collect();
    let request = requests.of(asked).clone();
    let name = &request.entry;
    let declare = || module.add_function(name, module.context().function(result, &types));
    let entry = module.function(name).unwrap_or_else(declare);
    let value = if call.is(Opcode::LLVMInvoke) {
        let (before, unwind) = (call.block(), call.unwind_destination());
        let rest = call.split_before();
        unwind.replace_predecessor(rest, before);
        b.at_end(before);
        b.set_location(call.location());
        let value = b.invoke(entry.ty(), entry.value(), &arguments, rest, unwind);
        b.before(call);
        b.set_location(call.location());
        value
    } else {
        b.call(entry, &arguments)
    };
    if asked.mode == Mode::Reverse {
        let what = "a reverse sweep that is asked for in another way than the forward sweep";
        let help = "give both the same function, markers and width";
        let why = Refusal {
            function: asked.function.name(),
            ..Refusal::at(call, what, help)
        };
        requests.reverses.push((request.clone(), why));
    }
    let given = split::after(&b, module, asked, arena, value);
    if let Some(v) = given.and_then(|v| delivery.deliver(&b, call, v)) {
        call.replace_with(v);
    } else if call.users().next().is_some() {
        // Nobody reads what the derivative itself wrote to its place.
        call.replace_with(call.ty().poison());
    }
    if call.is(Opcode::LLVMInvoke) {
        b.br(call.normal_destination());
    }
    call.erase();
    Ok(())
}

/// The value for a parameter of the derivative.
fn pass<'m>(b: &Builder<'m>, call: Value<'m>, asked: &Asked<'m>, passed: Passed<'m>) -> Value<'m> {
    let module = asked.function.module();
    let words = module.context().int(64);
    match passed {
        Passed::Value(v, to) if v.ty() == to => v,
        Passed::Value(v, to) if to.is_int() => b.cast(Opcode::LLVMTrunc, v, to),
        Passed::Value(v, to) => b.cast(Opcode::LLVMFPTrunc, v, to),
        Passed::Copied(from, object) => {
            let copy = scratch(call, object);
            b.memcpy(copy, from, words.int(module.size(object)), module.alignment(object));
            copy
        }
        Passed::Distant(first, distance, k) => {
            let distance = b.cast_int(distance, words);
            b.offset(first, b.mul(distance, words.int(u64::from(k))))
        }
        Passed::Scratch(object) => scratch(call, object),
        Passed::Place(object, index) => match asked.place {
            Some((place, _)) => b.offset(place, words.int(index * module.size(object))),
            None => scratch(call, object),
        },
    }
}

/// The cotangents of the result with which a reverse sweep begins, one after the other.
fn seeds<'m>(b: &Builder<'m>, call: Value<'m>, asked: &Asked<'m>) -> Vec<Value<'m>> {
    let module = asked.function.module();
    let words = module.context().int(64);
    let at = |array, offset| b.offset(array, words.int(offset));
    let (array, ty) = match &asked.seeds {
        None => return vec![],
        Some(Seeds::Each(values)) => return values.iter().map(|p| pass(b, call, asked, *p)).collect(),
        Some(Seeds::At(array, ty)) => (*array, *ty),
        Some(Seeds::Parts(parts, ty)) => {
            let array = scratch(call, of_all(*ty, asked.width));
            let mut offset = 0;
            for part in parts {
                b.store_aligned(*part, at(array, offset), 1);
                offset += module.size(part.ty());
            }
            (array, *ty)
        }
    };
    let each = (0..u64::from(asked.width)).map(|k| at(array, k * module.size(ty)));
    each.map(|seed| b.load_aligned(ty, seed, 1)).collect()
}

/// Memory of the calling function.
fn scratch<'m>(call: Value<'m>, object: Type<'m>) -> Value<'m> {
    let function = call.block().parent();
    let b = Builder::new(function.module().context());
    if let Some(first) = function.entry().and_then(|e| e.first()) {
        b.before(first);
    }
    b.alloca(object)
}

/// How the derivative's result becomes the call's.
enum Delivery<'m> {
    /// Not at all: nobody wants it.
    Nothing,
    /// As it is.
    Same,
    /// As a float of more bits.
    Widened,
    /// As the same bytes of another type: the C compiler passes small structures in registers.
    Bytes,
    /// In memory.
    Stored(Value<'m>),
}

impl<'m> Delivery<'m> {
    fn plan(call: Value<'m>, asked: &Asked<'m>, given: Option<Type<'m>>) -> Result<Self, String> {
        let module = asked.function.module();
        let ty = call.ty();
        if asked.passed.iter().any(|p| matches!(p, Passed::Place(..))) {
            return Ok(Delivery::Nothing);
        }
        let wanted = asked.place.map(|(_, object)| object);
        if wanted.is_none() && (ty.is_void() || call.users().next().is_none()) {
            return Ok(Delivery::Nothing);
        }
        let Some(given) = given else {
            return Err(
                "the call's result is used, but the derivative has none: no argument is a float by value".into(),
            );
        };
        let wanted_type = wanted.unwrap_or(ty);
        let (size, alignment) = (module.size(given), u64::from(module.alignment(wanted_type)));
        let same_bytes = module.size(wanted_type) == size.next_multiple_of(alignment);
        match (asked.place, given.is_float() && ty.is_float()) {
            (Some((place, _)), _) if same_bytes => Ok(Delivery::Stored(place)),
            (None, _) if given == ty => Ok(Delivery::Same),
            (None, true) if module.size(ty) > size => Ok(Delivery::Widened),
            (None, false) if same_bytes => Ok(Delivery::Bytes),
            _ => Err(format!(
                "the derivative's result is {given:?}, and the call's is {wanted_type:?}"
            )),
        }
    }

    /// The call's value.
    fn deliver(&self, b: &Builder<'m>, call: Value<'m>, value: Value<'m>) -> Option<Value<'m>> {
        match self {
            Delivery::Nothing => None,
            Delivery::Same => Some(value),
            Delivery::Widened => Some(b.cast(Opcode::LLVMFPExt, value, call.ty())),
            Delivery::Bytes => {
                let module = call.block().parent().module();
                let larger = |a, b| if module.size(a) >= module.size(b) { a } else { b };
                let memory = scratch(call, larger(value.ty(), call.ty()));
                b.store_aligned(value, memory, 1);
                Some(b.load_aligned(call.ty(), memory, 1))
            }
            Delivery::Stored(place) => {
                b.store_aligned(value, *place, 1);
                None
            }
        }
    }
}
