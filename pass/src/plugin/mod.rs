//! The front end for C and C++: the field's entry points, in a module that a compiler hands to the plugin.
//!
//! ```text
//! marks ─▶ attributes        what global variables say of functions
//! calls ─▶ names, resolve, signature ─▶ lower, split ─▶ requests, and calls of their entries
//!          kernel: extract, optimise, differentiate, optimise, put back
//! ```
//!
//! It only recognises: what it finds become the same requests as those of other front ends. Whatever is wrong is told
//! as an error of the compiler's own, at the source line if there is debug information, and all of it at once.

mod lower;
mod marks;
mod names;
mod resolve;
mod signature;
mod split;
#[cfg(test)]
mod tests;

use crate::kernel::prepare::Work;
use crate::kernel::{self, DiffRequest, Refusal};
use crate::llvm::{Function, Linkage, Mod, Value, demangle, report_error};
use lower::Requests;
use names::EntryPoint;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

pub use crate::llvm::RawModule;

/// Differentiates what a module of another program asks for; says whether the module changed.
///
/// # Safety
/// The module is live, and nobody else uses it during the call.
pub unsafe fn run(module: RawModule) -> bool {
    // SAFETY: by contract.
    differentiate(unsafe { Mod::from_raw(module) })
}

/// Differentiates what a module asks for; says whether the module changed. A panic becomes an error of the compiler's,
/// too.
pub fn differentiate(program: Mod<'_>) -> bool {
    PANIC.with_borrow_mut(Option::take);
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|info| PANIC.with_borrow_mut(|p| *p = Some(info.to_string()))));
    let done = catch_unwind(AssertUnwindSafe(|| requests_of(program)));
    std::panic::set_hook(hook);
    done.unwrap_or_else(|_| {
        let what = PANIC.with_borrow_mut(Option::take).unwrap_or_default();
        let text = format!("internal error of cotangent, please report it: {what}");
        if let Some(f) = program.functions().find(|f| !f.is_declaration()) {
            report_error(f, ("", "", 0, 0), &text);
        }
        true
    })
}

thread_local! {
    /// What a panic said, for the error that it becomes.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

fn requests_of(program: Mod<'_>) -> bool {
    let calls: Vec<_> = program.functions().flat_map(calls_of).collect();
    let Some((first, ..)) = calls.first() else {
        return false;
    };
    let somewhere = first.block().parent();
    let mut errors = Errors {
        program,
        somewhere,
        any: false,
    };
    for (variable, why) in marks::read(program) {
        errors.tell(somewhere, &Refusal::of("", "", ""), &format!("`{variable}` {why}"));
    }
    let mut requests = Requests::default();
    for (call, entry, point) in calls {
        let refused = |f: Option<Function<'_>>, why: String| {
            let name = f.map_or_else(|| format!("the argument of {}", entry.name()), |f| f.name());
            Refusal {
                function: name,
                ..Refusal::at(call, why, "")
            }
        };
        let caller = call.block().parent();
        let done = match point {
            None => Err(refused(Some(entry), "this entry point is not known".into())),
            Some(EntryPoint::AugmentSize) if call.ty().is_int() => {
                call.replace_with(call.ty().int(split::TAPE_BYTES));
                call.erase();
                Ok(())
            }
            Some(point) => signature::read(call, point)
                .and_then(|a| lower::replace(call, &a, &mut requests).map_err(|why| (Some(a.function), why)))
                .map_err(|(f, why)| refused(f, why)),
        };
        if let Err(refusal) = done {
            errors.refuse(caller, &refusal);
        }
    }
    for refusal in requests.alone() {
        errors.refuse(somewhere, refusal);
    }
    if errors.any || requests.all.is_empty() {
        return true;
    }
    match derive(program, &requests.all) {
        Ok(()) => {}
        Err(Failed::Refused(refusals)) => refusals.iter().for_each(|r| errors.refuse(somewhere, r)),
        Err(Failed::Internal(why)) => {
            errors.tell(
                somewhere,
                &Refusal::of("", "", ""),
                &format!("internal error of cotangent, please report it: {why}"),
            );
        }
    }
    true
}

enum Failed {
    Refused(Vec<Refusal>),
    Internal(String),
}

impl From<String> for Failed {
    fn from(why: String) -> Self {
        Failed::Internal(why)
    }
}

/// Writes the derivatives into the program.
fn derive<'m>(program: Mod<'m>, requests: &[DiffRequest<'m>]) -> Result<(), Failed> {
    let roots: Vec<_> = requests.iter().map(|r| r.function).collect();
    let work = Work::extract(program, &roots);
    work.optimise_primals()?;
    let module = work.module();
    let own = |r: &DiffRequest<'m>| {
        Some(DiffRequest {
            function: module.function(&r.function.name())?,
            ..r.clone()
        })
    };
    let own: Vec<_> = requests.iter().filter_map(own).collect();
    kernel::differentiate(module, &own).map_err(Failed::Refused)?;
    // The program itself calls it after a reverse sweep of its own.
    if let Some(release) = module.function(split::RELEASE) {
        release.set_linkage(Linkage::LLVMExternalLinkage);
    }
    work.optimise_derivatives(requests)?;
    let entries: Vec<_> = requests
        .iter()
        .map(|r| r.entry.as_str())
        .chain([split::RELEASE])
        .collect();
    Ok(work.put_back(program, &entries)?)
}

/// Calls of entry points in a function, with what they call. `None` stands for one that is not known.
fn calls_of<'m>(f: Function<'m>) -> Vec<(Value<'m>, Function<'m>, Option<EntryPoint>)> {
    let found = |call: Value<'m>| {
        let entry = call.callee().filter(|f| f.is_declaration())?;
        match names::entry_point(&entry.name()) {
            Ok(None) => None,
            Ok(point) => Some((call, entry, point)),
            Err(()) => Some((call, entry, None)),
        }
    };
    f.instructions().filter(|i| i.is_call()).filter_map(found).collect()
}

/// Tells errors as the compiler's own.
struct Errors<'m> {
    program: Mod<'m>,
    /// A function for errors that belong to none.
    somewhere: Function<'m>,
    any: bool,
}

impl<'m> Errors<'m> {
    fn refuse(&mut self, at: Function<'m>, refusal: &Refusal) {
        let name = demangle(&refusal.function);
        let help = if refusal.help.is_empty() {
            String::new()
        } else {
            format!("; {}", refusal.help)
        };
        let own = self
            .program
            .function(&refusal.function)
            .filter(|f| refusal.line == 0 && !f.is_declaration());
        self.tell(
            own.unwrap_or(at),
            refusal,
            &format!("cannot differentiate `{name}`: {}{help}", refusal.construct),
        );
    }

    fn tell(&mut self, function: Function<'m>, place: &Refusal, text: &str) {
        self.any = true;
        let function = if function.is_declaration() {
            self.somewhere
        } else {
            function
        };
        let (directory, file) = &place.file;
        report_error(function, (directory, file, place.line, place.column), text);
    }
}
