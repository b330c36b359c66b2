//! The artifact as an object file that is linked into the program.

use super::tools::Tools;
use object::write::{Object, Relocation, StandardSection, Symbol, SymbolSection};
use object::{
    Architecture, BinaryFormat, Endianness, RelocationEncoding, RelocationFlags, RelocationKind, SymbolFlags,
    SymbolKind, SymbolScope,
};
use object::{Object as _, ObjectSection, ObjectSymbol};
use std::io;
use std::path::Path;
use std::process::Command;

/// Symbol of the artifact's first byte.
pub const START_SYMBOL: &str = "cotangent_artifact_start";
/// Symbol just past the artifact's last byte.
pub const END_SYMBOL: &str = "cotangent_artifact_end";
/// Symbol of the table of addresses.
const ADDRESSES_SYMBOL: &str = "cotangent_addresses_start";

/// Who sees an artifact's symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Visibility {
    /// The program alone: a library that it loads later may carry an artifact of its own, and each finds its own.
    Program,
    /// Whoever loads the shared object.
    Exported,
}

/// An ELF object with the artifact in its read-only data, and a table of the addresses of these symbols.
pub(super) fn object_with(
    artifact: &[u8],
    addresses: &[Option<String>],
    visibility: Visibility,
) -> io::Result<Vec<u8>> {
    let mut object = Object::new(BinaryFormat::Elf, architecture(), Endianness::Little);
    let section = object.section_id(StandardSection::ReadOnlyData);
    let start = object.append_section_data(section, artifact, 16);
    for (name, value) in [(START_SYMBOL, start), (END_SYMBOL, start + artifact.len() as u64)] {
        object.add_symbol(Symbol {
            name: name.as_bytes().to_vec(),
            value,
            size: 0,
            kind: SymbolKind::Data,
            scope: match visibility {
                Visibility::Program => SymbolScope::Linkage,
                Visibility::Exported => SymbolScope::Dynamic,
            },
            weak: false,
            section: SymbolSection::Section(section),
            flags: SymbolFlags::None,
        });
    }
    if !addresses.is_empty() {
        table(&mut object, addresses)?;
    }
    // A missing note would ask the linker for an executable stack.
    object.add_section(Vec::new(), b".note.GNU-stack".to_vec(), object::SectionKind::Note);
    object.write().map_err(|error| io::Error::other(error.to_string()))
}

/// Adds the table of addresses; an entry without a symbol is zero.
fn table(object: &mut Object<'_>, addresses: &[Option<String>]) -> io::Result<()> {
    let section = object.section_id(StandardSection::ReadOnlyDataWithRel);
    let start = object.append_section_data(section, &vec![0; 8 * addresses.len()], 8);
    let mut symbol = |name: &str, value, section| {
        object.add_symbol(Symbol {
            name: name.as_bytes().to_vec(),
            value,
            size: 0,
            kind: SymbolKind::Data,
            scope: SymbolScope::Linkage,
            weak: false,
            section,
            flags: SymbolFlags::None,
        })
    };
    symbol(ADDRESSES_SYMBOL, start, SymbolSection::Section(section));
    let symbols: Vec<_> = addresses
        .iter()
        .map(|a| a.as_deref().map(|name| symbol(name, 0, SymbolSection::Undefined)))
        .collect();
    for (i, symbol) in symbols.into_iter().enumerate() {
        let Some(symbol) = symbol else { continue };
        let relocation = Relocation {
            offset: start + 8 * i as u64,
            symbol,
            addend: 0,
            flags: RelocationFlags::Generic {
                kind: RelocationKind::Absolute,
                encoding: RelocationEncoding::Generic,
                size: 64,
            },
        };
        object
            .add_relocation(section, relocation)
            .map_err(|error| io::Error::other(error.to_string()))?;
    }
    Ok(())
}

/// Writes the artifact as a shared object that exports its two symbols.
///
/// # Errors
/// If LLVM's tools are missing or fail, or the file cannot be written.
pub fn write_shared_object(artifact: &[u8], file: &Path) -> io::Result<()> {
    let tools = Tools::find().map_err(io::Error::other)?;
    let object = file.with_extension("cotangent.o");
    std::fs::write(&object, object_with(artifact, &[], Visibility::Exported)?)?;
    let status = Command::new(&tools.lld)
        .arg("-shared")
        .arg("-o")
        .arg(file)
        .arg(&object)
        .status();
    std::fs::remove_file(&object)?;
    match status? {
        status if status.success() => Ok(()),
        status => Err(io::Error::other(format!("`{}` failed: {status}", tools.lld.display()))),
    }
}

/// The artifact inside a shared object, program or object file; nothing in any other bytes.
pub fn extract(bytes: &[u8]) -> Option<&[u8]> {
    let file = object::File::parse(bytes).ok()?;
    let address = |name| {
        let symbols = file.symbols().chain(file.dynamic_symbols());
        symbols.filter(|s| s.name() == Ok(name)).map(|s| s.address()).next()
    };
    let (start, end) = (address(START_SYMBOL)?, address(END_SYMBOL)?);
    file.sections()
        .find_map(|section| section.data_range(start, end.checked_sub(start)?).ok()?)
}

/// The architecture that this tool runs on: programs are captured for the host only.
fn architecture() -> Architecture {
    if cfg!(target_arch = "aarch64") {
        Architecture::Aarch64
    } else {
        Architecture::X86_64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARTIFACT: &[u8] = b"seventeen bytes!!";

    #[test]
    fn the_symbols_enclose_the_artifact() {
        let bytes = object_with(ARTIFACT, &[], Visibility::Program).unwrap();
        assert_eq!(extract(&bytes), Some(ARTIFACT));
        assert_eq!(extract(ARTIFACT), None);
    }

    #[test]
    fn a_shared_object_exports_the_artifact() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("artifact.so");
        write_shared_object(ARTIFACT, &file).unwrap();
        let bytes = std::fs::read(&file).unwrap();
        assert_eq!(extract(&bytes), Some(ARTIFACT));
        let parsed = object::File::parse(&*bytes).unwrap();
        assert!(parsed.dynamic_symbols().any(|s| s.name() == Ok(START_SYMBOL)));
    }
}
