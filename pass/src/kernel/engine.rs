//! The engine: every derivative once, however many calls ask for it, recursion included.

use super::analysis::Content;
use super::analysis::activity::{Activity, Ask};
use super::analysis::unwritten::Unwritten;
use super::analysis::words::Words;
use super::globals::Globals;
use super::prepare::name_variables;
use super::request::Activity as Asked;
use super::reverse::augment::Augment;
use super::reverse::choice::Choices;
use super::reverse::construct::{Argument, Signature};
use super::reverse::counted::{Counted, count_loops};
use super::reverse::dispatch::Dispatch;
use super::reverse::leaves::{UNKNOWN, inactive_shadow};
use super::reverse::plan::Plan;
use super::reverse::shape;
use super::reverse::sweep::Sweep;
use super::rules::{add_bodies, known_body};
use super::{DiffRequest, Refusal, Tape, tape_of};
use crate::llvm::{Analyses, Block, Builder, Function, Linkage, Mod, Opcode, Scope, Type, Value};
use std::collections::HashMap;
use std::rc::Rc;

/// Attributes of a function that say what code may be made for it.
pub const TARGET: [&str; 7] = [
    "target-cpu",
    "target-features",
    "tune-cpu",
    "frame-pointer",
    "uwtable",
    "sanitize_address",
    "probe-stack",
];

/// The two sweeps of a function for one signature.
pub struct Derivative<'m> {
    /// What it is the derivative of.
    pub signature: Signature<'m>,
    /// The forward sweep.
    pub augmented: Function<'m>,
    /// The reverse sweep.
    pub reverse: Function<'m>,
    /// Bytes of its frame; not known while it is being made.
    pub frame_size: Option<u64>,
    /// Global constant with that number.
    pub size_global: Value<'m>,
}

/// Makes derivatives in a module.
pub struct Engine<'m> {
    module: Mod<'m>,
    analyses: &'m Analyses<'m>,
    content: Rc<Content<'m, 'm>>,
    words: Rc<Words<'m>>,
    activity: Rc<Activity<'m>>,
    unwritten: Rc<Unwritten>,
    choices: Rc<Choices<'m>>,
    globals: Rc<Globals<'m>>,
    makes_pointers: bool,
    counted: HashMap<Block<'m>, Counted<'m>>,
    derivatives: Vec<Derivative<'m>>,
    by_signature: HashMap<Signature<'m>, Result<usize, Vec<Refusal>>>,
    dispatches: Vec<Dispatch<'m>>,
    frames: Scope<'m>,
    lasting: Scope<'m>,
    tapes: Vec<Tape>,
}

