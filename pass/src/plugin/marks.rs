//! What a file says of its functions in global variables: rules of its own, functions without derivatives, functions
//! that are like a known one.
//!
//! ```c
//! void *__enzyme_register_gradient_f[] = {(void *)f, (void *)f_forward, (void *)f_reverse};
//! void *__enzyme_register_derivative_f[] = {(void *)f, (void *)f_tangent};
//! void *__enzyme_inactivefn[] = {(void *)log_line};
//! void *__enzyme_function_like[] = {(void *)my_sine, (void *)"sin"};
//! ```
//!
//! They become attributes of the functions, which the engine reads whichever front end wrote them.

use super::names::FAMILY;
use super::resolve;
use crate::kernel::attributes as a;
use crate::llvm::{Function, Mod, Value};

/// Reads all of them.
///
/// # Errors
/// Those that are wrong: variable and reason.
pub(super) fn read(program: Mod<'_>) -> Vec<(String, String)> {
    let named = program
        .globals()
        .filter(|g| g.name().contains(FAMILY) && g.initializer().is_some());
    named.filter_map(|g| mark(g).err().map(|why| (g.name(), why))).collect()
}

fn mark(variable: Value<'_>) -> Result<(), String> {
    let name = variable.name();
    let is = |what: &str| name.contains(&format!("{FAMILY}{what}"));
    let elements: Vec<_> = variable.initializer().map(|i| elements(i)).unwrap_or_default();
    if is("register_gradient") {
        let [f, forward, reverse] = functions(&elements)?[..] else {
            return Err("takes three functions: the one it is for, its forward sweep, its reverse sweep".into());
        };
        f.add_string_attribute(a::FORWARD_RULE, &forward.name());
        f.add_string_attribute(a::REVERSE_RULE, &reverse.name());
    } else if is("register_derivative") {
        let [f, tangent] = functions(&elements)?[..] else {
            return Err("takes two functions: the one it is for, and the one for tangents".into());
        };
        f.add_string_attribute(a::TANGENT_RULE, &tangent.name());
    } else if is("inactivefn") {
        for f in functions(&elements)? {
            f.add_string_attribute(a::INACTIVE, "");
        }
    } else if is("function_like") {
        let [f, like] = elements[..] else {
            return Err("takes a function, and the name of the one that it is like".into());
        };
        let f = function(f)?;
        let like = like
            .is_global()
            .then(|| like.initializer())
            .flatten()
            .and_then(Value::string_value);
        f.add_string_attribute(a::LIKE, &like.ok_or("the name is no string constant")?);
    } else {
        return Err("says something that is not known".into());
    }
    Ok(())
}

/// The elements of an array, or the one value that is no array.
fn elements(initializer: Value<'_>) -> Vec<Value<'_>> {
    match initializer.ty() {
        ty if ty.is_array() || ty.is_struct() => (0..ty.parts().len() as u32)
            .filter_map(|i| initializer.element(i))
            .collect(),
        _ => vec![initializer],
    }
}

fn functions<'m>(elements: &[Value<'m>]) -> Result<Vec<Function<'m>>, String> {
    elements.iter().map(|v| function(*v)).collect()
}

fn function(v: Value<'_>) -> Result<Function<'_>, String> {
    resolve::function(v).ok_or_else(|| format!("{v:?} is no function"))
}
