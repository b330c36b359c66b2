//! Cotangent differentiates compiled Rust.
