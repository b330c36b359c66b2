//! Text form of a [`Program`]: the tree, then each leaf with its graph and what it leaves in memory. For readers.

use super::print::{name, separated};
use crate::program::{Base, Datum, Leaf, Program, Tree};
use std::fmt::{self, Display, Formatter, Write};

impl Display for Program {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("program @")?;
        name(f, &self.key)?;
        f.write_str(" {\n")?;
        tree(f, &self.tree, 1)?;
        f.write_str("}\n")?;
        for (i, leaf) in self.leaves.iter().enumerate() {
            write!(f, "\nleaf {i}: {leaf}")?;
        }
        Ok(())
    }
}

fn tree(f: &mut Formatter<'_>, t: &Tree, depth: usize) -> fmt::Result {
    let indent = "  ".repeat(depth);
    match t {
        Tree::Leaf(i) => writeln!(f, "{indent}leaf {i}"),
        Tree::Replay => writeln!(f, "{indent}replay"),
        Tree::Refused(why) => {
            for refusal in why {
                write!(f, "{indent}refused: {}", refusal.message)?;
                match refusal.at.first() {
                    Some(loc) => writeln!(f, " @ {loc}")?,
                    None => writeln!(f)?,
                }
            }
            Ok(())
        }
        Tree::Grow => writeln!(f, "{indent}grow at run time"),
        Tree::Branch {
            leaf,
            on,
            exact,
            arms,
            otherwise,
        } => {
            let each = if *exact { "each value of " } else { "" };
            writeln!(f, "{indent}branch on {each}{on} of leaf {leaf}")?;
            for (value, arm) in arms {
                writeln!(f, "{indent}{value}:")?;
                tree(f, arm, depth + 1)?;
            }
            writeln!(f, "{indent}otherwise:")?;
            tree(f, otherwise, depth + 1)
        }
    }
}

impl Display for Leaf {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(&self.graph, f)?;
        for (i, a) in self.image.allocations.iter().enumerate() {
            writeln!(f, "allocate #{i}: {} bytes, align {}", a.size, a.align)?;
        }
        for w in &self.image.writes {
            writeln!(f, "write {} = {}", Place(w.base, w.offset), w.datum)?;
        }
        for v in &self.image.dropped {
            writeln!(f, "drop tensor at {v}")?;
        }
        for (v, size, align) in &self.image.freed {
            writeln!(f, "free {v}: {size} bytes, align {align}")?;
        }
        Ok(())
    }
}

/// An address: a block and an offset.
struct Place(Base, i64);

impl Display for Place {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Base::Out => f.write_str("out")?,
            Base::Allocation(i) => write!(f, "#{i}")?,
            Base::Host(v) => write!(f, "host {v}")?,
            Base::Symbol(i) => write!(f, "symbol {i}")?,
        }
        match self.1 {
            0 => Ok(()),
            n => write!(f, "{n:+}"),
        }
    }
}

impl Display for Datum {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => {
                f.write_str("bytes ")?;
                separated(f, bytes, |f, b| write!(f, "{b:02x}"))
            }
            Self::Scalar { value, bytes } => write!(f, "{value} in {bytes} bytes"),
            Self::Tensor(k) => write!(f, "tensor, output {k}"),
            Self::Address(base, offset) => {
                f.write_char('&')?;
                Display::fmt(&Place(*base, *offset), f)
            }
        }
    }
}
