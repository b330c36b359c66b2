//! What the runtime calls: derivatives of a shim, and the table of them. The layout is told in the runtime's `kernel`.
//!
//! ```text
//! aug(args, out, arena) -> frame     rev(frame, arena)     grad(args, out, arena)     jvp(args, out, arena)
//! ```
//!
//! The addresses `args` and `out` are objects of the arena's table, where their shadows are found.

use super::direct::Plain;
use crate::kernel::{Activity, DiffRequest, Mode};
use crate::llvm::{Builder, Function, Linkage, Mod, Opcode, Type, Value};
use cotangent_raise::IS_NESTED;

/// The runtime's function that asks for derivatives of a kernel.
pub(crate) const KERNEL_MARKER: &str = "cotangent_kernel";
/// Symbol of the table.
const TABLE: &str = "cotangent_kernels";
/// Symbol of its length.
const LENGTH: &str = "cotangent_kernels_len";
/// The support function that finds shadows.
const SHADOW: &str = "cotangent.object";
/// In the mangled names of the runtime's functions, and of those of its types.
pub(super) const RUNTIME: &str = "cotangent_runtime";
/// The support functions for the memory of a derivative within differentiated code.
const SHADOW_MEMORY: &str = "cotangent.shadow.alloc";
const RELEASE: &str = "cotangent.release";
/// The functions of a row of the table, in order: name, the engine's part of it, and what asks for it (bits of
/// [`Kernel::modes`]).
const FUNCTIONS: [(&str, &str, Mode, u32); 4] = [
    ("aug", "augmented", Mode::Augmented, 1),
    ("rev", "rev", Mode::Reverse, 1),
    ("grad", "gradient", Mode::Combined, 2),
    ("jvp", "tangent", Mode::Forward, 4),
];

/// A kernel that is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    /// What the runtime knows it by.
    pub(crate) key: String,
    /// Its shim, by the name that it has in the assembled module.
    pub(crate) shim: String,
    /// What is asked for, as bits: 1 pullback, 2 gradient, 4 tangent.
    pub(crate) modes: u32,
    /// The functions that ask for it, by the names that they would have in the assembled module, each with the mode that it
    /// asks for.
    pub(crate) thunks: Vec<(String, u32)>,
    /// The functions that pointers among its arguments may lead to, by the names that they have in the assembled module.
    pub(crate) pointed: Vec<String>,
    /// Its parameters, if their types say enough to differentiate the function itself ([`super::direct`]).
    pub(crate) plain: Option<Vec<Plain>>,
    /// How many bits its result has, if that is a float.
    pub(crate) float: Option<u32>,
}

/// How many bits the result of a function has that is described, if that is a float.
pub(crate) fn float(description: &str) -> Option<u32> {
    let json: serde_json::Value = serde_json::from_str(description).ok()?;
    match json["ret"].as_str()? {
        "f64" => Some(64),
        "f32" => Some(32),
        _ => None,
    }
}

/// Has a shim write a float where the result is one. LLVM writes an integer of the bits if it has that, and the memory does
/// not say more, while the shadow of the place holds the seed.
pub(super) fn write_float(shim: Function<'_>, bits: u32) {
    let (out, context) = (shim.params()[1], shim.value().ty().context());
    let float = if bits == 64 { context.double() } else { context.float() };
    let writes =
        |i: &Value<'_>| i.is(Opcode::LLVMStore) && i.operand(1) == out && i.operand(0).ty() == context.int(bits);
    for store in out.users().filter(writes).collect::<Vec<_>>() {
        let b = Builder::new(context);
        b.before(store);
        store.set_operand(0, b.bitcast(store.operand(0), float));
    }
}

/// The names of the functions of kernel number `i`, as far as they are asked for.
pub(crate) fn names(i: usize, kernel: &Kernel) -> [Option<String>; 4] {
    FUNCTIONS.map(|(name, _, _, bit)| (kernel.modes & bit != 0).then(|| format!("cotangent.kernel.{i}.{name}")))
}

/// What the engine is asked for, for kernel number `i`: names of functions.
pub(crate) fn asked(i: usize, kernel: &Kernel) -> impl Iterator<Item = (String, Mode)> {
    let wanted = FUNCTIONS.into_iter().filter(|f| kernel.modes & f.3 != 0);
    wanted.map(move |(_, derived, mode, _)| (format!("cotangent.kernel.{i}.{derived}"), mode))
}

