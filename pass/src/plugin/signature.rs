//! What a call of an entry point asks for: its operands, read along the parameters of the function to differentiate.
//!
//! ```text
//! entry(function, [enzyme_tape, tape, …] { [marker,] argument [, shadow] } per parameter [, seed] [, tape])
//! after `enzyme_width, n`:               { [marker,] argument [, n shadows] } or { enzyme_dupv, distance, argument, shadow }
//! ```
//!
//! Of several directions, what the derivative gives once for each is an array, and so is the seed of a reverse sweep.
//! Without a marker, integers are constants, pointers have shadows, and floats are outputs. In forward mode unmarked
//! floats are constants; if that leaves operands over, each is followed by its tangent.

mod seeds;

use super::names::{EntryPoint, Marker, marker};
use super::resolve;
use crate::kernel::{Activity, Mode};
use crate::llvm::{Function, Type, TypeKind, Value};
pub(super) use seeds::Seeds;

/// More directions than these make code that nobody wants to wait for.
const MOST_DIRECTIONS: u64 = 64;

/// A call of an entry point, understood.
pub(super) struct Asked<'m> {
    pub(super) function: Function<'m>,
    pub(super) mode: Mode,
    /// One per parameter.
    pub(super) activity: Vec<Activity>,
    /// What the derivative is called with: arguments, each followed by its shadow if it has one.
    pub(super) passed: Vec<Passed<'m>>,
    pub(super) result_active: bool,
    pub(super) primal_result: bool,
    /// Directions at once.
    pub(super) width: u32,
    /// Cotangents of the result, for a reverse sweep of its own.
    pub(super) seeds: Option<Seeds<'m>>,
    /// What the forward sweep left, or memory of the caller's in which its address stands.
    pub(super) tape: Option<Value<'m>>,
    /// Is the tape such memory?
    pub(super) tape_in_memory: bool,
    /// May the tape be used again?
    pub(super) keep_tape: bool,
    /// Where the call's caller wants the result, if not as the call's value.
    pub(super) place: Option<(Value<'m>, Type<'m>)>,
}

/// A value for a parameter.
#[derive(Clone, Copy)]
pub(super) enum Passed<'m> {
    /// The value, perhaps widened on its way through a variable argument list.
    Value(Value<'m>, Type<'m>),
    /// The address of an object of that type, of which the callee gets a copy.
    Copied(Value<'m>, Type<'m>),
    /// The address that lies so many times a distance from another.
    Distant(Value<'m>, Value<'m>, u32),
    /// Memory for a result that nobody wants.
    Scratch(Type<'m>),
    /// That part of the memory for the call's result, at an offset in objects of that type.
    Place(Type<'m>, u64),
}

/// Reads a call.
///
/// # Errors
/// What is wrong with it, and the function if that is known.
pub(super) fn read<'m>(call: Value<'m>, point: EntryPoint) -> Result<Asked<'m>, (Option<Function<'m>>, String)> {
    let mut operands = Operands { call, next: 0 };
    let place = operands.place();
    let Some(first) = operands.take() else {
        return Err((None, "the call names no function".into()));
    };
    let Some(function) = resolve::function(first) else {
        return Err((
            None,
            "which function is meant is not known when this is compiled; name it in the call".into(),
        ));
    };
    if function.is_declaration() {
        return Err((Some(function), "its body is not in this file".into()));
    }
    let start = Operands {
        call,
        next: operands.next,
    };
    let strict = Reader::new(start, function, point, place).read(Activity::Const);
    let asked = match strict {
        Err(Wrong::TooMany(_)) if point == EntryPoint::Fwddiff => {
            let start = Operands {
                call,
                next: operands.next,
            };
            Reader::new(start, function, point, place).read(Activity::Dup)
        }
        other => other,
    };
    asked.map_err(|wrong| {
        let (Wrong::TooMany(text) | Wrong::Other(text)) = wrong;
        (Some(function), text)
    })
}

/// Why a call does not fit.
enum Wrong {
    TooMany(String),
    Other(String),
}

