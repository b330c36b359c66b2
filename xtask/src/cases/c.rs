//! C and C++ programs: compiled with the plugin at every level of optimisation, and run. A program that is right exits
//! with zero.

use super::{End, process, scratch};
use crate::setup;
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Longest time for one compilation, or for one run.
const PATIENCE: Duration = Duration::from_secs(120);
/// What a refusal says, wherever it stands in a compiler's output.
const REFUSAL: &str = "error: cannot differentiate ";

/// How the programs are compiled and run.
pub(super) struct Way {
    /// The plugin.
    pub(super) plugin: PathBuf,
    /// With the pass in `opt`, not in `clang`.
    pub(super) opt: bool,
    /// With checkers of memory as well.
    pub(super) stress: bool,
}

/// One way to run one program.
struct Job<'a> {
    source: &'a Path,
    level: u8,
    check: Check,
}

/// What checks the program's use of memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Check {
    Nothing,
    /// The address sanitizer, leaks included.
    Sanitizer,
    /// Memory that is allocated or freed is filled with a pattern.
    Poison,
    /// Every read of memory, at the level of the machine.
    Valgrind,
}

impl Job<'_> {
    fn name(&self) -> String {
        self.source
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    }

    fn way(&self) -> String {
        let check = match self.check {
            Check::Nothing => "",
            Check::Sanitizer => " -fsanitize=address",
            Check::Poison => " poisoned",
            Check::Valgrind => " valgrind",
        };
        format!("-O{}{check}", self.level)
    }
}

/// Runs the programs of a folder: name, way and end of each.
pub(super) fn run(from: &Path, filter: Option<&str>, way: &Way) -> Result<Vec<(String, String, End)>> {
    let mut sources: Vec<PathBuf> = fs::read_dir(from)
        .with_context(|| format!("cannot read {}", from.display()))?
        .map(|e| Ok(e?.path()))
        .collect::<Result<_>>()?;
    sources.retain(|f| {
        let named = f.file_name().unwrap_or_default().to_string_lossy();
        f.extension().is_some_and(|e| e == "c" || e == "cpp") && filter.is_none_or(|o| named.contains(o))
    });
    sources.sort();
    let folder = scratch("c");
    fs::create_dir_all(&folder)?;
    let mut checks = vec![Check::Nothing];
    if way.stress {
        checks.extend([Check::Sanitizer, Check::Poison, Check::Valgrind]);
    }
    let mut jobs = Vec::new();
    for source in &sources {
        for level in 0..=3 {
            jobs.extend(checks.iter().map(|&check| Job { source, level, check }));
        }
    }
    let tools = Tools::find()?;
    let named = |job: &Job<'_>| format!("{} {}", job.name(), job.way());
    let ends = process::for_each(&jobs, named, |i, job| {
        let program = folder.join(format!("case-{i}"));
        let end = one(job, way, &tools, &program).unwrap_or_else(|e| End::Failed(format!("{e:#}")));
        let _ = fs::remove_file(&program);
        end
    })?;
    Ok(jobs
        .iter()
        .zip(ends)
        .map(|(job, end)| (job.name(), job.way(), end))
        .collect())
}

/// LLVM's programs.
struct Tools {
    folder: PathBuf,
}

impl Tools {
    fn find() -> Result<Tools> {
        let folder = setup::llvm()?.join("bin");
        for name in ["clang", "clang++", "opt"] {
            if !folder.join(name).is_file() {
                bail!("{} has no `{name}`: run `cargo xtask setup`", folder.display());
            }
        }
        Ok(Tools { folder })
    }

    /// The compiler for a source, and the language's standard.
    fn compiler(&self, source: &Path) -> Command {
        let c = source.extension().is_some_and(|e| e == "c");
        let mut command = Command::new(self.folder.join(if c { "clang" } else { "clang++" }));
        command.arg(if c { "-std=c11" } else { "-std=c++17" });
        command
    }
}

