//! Compiles the C++ shim against the headers of the LLVM that llvm-sys links.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=src/llvm/shim.cc");
    println!("cargo::rerun-if-changed=src/llvm/work.cc");
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .pic(true)
        .opt_level(1)
        .warnings(false)
        .flag("-fno-exceptions")
        .include(include())
        .file("src/llvm/shim.cc")
        .file("src/llvm/work.cc")
        .compile("cotangent_llvm");
}

/// LLVM's folder of headers, as the `llvm-config` that llvm-sys found tells it.
fn include() -> PathBuf {
    let config = env::var_os("DEP_LLVM_22_CONFIG_PATH").expect("llvm-sys tells where llvm-config is");
    let output = Command::new(&config).arg("--includedir").output();
    let output = output.unwrap_or_else(|e| panic!("cannot run {}: {e}", config.display()));
    let folder = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    let header = folder.join("llvm/IR/Module.h");
    fs::metadata(&header).unwrap_or_else(|e| panic!("{}: {e}: install the headers (llvm-22-dev)", header.display()));
    folder
}