impl From<String> for Wrong {
    fn from(text: String) -> Self {
        Wrong::Other(text)
    }
}

/// Operands of a call, one after the other.
struct Operands<'m> {
    call: Value<'m>,
    next: u32,
}

impl<'m> Operands<'m> {
    fn peek(&self) -> Option<Value<'m>> {
        (self.next < self.call.argument_count()).then(|| self.call.operand(self.next))
    }

    fn take(&mut self) -> Option<Value<'m>> {
        let v = self.peek()?;
        self.next += 1;
        Some(v)
    }

    /// The hidden first argument: where a result goes that does not fit into registers.
    fn place(&mut self) -> Option<(Value<'m>, Type<'m>)> {
        let ty = self.call.argument_type_attribute(0, "sret")?;
        Some((self.take()?, ty))
    }

    fn left(&self) -> u32 {
        self.call.argument_count() - self.next
    }
}

struct Reader<'m> {
    operands: Operands<'m>,
    point: EntryPoint,
    asked: Asked<'m>,
}

impl<'m> Reader<'m> {
    fn new(
        operands: Operands<'m>,
        function: Function<'m>,
        point: EntryPoint,
        place: Option<(Value<'m>, Type<'m>)>,
    ) -> Self {
        let mode = match point {
            EntryPoint::Autodiff => Mode::Combined,
            EntryPoint::Fwddiff => Mode::Forward,
            EntryPoint::AugmentFwd | EntryPoint::AugmentSize => Mode::Augmented,
            EntryPoint::Reverse => Mode::Reverse,
        };
        let asked = Asked {
            function,
            mode,
            activity: Vec::new(),
            passed: Vec::new(),
            result_active: true,
            primal_result: false,
            width: 1,
            seeds: None,
            tape: None,
            tape_in_memory: false,
            keep_tape: false,
            place,
        };
        Self { operands, point, asked }
    }

