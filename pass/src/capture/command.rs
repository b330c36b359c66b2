//! The command line that rustc gives to its linker.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// A linker command line with its response files expanded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkCommand {
    /// All arguments, in order.
    pub arguments: Vec<OsString>,
    /// What is linked into.
    pub output: PathBuf,
}

impl LinkCommand {
    /// Reads the arguments (without the program's name).
    ///
    /// # Errors
    /// If a response file cannot be read, or no output is named.
    pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> io::Result<LinkCommand> {
        let mut command = LinkCommand::default();
        for argument in arguments {
            match argument.to_str().and_then(|a| a.strip_prefix('@')) {
                Some(file) => command.arguments.extend(read_response_file(Path::new(file))?),
                None => command.arguments.push(argument),
            }
        }
        let position = command.arguments.iter().position(|a| a == "-o");
        match position.and_then(|k| command.arguments.get(k + 1)) {
            Some(output) => command.output = output.into(),
            None => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "the linker command names no output",
                ));
            }
        }
        Ok(command)
    }

    /// Objects and archives, in order.
    pub fn inputs(&self) -> impl Iterator<Item = &Path> {
        self.arguments
            .iter()
            .map(Path::new)
            .filter(|path| path.extension().is_some_and(|e| e == "o" || e == "rlib") && *path != self.output)
    }
}

/// Arguments of a response file as rustc writes it for a C compiler: one a line, with backslashes before special
/// characters.
fn read_response_file(path: &Path) -> io::Result<Vec<OsString>> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
    Ok(text
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| unquote(line).into())
        .collect())
}

fn unquote(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.extend(chars.next()),
            '"' => {}
            c => out.push(c),
        }
    }
    out
}

/// An argument as it must stand in a response file.
pub(super) fn quote(argument: &str) -> String {
    let mut out = String::with_capacity(argument.len());
    for c in argument.chars() {
        if matches!(c, '\\' | '"' | '\'' | ' ' | '\t') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> io::Result<LinkCommand> {
        LinkCommand::parse(arguments.iter().map(OsString::from))
    }

    #[test]
    fn inputs_are_objects_and_rlibs_in_order() {
        let command = parse(&["-m64", "b.o", "-L", "x", "liba.rlib", "-lc", "-o", "out.o", "c.o"]).unwrap();
        let inputs: Vec<_> = command.inputs().collect();
        assert_eq!(inputs, [Path::new("b.o"), Path::new("liba.rlib"), Path::new("c.o")]);
        assert_eq!(command.output, Path::new("out.o"));
    }

    #[test]
    fn a_response_file_is_expanded_in_its_place() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("linker-arguments");
        std::fs::write(&file, "a.o\n-L\nwith\\ space\n-o\nout\n").unwrap();
        let command = parse(&["-m64", &format!("@{}", file.display()), "z.o"]).unwrap();
        assert_eq!(
            command.arguments,
            ["-m64", "a.o", "-L", "with space", "-o", "out", "z.o"]
        );
    }

    #[test]
    fn a_missing_response_file_is_named() {
        assert!(
            parse(&["@/nowhere/args"])
                .unwrap_err()
                .to_string()
                .contains("/nowhere/args")
        );
    }

    #[test]
    fn quoting_survives_reading() {
        for text in ["plain", "a b", r"back\slash", "say \"hi\"", "it's"] {
            assert_eq!(unquote(&quote(text)), text);
        }
    }
}
