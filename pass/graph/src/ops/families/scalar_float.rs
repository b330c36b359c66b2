//! Floats of the program: arithmetic, libm and LLVM's conversions.
