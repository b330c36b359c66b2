//! Compiles the C++ shim against the headers of the LLVM that llvm-sys links, and with its clang the bodies of library
//! functions that the engine differentiates.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

fn main() {
    let mut shim = cc::Build::new();
    for name in ["shim", "work", "passes"] {
        let source = format!("src/llvm/{name}.cc");
        println!("cargo::rerun-if-changed={source}");
        shim.file(source);
    }
    shim.cpp(true)
        .std("c++17")
        .pic(true)
        .opt_level(1)
        .warnings(false)
        .flag("-fno-exceptions")
        .include(include())
        .compile("cotangent_llvm");
    for source in ["chars.c", "complex.c", "sort.c", "string.cc", "tree.c"] {
        library(source);
    }
}

/// Compiles a file of `src/kernel/prepare/library/` to LLVM's text.
fn library(file: &str) {
    let source = format!("src/kernel/prepare/library/{file}");
    let (name, standard) = match file.split_once('.') {
        Some((name, "cc")) => (
            name,
            &["-std=c++17", "-fno-exceptions", "-Xclang", "-mno-constructor-aliases"][..],
        ),
        Some((name, _)) => (name, &["-std=c17", "-fno-math-errno"][..]),
        None => return,
    };
    println!("cargo::rerun-if-changed={source}");
    let clang = llvm("--bindir").join("clang");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo sets it")).join(format!("{name}.ll"));
    let status = Command::new(&clang)
        .args(standard)
        .args(["-O1", "-w", "-S", "-emit-llvm"])
        .arg(&source)
        .arg("-o")
        .arg(out)
        .status();
    let status = status.unwrap_or_else(|e| panic!("cannot run {}: {e}: install clang-22", clang.display()));
    assert!(status.success(), "{source} does not compile");
}

/// What the `llvm-config` that llvm-sys found tells of LLVM's folders.
fn llvm(folder: &str) -> PathBuf {
    let config = env::var_os("DEP_LLVM_22_CONFIG_PATH").expect("llvm-sys tells where llvm-config is");
    let output = Command::new(&config).arg(folder).output();
    let output = output.unwrap_or_else(|e| panic!("cannot run {}: {e}", config.display()));
    PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())
}

/// LLVM's folder of headers.
fn include() -> PathBuf {
    let folder = llvm("--includedir");
    let header = folder.join("llvm/IR/Module.h");
    fs::metadata(&header).unwrap_or_else(|e| panic!("{}: {e}: install the headers (llvm-22-dev)", header.display()));
    folder
}