/// The request for one of these functions. The list of arguments and the place for the result are made for one call: nothing
/// else leads there.
pub(crate) fn request<'m>(shim: Function<'m>, mode: Mode, entry: String) -> DiffRequest<'m> {
    for k in 0..2 {
        shim.add_param_attribute(k, "noalias");
    }
    DiffRequest {
        function: shim,
        mode,
        arguments: vec![Activity::Dup; 2],
        result_active: false,
        primal_result: false,
        seed_argument: false,
        arena_argument: true,
        width: 1,
        entry,
    }
}

/// Writes the functions, in terms of declarations of what the engine is asked for. Where differentiated code asks for a
/// kernel, the answer is known: a constant row.
pub(crate) fn declare(module: Mod<'_>, kernels: &[Kernel]) {
    for (i, kernel) in kernels.iter().enumerate() {
        functions(module, i, kernel);
        for (_, _, _, mode) in FUNCTIONS.iter().filter(|(name, ..)| *name != "rev") {
            let asking = kernel.thunks.iter().filter(|(_, asked)| asked == mode);
            let thunks: Vec<_> = asking.filter_map(|(thunk, _)| module.function(thunk)).collect();
            if !thunks.is_empty() {
                answer(module, &thunks, nested(module, i, kernel, *mode));
            }
        }
    }
}

/// Has functions give a constant, and their callers know it.
fn answer<'m>(module: Mod<'m>, thunks: &[Function<'m>], known: Value<'m>) {
    for thunk in thunks {
        thunk.value().delete_body();
        let b = Builder::new(module.context());
        b.at_end(thunk.append_block("entry"));
        b.ret(Some(known));
        thunk.set_linkage(Linkage::LLVMInternalLinkage);
    }
    // Calls may be marked not to be inlined.
    for f in module.functions().filter(|f| !f.is_declaration()) {
        let calls = f.instructions().filter(|i| i.is(Opcode::LLVMCall));
        let asks = |i: &Value<'_>| i.callee().is_some_and(|g| thunks.contains(&g));
        for call in calls.filter(asks).collect::<Vec<_>>() {
            call.replace_with(known);
            call.erase();
        }
    }
}

/// What stands between entry points and derivatives vanishes, the users' side of it included: much of it decides by what
/// its caller knows, and each call has memory of its own.
///
/// # Errors
/// If LLVM fails.
pub(crate) fn inline(module: Mod<'_>) -> Result<(), String> {
    let Some(says) = module.global(IS_NESTED) else {
        return Ok(());
    };
    let of_runtime = |f: &Function<'_>| f.name().contains(RUNTIME);
    let calls = |f: &Function<'_>| {
        let mut callees = f.instructions().filter(|i| i.is_call()).filter_map(|i| i.callee());
        callees.any(|g| of_runtime(&g))
    };
    let bodies = || module.functions().filter(|f| !f.is_declaration());
    for f in bodies() {
        // Marked functions stay apart, as those that never return do.
        let apart = ["cold", "noreturn", "noinline"]
            .iter()
            .any(|name| f.attribute(name).is_some());
        if !apart && (of_runtime(&f) || calls(&f)) {
            f.add_attribute("alwaysinline");
        }
    }
    module.run_passes("always-inline")?;
    let byte = module.context().int(8);
    says.set_initializer(byte.int(1));
    says.set_global_constant();
    says.set_global_linkage(Linkage::LLVMInternalLinkage);
    module.run_passes("function(lower-expect,instsimplify,simplifycfg),globaldce")
}

/// What differentiated code is told of a kernel: what asks the engine for one mode, and its memory.
fn nested<'m>(module: Mod<'m>, i: usize, kernel: &Kernel, mode: u32) -> Value<'m> {
    let context = module.context();
    let (ptr, words) = (context.ptr(), context.int(64));
    let memory = |name: &str, ty: Type<'m>| {
        let declared = || {
            let f = module.add_function(name, ty);
            f.add_attribute("nounwind");
            f
        };
        module.function(name).unwrap_or_else(declared).value()
    };
    let mut fields = vec![
        memory(SHADOW_MEMORY, context.function(ptr, &[ptr, words])),
        memory(RELEASE, context.function(context.void(), &[ptr])),
    ];
    for (_, derived, _, bit) in FUNCTIONS.iter().filter(|(name, ..)| ["grad", "jvp"].contains(name)) {
        let function = module.function(&format!("cotangent.kernel.{i}.{derived}"));
        fields.push(function.filter(|_| bit & mode != 0).map_or(ptr.zero(), Function::value));
    }
    let constant = |name: String, value: Value<'m>| {
        let known = module.add_global(&name, value.ty());
        known.set_initializer(value);
        known.set_global_constant();
        known.set_global_linkage(Linkage::LLVMInternalLinkage);
        known
    };
    let functions = constant(
        format!("cotangent.kernel.{i}.nested.{mode}"),
        context.const_structure(&fields),
    );
    let mut row = key(module, i, kernel);
    row.extend([ptr.zero(); FUNCTIONS.len()]);
    row.push(functions);
    constant(format!("cotangent.kernel.{i}.{mode}"), context.const_structure(&row))
}

