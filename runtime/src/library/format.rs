//! The file of a library: a shared object, then what it says about itself, then a footer of fixed size.
//!
//! A loader of shared objects ignores what follows them. It also believes what it reads; so the file is checked from
//! its end before it is loaded.

use super::Problem;
use super::load::Key;
use serde::{Deserialize, Serialize};

/// First bytes of the footer.
const MARK: [u8; 8] = *b"cotancod";
/// In the constants of the shared object: a file that has this and no footer is truncated.
pub(super) const OBJECT_MARK: [u8; 8] = *b"cotanobj";
/// Number of the format; raised with every change of the code's interface.
const FORMAT: u32 = 1;
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Room for the version.
const ROOM: usize = 32;
/// Mark, format, checksum, length of the manifest, version.
const FOOTER: usize = 8 + 4 + 4 + 8 + ROOM;

/// What a library says about itself.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Manifest {
    /// Extensions of the processor that its code uses.
    pub(super) features: Vec<String>,
    /// The symbols that it imports, in the order of its slots.
    pub(super) imports: Vec<String>,
    /// Its pieces of code, in order: key, and name of the function.
    pub(super) pieces: Vec<(Key, String)>,
}

/// What stands behind the shared object.
#[cfg(any(feature = "jit", test))]
pub(super) fn tail(object: &[u8], manifest: &Manifest) -> Vec<u8> {
    let mut tail = postcard::to_stdvec(manifest).expect("a manifest is plain data");
    let length = tail.len() as u64;
    let mut sum = crc32fast::Hasher::new();
    sum.update(object);
    sum.update(&tail);
    tail.extend_from_slice(&MARK);
    tail.extend_from_slice(&FORMAT.to_le_bytes());
    tail.extend_from_slice(&sum.finalize().to_le_bytes());
    tail.extend_from_slice(&length.to_le_bytes());
    let mut version = [0; ROOM];
    version[..VERSION.len()].copy_from_slice(VERSION.as_bytes());
    tail.extend_from_slice(&version);
    tail
}

/// Checks a file and reads what it says about itself.
pub(super) fn read(bytes: &[u8]) -> Result<Manifest, Problem> {
    let footer = bytes.len().checked_sub(FOOTER).map(|at| bytes.split_at(at));
    let Some((content, footer)) = footer.filter(|(_, footer)| footer.starts_with(&MARK)) else {
        return Err(match bytes.windows(OBJECT_MARK.len()).any(|w| w == OBJECT_MARK) {
            true => Problem::Truncated,
            false => Problem::Foreign,
        });
    };
    let format = u32::from_le_bytes(word(&footer[8..]));
    let sum = u32::from_le_bytes(word(&footer[12..]));
    let length = u64::from_le_bytes(word(&footer[16..]));
    let made = String::from_utf8_lossy(&footer[24..]).trim_end_matches('\0').to_owned();
    if format != FORMAT || made != VERSION {
        return Err(Problem::Version { made, format });
    }
    if crc32fast::hash(content) != sum {
        return Err(Problem::Damaged);
    }
    let at = usize::try_from(length).ok().and_then(|n| content.len().checked_sub(n));
    let manifest = &content[at.ok_or(Problem::Damaged)?..];
    postcard::from_bytes(manifest).map_err(|_| Problem::Damaged)
}

fn word<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes[..N].try_into().expect("a footer is longer")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file whose object has the mark in its first half.
    fn file() -> (Vec<u8>, Manifest) {
        let manifest = Manifest {
            features: vec!["avx2".into()],
            imports: vec!["atg_mm".into()],
            pieces: vec![("ab".into(), "a::f".into())],
        };
        let mut bytes = [&b"an object"[..], &OBJECT_MARK, &[7; 100]].concat();
        let tail = tail(&bytes, &manifest);
        bytes.extend_from_slice(&tail);
        (bytes, manifest)
    }

    #[test]
    fn what_was_written_is_read() {
        let (bytes, manifest) = file();
        assert_eq!(read(&bytes).unwrap(), manifest);
    }

    #[test]
    fn every_truncation_is_refused() {
        let (bytes, _) = file();
        for n in 0..bytes.len() {
            match read(&bytes[..n]).unwrap_err() {
                Problem::Truncated => assert!(n >= 17),
                Problem::Foreign => assert!(n < 17, "{n}"),
                // The mark of the object stands where a footer's would: refused as what it then seems to be.
                other => assert_eq!(n, 9 + FOOTER, "{other}"),
            }
        }
    }

    #[test]
    fn foreign_damaged_and_other_versions_are_refused() {
        assert!(matches!(read(b"\x7fELF and so on").unwrap_err(), Problem::Foreign));
        let (bytes, _) = file();
        for n in 0..bytes.len() - FOOTER {
            let mut bytes = bytes.clone();
            bytes[n] ^= 1;
            assert!(matches!(read(&bytes).unwrap_err(), Problem::Damaged), "{n}");
        }
        let at = bytes.len() - FOOTER;
        let with = |i: usize| {
            let mut bytes = bytes.clone();
            bytes[at + i] ^= 1;
            read(&bytes).unwrap_err().to_string()
        };
        assert!(with(8).contains("format 0"), "{}", with(8));
        assert!(with(24).contains("made by version 1"), "{}", with(24));
    }
}
