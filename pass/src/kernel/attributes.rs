//! Attributes of functions by which a front end tells the engine what it knows of them: strings on the function.

use crate::llvm::Function;

/// The function has no derivative to speak of: what it returns and writes is constant.
pub const INACTIVE: &str = "cotangent-inactive";
/// Name of a known function (of the C library) with the same derivative.
pub const LIKE: &str = "cotangent-like";
/// Name of the function that runs in its place in a forward sweep: the same arguments, a shadow after each pointer. It
/// gives the tape, or a structure of the tape and the result; nothing if there is no tape.
pub const FORWARD_RULE: &str = "cotangent-forward-rule";
/// Name of the function that is its reverse sweep: the arguments of the forward one, then the cotangent of the result if
/// it is a float, then the tape. It gives the cotangents of the floats among the arguments.
pub const REVERSE_RULE: &str = "cotangent-reverse-rule";
/// Name of the function that computes its tangents: each pointer and float followed by its shadow or tangent.
pub const TANGENT_RULE: &str = "cotangent-tangent-rule";
/// The function is called by the runtime of Rust programs: the arena says which floats there are in the memory that it is
/// given (bits at [`WIDTHS`]: 1 `double`, 2 `float`), of which the shadows are zero before the forward sweep.
pub const TOLD: &str = "cotangent-told";
/// Where in the arena that stands.
pub const WIDTHS: u64 = 56;
/// The program's own symbol for a function of which this is a copy: pointers that the program makes outside of the code at
/// hand lead there.
pub const NATIVE: &str = "cotangent-native";
/// An exception that leaves the function may be caught by a function that is differentiated. The engine's own mark.
pub const CAUGHT: &str = "cotangent-caught";
/// All of these whose value names another function of the module.
pub const RULES: [&str; 3] = [FORWARD_RULE, REVERSE_RULE, TANGENT_RULE];

/// The runtime's functions that call a function with a rule: rule, addresses of the arguments, place for the result.
pub const RUNTIME_RULES: [&str; 2] = ["cotangent_custom_vjp", "cotangent_custom_jvp"];

/// Has the function a derivative that the user wrote?
pub fn has_own_rule(f: Function<'_>) -> bool {
    RUNTIME_RULES.contains(&f.name().as_str()) || RULES.iter().any(|rule| f.string_attribute(rule).is_some())
}
