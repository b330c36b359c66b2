//! Programs that grow: ways that the build did not follow are evaluated when a call first takes them.

use super::counters;
use crate::error::Error;
use crate::exec::Meta;
use cotangent_graph::program::Program;
use cotangent_graph::specialize::{Host, Inputs, Outcome, Specialized, Suspended, resume, specialize};
use cotangent_raise::archive::Archive;
use cotangent_raise::explore::extend;
use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{LazyLock, Mutex, PoisonError, mpsc};

/// The most steps that one call's way may be from what is known. A loop that runs longer does not end, for all that
/// an evaluator can wait.
const MOST_STEPS: usize = 100_000;
/// Stack of the thread that evaluates: the calls of the user's function nest on it.
const STACK: usize = 1 << 30;

/// One step of growth.
struct Step {
    program: Program,
    path: Vec<Option<i64>>,
    code: &'static [u8],
    done: mpsc::Sender<Result<Program, String>>,
}

/// The thread that evaluates, which alone holds the decoded code.
static EVALUATOR: LazyLock<Mutex<Result<mpsc::Sender<Step>, String>>> = LazyLock::new(|| {
    let (steps, work) = mpsc::channel::<Step>();
    let thread = std::thread::Builder::new()
        .name("cotangent-evaluator".into())
        .stack_size(STACK);
    let started = thread.spawn(move || {
        let mut archive = None;
        for Step {
            mut program,
            path,
            code,
            done,
        } in work
        {
            let archive = archive.get_or_insert_with(|| Archive::decode(code));
            let grown = archive.as_ref().map_err(Clone::clone).and_then(|archive| {
                let grow = AssertUnwindSafe(|| extend(&mut program, archive, &path));
                catch_unwind(grow).map_err(|_| "internal error, please report it: the evaluator panicked".to_owned())
            });
            // The caller may have gone.
            let _ = done.send(grown.map(|()| program));
        }
    });
    Mutex::new(
        started
            .map(|_| steps)
            .map_err(|e| format!("cannot start a thread: {e}")),
    )
});

/// Evaluates a program one decision further.
fn grow(program: Program, path: Vec<Option<i64>>, code: &'static [u8]) -> Result<Program, Error> {
    let (done, grown) = mpsc::channel();
    let step = Step {
        program,
        path,
        code,
        done,
    };
    let gone = || Error::new("internal error, please report it: the evaluator is gone");
    let evaluator = EVALUATOR.lock().unwrap_or_else(PoisonError::into_inner);
    let steps = evaluator.as_ref().map_err(|e| Error::new(e.as_str()))?;
    steps.send(step).map_err(|_| gone())?;
    drop(evaluator);
    grown.recv().map_err(|_| gone())?.map_err(Error::new)
}

/// Specializes a program, or the region after a cut, for what the call knows there. The program grows as far as that
/// takes. `None` where the original function fails.
pub(super) fn specialize_growing(
    program: &mut Cow<'static, Program>,
    after: Option<(&Suspended, &Inputs)>,
    host: &dyn Host,
    code: &'static [u8],
) -> Result<Option<Specialized>, Error> {
    for _ in 0..MOST_STEPS {
        let outcome = match after {
            None => specialize(program, host, &Meta),
            Some((from, table)) => resume(program, from, table, host, &Meta),
        };
        let path = match outcome.map_err(|e| Error::new(e.to_string()))? {
            Outcome::Closed(specialized) => return Ok(Some(*specialized)),
            Outcome::Replay => return Ok(None),
            Outcome::Refused(reasons) => {
                let Some(first) = program.unlowered.first().or(reasons.first()) else {
                    return Err(Error::new("it cannot be compiled on the way that these arguments take"));
                };
                let at = first.at.first().map(|l| format!(" (at {l})")).unwrap_or_default();
                let reason = format!("{}{at}", first.message);
                counters::refused(&reason);
                return Err(Error::new(format!("cannot be differentiated: {reason}")));
            }
            Outcome::Grow(path) => path,
        };
        *program = Cow::Owned(grow(program.as_ref().clone(), path, code)?);
    }
    Err(Error::new("a loop of it runs too long to be compiled"))
}