impl<'m> Engine<'m> {
    /// An engine for a module, to which it adds the support functions. `requests` say what is differentiated.
    ///
    /// # Errors
    /// If LLVM rejects these.
    pub fn new(module: Mod<'m>, analyses: &'m Analyses<'m>, requests: &[DiffRequest<'m>]) -> Result<Self, Refusal> {
        let failed = |e: String| Refusal::of("cotangent", e, "please report this");
        super::support::link(module).map_err(failed)?;
        add_bodies(module);
        let (counted, choices) = normalize(module, analyses).map_err(failed)?;
        let roots: Vec<_> = requests.iter().map(|r| r.function).collect();
        let constant = |p: Value<'m>| {
            let asked = |r: &DiffRequest<'m>| r.function.params().iter().position(|q| *q == p);
            let asked = requests.iter().filter_map(|r| Some(r.arguments[asked(r)?]));
            asked.into_iter().all(|a| a == Asked::Const)
        };
        let content = Content::new(module, analyses, &roots, &constant);
        let words = Words::new(&content);
        let ask = |r: &DiffRequest<'m>| Ask {
            function: r.function,
            arguments: r.arguments.clone(),
            result: r.result_active,
        };
        let asks: Vec<_> = requests.iter().map(ask).collect();
        let makes_pointers = module
            .functions()
            .filter(|f| !super::support::is_support(*f))
            .any(|f| f.instructions().any(|i| i.is(Opcode::LLVMIntToPtr)));
        let activity = Activity::new(module, &content, &words, &asks);
        let unwritten = Rc::new(Unwritten::new(module, &content, &roots));
        Ok(Self {
            module,
            analyses,
            content: Rc::new(content),
            words: Rc::new(words),
            unwritten,
            choices: Rc::new(choices),
            makes_pointers,
            globals: Rc::new(Globals::new(module, activity.globals())),
            activity: Rc::new(activity),
            counted,
            derivatives: vec![],
            by_signature: HashMap::new(),
            dispatches: vec![],
            frames: Scope::new(module),
            lasting: Scope::new(module),
            tapes: vec![],
        })
    }

    /// What memory holds.
    pub fn content(&self) -> Rc<Content<'m, 'm>> {
        self.content.clone()
    }

    /// The counter of the loop with that header, if it has one.
    pub fn counted(&self, header: Block<'m>) -> Option<Counted<'m>> {
        self.counted.get(&header).copied()
    }

    /// What has a part in derivatives.
    pub fn activity(&self) -> Rc<Activity<'m>> {
        self.activity.clone()
    }

    /// What integers hold.
    pub fn words(&self) -> Rc<Words<'m>> {
        self.words.clone()
    }

    /// Which operands ops give.
    pub fn choices(&self) -> Rc<Choices<'m>> {
        self.choices.clone()
    }

    /// Takes out of the module what only the derivatives needed.
    pub fn finish(&mut self) {
        if let Some(choices) = Rc::get_mut(&mut self.choices) {
            std::mem::take(choices).erase();
        }
    }

    /// Memory of the caller that nothing writes to.
    pub fn unwritten(&self) -> Rc<Unwritten> {
        self.unwritten.clone()
    }

    /// What the derivatives made so far keep, the innermost first.
    pub fn tapes(&self) -> &[Tape] {
        &self.tapes
    }

    /// The memory of frames, but for the shadow memory in them: no other access reaches it.
    pub fn frames(&self) -> Scope<'m> {
        self.frames
    }

    /// Memory that nothing writes to while derivatives run.
    pub fn lasting(&self) -> Scope<'m> {
        self.lasting
    }

    /// The module.
    pub fn module(&self) -> Mod<'m> {
        self.module
    }

    /// LLVM's analyses.
    pub fn analyses(&self) -> &Analyses<'m> {
        self.analyses
    }

    /// The function whose body is differentiated for calls of `f`.
    pub fn body(&self, f: Function<'m>) -> Function<'m> {
        f
    }

    /// A derivative by its number.
    pub fn derivative(&self, id: usize) -> &Derivative<'m> {
        &self.derivatives[id]
    }

    /// A dispatcher by its number.
    pub fn dispatch(&self, id: usize) -> &Dispatch<'m> {
        &self.dispatches[id]
    }

    /// A function of `support/`.
    pub fn support(&self, name: &str) -> Function<'m> {
        self.module.function(name).expect("linked by `new`")
    }

    /// What decides about landing pads in a derivative: as in the primal, or in any function of the module.
    pub fn personality(&self, f: Function<'m>) -> Value<'m> {
        let own = f
            .personality()
            .or_else(|| self.module.functions().find_map(|f| f.personality()));
        own.unwrap_or_else(|| {
            let name = "__gcc_personality_v0";
            let declare = || {
                self.module
                    .add_function(name, self.module.context().function(self.module.context().int(32), &[]))
            };
            self.module.function(name).unwrap_or_else(declare).value()
        })
    }

    /// Are there pointers that are made from integers?
    pub fn makes_pointers(&self) -> bool {
        self.makes_pointers
    }

    /// Shadows of global variables.
    pub fn globals(&self) -> &Rc<Globals<'m>> {
        &self.globals
    }

    /// Makes the shadows of global variables for one call of a derivative in so many directions.
    pub fn open_globals(&self, b: &Builder<'m>, arena: Value<'m>, width: u32) {
        self.globals
            .open(b, self.support("cotangent.shadow.alloc"), arena, width);
    }

    /// The shadow of a pointer that was loaded or made, in a direction: the word that was found in shadow memory. Zero
    /// stands for a pointer of which that memory knows nothing: it is looked up.
    pub fn found(
        &self,
        b: &Builder<'m>,
        arena: Value<'m>,
        pointer: Value<'m>,
        word: Value<'m>,
        direction: u32,
    ) -> Value<'m> {
        match self.globals.distance(direction) {
            0 => b.call(self.support("cotangent.shadow"), &[arena, pointer, word]),
            distance => {
                let distance = self.module.context().int(64).int(distance);
                let all = [arena, pointer, word, distance];
                b.call(self.support("cotangent.shadow.in"), &all)
            }
        }
    }

    /// The shadow of a constant in a direction, computed at the entry of a function.
    pub fn shadow_of_constant(&self, f: Function<'m>, arena: Value<'m>, v: Value<'m>, direction: u32) -> Value<'m> {
        let b = Builder::new(self.module.context());
        match f.entry().and_then(|e| e.first()) {
            Some(first) if self.globals.reaches(v) => b.before(first),
            _ => return inactive_shadow(v.ty(), UNKNOWN),
        }
        self.globals.shadow(&b, arena, v, direction)
    }

    /// The derivative for a signature; it may still be in the making.
    ///
    /// # Errors
    /// Everything in it that has no derivative.
    pub fn derive(&mut self, signature: Signature<'m>) -> Result<usize, Vec<Refusal>> {
        if let Some(known) = self.by_signature.get(&signature) {
            return known.clone();
        }
        let id = self.declare(&signature);
        self.by_signature.insert(signature.clone(), Ok(id));
        let made = self.make(id, signature.clone());
        if let Err(refusals) = made {
            // A dispatcher goes on without it; what called it in a circle must still be whole.
            for f in [self.derivatives[id].augmented, self.derivatives[id].reverse] {
                f.value().delete_body(); // It may have been begun.
                let b = Builder::new(self.module.context());
                b.at_end(f.append_block("entry"));
                b.call(self.support("cotangent.no.derivative"), &[signature.function.value()]);
                b.unreachable();
                f.set_linkage(Linkage::LLVMInternalLinkage);
            }
            self.by_signature.insert(signature, Err(refusals.clone()));
            return Err(refusals);
        }
        Ok(id)
    }

    fn declare(&mut self, signature: &Signature<'m>) -> usize {
        let f = signature.function;
        let name = f.name();
        let (augmented, reverse) = types(signature, self.module);
        let augmented = self.module.add_function(&format!("cotangent.aug.{name}"), augmented);
        let reverse = self.module.add_function(&format!("cotangent.rev.{name}"), reverse);
        reverse.set_linkage(Linkage::LLVMInternalLinkage);
        if f.attribute("nounwind").is_some() {
            reverse.add_attribute("nounwind");
        }
        reverse.copy_attributes(f, &TARGET);
        let word = self.module.context().int(64);
        let size_global = self.module.add_global(&format!("cotangent.size.{name}"), word);
        size_global.set_global_linkage(Linkage::LLVMInternalLinkage);
        size_global.set_global_constant();
        size_global.set_initializer(word.zero());
        self.derivatives.push(Derivative {
            signature: signature.clone(),
            augmented,
            reverse,
            frame_size: None,
            size_global,
        });
        self.derivatives.len() - 1
    }

    fn make(&mut self, id: usize, signature: Signature<'m>) -> Result<(), Vec<Refusal>> {
        let plan = Plan::new(self, signature)?;
        let size = plan.frames.size(0);
        self.tapes.push(tape_of(&plan));
        self.derivatives[id].frame_size = Some(size);
        self.derivatives[id]
            .size_global
            .set_initializer(self.module.context().int(64).int(size));
        Sweep::emit(self, &plan, &self.derivatives[id]).map_err(|r| vec![r])?;
        let new = Augment::emit(self, &plan, &self.derivatives[id]).map_err(|r| vec![r])?;
        let declared = std::mem::replace(&mut self.derivatives[id].augmented, new);
        for f in [new, self.derivatives[id].reverse] {
            self.frames.close(f);
            self.lasting.close(f);
        }
        declared.value().replace_with(new.value());
        declared.delete();
        Ok(())
    }

    /// The dispatcher for calls of pointers to functions of a type. The signature is that of the call, of whatever function.
    ///
    /// # Errors
    /// None: a function without a derivative is an error of the run that calls it.
    pub fn dispatcher(&mut self, ty: Type<'m>, call: &Signature<'m>) -> Result<usize, Vec<Refusal>> {
        let serves = |d: &Dispatch<'m>| d.serves(ty, call);
        if let Some(at) = self.dispatches.iter().position(serves) {
            return Ok(at);
        }
        let dispatch = Dispatch::declare(self.module, ty, call);
        let signature = dispatch.signature.clone();
        self.dispatches.push(dispatch);
        let at = self.dispatches.len() - 1;
        let taken = |f: &Function<'m>| f.ty() == ty && f.is_address_taken();
        let candidates: Vec<_> = self.module.functions().filter(taken).collect();
        let (mut cases, mut refused) = (vec![], vec![]);
        for pointer in candidates {
            let declared = pointer.is_declaration();
            let function = if declared { known_body(pointer) } else { Some(pointer) };
            let Some(function) = function else { continue };
            let signature = Signature {
                function,
                ..signature.clone()
            };
            match self.derive(signature) {
                Ok(id) => cases.push((pointer, id)),
                Err(why) => refused.push((pointer, why)),
            }
        }
        self.dispatches[at].emit(self, &cases, &refused);
        Ok(at)
    }
}