fn one(job: &Job<'_>, way: &Way, tools: &Tools, program: &Path) -> Result<End> {
    let mut flags: Vec<OsString> = vec![format!("-O{}", job.level).into()];
    if job.check == Check::Sanitizer {
        flags.extend(["-fsanitize=address".into(), "-g".into()]);
    }
    if let Some(end) = match way.opt {
        true => compile_through_opt(job, way, tools, program, &flags)?,
        false => {
            let mut plugin = OsString::from("-fpass-plugin=");
            plugin.push(&way.plugin);
            let mut compile = tools.compiler(job.source);
            compile
                .args(&flags)
                .arg(plugin)
                .arg(job.source)
                .arg("-o")
                .arg(program)
                .arg("-lm");
            compilation(&mut compile)?
        }
    } {
        return Ok(end);
    }
    execution(job.check, program)
}

/// `clang` to unoptimised IR, `opt` with the pass, `clang` to a program.
fn compile_through_opt(
    job: &Job<'_>,
    way: &Way,
    tools: &Tools,
    program: &Path,
    flags: &[OsString],
) -> Result<Option<End>> {
    let (plain, differentiated) = (program.with_extension("plain.bc"), program.with_extension("bc"));
    let mut front = tools.compiler(job.source);
    front.args(flags).args([
        "-Xclang",
        "-disable-O0-optnone",
        "-Xclang",
        "-disable-llvm-passes",
        "-emit-llvm",
        "-c",
    ]);
    front.arg(job.source).arg("-o").arg(&plain);
    let mut opt = Command::new(tools.folder.join("opt"));
    let mut plugin = OsString::from("-load-pass-plugin=");
    plugin.push(&way.plugin);
    opt.arg(plugin)
        .arg("-passes=cotangent")
        .arg(&plain)
        .arg("-o")
        .arg(&differentiated);
    let mut back = tools.compiler(job.source);
    back.args(flags)
        .arg("-Wno-unused-command-line-argument")
        .arg(&differentiated)
        .arg("-o")
        .arg(program)
        .arg("-lm");
    let mut end = None;
    for command in [&mut front, &mut opt, &mut back] {
        end = compilation(command)?;
        if end.is_some() {
            break;
        }
    }
    let _ = fs::remove_file(plain);
    let _ = fs::remove_file(differentiated);
    Ok(end)
}

/// Compiles; what is wrong, if anything.
fn compilation(command: &mut Command) -> Result<Option<End>> {
    let output = process::output(command, PATIENCE)?;
    let Some(status) = output.status else {
        return Ok(Some(End::Failed(format!("not compiled in {} s", PATIENCE.as_secs()))));
    };
    if status.success() {
        return Ok(None);
    }
    let refusal = output
        .text
        .lines()
        .find_map(|l| l.find(REFUSAL).map(|at| &l[at + REFUSAL.len()..]));
    Ok(Some(match refusal {
        // Compilers end with one after errors that they told; anything else is a crash.
        Some(why) if status.code() == Some(1) => End::Refused(why.to_owned()),
        _ => {
            let why = output
                .text
                .lines()
                .find(|l| l.contains("error:") || l.contains("PLEASE"));
            End::Failed(format!("not compiled ({status}): {}", why.unwrap_or("no message")))
        }
    }))
}

/// Runs the program.
fn execution(check: Check, program: &Path) -> Result<End> {
    let mut command = match check {
        Check::Valgrind => {
            let mut command = Command::new("valgrind");
            command
                .args(["--quiet", "--error-exitcode=99", "--leak-check=full"])
                .arg(program);
            command
        }
        _ => Command::new(program),
    };
    if check == Check::Poison {
        command.env("MALLOC_PERTURB_", "165");
    }
    let output = process::output(&mut command, PATIENCE)?;
    Ok(match output.status {
        Some(status) if status.success() => End::Passed,
        Some(status) => {
            let lines: Vec<&str> = output.text.lines().filter(|l| !l.trim().is_empty()).take(4).collect();
            End::Failed(format!("{status}: {}", lines.join("; ")))
        }
        None => End::Failed(format!("did not end in {} s", PATIENCE.as_secs())),
    })
}
