//! Time of the pass against the size of the function: `cargo xtask bench pass [--small] [--json]`.
//!
//! Functions have one to a hundred thousand instructions, and a shape each: see [`shapes`]. Told are the passes of LLVM
//! before, the engine itself, and the passes of LLVM after, in the processor's time. What takes longer per instruction as the function grows is a
//! mistake, ours or LLVM's. A shape ends where a size takes too long to wait for the next. With `--json` one object goes to
//! the standard output: the seconds for 10,000 instructions by shape.

#[path = "../../tests/random/generate.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod generate;
mod shapes;

use cotangent_pass::kernel::prepare::Work;
use cotangent_pass::kernel::{Activity, DiffRequest, Mode, differentiate};
use cotangent_pass::llvm::OwnedModule;
use cpu_time::ProcessTime;
use std::time::Duration;

const SIZES: [usize; 5] = [1_000, 3_000, 10_000, 30_000, 100_000];
/// The size that is promised to take less than a second.
const PROMISED: usize = 10_000;
/// After a size that took longer, the next is not tried.
const PATIENCE: Duration = Duration::from_secs(6);
/// Runs of which the fastest counts, if they are short.
const RUNS: usize = 3;
const SHORT: Duration = Duration::from_millis(500);

/// Times of the parts.
#[derive(Clone, Copy)]
struct Times {
    before: Duration,
    engine: Duration,
    after: Duration,
}

impl Times {
    fn whole(self) -> Duration {
        self.before + self.engine + self.after
    }
}

/// All of it, as a frontend does.
fn time(module: &OwnedModule) -> Times {
    let program = module.get();
    let f = program.function("f0").expect("the function");
    let start = ProcessTime::now();
    let work = Work::extract(program, &[f]);
    work.optimise_primals().expect("LLVM's passes");
    let before = start.elapsed();
    let request = DiffRequest {
        function: work.module().function("f0").expect("the function"),
        mode: Mode::Combined,
        arguments: vec![Activity::Dup, Activity::Const, Activity::Out],
        result_active: true,
        primal_result: false,
        seed_argument: false,
        arena_argument: false,
        width: 1,
        entry: "grad".into(),
    };
    differentiate(work.module(), std::slice::from_ref(&request)).expect("a derivative");
    let engine = start.elapsed() - before;
    work.optimise_derivatives(&[request]).expect("LLVM's passes");
    let after = start.elapsed() - before - engine;
    Times { before, engine, after }
}

/// The number of instructions of the function, and the times of the fastest run.
fn measure(text: &str) -> (usize, Times) {
    let fresh = || OwnedModule::read(text.as_bytes()).expect("a module");
    let count = fresh().get().function("f0").map_or(0, |f| f.instructions().count());
    let mut best = time(&fresh());
    for _ in 1..RUNS {
        if best.whole() < SHORT {
            let again = time(&fresh());
            best = if again.whole() < best.whole() { again } else { best };
        }
    }
    (count, best)
}

fn main() {
    let is_given = |word: &str| std::env::args().any(|a| a == word);
    // Cargo says so in a bench; as a test it is to work, not to measure.
    let sizes = if is_given("--small") || !is_given("--bench") {
        &SIZES[..1]
    } else {
        &SIZES[..]
    };
    eprintln!(
        "{:<12}{:>14}{:>12}{:>12}{:>12}{:>12}{:>10}",
        "function", "instructions", "before ms", "engine", "after", "whole", "us each"
    );
    let mut promised = vec![];
    for (name, write) in shapes::ALL {
        for size in sizes {
            let (count, times) = measure(&write(*size));
            let ms = |d: Duration| 1e3 * d.as_secs_f64();
            eprintln!(
                "{name:<12}{count:>14}{:>12.1}{:>12.1}{:>12.1}{:>12.1}{:>10.1}",
                ms(times.before),
                ms(times.engine),
                ms(times.after),
                ms(times.whole()),
                1e3 * ms(times.whole()) / count as f64
            );
            if *size == PROMISED {
                promised.push(format!("\"{name}\": {:.3}", times.whole().as_secs_f64()));
            }
            if times.whole() > PATIENCE {
                break;
            }
        }
    }
    if is_given("--json") {
        println!("{{{}}}", promised.join(", "));
    }
}
