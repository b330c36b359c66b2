//! Random programs: reverse = forward = differences, from code of every optimisation level, and no block of the heap is
//! lost. `RANDOM=20000 cargo test --release --test random` tries as many; `RANDOM_SEED` gives the first seed.

#[allow(dead_code, reason = "the bench uses the rest")]
mod generate;

use cotangent_pass::kernel::prepare::Work;
use cotangent_pass::kernel::{Activity, DiffRequest, Mode, Refusal, differentiate};
use cotangent_pass::llvm::{Linkage, OwnedModule};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// Programs of one run of the compiler.
const BATCH: usize = 50;

fn number(name: &str, otherwise: usize) -> usize {
    env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn reverse_forward_and_differences_agree_at_every_level() {
    let (count, seed) = (number("RANDOM", 1000), number("RANDOM_SEED", 1));
    let (mut wrong, mut refused, mut why) = (String::new(), 0, String::new());
    for first in (seed..seed + count).step_by(BATCH) {
        let seeds: Vec<_> = (first..(first + BATCH).min(seed + count)).collect();
        let outcomes = std::thread::scope(|scope| {
            let check = |level| {
                let seeds = &seeds;
                scope.spawn(move || check(seeds, level))
            };
            let levels: Vec<_> = (0..4).map(check).collect();
            let ended = levels.into_iter().map(|l| l.join().expect("it reports its failures"));
            ended.collect::<Vec<_>>()
        });
        for (level, outcome) in outcomes.into_iter().enumerate() {
            match outcome {
                Ok((more, reason)) => {
                    refused += more;
                    why += &reason;
                }
                Err(why) => writeln!(wrong, "-O{level}, programs {first}..: {why}").unwrap(),
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    // A refusal is not wrong, but these programs hold little that cannot be told.
    assert!(
        refused <= 4 * count / 50 + 1,
        "{refused} of {} were refused: {why}",
        4 * count
    );
}

/// Differentiates, compiles and runs some programs; gives the number of those that were refused, and a reason.
fn check(seeds: &[usize], level: u32) -> Result<(usize, String), String> {
    let mut text = generate::HEADER.to_string();
    for seed in seeds {
        text += &generate::program(*seed, *seed as u64);
    }
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let folder = match env::var_os("RANDOM_KEEP") {
        Some(_) => folder.keep(),
        None => folder.path().to_owned(),
    };
    write(&folder, "primal.ll", &text)?;
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
                why = refused.first().map_or(why, |r| format!("{r:?}\n"));
                let refused: Vec<_> = refused.into_iter().map(|r| r.function).collect();
                let names = |k: &usize| [format!("f{k}"), format!("h{k}.0"), format!("h{k}.1")];
                seeds.retain(|k| !names(k).iter().any(|n| refused.contains(n)));
                if seeds.len() == before {
                    return Err(format!("refused: {refused:?}"));
                }
            }
        }
    };
    write(&folder, "done.ll", &done)?;
    write(&folder, "driver.c", include_str!("driver.c"))?;
    write(&folder, "programs.c", &table(&seeds, &given))?;
    let wrap = "-Wl,--wrap=malloc,--wrap=realloc,--wrap=free,--wrap=dprintf";
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
    let compiled = Command::new("clang-22").args(arguments).current_dir(&folder).output();
    let compiled = compiled.map_err(|e| format!("clang-22: {e}"))?;
    if !compiled.status.success() {
        return Err(String::from_utf8_lossy(&compiled.stderr).into_owned());
    }
    let run = Command::new("timeout")
        .args(["60", "./run"])
        .current_dir(&folder)
        .output();
    let run = run.map_err(|e| e.to_string())?;
    match run.status.success() {
        true => Ok((all - seeds.len(), why)),
        false => Err(format!("{:?}\n{}", run.status, String::from_utf8_lossy(&run.stdout))),
    }
}

fn write(folder: &Path, name: &str, text: &str) -> Result<(), String> {
    fs::write(folder.join(name), text).map_err(|e| format!("{name}: {e}"))
}

/// The module with `grad{k}` and `tan{k}` for every `f{k}`, differentiated as the frontends do; or the functions that
/// were refused.
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
        let request = |mode, a, entry: &str| DiffRequest {
            function,
            mode,
            arguments: vec![Activity::Dup, Activity::Const, a],
            result_active: true,
            primal_result: false,
            seed_argument: false,
            arena_argument: false,
            width: 1,
            entry: format!("{entry}{k}"),
        };
        requests.push(request(Mode::Combined, Activity::Out, "grad"));
        requests.push(request(Mode::Forward, Activity::Dup, "tan"));
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
fn table(seeds: &[usize], all: &[usize]) -> String {
    let mut text = String::from("typedef struct { void *f, *grad, *tan; const char *name; int narrow; } program;\n");
    for k in all {
        // The module at hand has declarations of the programs' variables.
        writeln!(text, "double g{k}[6], *p{k};").unwrap();
    }
    for k in seeds {
        writeln!(text, "void f{k}(void), grad{k}(void), tan{k}(void);").unwrap();
    }
    text += "const program programs[] = {\n";
    for k in seeds {
        writeln!(
            text,
            "  {{f{k}, grad{k}, tan{k}, \"f{k}\", {}}},",
            u8::from(generate::is_narrow(*k as u64))
        )
        .unwrap();
    }
    writeln!(text, "}};\nconst int program_count = {};", seeds.len()).unwrap();
    text
}
