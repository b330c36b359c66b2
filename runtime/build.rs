//! Compiles the C++ shim against LibTorch and writes the address table of LibTorch's C functions.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    shim(&libtorch());
    kernels();
}

/// Where LibTorch is: `(include, lib)`.
fn libtorch() -> (PathBuf, PathBuf) {
    for name in ["LIBTORCH", "LIBTORCH_INCLUDE", "XDG_CACHE_HOME"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    let folder = |name: &str| env::var_os(name).map(PathBuf::from);
    // What torch-sys links is what the shim must be compiled against.
    let lib = folder("DEP_TCH_LIBTORCH_LIB").or_else(|| Some(folder("LIBTORCH")?.join("lib")));
    let cache = || {
        let base = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")))?;
        Some(base.join("cotangent/libtorch-2.13.0/lib"))
    };
    let Some(lib) = lib.or_else(cache).filter(|l| l.join("libtorch_cpu.so").exists()) else {
        fail("LibTorch 2.13.0 was not found");
    };
    let root = folder("LIBTORCH_INCLUDE").or_else(|| lib.parent().map(Path::to_owned));
    let Some(include) = root.map(|r| r.join("include")).filter(|i| i.join("ATen").exists()) else {
        fail(&format!("no LibTorch headers belong to {}", lib.display()));
    };
    (include, lib)
}

fn fail(what: &str) -> ! {
    eprintln!(
        "\n{what}: run `cargo xtask setup` in the Cotangent workspace, or set LIBTORCH to the folder that holds its include/ and lib/\n"
    );
    std::process::exit(1)
}

fn shim((include, lib): &(PathBuf, PathBuf)) {
    println!("cargo::rerun-if-changed=shim");
    let mut sources: Vec<PathBuf> = fs::read_dir("shim")
        .expect("shim/ belongs to the crate")
        .map(|e| e.expect("shim/ is readable").path())
        .filter(|p| p.extension().is_some_and(|e| e == "cc"))
        .collect();
    sources.sort();
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .pic(true)
        .opt_level(2)
        .warnings(false)
        .define("_GLIBCXX_USE_CXX11_ABI", "1")
        .include(include)
        .include(include.join("torch/csrc/api/include"))
        .files(sources)
        .compile("cotangent_shim");
    println!("cargo::rustc-link-search=native={}", lib.display());
    println!("cargo::rustc-link-lib=dylib=torch_cpu");
    println!("cargo::rustc-link-lib=dylib=c10");
    // Reaches this crate's own tests and examples; other crates get theirs from .cargo/config.toml.
    println!("cargo::rustc-link-arg=-Wl,-rpath,{}", lib.display());
}

/// `kernels.rs`: the address of every `atg_*` function of the op table, sorted by name.
fn kernels() {
    let table = env::var("DEP_COTANGENT_OPS_TABLE").expect("cotangent-graph tells where its op table is");
    println!("cargo::rerun-if-changed={table}");
    let text = fs::read_to_string(&table).unwrap_or_else(|e| panic!("cannot read {table}: {e}"));
    let mut names: Vec<&str> = text
        .lines()
        .filter(|l| !l.starts_with('#') && !l.is_empty())
        .filter_map(|l| l.split('\t').next())
        .collect();
    names.sort_unstable();
    let rows: String = names
        .iter()
        .map(|n| format!("    (\"{n}\", Address(torch_sys::c_generated::atg_{n} as *const ())),\n"))
        .collect();
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("kernels.rs");
    fs::write(out, format!("static KERNELS: &[(&str, Address)] = &[\n{rows}];\n")).expect("OUT_DIR is writable");
}