/// What is known of a module in normal form.
type Normal<'m> = (HashMap<Block<'m>, Counted<'m>>, Choices<'m>);

/// Brings functions into the form that the sweeps expect: loops entered at one block, invokes that go on to blocks of
/// their own, nothing that keeps LLVM from optimising the copy.
fn normalize<'m>(module: Mod<'m>, analyses: &Analyses<'m>) -> Result<Normal<'m>, String> {
    let (mut counted, mut choices) = (HashMap::new(), Choices::default());
    super::caught::prepare(module);
    let bodies: Vec<_> = module.functions().filter(|f| !f.is_declaration()).collect();
    for f in bodies {
        if super::support::is_support(f) {
            continue;
        }
        for attribute in ["optnone", "noinline"] {
            f.remove_attribute(attribute);
        }
        name_variables(f);
        super::reverse::byvalue::copy_arguments(f);
        super::reverse::edges::split_invokes(f);
        analyses.forget(f);
        if shape::is_irreducible(f, analyses) {
            // Where a block has two ways into a loop, LLVM 22 gives one of them values of the other (`ControlFlowHub`):
            // hence none has two.
            f.run_passes("lower-switch,break-crit-edges,fix-irreducible,loop-simplify,lcssa")?;
            analyses.forget(f);
        }
        count_loops(f, analyses, &mut counted);
        choices.add(f);
        analyses.forget(f);
    }
    Ok((counted, choices))
}

/// Types of the forward and of the reverse sweep. Of several directions at once, what each has follows one another.
pub fn types<'m>(signature: &Signature<'m>, module: Mod<'m>) -> (Type<'m>, Type<'m>) {
    let context = module.context();
    let ty = signature.function.ty();
    let (params, result) = (ty.params(), ty.result());
    let width = signature.width as usize;
    let with = |wanted: fn(&Argument) -> bool| {
        let both = params.iter().zip(&signature.arguments);
        both.filter(move |(_, a)| wanted(a))
            .flat_map(|(t, _)| vec![*t; width])
            .collect::<Vec<_>>()
    };
    let ends = [context.ptr(), context.ptr()];
    let mut forward = params.clone();
    forward.extend(with(|a| a.shadow));
    forward.extend(ends);
    let given = if signature.result.pointers {
        context.structure(&vec![result; 1 + width])
    } else {
        result
    };
    let mut back = vec![result; if signature.result.floats { width } else { 0 }];
    back.extend(ends);
    let cotangents = with(|a| a.cotangent);
    let cotangents = match cotangents.as_slice() {
        [] => context.void(),
        [one] => *one,
        many => context.structure(many),
    };
    (context.function(given, &forward), context.function(cotangents, &back))
}
