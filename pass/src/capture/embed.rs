//! The artifact as an object file that is linked into the program.

use object::write::{Object, StandardSection, Symbol, SymbolSection};
use object::{Architecture, BinaryFormat, Endianness, SymbolFlags, SymbolKind, SymbolScope};
use std::io;

/// Symbol of the artifact's first byte.
pub const START_SYMBOL: &str = "cotangent_artifact_start";
/// Symbol just past the artifact's last byte.
pub const END_SYMBOL: &str = "cotangent_artifact_end";

/// An ELF object with the artifact in its read-only data.
///
/// The symbols are visible in the program alone: a library that the program loads later may carry an artifact of its
/// own, and each finds its own.
pub(super) fn object_with(artifact: &[u8]) -> io::Result<Vec<u8>> {
    let mut object = Object::new(BinaryFormat::Elf, architecture(), Endianness::Little);
    let section = object.section_id(StandardSection::ReadOnlyData);
    let start = object.append_section_data(section, artifact, 16);
    for (name, value) in [(START_SYMBOL, start), (END_SYMBOL, start + artifact.len() as u64)] {
        object.add_symbol(Symbol {
            name: name.as_bytes().to_vec(),
            value,
            size: 0,
            kind: SymbolKind::Data,
            scope: SymbolScope::Linkage,
            weak: false,
            section: SymbolSection::Section(section),
            flags: SymbolFlags::None,
        });
    }
    // A missing note would ask the linker for an executable stack.
    object.add_section(Vec::new(), b".note.GNU-stack".to_vec(), object::SectionKind::Note);
    object.write().map_err(|error| io::Error::other(error.to_string()))
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
    use object::{Object as _, ObjectSection, ObjectSymbol};

    #[test]
    fn the_symbols_enclose_the_artifact() {
        let bytes = object_with(b"seventeen bytes!!").unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let address = |name| file.symbols().find(|s| s.name() == Ok(name)).unwrap().address() as usize;
        let data = file.section_by_name(".rodata").unwrap().data().unwrap();
        assert_eq!(&data[address(START_SYMBOL)..address(END_SYMBOL)], b"seventeen bytes!!");
    }
}
