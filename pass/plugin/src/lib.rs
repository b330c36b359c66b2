//! Cotangent as a loadable pass: `opt-22 -load-pass-plugin=LIBRARY -passes=cotangent`, `clang-22 -fpass-plugin=LIBRARY`.
//!
//! The library links the same shared libLLVM as the program that loads it, so that there is one LLVM in the process.
//! Everything beyond the two functions here is [`cotangent_pass::plugin`]. rustc hides the symbols of C++ code in such a
//! library, so the entry point that LLVM looks for is a Rust function, and C++ fills in what it returns.

pub mod entry;
