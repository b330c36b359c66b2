//! One link: from rustc's linker command to the native program with its artifact.

use super::addresses::Addresses;
use super::bitcode::Bitcode;
use super::command::{LinkCommand, quote};
use super::diagnostics::Failure;
use super::embed;
use super::state::{LinkRecord, State, tool_identity};
use super::tools::Tools;
use crate::raise::Raised;
use cotangent_graph::artifact;
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// The function whose presence says that a program may request derivatives.
const REQUEST_SYMBOL: &str = "cotangent_request";
/// Command lines longer than this go through a response file.
const LONG_COMMAND: usize = 100_000;

/// What raises the requests of a program; the error is text for the user.
pub type Raise = dyn Fn(&Bitcode) -> Result<Raised, String>;

/// What becomes of a program with functions that cannot be differentiated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It is not linked.
    Fail,
    /// It is linked, and calls of these functions fail with the reason.
    Keep,
}

/// Links a program; a program that may request derivatives gets its artifact.
///
/// # Errors
/// If a request is refused, or a file or tool is missing. A failure of the native linker itself is no error here: it
/// has said its own words, and its status is returned.
pub fn link(arguments: Vec<OsString>, state: &State, refused: Refused, raise: &Raise) -> Result<ExitStatus, Failure> {
    let mut command = LinkCommand::parse(arguments).map_err(other("cannot read the linker's command line"))?;
    let bitcode = Bitcode::collect(command.inputs()).map_err(other("cannot read bitcode"))?;
    let tools = Tools::find().map_err(|error| Failure::Other(error.to_string()))?;
    if !may_request(&bitcode)? {
        return native(&command, &tools, state);
    }
    let tool = tool_identity().map_err(other("cannot examine the tool itself"))?;
    let made = make_artifact(&bitcode, &tool, state, refused, raise)?;
    let symbols = artifact::decode(&made.artifact).map(|a| a.symbols);
    let symbols = symbols.map_err(other("cannot read the artifact"))?;
    let addresses = Addresses::of(&symbols, &bitcode).map_err(other("cannot make a table of addresses"))?;
    let (object, kernels) =
        store(&made, &addresses, &command.output, &tool, state).map_err(other("cannot write the artifact"))?;
    let substituted = addresses.substitute(&bitcode, &object, &mut command.arguments);
    substituted.map_err(other("cannot write a module"))?;
    command.arguments.push(object.into());
    command.arguments.extend(kernels);
    native(&command, &tools, state)
}

