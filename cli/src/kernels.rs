//! `explain` for kernels: what their derivatives keep.

use crate::inputs::Description;
use crate::options::Subject;
use crate::report::Head;
use anyhow::{Result, ensure};
use cotangent_graph::kernel::{KernelNote, Tape};
use serde::Serialize;
use std::fmt::{self, Display, Formatter};

/// What is known of a kernel.
#[derive(Serialize)]
pub(crate) struct KernelReport {
    #[serde(flatten)]
    head: Head,
    /// What each function in it keeps between the sweeps, inner ones first.
    tapes: Vec<Tape>,
}

impl KernelReport {
    /// Reads a note.
    pub(crate) fn of(note: KernelNote, subject: &Subject) -> Result<Self> {
        ensure!(
            subject.inputs.is_empty(),
            "`{}` is a kernel: its derivatives are the same for all arguments, and `--input` says nothing of it",
            note.key
        );
        let description = Description::read(&note.key, &note.description)?;
        Ok(Self {
            head: Head::of(&note.key, description),
            tapes: note.tapes,
        })
    }
}

impl Display for KernelReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}\nA kernel: its derivatives are native code of the program.",
            self.head
        )?;
        if self.tapes.is_empty() {
            return writeln!(f, "Only forward mode is asked for, which keeps nothing.");
        }
        writeln!(
            f,
            "\nWhat the forward sweep keeps for the reverse; each block takes a multiple of {} bytes, and is freed with the \
             pullback. Shadows of what the kernel allocates come on top.",
            Tape::taken(1)
        )?;
        self.tapes.iter().try_for_each(|tape| write!(f, "{tape}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cotangent_graph::kernel::Loop;

    fn subject(inputs: &[&str]) -> Subject {
        Subject {
            function: "k".into(),
            artifact: None,
            inputs: inputs.iter().map(|s| (*s).to_owned()).collect(),
            json: false,
        }
    }

    fn note(tapes: Vec<Tape>) -> KernelNote {
        KernelNote {
            key: "a::k".into(),
            description: r#"{"file":"a.rs","line":3,"params":[{"name":"x","ty":"&[f64]","wrt":true}],"ret":"f64"}"#
                .into(),
            tapes,
        }
    }

    #[test]
    fn loops_stand_below_their_function_with_the_bytes_of_an_iteration() {
        let each = |line, depth, counted| Loop {
            file: "a.rs".into(),
            line,
            depth,
            bytes: 16,
            counted,
        };
        let tape = Tape {
            function: "a::k".into(),
            bytes: 24,
            loops: vec![each(4, 0, true), each(5, 1, false)],
        };
        let text = KernelReport::of(note(vec![tape]), &subject(&[])).unwrap().to_string();
        let told = "a::k: 24 bytes a call\n  loop at a.rs:4: 16 bytes an iteration, one block for all of them\n    loop at \
                    a.rs:5: 16 bytes an iteration, a block for each\n";
        assert!(text.ends_with(told), "{text}");
        assert!(
            text.starts_with("a::k (a.rs:3)\n  x: &[f64]  (differentiated)\n  -> f64\n"),
            "{text}"
        );
    }

    #[test]
    fn a_kernel_of_forward_mode_keeps_nothing_and_none_takes_inputs() {
        let text = KernelReport::of(note(vec![]), &subject(&[])).unwrap().to_string();
        assert!(text.contains("keeps nothing"), "{text}");
        let error = KernelReport::of(note(vec![]), &subject(&["x=1"]))
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains("`--input` says nothing"), "{error}");
    }
}
