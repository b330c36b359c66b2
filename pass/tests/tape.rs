//! What the plan says that a derivative keeps is what it takes from the arena.

use cotangent_pass::kernel::prepare::Work;
use cotangent_pass::kernel::{Activity, DiffRequest, Mode, Tape, differentiate_with_tapes};
use cotangent_pass::llvm::{Linkage, OwnedModule};
use std::fs;
use std::process::Command;

/// `x` is changed while it is read, so that what the reverse needs of it is stored: in a nest of counted loops, and in one
/// of which nobody knows how often it runs.
const PROGRAM: &str = r#"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"
define double @f(ptr %x, i64 %n) {
entry:
  br label %outer
outer:
  %i = phi i64 [ 0, %entry ], [ %i.next, %latch ]
  br label %inner
inner:
  %j = phi i64 [ 0, %outer ], [ %j.next, %inner ]
  %at = getelementptr double, ptr %x, i64 %j
  %old = load double, ptr %at
  %new = fmul double %old, %old
  store double %new, ptr %at
  %j.next = add nuw nsw i64 %j, 1
  %more = icmp ult i64 %j.next, %n
  br i1 %more, label %inner, label %latch
latch:
  %i.next = add nuw nsw i64 %i, 1
  %again = icmp ult i64 %i.next, 3
  br i1 %again, label %outer, label %halve
halve:
  %y = load double, ptr %x
  %z = fmul double %y, %y
  store double %z, ptr %x
  %large = fcmp ogt double %z, 0x3DDB7CDFD9D7BDBB
  br i1 %large, label %halve, label %exit
exit:
  %end = load double, ptr %x
  ret double %end
}
"#;

/// The largest of the elements so far: which of the two it is, the reverse cannot find out again.
const LARGEST: &str = r#"
declare double @llvm.maxnum.f64(double, double)
define double @f(ptr %x, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %largest = phi double [ 0.0, %entry ], [ %larger, %loop ]
  %at = getelementptr double, ptr %x, i64 %i
  %v = load double, ptr %at
  %larger = call double @llvm.maxnum.f64(double %largest, double %v)
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %exit
exit:
  ret double %larger
}
"#;

const DRIVER: &str = r#"
#include <stdio.h>
#include <stdlib.h>
double x[5] = {0.5, 0.25, 0.5, 0.75, 0.5}, s[3][5];
typedef struct { void *frame; double y; } result;
result forward();
int main(void) {
  char *block = aligned_alloc(16, 1 << 20), *arena[16] = {block, block + (1 << 20)};
  forward(x, SHADOWS, 5L, arena);
  printf("%ld", (long)(arena[0] - block));
}
"#;

/// The program with its forward sweep in so many directions, and what the plan says.
fn differentiated(program: &str, width: u32) -> (String, Vec<Tape>) {
    let program = OwnedModule::read(program.as_bytes()).expect("a module");
    let program = program.get();
    let f = program.function("f").expect("the function");
    let work = Work::extract(program, &[f]);
    work.optimise_primals().expect("LLVM's passes");
    let request = DiffRequest {
        function: work.module().function("f").expect("the function"),
        mode: Mode::Augmented,
        arguments: vec![Activity::Dup, Activity::Const],
        result_active: true,
        primal_result: true,
        seed_argument: true,
        arena_argument: true,
        width,
        entry: "forward".into(),
    };
    let tapes = differentiate_with_tapes(work.module(), std::slice::from_ref(&request)).expect("a derivative");
    work.optimise_derivatives(&[request]).expect("LLVM's passes");
    if let Some(f) = work.module().function("forward") {
        f.set_linkage(Linkage::LLVMExternalLinkage);
    }
    (work.module().text(), tapes)
}

#[test]
fn the_bytes_that_the_plan_tells_are_the_bytes_taken() {
    agree(1, "s[0]");
}

#[test]
fn of_several_directions_the_tape_has_their_shadows_and_all_else_once() {
    let (one, three) = (agree(1, "s[0]"), agree(3, "s[0], s[1], s[2]"));
    assert_eq!(three.bytes, one.bytes + 2 * 8, "{one}{three}");
    let bytes = |t: &Tape| t.loops.iter().map(|l| l.bytes).collect::<Vec<_>>();
    assert_eq!(bytes(&three), bytes(&one));
}

/// Runs the forward sweep in so many directions; gives what the plan says.
fn agree(width: u32, shadows: &str) -> Tape {
    let (text, tapes) = differentiated(PROGRAM, width);
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("done.ll"), text).expect("a file");
    fs::write(folder.path().join("driver.c"), DRIVER.replace("SHADOWS", shadows)).expect("a file");
    let arguments = ["-w", "-O1", "done.ll", "driver.c", "-lm", "-o", "run"];
    let compiled = Command::new("clang-22")
        .args(arguments)
        .current_dir(folder.path())
        .status();
    assert!(compiled.expect("clang-22").success());
    let run = Command::new(folder.path().join("run")).output().expect("the program");
    let taken: u64 = String::from_utf8_lossy(&run.stdout).parse().expect("a number");
    let [tape] = &tapes[..] else { panic!("{tapes:?}") };
    // Two counted loops, of which the outer may keep something itself, and one with a block per iteration.
    let mut told = Tape::taken(tape.bytes);
    // What the nest leaves is the 8th power of a half: the 64th is small.
    let squarings = 3;
    for l in &tape.loops {
        told += match (l.counted, l.depth) {
            (true, 0) => Tape::taken(3 * l.bytes),
            (true, _) => 3 * Tape::taken(5 * l.bytes),
            (false, _) => squarings * Tape::taken(l.bytes),
        };
    }
    assert_eq!(taken, told, "{}", tapes[0]);
    assert!(tape.loops.iter().any(|l| !l.counted) && tape.loops.iter().any(|l| l.depth == 1));
    tape.clone()
}

#[test]
fn of_a_choice_between_operands_one_byte_is_kept() {
    let (_, tapes) = differentiated(LARGEST, 1);
    let loops: Vec<_> = tapes.iter().flat_map(|t| &t.loops).map(|l| l.bytes).collect();
    assert_eq!(loops, [1], "{tapes:?}");
}
