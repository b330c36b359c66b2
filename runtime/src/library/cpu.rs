//! What the code of a library may ask of a processor.

macro_rules! features {
    ($($rust:tt $llvm:literal),* $(,)?) => {
        /// Extensions that this processor has, of those that a library may use, as LLVM names them.
        pub(super) fn features() -> Vec<String> {
            #[cfg(target_arch = "x86_64")]
            let has = [$(($llvm, std::arch::is_x86_feature_detected!($rust))),*];
            #[cfg(not(target_arch = "x86_64"))]
            let has: [(&str, bool); 0] = [];
            has.into_iter().filter(|(_, has)| *has).map(|(name, _)| name.to_owned()).collect()
        }
    };
}

features!(
    "sse3" "sse3", "ssse3" "ssse3", "sse4.1" "sse4.1", "sse4.2" "sse4.2", "popcnt" "popcnt", "lzcnt" "lzcnt",
    "bmi1" "bmi", "bmi2" "bmi2", "avx" "avx", "avx2" "avx2", "fma" "fma", "f16c" "f16c", "avx512f" "avx512f",
    "avx512cd" "avx512cd", "avx512bw" "avx512bw", "avx512dq" "avx512dq", "avx512vl" "avx512vl",
);
