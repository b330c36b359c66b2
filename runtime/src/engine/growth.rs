//! Programs that grow: ways that the build did not follow are evaluated when a call first takes them.

use crate::error::Error;
use crate::exec::Meta;
use cotangent_graph::program::Program;
use cotangent_graph::specialize::{Host, Outcome, Specialized, specialize};
use cotangent_raise::archive::Archive;
use cotangent_raise::explore::extend;
use std::borrow::Cow;
use std::cell::OnceCell;

/// The most steps that one call's way may be from what is known. A loop that runs longer does not end, for all that
/// an evaluator can wait.
const MOST_STEPS: usize = 100_000;

thread_local! {
    /// The code that the build embedded, decoded.
    static CODE: OnceCell<Result<Archive, String>> = const { OnceCell::new() };
}

/// Specializes a program, which grows as far as that takes; `None` where the original function fails.
pub(super) fn specialize_growing(
    program: &mut Cow<'static, Program>,
    host: &dyn Host,
    code: &'static [u8],
) -> Result<Option<Specialized>, Error> {
    for _ in 0..MOST_STEPS {
        let path = match specialize(program, host, &Meta).map_err(|e| Error::new(e.to_string()))? {
            Outcome::Closed(specialized) => return Ok(Some(*specialized)),
            Outcome::Replay => return Ok(None),
            Outcome::Refused(reasons) => {
                let Some(first) = reasons.first() else {
                    return Err(Error::new("it cannot be compiled on the way that these arguments take"));
                };
                let at = first.at.first().map(|l| format!(" (at {l})")).unwrap_or_default();
                return Err(Error::new(format!("{}{at}", first.message)));
            }
            Outcome::Grow(path) => path,
        };
        CODE.with(|cell| {
            let archive = cell.get_or_init(|| Archive::decode(code));
            let archive = archive.as_ref().map_err(|e| Error::new(e.as_str()))?;
            extend(program.to_mut(), archive, &path);
            Ok::<(), Error>(())
        })?;
    }
    Err(Error::new("a loop of it runs too long to be compiled"))
}
