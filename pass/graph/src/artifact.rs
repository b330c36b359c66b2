//! The artifact: the programs of one build, as bytes.
//!
//! The pass encodes and the runtime decodes. A header says what the bytes are before they are believed: a mark, the
//! number of the format, the version of this crate, length and checksum of the payload. An artifact belongs to the
//! build that made it, so versions must be equal; every refusal names the command that makes a new one.

use crate::program::Artifact;

/// First bytes of an artifact.
const MARK: [u8; 8] = *b"cotangnt";
/// Number of the format; raised with every change of what the payload means.
const FORMAT: u32 = 3;
/// Version of the crate that defines the payload.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Mark, format, checksum, length.
const FIXED: usize = 8 + 4 + 4 + 8;

/// Why bytes are not an artifact that can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}; rebuild it with `cargo cotangent build`")]
pub struct ArtifactError {
    /// What is wrong with the bytes.
    pub problem: Problem,
}

/// What is wrong with the bytes of an artifact.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// They are something else.
    #[error("this is not a Cotangent artifact")]
    Foreign,
    /// The end is missing.
    #[error("the Cotangent artifact is truncated: {have} bytes of {want}")]
    Truncated {
        /// Bytes that are there.
        have: u64,
        /// Bytes that the header promises.
        want: u64,
    },
    /// Another version of Cotangent made it.
    #[error(
        "the Cotangent artifact was made by version {made} (format {format}); this program has version {VERSION} (format {FORMAT}): \
         an installed `cargo cotangent` has to be of the program's version; install it again"
    )]
    Version {
        /// The version that made it.
        made: String,
        /// Its number of the format.
        format: u32,
    },
    /// The checksum does not fit.
    #[error("the Cotangent artifact is damaged: its checksum does not fit")]
    Damaged,
    /// The checksum fits, but the payload cannot be read.
    #[error("the Cotangent artifact cannot be read: {0}")]
    Payload(String),
}

impl From<Problem> for ArtifactError {
    fn from(problem: Problem) -> Self {
        Self { problem }
    }
}

/// The bytes of an artifact.
///
/// # Panics
/// Never: every program can be encoded.
pub fn encode(artifact: &Artifact) -> Vec<u8> {
    let payload = postcard::to_stdvec(artifact).expect("programs are plain data");
    let mut bytes = Vec::with_capacity(FIXED + 1 + VERSION.len() + payload.len());
    bytes.extend_from_slice(&MARK);
    bytes.extend_from_slice(&FORMAT.to_le_bytes());
    bytes.extend_from_slice(&crc32fast::hash(&payload).to_le_bytes());
    bytes.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    bytes.push(u8::try_from(VERSION.len()).expect("a version is short"));
    bytes.extend_from_slice(VERSION.as_bytes());
    bytes.extend_from_slice(&payload);
    bytes
}

/// Reads an artifact.
///
/// # Errors
/// If the bytes are no artifact, an incomplete or damaged one, or one of another version.
pub fn decode(bytes: &[u8]) -> Result<Artifact, ArtifactError> {
    let mut rest = bytes;
    let mark = take(&mut rest, MARK.len()).ok_or(Problem::Foreign)?;
    if mark != MARK {
        return Err(Problem::Foreign.into());
    }
    let short = || Problem::Truncated {
        have: bytes.len() as u64,
        want: FIXED as u64,
    };
    let format = u32::from_le_bytes(word(take(&mut rest, 4).ok_or_else(short)?));
    let sum = u32::from_le_bytes(word(take(&mut rest, 4).ok_or_else(short)?));
    let length = u64::from_le_bytes(word(take(&mut rest, 8).ok_or_else(short)?));
    let made = take(&mut rest, 1)
        .and_then(|n| take(&mut rest, n[0].into()))
        .ok_or_else(short)?;
    let made = String::from_utf8_lossy(made).into_owned();
    if format != FORMAT || made != VERSION {
        return Err(Problem::Version { made, format }.into());
    }
    if (rest.len() as u64) < length {
        let head = bytes.len() - rest.len();
        return Err(Problem::Truncated {
            have: bytes.len() as u64,
            want: length.saturating_add(head as u64),
        }
        .into());
    }
    // What follows the payload is the padding of the section that holds it.
    let payload = &rest[..usize::try_from(length).map_err(|_| Problem::Damaged)?];
    if crc32fast::hash(payload) != sum {
        return Err(Problem::Damaged.into());
    }
    postcard::from_bytes(payload).map_err(|e| Problem::Payload(e.to_string()).into())
}

/// Takes `n` bytes off the front.
fn take<'a>(rest: &mut &'a [u8], n: usize) -> Option<&'a [u8]> {
    let (head, tail) = rest.split_at_checked(n)?;
    *rest = tail;
    Some(head)
}

/// A fixed number of bytes.
fn word<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().expect("the caller took that many")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Arg, Graph, Type};
    use crate::kernel::KernelNote;
    use crate::ops::Op;
    use crate::program::{Image, Leaf, Named, Program, Tree};

    fn artifact() -> Artifact {
        let mut graph = Graph::new("f");
        let p = graph.push(Op::named("host.arg"), vec![Arg::Int(0)], vec![Type::Ptr], None)[0];
        graph.push(
            Op::named("host.load"),
            vec![p.into(), Arg::Int(8)],
            vec![Type::Float(64)],
            None,
        );
        let program = Program {
            key: "a::f".into(),
            description: "{}".into(),
            shim: "shim".into(),
            tree: Tree::Leaf(0),
            unlowered: vec![],
            leaves: vec![Leaf {
                graph,
                image: Image::default(),
            }],
        };
        Artifact {
            programs: vec![program],
            code: vec![1, 2, 3],
            symbols: vec![Named::constant("4!rule")],
            kernels: vec![KernelNote {
                key: "a::k".into(),
                description: "{}".into(),
                tapes: vec![],
            }],
        }
    }

    #[test]
    fn what_was_encoded_is_decoded() {
        assert_eq!(decode(&encode(&artifact())).unwrap(), artifact());
        let mut padded = encode(&artifact());
        padded.extend_from_slice(&[0; 13]);
        assert_eq!(decode(&padded).unwrap(), artifact());
    }

    #[test]
    fn every_truncation_is_refused_with_the_command_that_rebuilds() {
        let bytes = encode(&artifact());
        for n in 0..bytes.len() {
            let error = decode(&bytes[..n]).unwrap_err();
            let expected = if n < MARK.len() {
                "not a Cotangent artifact"
            } else {
                "truncated"
            };
            let text = error.to_string();
            assert!(
                text.contains(expected) && text.contains("cargo cotangent build"),
                "{n}: {text}"
            );
        }
    }

    #[test]
    fn foreign_damaged_and_other_versions_are_refused() {
        assert_eq!(decode(b"\x7fELF and so on").unwrap_err().problem, Problem::Foreign);
        let mut bytes = encode(&artifact());
        *bytes.last_mut().unwrap() ^= 1;
        assert_eq!(decode(&bytes).unwrap_err().problem, Problem::Damaged);
        let mut bytes = encode(&artifact());
        bytes[8] += 1;
        let problem = decode(&bytes).unwrap_err().problem;
        assert!(matches!(problem, Problem::Version { format, .. } if format == FORMAT + 1));
        let mut bytes = encode(&artifact());
        bytes[FIXED + 1] = b'9';
        assert!(decode(&bytes).unwrap_err().to_string().contains("made by version 9"));
    }
}
