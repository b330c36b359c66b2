//! The bitcode of one link: every object and every member of an rlib, read only when asked for.
//!
//! Three kinds of file carry bitcode. Objects on the command line and members of ordinary rlibs *are* bitcode. Members
//! of the standard library's rlibs are native, and carry the bitcode they came from in a section `.llvmbc`. An
//! archive's own symbol table says which member defines a symbol, so that nothing needs to be parsed to find a body.

use object::read::archive::ArchiveFile;
use object::{Object, ObjectSection};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The first bytes of a bitcode file.
const BITCODE_MAGIC: &[u8] = b"BC\xC0\xDE";
/// The first bytes of an ELF object.
const ELF_MAGIC: &[u8] = b"\x7fELF";
/// The section in which rustc keeps the bitcode of a native object.
const BITCODE_SECTION: &str = ".llvmbc";

/// All bitcode of one link, in the order of the command line.
#[derive(Debug, Default)]
pub struct Bitcode {
    modules: Vec<Module>,
    index: OnceLock<HashMap<Vec<u8>, usize>>,
}

/// One bitcode module.
#[derive(Debug)]
pub struct Module {
    name: String,
    file: PathBuf,
    /// Where the bytes of the object lie in the file.
    range: Range<u64>,
    origin: Origin,
    /// Symbols that the archive's symbol table ascribes to this member; none for objects outside archives.
    defines: Vec<Vec<u8>>,
    bytes: OnceLock<Vec<u8>>,
}

/// Where a module comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// An object of the crate that is being linked.
    Object,
    /// A member of a dependency's rlib.
    Member,
    /// A native member that carries its bitcode in a section.
    Embedded,
}

impl Module {
    /// File name of the object, or `archive(member)`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The object, or the archive that it is a member of.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Whether the module is an object of the crate that is being linked (not a member of a dependency's rlib).
    pub fn is_local(&self) -> bool {
        self.origin == Origin::Object
    }

    /// Whether the module's code is linked natively and the bitcode is only a copy of it (the standard library).
    pub fn is_native(&self) -> bool {
        self.origin == Origin::Embedded
    }

    /// The bitcode: read from the file at the first call, and kept.
    pub fn bytes(&self) -> io::Result<&[u8]> {
        if let Some(bytes) = self.bytes.get() {
            return Ok(bytes);
        }
        let bytes = self.read().map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("cannot read bitcode of {}: {error}", self.file.display()),
            )
        })?;
        Ok(self.bytes.get_or_init(|| bytes))
    }

    fn read(&self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; (self.range.end - self.range.start) as usize];
        File::open(&self.file)?.read_exact_at(&mut bytes, self.range.start)?;
        if self.origin != Origin::Embedded {
            return Ok(bytes);
        }
        let parsed = object::File::parse(&*bytes).map_err(invalid)?;
        match parsed.section_by_name(BITCODE_SECTION) {
            Some(section) => Ok(section.data().map_err(invalid)?.to_vec()),
            None => Ok(Vec::new()),
        }
    }
}

impl Bitcode {
    /// Collects the bitcode of objects and archives. Native objects, and archives that are not rlibs, hold none and are
    /// passed over.
    pub fn collect<P: AsRef<Path>>(inputs: impl IntoIterator<Item = P>) -> io::Result<Bitcode> {
        let mut modules = Vec::new();
        for input in inputs {
            let path = input.as_ref();
            let in_file = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
            match path.extension().and_then(|e| e.to_str()) {
                Some("rlib") => collect_rlib(path, &mut modules).map_err(in_file)?,
                Some("o") => collect_object(path, &mut modules).map_err(in_file)?,
                _ => {}
            }
        }
        Ok(Bitcode {
            modules,
            index: OnceLock::new(),
        })
    }

    /// The modules: the linked crate's objects first, its dependencies after them, the standard library last.
    pub fn modules(&self) -> &[Module] {
        &self.modules
    }

    /// The module of a dependency or of the standard library that defines a symbol with external linkage.
    ///
    /// Objects of the linked crate have no symbol table and are not searched: load all of them.
    pub fn definition(&self, symbol: &[u8]) -> Option<usize> {
        let index = self.index.get_or_init(|| {
            let mut index = HashMap::new();
            for (k, module) in self.modules.iter().enumerate() {
                for symbol in &module.defines {
                    index.entry(symbol.clone()).or_insert(k);
                }
            }
            index
        });
        index.get(symbol).copied()
    }

