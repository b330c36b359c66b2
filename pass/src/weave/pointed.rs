//! Pointers that a kernel is given: function pointers, closures and trait objects that its caller made.
//!
//! Where the type of a kernel's parameter names such (`fn`, `Fn`, `dyn`), each function of the program's own code may be
//! meant that has a type that the kernel calls, and whose address is taken somewhere. Copies of these become part of the
//! kernel's code; to compare pointers with, they name the program's own symbols. A user's struct may hold pointers, too; to
//! follow all that it might hold would bring most of a program into a kernel. Run time tells of a pointer that is not known.
//!
//! Functions that drop values are left out: a kernel that is lent an object does not drop it, and all types have one. So
//! are those that give a truth value, as what formats texts does.

use super::assemble::{Assembly, LOCAL, local_module};
use super::entries::RUNTIME;
use crate::capture::Module;
use crate::kernel::attributes::NATIVE;
use crate::kernel::prepare::KEPT_ALIVE;
use crate::llvm::{Function, Mod};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

/// The type of functions that drop values.
const DROPS: &str = "void (ptr)";
/// How the types of functions begin that give a truth value.
const TRUTHS: &str = "i1 ";
/// In types of Rust, what says that there are pointers to functions.
const POINTERS: [&str; 5] = ["fn", "dyn", "Fn", "FnMut", "FnOnce"];

/// May an argument of a function hold pointers to functions? Told by the types of its parameters, as users wrote them.
pub(crate) fn may_hold(description: &str) -> bool {
    let json: serde_json::Value = serde_json::from_str(description).unwrap_or_default();
    let params = json["params"].as_array().cloned().unwrap_or_default();
    params
        .iter()
        .any(|p| names_functions(p["ty"].as_str().unwrap_or_default()))
}

/// Does a type, as users wrote it, say that it holds pointers to functions?
pub(super) fn names_functions(ty: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '\'';
    ty.split(|c| !is_part(c)).any(|w| POINTERS.contains(&w))
}

/// Functions whose address is taken, by type: symbols as a link names them.
pub(crate) type Taken = HashMap<String, Vec<String>>;

impl Assembly<'_> {
    /// Adds what functions of some types reach whose address is taken in the program's own code; gives the names that
    /// they have here. Those that come to LibTorch are none that a kernel can call.
    ///
    /// # Errors
    /// If bitcode cannot be read.
    pub(crate) fn add_pointed(&mut self, called: &BTreeSet<String>) -> Result<Vec<String>, String> {
        let (mut found, mut open) = (BTreeSet::new(), called.clone());
        let (mut done, mut names) = (BTreeSet::from([DROPS.to_owned()]), vec![]);
        while let Some(ty) = open.pop_first() {
            if !done.insert(ty.clone()) || ty.starts_with(TRUTHS) {
                continue;
            }
            let symbols = self.taken()?.get(&ty).cloned().unwrap_or_default();
            for symbol in symbols.into_iter().filter(|s| found.insert(s.clone())) {
                if let Some(added) = self.add(&symbol)? {
                    // Beyond the first, only functions of numbers: others (of texts, say) would bring most of a program.
                    open.extend(
                        added
                            .called
                            .into_iter()
                            .filter(|ty| ty.contains("double") || ty.contains("float")),
                    );
                    names.push(added.name);
                }
            }
        }
        Ok(names)
    }

    /// The functions whose address is taken in the linked crate, and in crates that anything was copied of.
    fn taken(&mut self) -> Result<&Taken, String> {
        if self.taken.is_none() {
            let modules = self.bitcode.modules();
            let reached: HashSet<&Path> = self.parsed.keys().map(|k| modules[*k].file()).collect();
            let is_own = |m: &Module| {
                m.is_local() || reached.contains(m.file()) && !m.is_native() && !m.name().contains(RUNTIME)
            };
            let own: Vec<usize> = (0..modules.len()).filter(|k| is_own(&modules[*k])).collect();
            for k in &own {
                self.parsed(*k)?;
            }
            let functions = || own.iter().flat_map(|k| self.parsed[k].module().functions());
            // One module may take the address of what another defines.
            let pointed = functions().filter(|f| f.is_address_taken());
            let pointed: HashSet<String> = pointed.map(Function::name).collect();
            let mut taken = Taken::new();
            let fits = |f: &Function<'_>| !f.is_declaration() && !f.name().contains(RUNTIME);
            for f in functions().filter(|f| fits(f) && pointed.contains(&f.name())) {
                taken.entry(format!("{:?}", f.ty())).or_default().push(symbol_of(f));
            }
            self.taken = Some(taken);
        }
        Ok(self.taken.get_or_insert_default())
    }
}

/// Marks the copies of functions that pointers from outside may lead to, and keeps them.
pub(super) fn mark(module: Mod<'_>, names: &[String]) {
    let copies: Vec<Function<'_>> = names.iter().filter_map(|name| module.function(name)).collect();
    for f in &copies {
        f.add_string_attribute(NATIVE, &f.name());
        f.value().set_name(&format!("cotangent.copy.{}", f.name()));
    }
    if !copies.is_empty() {
        module.keep_alive(&copies);
    }
}

/// Lets go of what [`mark`] kept.
pub(super) fn release(module: Mod<'_>) {
    if let Some(list) = module.global(KEPT_ALIVE) {
        list.delete_global();
    }
}

/// The symbol, as a link names it, of a function in a module of an assembly.
fn symbol_of(f: Function<'_>) -> String {
    let name = f.name();
    match local_module(&name) {
        Some(k) => format!("{k}!{}", name.rsplit_once(LOCAL).map_or(&*name, |(own, _)| own)),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::may_hold;

    #[test]
    fn closures_trait_objects_and_function_pointers_are_pointers_to_functions() {
        let holds = |ty: &str| may_hold(&format!(r#"{{"params":[{{"ty":"f64"}},{{"ty":"{ty}"}}]}}"#));
        assert!(
            ["& [f64]", "& Net", "& 'a str", "Option < f64 >", "T"]
                .into_iter()
                .all(|ty| !holds(ty))
        );
        let others = [
            "& dyn Layer",
            "fn (f64) -> f64",
            "impl Fn (f64) -> f64",
            "& [Box < dyn Law >]",
        ];
        assert!(others.into_iter().all(holds));
    }
}
