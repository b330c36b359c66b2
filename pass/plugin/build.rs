//! Compiles the C++ that LLVM's plugin interface asks for.

use std::path::PathBuf;

fn main() {
    println!("cargo:rerun-if-changed=src/plugin.cc");
    println!("cargo:rerun-if-env-changed=LLVM_SYS_221_PREFIX");
    let prefix = std::env::var_os("LLVM_SYS_221_PREFIX").map_or_else(|| "/usr/lib/llvm-22".into(), PathBuf::from);
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .file("src/plugin.cc")
        .include(prefix.join("include"))
        .flag("-fno-exceptions")
        .define(
            "COTANGENT_VERSION",
            Some(concat!("\"", env!("CARGO_PKG_VERSION"), "\"")),
        )
        .flag("-Wno-unused-parameter")
        .compile("cotangent_plugin_info");
}
