//! Tells crates that depend on this one where the op table is (`DEP_COTANGENT_OPS_TABLE`).

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let root = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    println!("cargo::metadata=table={root}/src/ops/atg.tsv");
}
