//! Time of the pass against the size of the function: `cargo bench -p cotangent-pass --bench pass`.
//!
//! Functions are those of the random tests, of one to a hundred thousand instructions. What takes longer per instruction
//! as the function grows is a mistake of ours. A recursive one calls itself with arguments that have a derivative and with
//! others, and gets four derivatives.
#![allow(missing_docs, reason = "Criterion's macros write functions without documentation")]

#[path = "../tests/random/generate.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod generate;

use cotangent_pass::kernel::analysis::activity::{Activity as Found, Ask};
use cotangent_pass::kernel::analysis::{Content, words::Words};
use cotangent_pass::kernel::prepare::Work;
use cotangent_pass::kernel::{Activity, DiffRequest, Mode, differentiate};
use cotangent_pass::llvm::{Analyses, OwnedModule};
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;

/// Statements, and the instructions that they make: about nine each.
const SIZES: [u32; 3] = [100, 1_000, 10_000];
/// Up to this size the whole is timed.
const WHOLE: u32 = 1_000;

/// What the function calls if it does not call itself.
const CALLED: &str = r"
define double @called(ptr %x, i64 %n, double %a) {
  %first = load double, ptr %x
  %product = fmul double %first, %a
  ret double %product
}
";

fn module(statements: u32, recursive: bool) -> OwnedModule {
    let callees: Vec<String> = (!recursive).then(|| "@called".into()).into_iter().collect();
    let text = format!("{}{CALLED}{}", generate::HEADER, generate::sized(statements, &callees));
    OwnedModule::read(text.as_bytes()).expect("a module")
}

const ASKED: [Activity; 3] = [Activity::Dup, Activity::Const, Activity::Out];

/// Types of memory, words, activity.
fn analyse(m: &OwnedModule) -> usize {
    let m = m.get();
    let f = m.function("f0").expect("the function");
    let llvm = Analyses::new(m);
    let content = Content::new(m, &llvm, &[f]);
    let words = Words::new(&content);
    let ask = Ask {
        function: f,
        arguments: ASKED.to_vec(),
        result: true,
    };
    let found = Found::new(m, &content, &words, &[ask]);
    f.instructions().filter(|i| found.is_active(*i)).count()
}

/// All of it, as a frontend does.
fn whole(m: &OwnedModule) {
    let program = m.get();
    let f = program.function("f0").expect("the function");
    let work = Work::extract(program, &[f]);
    work.optimise_primals().expect("LLVM's passes");
    let request = DiffRequest {
        function: work.module().function("f0").expect("the function"),
        mode: Mode::Combined,
        arguments: ASKED.to_vec(),
        result_active: true,
        primal_result: false,
        seed_argument: false,
        arena_argument: false,
        entry: "grad".into(),
    };
    differentiate(work.module(), std::slice::from_ref(&request)).expect("a derivative");
    work.optimise_derivatives(&[request]).expect("LLVM's passes");
}

fn bench(c: &mut Criterion) {
    let mut group = c.benchmark_group("pass");
    group.sample_size(10);
    for statements in SIZES {
        let count = module(statements, false)
            .get()
            .function("f0")
            .map_or(0, |f| f.instructions().count());
        group.throughput(Throughput::Elements(count as u64));
        group.bench_function(BenchmarkId::new("analyses", count), |b| {
            let fresh = || module(statements, false);
            b.iter_batched_ref(fresh, |m| black_box(analyse(m)), BatchSize::PerIteration);
        });
        // LLVM's own passes take longer per instruction in functions of very many blocks, and are not ours to time.
        for (name, recursive) in [("whole", false), ("whole, recursive", true)] {
            if statements <= WHOLE {
                group.bench_function(BenchmarkId::new(name, count), |b| {
                    let fresh = || module(statements, recursive);
                    b.iter_batched_ref(fresh, |m| whole(m), BatchSize::PerIteration);
                });
            }
        }
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