/// Whether a program contains the runtime, and so may contain requests.
fn may_request(bitcode: &Bitcode) -> Result<bool, Failure> {
    if bitcode.definition(REQUEST_SYMBOL.as_bytes()).is_some() {
        return Ok(true);
    }
    let local = bitcode.modules().iter().filter(|m| m.is_local());
    for module in local {
        let bytes = module.bytes().map_err(other("cannot read bitcode"))?;
        if memchr::memmem::find(bytes, REQUEST_SYMBOL.as_bytes()).is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What is linked with a program.
struct Made {
    /// The artifact.
    artifact: Vec<u8>,
    /// Derivatives of kernels: an archive; empty if there are none.
    native: Vec<u8>,
}

/// What is linked with a program: from the cache if the same bitcode was raised before by the same tool.
fn make_artifact(
    bitcode: &Bitcode,
    tool: &str,
    state: &State,
    refused: Refused,
    raise: &Raise,
) -> Result<Made, Failure> {
    let hash = bitcode.hash(tool).map_err(other("cannot read bitcode"))?;
    let cached = state.cached(&hash);
    let kernels = cached.with_extension("a");
    if let (Ok(artifact), Ok(native)) = (std::fs::read(&cached), std::fs::read(&kernels))
        && artifact::decode(&artifact).is_ok()
    {
        return Ok(Made { artifact, native });
    }
    let raised = raise(bitcode).map_err(Failure::Other)?;
    let made = Made {
        artifact: artifact::encode(&raised.artifact),
        native: raised.native.unwrap_or_default(),
    };
    if raised.refusals.is_empty() {
        let written = write(&kernels, &made.native).and_then(|()| write(&cached, &made.artifact));
        written.map_err(other("cannot write the cache"))?;
    } else if refused == Refused::Fail {
        return Err(Failure::Refused(raised.refusals));
    }
    Ok(made)
}

/// Writes the artifact where `explain` and `emit` find it, and all as files to link; returns the path of the object with
/// the artifact, and what follows it on the linker's command line.
fn store(
    made: &Made,
    addresses: &Addresses,
    output: &Path,
    tool: &str,
    state: &State,
) -> io::Result<(PathBuf, Vec<OsString>)> {
    let file = state.artifact(output);
    write(&file, &made.artifact)?;
    state.record(&LinkRecord {
        output: output.to_owned(),
        tool: tool.to_owned(),
    })?;
    let object = file.with_extension("o");
    write(
        &object,
        &embed::object_with(&made.artifact, &addresses.entries, embed::Visibility::Program)?,
    )?;
    if made.native.is_empty() {
        return Ok((object, vec![]));
    }
    let kernels = file.with_extension("kernels.a");
    write(&kernels, &made.native)?;
    let whole = [
        "-Wl,--whole-archive".into(),
        kernels.into(),
        "-Wl,--no-whole-archive".into(),
    ];
    Ok((object, whole.into()))
}

/// Writes a file whole or not at all: links run side by side.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    std::fs::write(&name, bytes)?;
    std::fs::rename(&name, path)
}

/// Compiles the bitcode and links it.
fn native(command: &LinkCommand, tools: &Tools, state: &State) -> Result<ExitStatus, Failure> {
    let mut arguments: Vec<OsString> = command
        .arguments
        .iter()
        .filter(|a| !chooses_linker(a))
        .cloned()
        .collect();
    let mut linker = OsString::from("--ld-path=");
    linker.push(&tools.lld);
    let mut cache = OsString::from("-Wl,--thinlto-cache-dir=");
    cache.push(state.objects());
    let policy = "-Wl,--thinlto-cache-policy=prune_after=168h:cache_size_bytes=2g";
    arguments.extend([linker, cache, policy.into(), "-Wno-unused-command-line-argument".into()]);
    let mut process = Command::new(&tools.clang);
    let response = command.output.with_extension("cotangent-link");
    let long = arguments.iter().map(|a| a.len() + 1).sum::<usize>() > LONG_COMMAND;
    if long {
        let lines: Vec<String> = arguments.iter().map(|a| quote(&a.to_string_lossy())).collect();
        std::fs::write(&response, lines.join("\n")).map_err(other("cannot write the linker's command line"))?;
        let mut at = OsString::from("@");
        at.push(&response);
        process.arg(at);
    } else {
        process.args(&arguments);
    }
    let status = process
        .status()
        .map_err(other(&format!("cannot run `{}`", tools.clang.display())));
    if long {
        // It served its one purpose; a leftover does no harm.
        let _ = std::fs::remove_file(&response);
    }
    status
}

/// Whether an argument chooses a linker, as rustc does for the system's compiler driver.
fn chooses_linker(argument: &OsStr) -> bool {
    let text = argument.to_string_lossy();
    text.starts_with("-fuse-ld=") || (text.starts_with("-B") && text.ends_with("gcc-ld"))
}

fn other<E: Display>(what: &str) -> impl FnOnce(E) -> Failure {
    move |error| Failure::Other(format!("{what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rustcs_choice_of_a_linker_is_dropped() {
        assert!(chooses_linker(OsStr::new("-fuse-ld=lld")));
        assert!(chooses_linker(OsStr::new("-B/toolchain/bin/gcc-ld")));
        assert!(!chooses_linker(OsStr::new("-Wl,-Bstatic")));
    }

    #[test]
    fn the_same_bitcode_is_raised_once() {
        let dir = tempfile::tempdir().unwrap();
        let module = dir.path().join("a.o");
        std::fs::write(&module, b"BC\xC0\xDE cotangent_request").unwrap();
        let state = State::at(dir.path().join("state"));
        let count = std::rc::Rc::new(std::cell::Cell::new(0));
        let counter = count.clone();
        let raise: Box<Raise> = Box::new(move |_| {
            counter.set(counter.get() + 1);
            Ok(Raised::default())
        });
        for tool in ["1", "1", "2"] {
            make_artifact(
                &Bitcode::collect([&module]).unwrap(),
                tool,
                &state,
                Refused::Fail,
                &raise,
            )
            .unwrap();
        }
        assert_eq!(count.get(), 2, "once per tool");
        std::fs::write(&module, b"BC\xC0\xDE cotangent_request changed").unwrap();
        make_artifact(
            &Bitcode::collect([&module]).unwrap(),
            "2",
            &state,
            Refused::Fail,
            &raise,
        )
        .unwrap();
        assert_eq!(count.get(), 3, "again after a change");
    }
}
