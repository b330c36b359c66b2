//! What a derivative keeps between its sweeps, read off its plan.

use crate::kernel::reverse::plan::Plan;
use crate::llvm::{Value, demangle};
use cotangent_graph::ir::Loc;
pub use cotangent_graph::kernel::{Loop, Tape};
use cotangent_raise::is_user;

/// What a plan keeps.
pub(crate) fn tape_of(plan: &Plan<'_>) -> Tape {
    let loops = plan.shape.regions.iter().enumerate().skip(1);
    Tape {
        function: demangle(&plan.function.name()),
        bytes: plan.frames.size(0),
        loops: loops
            .filter_map(|(region, r)| {
                let at = r.header?.instructions().find_map(place).unwrap_or_default();
                Some(Loop {
                    file: at.file,
                    line: at.line,
                    depth: r.depth - 1,
                    bytes: plan.frames.size(region),
                    counted: r.counted.is_some(),
                })
            })
            .collect(),
    }
}

/// Where the user wrote an instruction, in whatever of the libraries it was inlined from.
fn place(i: Value<'_>) -> Option<Loc> {
    let mut frames = std::iter::successors(i.location(), |l| l.inlined_at());
    frames.find_map(|l| {
        let (directory, name) = l.file();
        let (line, column) = l.position();
        // The standard library is known by names, other libraries by folders.
        let of = |file: &str| Loc {
            file: file.to_owned(),
            line,
            column,
        };
        (is_user(&of(&name)) && is_user(&of(&format!("{directory}/")))).then(|| of(&name))
    })
}
