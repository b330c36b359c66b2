//! The primals in C++, in a process of their own.

use std::collections::BTreeMap;
use std::process::Command;

/// Seconds for one run of each, where the compiler is there.
pub(crate) fn times() -> BTreeMap<String, f64> {
    run().unwrap_or_else(|why| {
        eprintln!("no times of C++: {why}");
        BTreeMap::new()
    })
}

fn run() -> Result<BTreeMap<String, f64>, String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let program = folder.path().join("peers");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/kernels/peers.cc");
    let compiled = Command::new("clang++-22")
        .args(["-O3", "-std=c++17", source, "-o"])
        .arg(&program)
        .status()
        .map_err(|e| format!("clang++-22: {e}"))?;
    if !compiled.success() {
        return Err(format!("{source} does not compile"));
    }
    let output = Command::new(&program).output().map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let times = text.lines().filter_map(|line| {
        let (name, seconds) = line.split_once(' ')?;
        Some((name.to_owned(), seconds.parse().ok()?))
    });
    Ok(times.collect())
}
