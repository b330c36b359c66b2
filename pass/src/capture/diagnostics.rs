//! Refusals in rustc's own style, all of them, each at its source line.
//!
//! The linker runs inside rustc, which would bury its words under the linker's command line. So it leaves them in a
//! file, and `cargo cotangent` shows them in the place of rustc's message.

use annotate_snippets::{AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet};
use cotangent_graph::ir::Loc;
use cotangent_graph::program::Refusal;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Why a program was not linked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Failure {
    /// Functions that cannot be differentiated.
    Refused(Vec<Refusal>),
    /// Something outside the program: a missing tool, a file that cannot be read.
    Other(String),
}

impl Failure {
    /// Leaves the failure in a folder for [`Failure::take`], under a name of its own.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn leave(&self, folder: &Path, name: &str) -> io::Result<()> {
        std::fs::create_dir_all(folder)?;
        std::fs::write(folder.join(format!("{name}.json")), serde_json::to_vec(self)?)
    }

    /// Takes all failures out of a folder.
    ///
    /// # Errors
    /// If a file in it cannot be read.
    pub fn take(folder: &Path) -> io::Result<Vec<Failure>> {
        let mut files: Vec<PathBuf> = match std::fs::read_dir(folder) {
            Ok(entries) => entries.map(|e| e.map(|e| e.path())).collect::<Result<_, _>>()?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        files.sort();
        let mut failures = Vec::new();
        for file in files {
            failures.push(serde_json::from_slice(&std::fs::read(&file)?)?);
            std::fs::remove_file(&file)?;
        }
        Ok(failures)
    }

    /// The failure as text for people. Relative source paths are looked up in `root`.
    pub fn render(&self, root: &Path, styled: bool) -> String {
        let renderer = if styled { Renderer::styled() } else { Renderer::plain() };
        let mut sources = Sources {
            root,
            texts: HashMap::new(),
        };
        match self {
            Failure::Other(message) => {
                renderer.render(&[Group::with_title(Level::ERROR.primary_title(message.as_str()))])
            }
            Failure::Refused(refusals) => {
                for loc in refusals.iter().flat_map(|r| &r.at) {
                    sources.load(loc);
                }
                let texts: Vec<_> = refusals.iter().map(|r| renderer.render(&report(r, &sources))).collect();
                texts.join("\n\n")
            }
        }
    }
}

fn report<'a>(refusal: &'a Refusal, sources: &'a Sources<'_>) -> Vec<Group<'a>> {
    let title = Level::ERROR.primary_title(refusal.message.as_str());
    let Some((first, callers)) = refusal.at.split_first() else {
        return vec![Group::with_title(title)];
    };
    let mut report = vec![title.element(sources.show(first))];
    for caller in callers {
        report.push(
            Level::NOTE
                .secondary_title("called from here")
                .element(sources.show(caller)),
        );
    }
    report
}

/// Source files, read once.
struct Sources<'a> {
    root: &'a Path,
    texts: HashMap<&'a str, String>,
}

impl<'a> Sources<'a> {
    fn load(&mut self, loc: &'a Loc) {
        if !self.texts.contains_key(loc.file.as_str()) {
            let text = std::fs::read_to_string(self.root.join(&loc.file)).unwrap_or_default();
            self.texts.insert(&loc.file, text);
        }
    }

    /// The source line, or just its position where the source is not at hand.
    fn show(&'a self, loc: &'a Loc) -> Element<'a> {
        let line = self
            .texts
            .get(loc.file.as_str())
            .and_then(|t| t.lines().nth(loc.line.checked_sub(1)? as usize));
        match line {
            Some(line) => Snippet::source(line)
                .line_start(loc.line as usize)
                .path(loc.file.as_str())
                .annotation(AnnotationKind::Primary.span(expression(line, loc.column)))
                .into(),
            None => Origin::path(loc.file.as_str())
                .line(loc.line as usize)
                .char_column(loc.column as usize)
                .into(),
        }
    }
}

/// The part of a line that the expression at a column (from one, in bytes) takes.
fn expression(line: &str, column: u32) -> Range<usize> {
    let first = line.len() - line.trim_start().len();
    let start = match column as usize {
        0 => first,
        column if line.is_char_boundary(column - 1) => column - 1,
        _ => first,
    };
    let mut depth = 0;
    let mut end = line.len();
    for (k, c) in line[start..].char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if depth < 0 || (depth == 0 && matches!(c, ';' | ',')) {
            end = start + k;
            break;
        }
    }
    start..start + line[start..end].trim_end().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loc(file: &str, line: u32, column: u32) -> Loc {
        Loc {
            file: file.into(),
            line,
            column,
        }
    }

    #[test]
    fn a_refusal_shows_the_source_line_and_its_callers() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.rs"), "fn f() {\n    let y = g(x, 1);\n}\n").unwrap();
        let failure = Failure::Refused(vec![Refusal {
            message: "cannot differentiate `f`: `g` depends on data".into(),
            at: vec![loc("a.rs", 2, 13), loc("gone.rs", 7, 3)],
        }]);
        let text = failure.render(dir.path(), false);
        assert!(text.starts_with("error: cannot differentiate `f`"), "{text}");
        assert!(
            text.contains("--> a.rs:2:13") && text.contains("let y = g(x, 1);"),
            "{text}"
        );
        assert!(text.contains("^^^^^^^") && !text.contains("^^^^^^^^"), "{text}");
        assert!(
            text.contains("note: called from here") && text.contains("gone.rs:7:3"),
            "{text}"
        );
    }

    #[test]
    fn failures_are_taken_once() {
        let dir = tempfile::tempdir().unwrap();
        let failure = Failure::Other("no clang".into());
        failure.leave(dir.path(), "program").unwrap();
        assert_eq!(Failure::take(dir.path()).unwrap(), [failure]);
        assert!(Failure::take(dir.path()).unwrap().is_empty());
        assert!(Failure::take(&dir.path().join("gone")).unwrap().is_empty());
    }

    #[test]
    fn an_expression_ends_where_its_argument_or_statement_ends() {
        assert_eq!(expression("    let y = x.relu();", 13), 12..20);
        assert_eq!(expression("f(a(1, 2), b)", 3), 2..9);
        assert_eq!(expression("    x.exp()", 0), 4..11);
        assert_eq!(expression("é", 2), 0..2);
    }
}