    /// A hash of what is linked and of the tool that raises it: equal hashes mean equal artifacts.
    ///
    /// The linked crate's objects count by content, since Cargo writes them anew; archives by path, size and time.
    pub fn hash(&self, tool: &str) -> io::Result<String> {
        let mut hasher = blake3::Hasher::new();
        let mut field = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        field(tool.as_bytes());
        let mut last = None;
        for module in &self.modules {
            if module.is_local() {
                field(module.bytes()?);
            } else if last != Some(&module.file) {
                let metadata = std::fs::metadata(&module.file)?;
                let modified = metadata
                    .modified()?
                    .duration_since(std::time::UNIX_EPOCH)
                    .unwrap_or_default();
                field(module.file.as_os_str().as_encoded_bytes());
                field(&metadata.len().to_le_bytes());
                field(&modified.as_nanos().to_le_bytes());
                last = Some(&module.file);
            }
        }
        Ok(hasher.finalize().to_hex().to_string())
    }

    /// The modules whose bytes mention a symbol (define it, call it or take its address), those of the standard library
    /// excepted. Names stand uncompressed in a bitcode file, so that this needs no parser.
    pub fn mentioning(&self, symbol: &str) -> io::Result<Vec<usize>> {
        let finder = memchr::memmem::Finder::new(symbol.as_bytes());
        let mut found = Vec::new();
        for (k, module) in self.modules.iter().enumerate() {
            if !module.is_native() && finder.find(module.bytes()?).is_some() {
                found.push(k);
            }
        }
        Ok(found)
    }
}

fn collect_object(path: &Path, modules: &mut Vec<Module>) -> io::Result<()> {
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    if head(&file, 0, size)? != BITCODE_MAGIC {
        return Ok(());
    }
    modules.push(Module {
        name: file_name(path),
        file: path.to_owned(),
        range: 0..size,
        origin: Origin::Object,
        defines: Vec::new(),
        bytes: OnceLock::new(),
    });
    Ok(())
}

fn collect_rlib(path: &Path, modules: &mut Vec<Module>) -> io::Result<()> {
    let file = File::open(path)?;
    let cache = object::ReadCache::new(&file);
    let archive = ArchiveFile::parse(&cache).map_err(invalid)?;
    let mut at = HashMap::new();
    let first = modules.len();
    for member in archive.members() {
        let member = member.map_err(invalid)?;
        let (start, size) = member.file_range();
        let origin = match head(&file, start, size)? {
            head if head == BITCODE_MAGIC => Origin::Member,
            head if head == ELF_MAGIC && member.name().ends_with(b".rcgu.o") => Origin::Embedded,
            _ => continue,
        };
        at.insert(start, modules.len());
        modules.push(Module {
            name: format!("{}({})", file_name(path), String::from_utf8_lossy(member.name())),
            file: path.to_owned(),
            range: start..start + size,
            origin,
            defines: Vec::new(),
            bytes: OnceLock::new(),
        });
    }
    if modules.len() == first {
        return Ok(());
    }
    for symbol in archive.symbols().map_err(invalid)?.into_iter().flatten() {
        let symbol = symbol.map_err(invalid)?;
        let member = archive.member(symbol.offset()).map_err(invalid)?;
        if let Some(&k) = at.get(&member.file_range().0) {
            modules[k].defines.push(symbol.name().to_vec());
        }
    }
    Ok(())
}

fn head(file: &File, at: u64, size: u64) -> io::Result<[u8; 4]> {
    let mut head = [0; 4];
    if size >= 4 {
        file.read_exact_at(&mut head, at)?;
    }
    Ok(head)
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}

fn invalid(error: object::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_that_is_not_bitcode_is_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let native = dir.path().join("symbols.o");
        std::fs::write(&native, b"\x7fELF and more").unwrap();
        let short = dir.path().join("short.o");
        std::fs::write(&short, b"BC").unwrap();
        assert!(Bitcode::collect([&native, &short]).unwrap().modules().is_empty());
    }

    #[test]
    fn a_mentioned_symbol_is_found_in_a_bitcode_object() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.o");
        std::fs::write(&path, b"BC\xC0\xDE....cotangent_request....").unwrap();
        let bitcode = Bitcode::collect([&path]).unwrap();
        assert_eq!(bitcode.mentioning("cotangent_request").unwrap(), [0]);
        assert!(bitcode.mentioning("another").unwrap().is_empty());
        assert!(bitcode.modules()[0].is_local());
    }

    #[test]
    fn a_file_that_is_missing_is_named_in_the_error() {
        let error = Bitcode::collect(["gone.o"]).unwrap_err();
        assert!(error.to_string().starts_with("gone.o: "), "{error}");
    }
}
