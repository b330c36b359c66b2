//! Forward mode: a copy of the primal that carries a tangent beside every value.
//!
//!     fwd_f(args.., shadows of the active args.., arena) -> {R, shadow of R}
//!
//! Of several directions at once (a *width*) each argument has as many shadows, one after the other, and so has the
//! result. The primal runs once; what is done to shadows is done for every direction.
//!
//! The *shadow* of a value has its type: where the value has floats it has their tangents, where it has pointers it has
//! pointers to shadow memory, where it has integers the bits of whatever the integer is a copy of. Shadow memory is laid
//! out as memory is, so that everything that moves bytes is done twice, and only arithmetic needs rules:
//!
//!     y = f(x..)        y' = Σ ∂f/∂x · x'        one rule table with the reverse mode
//!     y = load p        y' = load p'
//!     store x, p        store x', p'
//!     p = alloc n       p' = zeroed block
//!     y = g(x..)        {y, y'} = fwd_g(x.., x'..)
//!
//! A value without a shadow is constant. Nothing is recorded, so the same works on code that is itself a derivative.

mod arithmetic;
mod bits;
mod call;
mod custom;
mod dispatch;
mod memory;
mod reach;
mod root;
mod sweep;
#[cfg(test)]
mod tests;

use super::Refusal;
use super::engine::Engine;
use super::reverse::leaves::carries;
use super::reverse::plan::Target;
use crate::llvm::{Builder, Function, Mod, Type, Value};
use dispatch::Dispatch;
pub use root::emit;
use std::collections::HashMap;

/// What an argument of a tangent function brings.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Given {
    /// No shadow: it is constant; its pointers have this shadow.
    Constant(u64),
    /// A shadow, which points there.
    Shadow(Target),
}

/// A tangent function, by what it is asked for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Signature<'m> {
    /// The primal.
    pub function: Function<'m>,
    /// Per argument.
    pub arguments: Vec<Given>,
    /// Is the shadow of the result wanted?
    pub result: bool,
    /// Are all floats constant, whatever the arguments are? So it is in a function that is marked inactive: what it
    /// writes is constant, and pointers keep their shadows.
    pub frozen: bool,
}

/// Can a value of the type have a shadow? Integers can hold bits of floats and pointers.
fn can_carry(ty: Type<'_>) -> bool {
    if ty.is_int() {
        return ty.int_width() >= 8;
    }
    if ty.is_struct() || ty.is_array() || ty.is_vector() {
        return ty.parts().into_iter().any(can_carry);
    }
    carries(ty).any()
}

/// Has the type pointers in it?
fn has_pointers(ty: Type<'_>) -> bool {
    carries(ty).pointers
}

/// The type of a tangent function for so many directions.
fn type_of<'m>(signature: &Signature<'m>, width: u32, module: Mod<'m>) -> Type<'m> {
    let (context, ty) = (module.context(), signature.function.ty());
    let mut params = ty.params();
    let shadows: Vec<_> = params
        .iter()
        .zip(&signature.arguments)
        .filter(|(_, g)| matches!(g, Given::Shadow(_)))
        .collect();
    let shadows: Vec<_> = shadows.into_iter().map(|(t, _)| *t).collect();
    params.extend(shadows.into_iter().flat_map(|t| vec![t; width as usize]));
    params.push(context.ptr());
    let result = ty.result();
    let result = if signature.result {
        context.structure(&vec![result; 1 + width as usize])
    } else {
        result
    };
    context.function(result, &params)
}

/// Makes tangent functions in a module, each once.
pub struct Forward<'e, 'm> {
    engine: &'e mut Engine<'m>,
    width: u32,
    made: HashMap<Signature<'m>, Result<Function<'m>, Vec<Refusal>>>,
    dispatches: Vec<Dispatch<'m>>,
    nothing: HashMap<Type<'m>, Value<'m>>,
}

impl<'e, 'm> Forward<'e, 'm> {
    /// Tangent functions, for so many directions, beside what an engine makes.
    fn new(engine: &'e mut Engine<'m>, width: u32) -> Self {
        Self {
            engine,
            width,
            made: HashMap::new(),
            dispatches: vec![],
            nothing: HashMap::new(),
        }
    }

    fn module(&self) -> Mod<'m> {
        self.engine.module()
    }

    /// The tangent function for a signature; it may still be without its body.
    ///
    /// # Errors
    /// Everything in it that has no derivative.
    fn derive(&mut self, signature: Signature<'m>) -> Result<Function<'m>, Vec<Refusal>> {
        if let Some(known) = self.made.get(&signature) {
            return known.clone();
        }
        let primal = signature.function;
        let ty = type_of(&signature, self.width, self.module());
        let declared = self.module().add_function(&name_of(primal), ty);
        self.made.insert(signature.clone(), Ok(declared));
        match sweep::emit(self, &signature, declared.ty()) {
            Ok(new) => {
                declared.value().replace_with(new.value());
                declared.delete();
                // Calls within the cycle got the declaration; from here on there is the function.
                self.made.insert(signature, Ok(new));
                Ok(new)
            }
            Err(refusals) => {
                // A dispatcher goes on without it; what called it in a circle must still be whole.
                let b = Builder::new(self.module().context());
                b.at_end(declared.append_block("entry"));
                let pointer = primal.value();
                b.call(self.engine.support("cotangent.no.derivative"), &[pointer]);
                b.unreachable();
                self.made.insert(signature, Err(refusals.clone()));
                Err(refusals)
            }
        }
    }
}

fn name_of(primal: Function<'_>) -> String {
    format!("cotangent.fwd.{}", primal.name())
}