    /// `floats`: what unmarked floats are in forward mode.
    fn read(mut self, floats: Activity) -> Result<Asked<'m>, Wrong> {
        let f = self.asked.function;
        let count = f.params().len();
        for (i, param) in f.params().into_iter().enumerate() {
            let marker = self.markers()?;
            if let Some(ty) = f.param_type_attribute(i as u32, "sret") {
                self.result_place(ty)?;
                continue;
            }
            let activity = self.activity(param.ty(), marker, floats, i)?;
            let distance = self.distance(marker, i)?;
            let copied = f.param_type_attribute(i as u32, "byval");
            self.value(param.ty(), copied, i, count, "argument")?;
            if let Some(distance) = distance {
                self.distant_shadows(i, count, distance)?;
            } else if matches!(activity, Activity::Dup | Activity::DupNoNeed) {
                for _ in 0..self.asked.width {
                    self.value(param.ty(), None, i, count, "shadow")?;
                }
            }
            self.asked.activity.push(activity);
        }
        self.markers()?;
        self.result()?;
        self.markers()?;
        match self.operands.left() {
            0 => Ok(self.asked),
            n => Err(Wrong::TooMany(format!(
                "{n} of the call's arguments are left over after those of its {count} parameters"
            ))),
        }
    }

    /// Reads words that are no argument's, and the word before the next argument.
    fn markers(&mut self) -> Result<Option<Marker>, Wrong> {
        while let Some(m) = self.operands.peek().and_then(marker) {
            self.operands.next += 1;
            match m {
                Marker::Const | Marker::Dup | Marker::DupNoNeed | Marker::DupV | Marker::DupNoNeedV | Marker::Out => {
                    return Ok(Some(m));
                }
                Marker::NoFree => self.asked.keep_tape = true,
                Marker::PrimalReturn => self.asked.primal_result = true,
                Marker::NoReturn => self.asked.result_active = false,
                Marker::Granted => {}
                Marker::Width | Marker::Allocated => {
                    let n = self
                        .operands
                        .take()
                        .filter(|n| n.is_const_int())
                        .map(|n| n.zext_value());
                    match (m, n) {
                        (_, None) => return Err(format!("{m:?} takes a constant").into()),
                        (Marker::Width, Some(n @ 1..=MOST_DIRECTIONS)) => self.asked.width = n as u32,
                        (Marker::Width, Some(n)) => {
                            return Err(
                                format!("{n} directions at once; 1 to {MOST_DIRECTIONS} can be asked for").into(),
                            );
                        }
                        (Marker::Allocated, Some(n)) if n < super::split::TAPE_BYTES => {
                            return Err(format!(
                                "{n} bytes are allocated for the tape, which takes {}",
                                super::split::TAPE_BYTES
                            )
                            .into());
                        }
                        _ => {}
                    }
                }
                Marker::Tape => {
                    let tape = self.operands.take().filter(|t| t.ty().is_pointer());
                    self.asked.tape = Some(tape.ok_or_else(|| "the tape is no pointer".to_owned())?);
                    self.asked.tape_in_memory = true;
                }
            }
        }
        Ok(None)
    }

    fn activity(&self, ty: Type<'m>, marker: Option<Marker>, floats: Activity, i: usize) -> Result<Activity, Wrong> {
        let forward = self.point == EntryPoint::Fwddiff;
        let holds = Holds::of(ty);
        let activity = match marker {
            Some(Marker::Const) => Activity::Const,
            Some(Marker::Dup | Marker::DupV) => Activity::Dup,
            Some(Marker::DupNoNeed | Marker::DupNoNeedV) => Activity::DupNoNeed,
            Some(Marker::Out) => Activity::Out,
            _ if holds.pointers => Activity::Dup,
            _ if holds.floats && forward => floats,
            _ if holds.floats => Activity::Out,
            _ => Activity::Const,
        };
        let n = i + 1;
        match activity {
            Activity::Out if forward => {
                Err(format!("argument {n} is marked as an output; tangents go with `enzyme_dup`").into())
            }
            Activity::Out if holds.pointers || !holds.floats => {
                Err(format!("argument {n} is marked as an output, and is no float but {ty:?}").into())
            }
            Activity::Dup | Activity::DupNoNeed if !forward && holds.floats && !holds.pointers => {
                Err(format!("argument {n} is a float by value, which has no shadow; mark it `enzyme_out`").into())
            }
            activity => Ok(activity),
        }
    }

    /// The next operand, as a value for parameter `i`.
    fn value(
        &mut self,
        to: Type<'m>,
        copied: Option<Type<'m>>,
        i: usize,
        count: usize,
        what: &str,
    ) -> Result<(), Wrong> {
        let Some(v) = self.operands.take() else {
            return Err(format!("the {what} for parameter {} of {count} is missing", i + 1).into());
        };
        if marker(v).is_some() {
            return Err(format!(
                "a marker stands in the place of the {what} for parameter {} of {count}",
                i + 1
            )
            .into());
        }
        if !fits(v.ty(), to) {
            return Err(format!(
                "the {what} for parameter {} is {:?} where {to:?} is wanted",
                i + 1,
                v.ty()
            )
            .into());
        }
        self.asked.passed.push(match copied {
            Some(object) => Passed::Copied(v, object),
            None => Passed::Value(v, to),
        });
        Ok(())
    }

    /// The distance of an argument's shadows, where the marker says that there is one.
    fn distance(&mut self, marker: Option<Marker>, i: usize) -> Result<Option<Value<'m>>, Wrong> {
        if !matches!(marker, Some(Marker::DupV | Marker::DupNoNeedV)) {
            return Ok(None);
        }
        match self.operands.take().filter(|d| d.ty().is_int()) {
            None => Err(format!("the distance of the shadows of argument {} is missing", i + 1).into()),
            found => Ok(found),
        }
    }

    /// Shadows that lie at a distance from each other, by the address of the first.
    fn distant_shadows(&mut self, i: usize, count: usize, distance: Value<'m>) -> Result<(), Wrong> {
        let first = self.operands.take().filter(|p| p.ty().is_pointer());
        let Some(first) = first.filter(|_| self.asked.function.params()[i].ty().is_pointer()) else {
            return Err(format!("the shadows of parameter {} of {count} are no memory", i + 1).into());
        };
        let shadows = (0..self.asked.width).map(|k| Passed::Distant(first, distance, k));
        self.asked.passed.extend(shadows);
        Ok(())
    }

    /// The parameter through which the function gives a large result.
    fn result_place(&mut self, ty: Type<'m>) -> Result<(), Wrong> {
        if self.point != EntryPoint::Fwddiff {
            return Err("its result is a structure; let it give the result through a pointer"
                .to_owned()
                .into());
        }
        let Some((_, place)) = self.asked.place else {
            return Err("its result is a structure, and the call's is not".to_owned().into());
        };
        let first = u64::from(self.asked.primal_result);
        let width = u64::from(self.asked.width);
        let module = self.asked.function.module();
        if module.size(place) != module.size(ty) * (first + width) {
            return Err("the call's result has another size than the function's"
                .to_owned()
                .into());
        }
        self.asked.passed.push(match first {
            0 => Passed::Scratch(ty),
            _ => Passed::Place(ty, 0),
        });
        self.asked
            .passed
            .extend((first..first + width).map(|k| Passed::Place(ty, k)));
        self.asked.activity.push(Activity::Dup);
        Ok(())
    }

    /// What is asked of the result, and what follows the arguments.
    fn result(&mut self) -> Result<(), Wrong> {
        let ty = self.asked.function.result();
        let holds = if ty.is_void() { Holds::default() } else { Holds::of(ty) };
        self.asked.result_active &= holds.floats || holds.pointers;
        self.asked.primal_result &= !ty.is_void();
        match self.point {
            EntryPoint::Fwddiff => {}
            EntryPoint::Autodiff => {
                if self.asked.result_active && holds.floats && !ty.is_float() {
                    return Err(format!("its result is {ty:?}, not one float that could be seeded with one").into());
                }
                self.asked.result_active &= ty.is_float();
            }
            EntryPoint::AugmentFwd => {
                let call = self.operands.call.ty();
                let room = self.asked.place.is_some() || !(call.is_void() || call.is_pointer());
                self.asked.primal_result = !ty.is_void() && room;
            }
            EntryPoint::AugmentSize => {}
            EntryPoint::Reverse => {
                if self.asked.result_active && holds.floats {
                    let width = self.asked.width;
                    self.asked.seeds = seeds::read(&mut self.operands, ty, width);
                    if self.asked.seeds.is_none() {
                        let what = match width {
                            1 => format!("the cotangent of its result, {ty:?}, is missing"),
                            n => format!("the cotangents of its result, an array of {n} of {ty:?}, are missing"),
                        };
                        return Err(what.into());
                    }
                }
                if self.asked.tape.is_none() {
                    let tape = self.operands.take().filter(|t| t.ty().is_pointer());
                    self.asked.tape = Some(tape.ok_or_else(|| "the tape is missing".to_owned())?);
                }
            }
        }
        Ok(())
    }
}

/// Can a value of one type be a parameter of another? C widens what goes through a variable argument list.
fn fits(from: Type<'_>, to: Type<'_>) -> bool {
    use TypeKind::{LLVMDoubleTypeKind as Double, LLVMFloatTypeKind as Float, LLVMHalfTypeKind as Half};
    let narrower = from.is_int() && to.is_int() && from.int_width() == 32 && to.int_width() < 32;
    from == to || narrower || (from.kind() == Double && matches!(to.kind(), Float | Half))
}

/// What a type holds somewhere.
#[derive(Clone, Copy, Default)]
pub(super) struct Holds {
    pub(super) floats: bool,
    pub(super) pointers: bool,
}

impl Holds {
    pub(super) fn of(ty: Type<'_>) -> Holds {
        if ty.is_struct() || ty.is_array() || ty.is_vector() {
            let parts = ty.parts().into_iter().map(Holds::of);
            return parts.fold(Holds::default(), |a, b| Holds {
                floats: a.floats || b.floats,
                pointers: a.pointers || b.pointers,
            });
        }
        Holds {
            floats: ty.is_float(),
            pointers: ty.is_pointer(),
        }
    }
}