/// Writes the table of all kernels, whose functions are in other modules.
pub(crate) fn table(module: Mod<'_>, kernels: &[(usize, &Kernel)]) {
    let rows: Vec<_> = kernels.iter().map(|(i, kernel)| row(module, *i, kernel)).collect();
    let Some(first) = rows.first() else { return };
    let table = module.add_global(TABLE, first.ty().array(rows.len() as u64));
    table.set_initializer(first.ty().const_array(&rows));
    table.set_global_constant();
    let words = module.context().int(64);
    let length = module.add_global(LENGTH, words);
    length.set_initializer(words.int(rows.len() as u64));
    length.set_global_constant();
}

/// Key and functions of a kernel.
fn row<'m>(module: Mod<'m>, i: usize, kernel: &Kernel) -> Value<'m> {
    let context = module.context();
    let ptr = context.ptr();
    let mut fields = key(module, i, kernel);
    let function = |name: String| {
        let f = module
            .add_function(&name, context.function(context.void(), &[]))
            .value();
        f.hide();
        f
    };
    fields.extend(names(i, kernel).map(|name| name.map_or(ptr.zero(), function)));
    fields.push(ptr.zero());
    context.const_structure(&fields)
}

/// Address and length of a kernel's key.
fn key<'m>(module: Mod<'m>, i: usize, kernel: &Kernel) -> Vec<Value<'m>> {
    let context = module.context();
    let key = module.add_global(
        &format!("cotangent.kernel.{i}.key"),
        context.int(8).array(kernel.key.len() as u64 + 1),
    );
    key.set_initializer(context.const_string(&kernel.key));
    key.set_global_constant();
    key.set_global_linkage(Linkage::LLVMInternalLinkage);
    vec![key, context.int(64).int(kernel.key.len() as u64)]
}

/// aug, rev, grad, jvp: those that are asked for.
fn functions(module: Mod<'_>, i: usize, kernel: &Kernel) {
    let context = module.context();
    let (ptr, void) = (context.ptr(), context.void());
    let declared = asked(i, kernel).map(|(name, mode)| {
        let (result, parameters) = match mode {
            Mode::Augmented => (context.structure(&[ptr]), 5),
            Mode::Reverse => (void, 2),
            Mode::Combined | Mode::Forward => (void, 5),
        };
        (
            module.add_function(&name, context.function(result, &vec![ptr; parameters])),
            mode,
        )
    });
    let names = names(i, kernel).into_iter().flatten();
    for ((derived, mode), name) in declared.zip(names) {
        match mode {
            Mode::Reverse => {} // It is what the runtime calls.
            Mode::Augmented => call(module, derived, &name, ptr, |b, given| Some(b.extract(given, 0))),
            Mode::Combined | Mode::Forward => call(module, derived, &name, void, |_, _| None),
        }
    }
}

/// A function of `args`, `out` and `arena` that finds the shadows and calls the derivative.
fn call<'m>(
    module: Mod<'m>,
    derived: Function<'m>,
    name: &str,
    result: Type<'m>,
    of: impl Fn(&Builder<'m>, Value<'m>) -> Option<Value<'m>>,
) {
    let context = module.context();
    let ptr = context.ptr();
    let f = module.add_function(name, context.function(result, &[ptr; 3]));
    let shadow = || module.add_function(SHADOW, context.function(ptr, &[ptr; 2]));
    let shadow = module.function(SHADOW).unwrap_or_else(shadow);
    let b = Builder::new(context);
    b.at_end(f.append_block("entry"));
    if let [args, out, arena] = f.params()[..] {
        let of_args = b.call(shadow, &[arena, args]);
        let of_out = b.call(shadow, &[arena, out]);
        let given = b.call(derived, &[args, of_args, out, of_out, arena]);
        b.ret(of(&b, given));
    }
}
