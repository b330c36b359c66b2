//! Random programs: reverse = forward = differences, from code of every optimisation level, and no block of the heap is
//! lost. Of some, two directions of the reverse at once are what each is alone. Half of them compute ([`generate`]), half
//! move values about ([`movement`]). `RANDOM=20000 cargo test --release --test random` tries as many; `RANDOM_SEED` gives
//! the first seed, and what is made of the last ones stays in the folder `RANDOM_KEEP`, if that is given.

#[allow(dead_code, reason = "the bench uses the rest")]
mod generate;
mod movement;

use cotangent_pass::kernel::prepare::Work;
use cotangent_pass::kernel::{Activity, DiffRequest, Mode, Refusal, differentiate};
use cotangent_pass::llvm::{Linkage, OwnedModule};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// Programs of one run of the compiler.
const BATCH: usize = 50;

/// Is the program differentiated in two directions at once, too? So is one of three, in whatever order they come.
fn is_wide(k: usize) -> bool {
    k.is_multiple_of(3)
}

fn number(name: &str, otherwise: usize) -> usize {
    env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(otherwise)
}

/// A sort of random programs.
#[derive(Clone, Copy)]
struct Programs {
    /// The text of a module of them.
    module: fn(&[usize]) -> Result<String, String>,
    /// Global variables of one, in C.
    variables: fn(usize) -> String,
    /// Does one compute with `float`s, too?
    is_narrow: fn(u64) -> bool,
    /// One of so many may be refused when it is compiled.
    refused: usize,
    /// One of so many runs may be refused when it comes to that.
    stopped: usize,
}

#[test]
fn reverse_forward_and_differences_agree_at_every_level() {
    agree(Programs {
        module: |seeds| {
            let programs = seeds.iter().map(|k| generate::program(*k, *k as u64));
            Ok(generate::HEADER.to_string() + &programs.collect::<String>())
        },
        variables: |k| format!("double g{k}[6], *p{k};"),
        is_narrow: generate::is_narrow,
        refused: 50,
        stopped: 20,
    });
}

#[test]
fn values_that_are_moved_in_any_way_keep_their_derivatives() {
    agree(Programs {
        module: |seeds| {
            let programs = seeds.iter().map(|k| movement::program(*k, *k as u64));
            compiled(&(movement::HEADER.to_string() + &programs.collect::<String>()))
        },
        variables: movement::variables,
        is_narrow: movement::is_narrow,
        refused: 8,
        stopped: 2,
    });
}

/// What clang makes of C, before any optimisation.
fn compiled(text: &str) -> Result<String, String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    write(folder.path(), "primal.c", text)?;
    if let Some(kept) = env::var_os("RANDOM_KEEP") {
        write(Path::new(&kept), "primal.c", text)?;
    }
    let arguments = [
        "-w",
        "-O1",
        "-Xclang",
        "-disable-llvm-passes",
        "-S",
        "-emit-llvm",
        "-o",
        "primal.ll",
    ];
    command(
        Command::new("clang-22")
            .args(arguments)
            .arg("primal.c")
            .current_dir(&folder),
    )?;
    fs::read_to_string(folder.path().join("primal.ll")).map_err(|e| e.to_string())
}

/// Runs a command; gives what it said, as an error if it failed.
fn command(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(said(&output.stdout)),
        false => Err(format!(
            "{:?}\n{}{}",
            output.status,
            said(&output.stdout),
            said(&output.stderr)
        )),
    }
}

