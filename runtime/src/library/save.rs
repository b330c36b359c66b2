//! Writing a library.
//!
//! Each piece is an object of its own. One more object, the frame, has for every import a slot that the loader fills
//! and a function of the import's name that jumps there, so that the library needs nothing that the program exports.

use super::format::{Manifest, OBJECT_MARK, tail};
use super::load::{Key, PIECES, SLOTS, key};
use super::{USED, cpu};
use crate::error::Error;
use crate::jit::{Processor, assemble};
use crate::lower::Lowered;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, PoisonError, Weak};

/// Writes the code of every graph that is alive. Gives the number of pieces.
pub(crate) fn save(file: &Path) -> Result<usize, Error> {
    let graphs = used();
    if graphs.is_empty() {
        return Err(Error::new(format!(
            "there is nothing to write to `{}`: no function was called yet",
            file.display()
        )));
    }
    write(file, &graphs).map_err(|e| Error::new(format!("cannot write `{}`: {e}", file.display())))?;
    Ok(graphs.len())
}

fn used() -> BTreeMap<Key, Arc<Lowered>> {
    let used = USED.lock().unwrap_or_else(PoisonError::into_inner);
    let alive = used.iter().filter_map(Weak::upgrade);
    alive.map(|lowered| (key(&lowered.text), lowered)).collect()
}

fn write(file: &Path, graphs: &BTreeMap<Key, Arc<Lowered>>) -> Result<(), String> {
    let features = cpu::features();
    let processor = Processor::With(&features);
    let parts = Parts::beside(file)?;
    let mut objects = vec![];
    for (key, lowered) in graphs {
        let object = assemble(&lowered.named(&symbol(key)), &processor).map_err(|e| e.to_string())?;
        objects.push(parts.add(&format!("{key}.o"), &object)?);
    }
    let imports = imports(graphs.values().map(|g| g.text.as_str()))?;
    let frame = frame(&imports, graphs.keys());
    let frame = assemble(&frame, &processor).map_err(|e| format!("{e}\n{frame}"))?;
    objects.push(parts.add("frame.o", &frame)?);
    let library = parts.0.join("library.so");
    link(&objects, &library)?;
    let mut bytes = std::fs::read(&library).map_err(|e| e.to_string())?;
    let manifest = Manifest {
        features,
        imports: imports.into_keys().collect(),
        pieces: graphs
            .iter()
            .map(|(key, g)| (key.clone(), g.function.clone()))
            .collect(),
    };
    let tail = tail(&bytes, &manifest);
    bytes.extend_from_slice(&tail);
    // Moved to its place when it is whole: a program that has the old one loaded keeps it.
    let whole = parts.add("library.whole", &bytes)?;
    std::fs::rename(whole, file).map_err(|e| e.to_string())
}

/// Symbol of the piece with that key.
fn symbol(key: &str) -> String {
    format!("cotangent_{key}")
}

/// The imports of all pieces: symbol to result type and types of the arguments.
fn imports<'a>(texts: impl Iterator<Item = &'a str>) -> Result<BTreeMap<String, (String, String)>, String> {
    let mut imports = BTreeMap::new();
    for line in texts.flat_map(str::lines).filter_map(|l| l.strip_prefix("declare ")) {
        let parts = line.split_once(" @").and_then(|(ret, rest)| {
            let (symbol, rest) = rest.split_once('(')?;
            Some((ret, symbol, rest.rsplit_once(')')?.0))
        });
        let (ret, symbol, types) = parts.ok_or_else(|| format!("`declare {line}` is not understood"))?;
        if symbol.starts_with("llvm.") {
            continue;
        }
        let signature = (ret.to_owned(), types.to_owned());
        if imports
            .insert(symbol.to_owned(), signature.clone())
            .is_some_and(|old| old != signature)
        {
            return Err(format!("`{symbol}` is declared in two ways"));
        }
    }
    Ok(imports)
}

/// The text of the frame.
fn frame<'a>(imports: &BTreeMap<String, (String, String)>, keys: impl Iterator<Item = &'a Key> + Clone) -> String {
    let mark: String = OBJECT_MARK.iter().map(|b| format!("\\{b:02x}")).collect();
    let pieces: Vec<String> = keys.clone().map(|k| format!("ptr @{}", symbol(k))).collect();
    let (slots, count) = (imports.len(), pieces.len());
    let mut text = format!(
        "@cotangent_mark = constant [8 x i8] c\"{mark}\"\n\
         @{SLOTS} = global [{slots} x ptr] zeroinitializer\n\
         @{PIECES} = constant [{count} x ptr] [{}]\n",
        pieces.join(", ")
    );
    for key in keys {
        _ = writeln!(text, "declare i32 @{}(ptr, ptr, ptr)", symbol(key));
    }
    for (k, (symbol, (ret, types))) in imports.iter().enumerate() {
        let types = types.split(", ").filter(|t| !t.is_empty());
        let params: Vec<String> = types.enumerate().map(|(i, t)| format!("{t} %a{i}")).collect();
        let params = params.join(", ");
        let slot = format!("getelementptr inbounds ([{slots} x ptr], ptr @{SLOTS}, i64 0, i64 {k})");
        let (result, value) = match ret.as_str() {
            "void" => ("", ""),
            _ => ("%r = ", " %r"),
        };
        _ = writeln!(
            text,
            "define hidden {ret} @{symbol}({params}) {{\n  %f = load ptr, ptr {slot}\n  \
             {result}musttail call {ret} %f({params})\n  ret {ret}{value}\n}}"
        );
    }
    text
}

/// Links with LLVM's linker or the system's.
fn link(objects: &[PathBuf], library: &Path) -> Result<(), String> {
    let prefix = std::env::var_os("LLVM_SYS_221_PREFIX").map(|p| Path::new(&p).join("bin/ld.lld").into_os_string());
    let linkers = prefix
        .into_iter()
        .chain(["ld.lld-22", "ld.lld", "ld"].map(OsString::from));
    for linker in linkers {
        let mut command = Command::new(&linker);
        command
            .args(["-shared", "-Bsymbolic", "-z", "noexecstack", "-o"])
            .arg(library)
            .args(objects);
        match command.output() {
            Ok(output) if output.status.success() => return Ok(()),
            Ok(output) => {
                let text = String::from_utf8_lossy(&output.stderr);
                return Err(format!("{linker:?} failed: {}", text.trim()));
            }
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) => return Err(format!("cannot run {linker:?}: {e}")),
        }
    }
    Err("no linker was found; install one with `cargo xtask setup`, or with `apt-get install lld-22`".to_owned())
}

/// A folder beside the library for what it is made of; removed at the end.
struct Parts(PathBuf);

impl Parts {
    fn beside(file: &Path) -> Result<Self, String> {
        let mut name = file.as_os_str().to_owned();
        name.push(format!(".{}.parts", std::process::id()));
        std::fs::create_dir_all(&name).map_err(|e| e.to_string())?;
        Ok(Self(name.into()))
    }

    fn add(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, String> {
        let file = self.0.join(name);
        std::fs::write(&file, bytes).map_err(|e| e.to_string())?;
        Ok(file)
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        // A leftover does no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