/// Checks as many programs of a sort as are asked for.
fn agree(programs: Programs) {
    let (count, seed) = (number("RANDOM", 1000).div_ceil(2), number("RANDOM_SEED", 1));
    let (mut wrong, mut refused, mut stopped, mut why) = (String::new(), 0, 0, String::new());
    for first in (seed..seed + count).step_by(BATCH) {
        let seeds: Vec<_> = (first..(first + BATCH).min(seed + count)).collect();
        let text = (programs.module)(&seeds).expect("a module of programs");
        let outcomes = std::thread::scope(|scope| {
            let check = |level| {
                let (seeds, text) = (&seeds, &text);
                scope.spawn(move || check(programs, seeds, text, level))
            };
            let levels: Vec<_> = (0..4).map(check).collect();
            let ended = levels.into_iter().map(|l| l.join().expect("it reports its failures"));
            ended.collect::<Vec<_>>()
        });
        for (level, outcome) in outcomes.into_iter().enumerate() {
            match outcome {
                Ok(done) => {
                    refused += done.refused;
                    stopped += done.stopped;
                    why += &done.why;
                }
                Err(why) => writeln!(wrong, "-O{level}, programs {first}..: {why}").unwrap(),
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    // A refusal is not wrong, but these programs hold little that cannot be told.
    assert!(
        refused <= 4 * count / programs.refused + 1,
        "{refused} of {} were refused: {why}",
        4 * count
    );
    // Each is run twice at every level.
    println!("{stopped} of {} runs were stopped", 8 * count);
    assert!(
        stopped <= 8 * count / programs.stopped + 2,
        "{stopped} of {} runs were stopped",
        8 * count
    );
}

/// How a batch of programs ended in which nothing was wrong.
struct Ended {
    /// Programs that were refused when they were compiled, and the reasons.
    refused: usize,
    why: String,
    /// Runs that the derivative refused.
    stopped: usize,
}

/// Differentiates, compiles and runs some programs.
fn check(programs: Programs, seeds: &[usize], text: &str, level: u32) -> Result<Ended, String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let folder = match env::var_os("RANDOM_KEEP") {
        Some(kept) => Path::new(&kept).join(format!("O{level}")),
        None => folder.path().to_owned(),
    };
    fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    write(&folder, "primal.ll", text)?;
    let mut seeds = seeds.to_vec();
    let given = seeds.clone();
    let all = seeds.len();
    let mut why = String::new();
    let done = loop {
        let module = OwnedModule::read(text.as_bytes())?;
        module.get().verify()?;
        match differentiated(&module, &seeds, level)? {
            Ok(done) => break done,
            Err(refused) => {
                let before = seeds.len();
                for r in &refused {
                    writeln!(why, "-O{level}: {r:?}").unwrap();
                }
                let of: Vec<_> = refused.iter().filter_map(|r| program_of(&r.function)).collect();
                seeds.retain(|k| !of.contains(k));
                if seeds.len() == before {
                    return Err(format!("refused: {refused:?}"));
                }
            }
        }
    };
    write(&folder, "done.ll", &done)?;
    write(&folder, "driver.c", include_str!("driver.c"))?;
    write(&folder, "programs.c", &table(programs, &seeds, &given))?;
    let wrap = "-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free,--wrap=dprintf";
    let arguments = [
        "-w",
        "-O0",
        "done.ll",
        "driver.c",
        "programs.c",
        wrap,
        "-lm",
        "-o",
        "run",
    ];
    command(Command::new("clang-22").args(arguments).current_dir(&folder))?;
    let said = command(Command::new("timeout").args(["60", "./run"]).current_dir(&folder))?;
    let stopped = said.lines().find_map(|l| l.strip_prefix("stopped ")?.parse().ok());
    Ok(Ended {
        refused: all - seeds.len(),
        why,
        stopped: stopped.ok_or("the driver counts what stopped")?,
    })
}

/// The number of the program that a function belongs to.
fn program_of(function: &str) -> Option<usize> {
    let digits = function.split(|c: char| !c.is_ascii_digit()).find(|d| !d.is_empty());
    digits.and_then(|d| d.parse().ok())
}

fn write(folder: &Path, name: &str, text: &str) -> Result<(), String> {
    fs::write(folder.join(name), text).map_err(|e| format!("{name}: {e}"))
}

/// The module with `grad{k}` and `tan{k}` for every `f{k}`, and `both{k}` for some, differentiated as the frontends do; or
/// the functions that were refused.
fn differentiated(program: &OwnedModule, seeds: &[usize], level: u32) -> Result<Result<String, Vec<Refusal>>, String> {
    let program = program.get();
    if level > 0 {
        program.run_passes(&format!("default<O{level}>"))?;
    }
    let functions: Vec<_> = seeds
        .iter()
        .filter_map(|k| program.function(&format!("f{k}")))
        .collect();
    let work = Work::extract(program, &functions);
    work.optimise_primals()?;
    let module = work.module();
    let mut requests = vec![];
    for k in seeds {
        let function = module
            .function(&format!("f{k}"))
            .ok_or("a program without its function")?;
        let request = |mode, a, width, entry: &str| DiffRequest {
            function,
            mode,
            arguments: vec![Activity::Dup, Activity::Const, a],
            result_active: true,
            primal_result: false,
            seed_argument: false,
            arena_argument: false,
            width,
            entry: format!("{entry}{k}"),
        };
        requests.push(request(Mode::Combined, Activity::Out, 1, "grad"));
        requests.push(request(Mode::Forward, Activity::Dup, 1, "tan"));
        if is_wide(*k) {
            requests.push(request(Mode::Combined, Activity::Out, 2, "both"));
        }
    }
    if let Err(refusals) = differentiate(module, &requests) {
        return Ok(Err(refusals));
    }
    work.optimise_derivatives(&requests)?;
    for k in seeds {
        if let Some(f) = module.function(&format!("f{k}")) {
            f.set_linkage(Linkage::LLVMExternalLinkage);
        }
    }
    Ok(Ok(module.text()))
}

/// C code with the table of programs.
fn table(programs: Programs, seeds: &[usize], all: &[usize]) -> String {
    let mut text =
        String::from("typedef struct { void *f, *grad, *tan, *both; const char *name; int narrow; } program;\n");
    for k in all {
        // The module at hand has declarations of the programs' variables.
        writeln!(text, "{}", (programs.variables)(*k)).unwrap();
    }
    for k in seeds {
        writeln!(text, "void f{k}(void), grad{k}(void), tan{k}(void), both{k}(void);").unwrap();
    }
    text += "const program programs[] = {\n";
    for k in seeds {
        let both = match is_wide(*k) {
            true => format!("both{k}"),
            false => "0".to_string(),
        };
        writeln!(
            text,
            "  {{f{k}, grad{k}, tan{k}, {both}, \"f{k}\", {}}},",
            u8::from((programs.is_narrow)(*k as u64))
        )
        .unwrap();
    }
    writeln!(text, "}};\nconst int program_count = {};", seeds.len()).unwrap();
    text
}
